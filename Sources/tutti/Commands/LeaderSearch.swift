import ArgumentParser
import TuttiGroupControl
import TuttiRoom

/// Finds the leader that a command is for.
///
/// The choice is the same whatever is remembered; who remembers only knows sooner that there is
/// nothing else to wait for.
struct LeaderSearch {
    /// Long enough for Avahi's answers from a busy wifi, short enough to wait for at a prompt.
    static let patience: [Duration] = [.milliseconds(400), .milliseconds(1_600)]
    /// A leader that is there answers within this, also over a busy wifi.
    static let answerLimit = Duration.seconds(1)
    /// A leader that is announced and silent may have handed over just now: the next one is announced soon.
    private static let afterSilence = [Duration.seconds(1), .seconds(1)]
    /// A remembered leader answers within this; else the LAN is looked at.
    static let knownAnswerLimit = Duration.milliseconds(300)

    let settings: Settings
    let credentials: Credentials
    /// A room that the command is about: where there are several groups its own is meant.
    let room: String?
    /// What was seen last is not relied on, and who leads since a moment ago is waited for: Avahi takes a
    /// second to announce it (RFC 6762, 8.1).
    let looksAnew: Bool

    init(
        _ settings: Settings, _ credentials: Credentials, about room: RoomID? = nil,
        looksAnew: Bool = false
    ) {
        self.looksAnew = looksAnew
        self.settings = settings
        self.credentials = credentials
        self.room = room?.name
    }

    /// Of which household the leaders are that count; `nil`: open ones.
    private var ownHousehold: String? { try? HouseholdAccess(credentials).announced }

    /// The leader that is meant; it has just answered.
    func client() async throws -> GroupClient {
        if let leader = settings.leader { return try await client(at: leader) }
        guard settings.avahi else {
            throw ValidationError("Without Avahi the leader must be given: --leader HOST:PORT")
        }
        var memory = looksAnew ? nil : LeaderMemory.read(in: settings.stateFolder)
        var seen: Set<String> = []
        var others: [DiscoveredRoom] = []
        let own = ownHousehold
        // Where a leader is lost the next one is announced by the time of the last look.
        var silence: RoomError?
        let looks = looksAnew ? Self.patience.suffix(1) : Self.patience[...]
        for (number, duration) in (looks + Self.afterSilence).enumerated() {
            guard number < looks.count || silence != nil else { break }
            let expected = memory
            let rooms = try await Discovery.rooms(for: duration) { leaders in
                expected?.confirms(leaders.filter { $0.household == own }) ?? false
            }
            let all = rooms.filter { $0.role == .leader }
            let group = Self.leader(
                of: settings.group ?? Self.hint(room ?? settings.name, among: rooms, own: own),
                among: rooms.filter { $0.household == own })
            let announced = all.filter { $0.household == own }
            others = all.filter { $0.household != own }
            seen.formUnion(announced.map { "\($0.name)" })
            if memory.take()?.confirms(announced) ?? false,
                Self.meant(announced, group: group).count == 1
            {
                if let known = await known(announced, group) { return client(of: known) }
                // The remembered leader is silent: the next look takes its whole time.
                continue
            }
            switch try await choice(of: announced, group) {
            case .answers(let leader): return client(of: leader)
            case .silent(let error): silence = error
            case .nobody: break
            }
        }
        if let silence { throw silence }
        if let stranger = Self.meant(others, group: settings.group).first {
            throw Self.otherHousehold(stranger, own: own, isOpen: settings.isOpen)
        }
        throw RoomError(
            .noLeader,
            settings.group.map {
                "no leader named \"\($0)\" answers on this network: see tutti rooms, or give --leader HOST:PORT"
                    + Suggestion.question(for: "\($0)", among: seen.sorted())
            }
                ?? "no leader answers on this network: start one with tutti node or tutti lead FILE, or give --leader HOST:PORT"
        )
    }

    /// All leaders of this machine's household that answer.
    func leaders() async throws -> [DiscoveredRoom] {
        let own = ownHousehold
        let announced = try await Discovery.leaders(for: Self.patience[0])
            .filter { $0.household == own }
        let answering = await Discovery.answering(
            announced, within: Self.answerLimit, credentials: credentials)
        guard !answering.isEmpty else {
            throw RoomError(
                .noLeader,
                "no leader answers on this network: start `tutti node` or `tutti lead FILE`")
        }
        return answering
    }

    private func client(of leader: DiscoveredRoom) -> GroupClient {
        GroupClient(address: leader.address, credentials: credentials)
    }

    /// A leader that this machine has nothing to say to: whose it is, and what to do.
    private static func otherHousehold(
        _ leader: DiscoveredRoom, own: String?, isOpen: Bool
    ) -> RoomError {
        if leader.household == nil {
            return RoomError(
                .stranger,
                "the leader \"\(leader.name)\" is open to everybody, and is steered with --open")
        }
        if isOpen {
            return RoomError(
                .stranger,
                "the leader \"\(leader.name)\" belongs to a household, and is steered without --open"
            )
        }
        return RoomError(
            .stranger,
            own == nil
                ? "this machine belongs to no household: pair it with that of \"\(leader.name)\" by `tutti join`"
                : "the leader \"\(leader.name)\" belongs to another household than this machine; to move there, `tutti household leave` and `tutti join`"
        )
    }

    /// Where a household can be joined: the leader that is given, or the only household there is.
    func anyHousehold() async throws -> HostPort {
        if let leader = settings.leader { return leader }
        guard settings.avahi else {
            throw ValidationError("Without Avahi the leader must be given: --leader HOST:PORT")
        }
        for duration in Self.patience {
            let announced = try await Discovery.leaders(for: duration)
            let leaders = Self.meant(announced, group: settings.group)
                .filter { $0.household != nil && $0.household != ownHousehold }
            let houses = Set(leaders.map(\.household))
            guard houses.count <= 1 else {
                let names = leaders.map { "\"\($0.name)\"" }.joined(separator: ", ")
                throw CommandError(
                    "\(houses.count) households are here, led by \(names): say which one with --group ROOM or --leader HOST:PORT"
                )
            }
            if let leader = leaders.first { return leader.address }
        }
        throw RoomError(
            .noLeader,
            "no household can be found on this network: start `tutti lead` on one of its members, or give --leader HOST:PORT"
        )
    }

    /// The one whose address is given, whatever it is called.
    private func client(at address: HostPort) async throws -> GroupClient {
        // A node that follows sends on.
        let (client, name) = try await GroupClient(address: address, credentials: credentials)
            .whoeverLeads { ($0, try await $0.status().leader) }
        if let group = settings.group, group.foldedName != name.foldedName {
            let warning = GroupClient.otherName(name, at: address, insteadOf: group)
            Terminal.error.say("tutti: warning: \(warning)")
        }
        return client
    }

    /// The leader of the last look, when the daemon knows of no other one and it answers.
    private func known(
        _ announced: [DiscoveredRoom], _ group: String?
    ) async -> DiscoveredRoom? {
        await Discovery.answering(
            Self.meant(announced, group: group), within: Self.knownAnswerLimit,
            credentials: credentials
        ).first
    }

    private enum Choice {
        case answers(DiscoveredRoom)
        case silent(RoomError)
        case nobody
    }

    private func choice(
        of announced: [DiscoveredRoom], _ group: String?
    ) async throws -> Choice {
        let meant = Self.meant(announced, group: group)
        guard !meant.isEmpty else { return .nobody }
        let answering = await Discovery.answering(
            meant, within: Self.answerLimit, credentials: credentials)
        guard let choice = try Self.choose(answering, group: group) else {
            return .silent(RoomError(.unreachable, Self.silence(of: meant)))
        }
        LeaderMemory(announced).write(in: settings.stateFolder)
        return .answers(choice)
    }

    /// Of several groups that of the room which a command is about, or which is this machine.
    ///
    /// - Returns: `nil` where nobody has to choose, or it is in none.
    static func hint(_ room: String, among rooms: [DiscoveredRoom], own: String?) -> String? {
        let known = rooms.filter { $0.household == own }
        guard known.count(where: { $0.role == .leader }) > 1,
            known.contains(where: { $0.isCalled(room) })
        else { return nil }
        return room
    }

    /// Who leads the group that has a room of this name, as far as it is announced; the name itself
    /// where nobody knows better.
    static func leader(of group: String?, among rooms: [DiscoveredRoom]) -> String? {
        guard let group else { return nil }
        let called = rooms.filter { $0.isCalled(group) }
        guard !called.contains(where: { $0.role == .leader }) else { return group }
        let leaders = Set(called.map(\.group).filter { !$0.isEmpty })
        return leaders.count == 1 ? leaders.first : group
    }

    static func silence(of leaders: [DiscoveredRoom]) -> String {
        guard leaders.count == 1 else {
            return
                "\(leaders.count) leaders are announced, and none answers: are they still there? See tutti rooms"
        }
        return
            "the leader \"\(leaders[0].name)\" is announced at \(leaders[0].address), and does not answer: is it still there, and is the port open?"
    }

    static func meant(_ leaders: [DiscoveredRoom], group: String?) -> [DiscoveredRoom] {
        leaders.filter { leader in group.map(leader.isCalled) ?? true }
    }

    /// The leader to talk to; `nil` while there is none.
    ///
    /// - Throws: when there are several and nothing says which.
    static func choose(
        _ leaders: [DiscoveredRoom], group: String?
    ) throws(CommandError) -> DiscoveredRoom? {
        let leaders = meant(leaders, group: group)
        guard leaders.count > 1 else { return leaders.first }
        if let group {
            let addresses = leaders.map { "\($0.label) at \($0.address)" }.joined(separator: ", ")
            throw CommandError(
                "\(leaders.count) leaders are named \"\(group)\": \(addresses); choose one with --leader HOST:PORT"
            )
        }
        let names = leaders.map { "\"\($0.name)\" (\($0.address))" }.joined(separator: ", ")
        throw CommandError(
            "\(leaders.count) leaders answer: \(names); choose one with --group ROOM or --leader HOST:PORT"
        )
    }
}
