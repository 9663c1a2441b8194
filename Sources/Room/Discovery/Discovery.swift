import Logging
import TuttiAvahiDiscovery
import TuttiGroupControl
import TuttiTiming

/// A room as the LAN announces it.
public struct DiscoveredRoom: Hashable, Sendable {
    /// Whether it leads a group or follows one.
    public enum Role: String, Sendable { case leader, follower }

    /// What its owner calls it.
    public var name: String
    /// Whether it leads a group, and can be asked, or follows one.
    public var role: Role
    /// What tells it from others of the same name on this LAN: "kitchen", "kitchen #2".
    public var label: String
    /// The host's mDNS name.
    public var host: String
    /// Where its control service may listen (a follower has none: port 0); the most likely first.
    /// Empty while no address is known.
    public var addresses: [HostPort]
    /// Names the group that the room leads or follows; empty while it follows none.
    public var group: String
    /// Which household it says that it belongs to; `nil`: it is open to everybody. A hint: who it is,
    /// its key says.
    public var household: String?
    /// It belongs to nobody, and founds a household where it finds none.
    var mayFound = false

    /// Addresses of one room that are tried.
    static let mostAddresses = 16

    /// The most likely one.
    public var address: HostPort {
        addresses.first ?? HostPort(host: host, port: 0)
    }

    init(
        name: String, role: Role, label: String? = nil, host: String = "", addresses: [HostPort],
        group: String = "", household: String? = nil
    ) {
        self.name = name
        self.role = role
        self.label = label ?? name
        self.host = host
        self.addresses = addresses
        self.group = group
        self.household = household
    }

    init?(_ service: Service) {
        guard let role = service.attributes["role"].flatMap(Role.init(rawValue:)) else {
            return nil
        }
        let attributes = service.attributes
        self.init(
            name: AnnouncedText.value("name", in: attributes) ?? service.name, role: role,
            label: service.name, host: service.hostName,
            addresses: Self.ordered(
                service.endpoints.map { HostPort(host: $0.address, port: $0.port) }),
            group: AnnouncedText.value("group", in: attributes) ?? "",
            household: attributes["household"].flatMap(Self.householdText))
        mayFound = attributes["founds"] == "1" && household == nil
    }

    /// Sixteen hexadecimal digits, or nothing: it is anybody's text.
    private static func householdText(_ text: String) -> String? {
        text.utf8.count == 16 && text.allSatisfy(\.isHexDigit) ? text.lowercased() : nil
    }

    /// Whether somebody who writes `group` means this one.
    public func isCalled(_ group: String) -> Bool {
        [name, label].contains { $0.foldedName == group.foldedName }
    }

    /// IPv4 before IPv6 (no scopes), and what reaches beyond one wire before what does not.
    static func ordered(_ addresses: [HostPort]) -> [HostPort] {
        func rank(_ address: HostPort) -> Int {
            let host = address.host
            if host.contains(":") { return host.hasPrefix("fe80:") ? 3 : 1 }
            return host.hasPrefix("169.254.") ? 2 : 0
        }
        var seen: Set<HostPort> = []
        let distinct = addresses.filter { seen.insert($0).inserted }
        let ranked = (0...3).flatMap { wanted in distinct.filter { rank($0) == wanted } }
        return Array(ranked.prefix(mostAddresses))
    }
}

/// What is heard of rooms on the LAN.
enum RoomSighting: Sendable {
    /// There, or with other addresses than before.
    case found(DiscoveredRoom)
    case gone(label: String)
    /// All that this machine's daemon knew has been told.
    case knownTold
    /// All that answered at first have been told.
    case answersTold
    case daemonLost

    init?(_ event: ServiceEvent) {
        switch event {
        case .found(let service):
            guard let room = DiscoveredRoom(service) else { return nil }
            self = .found(room)
        case .removed(let name): self = .gone(label: name)
        case .cacheReported: self = .knownTold
        case .allKnownReported: self = .answersTold
        case .daemonLost: self = .daemonLost
        }
    }
}

/// One-off look around the LAN.
public enum Discovery {
    /// All rooms that answer within `duration`, by name; IPv4 addresses are preferred.
    ///
    /// - Parameter isEnough: asked of the leaders when the daemon has told what it knew already, within
    ///   milliseconds as a rule, and at each change after that; when it says so, nobody else is
    ///   waited for.
    /// - Throws: `RoomError` with code `noDiscovery` where Avahi cannot be reached.
    public static func rooms(
        for duration: Duration,
        untilLeaders isEnough: @escaping @Sendable ([DiscoveredRoom]) -> Bool = { _ in false }
    ) async throws -> [DiscoveredRoom] {
        try await look(for: duration) { isEnough($0.filter { $0.role == .leader }) }
    }

    /// All leaders that are announced within `duration`; see ``rooms(for:untilLeaders:)``.
    public static func leaders(for duration: Duration) async throws -> [DiscoveredRoom] {
        try await rooms(for: duration).filter { $0.role == .leader }
    }

    /// Of these leaders, the ones that answer, each at the address where it did so first.
    ///
    /// They are asked side by side: an announcement may be left over from a leader that is gone.
    public static func answering(
        _ leaders: [DiscoveredRoom], within limit: Duration, credentials: Credentials = .open
    ) async -> [DiscoveredRoom] {
        var answering: [DiscoveredRoom] = []
        for begin in stride(
            from: 0, to: min(leaders.count, LeaderList.most), by: RollCall.mostAtOnce)
        {
            let some = leaders[begin..<min(begin + RollCall.mostAtOnce, leaders.count)]
            answering += await withTaskGroup(of: DiscoveredRoom?.self) { group in
                for leader in some {
                    group.addTask {
                        let address = await LeaderProbe.first(
                            of: leader.addresses, named: leader.name,
                            within: Nanoseconds(limit.wholeNanoseconds),
                            ask: LeaderProbe.ask(with: credentials))
                        guard let address else { return nil }
                        var leader = leader
                        leader.addresses = [address]
                        return leader
                    }
                }
                return await group.reduce(into: []) { $0 += $1.map { [$0] } ?? [] }
            }
        }
        return answering.sorted { ($0.name, $0.address.port) < ($1.name, $1.address.port) }
    }

    private static func look(
        for duration: Duration, until isEnough: @escaping @Sendable ([DiscoveredRoom]) -> Bool
    ) async throws -> [DiscoveredRoom] {
        let session = try openSession()
        let stream = session.browse()
        let seen = await withTaskGroup(of: [String: DiscoveredRoom].self) { group in
            group.addTask {
                var seen: [String: DiscoveredRoom] = [:]
                var isKnownTold = false
                for await event in stream {
                    switch RoomSighting(event) {
                    case .found(let room):
                        seen[room.label] = room.addresses.isEmpty ? nil : room
                    case .gone(let label): seen[label] = nil
                    case .knownTold: isKnownTold = true
                    case .answersTold, .daemonLost, nil: break
                    }
                    if isKnownTold, isEnough(Array(seen.values)) { break }
                }
                return seen
            }
            group.addTask {
                try? await Task.sleep(for: duration)
                return [:]
            }
            // The first to end is the timer, as a rule: a cancelled browser returns what it saw.
            var result: [String: DiscoveredRoom] = [:]
            for await seen in group {
                result.merge(seen) { _, new in new }
                group.cancelAll()
            }
            return result
        }
        guard session.isConnected || !seen.isEmpty else {
            throw RoomError(
                .noDiscovery,
                "\(daemonIsSilent), or give the leader's address with --leader HOST:PORT")
        }
        return seen.values.sorted { ($0.name, $0.address.port) < ($1.name, $1.address.port) }
    }

    static let daemonIsSilent =
        "avahi-daemon does not answer: start it (systemctl start avahi-daemon)"

    /// A daemon that was only just started is not complained about.
    static let daemonPatience = Nanoseconds.seconds(2)

    /// Why a session finds nobody just now, for people; `nil` where nothing is in its way.
    static func obstacle(to session: AvahiSession) -> String? {
        if let interface = session.missingInterface {
            return
                "there is no network interface \"\(interface)\" now, and Avahi is to be used on no other one; it is waited for"
        }
        return session.isConnected ? nil : daemonIsSilent
    }

    /// Says it when the daemon does not answer; who asked goes on waiting for it.
    ///
    /// - Parameters:
    ///   - consequence: what does not work meanwhile.
    ///   - obstacle: see ``obstacle(to:)``.
    static func warnOfSilence(
        after patience: Nanoseconds = daemonPatience, consequence: String, logger: Logger,
        obstacle: () -> String?
    ) async {
        await LoopExecutor.shared.sleep(for: patience)
        guard !Task.isCancelled, let obstacle = obstacle() else { return }
        logger.warning("\(obstacle)", metadata: ["until then": "\(consequence)"])
    }

    /// - Parameter interface: see ``NodeConfiguration/networkInterface``.
    static func openSession(on interface: String? = nil) throws(RoomError) -> AvahiSession {
        do {
            return try AvahiSession(interface: interface)
        } catch {
            throw RoomError(
                .noDiscovery,
                "rooms cannot be found by name: \(error.reason); or give the leader's address with --leader HOST:PORT"
            )
        }
    }
}
