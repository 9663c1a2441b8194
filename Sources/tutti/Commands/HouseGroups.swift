import TuttiGroupControl
import TuttiRoom

/// The groups of a house, as a command finds them.
struct HouseGroups {
    /// One of them, by the leader that answered.
    struct Group {
        var address: HostPort
        var status: GroupStatus

        func has(_ name: String) -> Bool {
            status.leader.foldedName == name.foldedName
                || status.rooms.contains { $0.name.foldedName == name.foldedName }
        }
    }

    /// A room that goes to another group has said hello there by then.
    private static let arrivalLimit = Duration.seconds(8)
    private static let pause = Duration.milliseconds(150)
    /// Who leads since a moment ago is announced by then.
    private static let announcementLimit = Duration.seconds(3)

    let groups: [Group]
    private let credentials: Credentials

    /// Finds all groups of this machine's household with Avahi, or the one that is given.
    static func look(_ options: ControlOptions) async throws -> HouseGroups {
        let settings = try await options.settings()
        let credentials = try settings.credentials()
        let search = LeaderSearch(settings, credentials)
        var groups: [Group] = []
        if settings.leader != nil || !settings.avahi {
            let client = try await search.client()
            groups = [Group(address: client.address, status: try await client.status())]
        } else {
            for leader in try await search.leaders() {
                let client = GroupClient(address: leader.address, credentials: credentials)
                guard let status = try? await client.status() else { continue }
                groups.append(Group(address: leader.address, status: status))
            }
        }
        return HouseGroups(groups: groups, credentials: credentials)
    }

    /// … once all of these rooms are in groups that answer, or after a while without them: who leads
    /// since a moment ago may not be announced yet.
    static func look(
        _ options: ControlOptions, having rooms: [String]
    ) async throws -> HouseGroups {
        let deadline = ContinuousClock.now + announcementLimit
        while true {
            do {
                let house = try await look(options)
                if rooms.allSatisfy({ room in house.groups.contains { $0.has(room) } })
                    || ContinuousClock.now >= deadline
                {
                    return house
                }
            } catch let error as RoomError {
                guard ContinuousClock.now < deadline else { throw error }
            }
            try await Task.sleep(for: pause)
        }
    }

    func client(of group: Group) -> GroupClient {
        GroupClient(address: group.address, credentials: credentials)
    }

    private var roomNames: [String] { groups.flatMap { $0.status.rooms.map(\.name) }.sorted() }

    private func group(of room: RoomID) throws -> Group {
        let found = groups.filter { group in
            group.status.rooms.contains { $0.name.foldedName == room.name.foldedName }
        }
        guard let group = found.first else {
            throw CommandError(
                "there is no room \"\(room)\" in a group that answers"
                    + (roomNames.isEmpty ? "" : "; there are \(quoted(roomNames))")
                    + Suggestion.question(for: room.name, among: roomNames))
        }
        guard found.count == 1 else {
            throw CommandError(
                "\(found.count) groups have a room \"\(room)\": say which leader with --leader HOST:PORT"
            )
        }
        return group
    }

    private func quoted(_ names: [String]) -> String {
        names.map { "\"\($0)\"" }.joined(separator: ", ")
    }

    /// The group that is meant: one with a room of this name, or led at this address.
    func group(called name: String) async throws -> Group {
        let found = groups.filter { $0.has(name) }
        if found.count == 1 { return found[0] }
        if found.isEmpty, name.contains(":") || name.contains("."),
            let address = try? HostPort(parsing: name)
        {
            return Group(
                address: address,
                status: try await GroupClient(address: address, credentials: credentials).status())
        }
        throw CommandError(
            found.isEmpty
                ? "no group with a room \"\(name)\" answers; write the name of one of its rooms, or HOST:PORT"
                    + Suggestion.question(for: name, among: roomNames)
                : "\(found.count) groups have a room \"\(name)\": write HOST:PORT of the leader that is meant"
        )
    }

    /// Sends a room to another group, and waits until it is there.
    ///
    /// - Returns: what to say of it.
    func move(_ room: RoomID, to target: Group) async throws -> String {
        let source = try group(of: room)
        guard source.address != target.address, source.status.leader != target.status.leader else {
            return "\"\(room)\" is in the group of \"\(target.status.leader)\" already"
        }
        guard !target.address.isThisMachine || source.address.isThisMachine else {
            throw CommandError(
                "\(target.address) is this machine alone: write the address by which \"\(room)\" reaches it"
            )
        }
        let leader = try await released(room, of: source)
        let next = NextLeader(
            name: try RoomID(target.status.leader), host: target.address.host,
            port: UInt16(clamping: target.address.port))
        _ = try await leader.whoeverLeads { try await $0.perform(.move(room: room, to: next)) }
        try await wait(for: room, at: target.address)
        return "\"\(room)\" is in the group of \"\(target.status.leader)\" now"
    }

    /// Lets a room lead a group of its own.
    ///
    /// - Returns: what to say of it.
    func separate(_ room: RoomID) async throws -> String {
        let source = try group(of: room)
        let isLeader = source.status.leader.foldedName == room.name.foldedName
        if isLeader, source.status.rooms.count == 1 {
            return "\"\(room)\" is alone in its group already"
        }
        let leader = try await released(room, of: source)
        _ = try await leader.whoeverLeads { try await $0.perform(.separate(room: room)) }
        return "\"\(room)\" leads a group of its own now"
    }

    /// A room that leads others hands them over first.
    ///
    /// - Returns: who leads its group by then.
    private func released(_ room: RoomID, of source: Group) async throws -> GroupClient {
        let leader = client(of: source)
        let others = source.status.rooms.filter {
            $0.name.foldedName != room.name.foldedName && $0.state != .lost
        }
        guard source.status.leader.foldedName == room.name.foldedName, !others.isEmpty else {
            return leader
        }
        let heir = try await handOver(leader, to: others.map { try RoomID($0.name) })
        // The room has gone over to the one that leads now. A new connection each time: on the old one
        // the leader of before still tells what it led.
        let deadline = ContinuousClock.now + Self.arrivalLimit
        while ContinuousClock.now < deadline {
            let found = try? await self.client(of: source).whoeverLeads { client in
                let status = try await client.status()
                let isThere = status.rooms.contains { $0.name.foldedName == room.name.foldedName }
                return status.leader.foldedName == heir.name.foldedName && isThere ? client : nil
            }
            if let client = found ?? nil { return client }
            try await Task.sleep(for: Self.pause)
        }
        throw CommandError(
            "\"\(heir)\" has taken the lead, and \"\(room)\" has not followed yet; try again")
    }

    /// To the first of these that takes it: not every machine can lead, and a second output of one has no
    /// node of its own.
    private func handOver(_ leader: GroupClient, to rooms: [RoomID]) async throws -> RoomID {
        var last: RoomError?
        for room in rooms {
            do {
                _ = try await leader.whoeverLeads { try await $0.perform(.handOver(to: room)) }
                return room
            } catch let error as RoomError where error.code == .refused {
                last = error
            }
        }
        throw last ?? RoomError(.refused, "there is nobody to hand the lead to")
    }

    private func wait(for room: RoomID, at address: HostPort) async throws {
        let deadline = ContinuousClock.now + Self.arrivalLimit
        let target = GroupClient(address: address, credentials: credentials)
        while ContinuousClock.now < deadline {
            if let status = try? await target.status(),
                status.rooms.contains(where: { $0.name.foldedName == room.name.foldedName })
            {
                return
            }
            try await Task.sleep(for: Self.pause)
        }
        throw CommandError(
            "\"\(room)\" was sent to the leader at \(address), and is not there yet: see tutti status"
        )
    }
}
