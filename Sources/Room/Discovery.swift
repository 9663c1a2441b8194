import AvahiDiscovery
import Logging
import Timing

/// A room as the LAN announces it.
public struct DiscoveredRoom: Hashable, Sendable {
    public enum Role: String, Sendable { case leader, follower }

    public var name: String
    public var role: Role
    /// The host's mDNS name.
    public var host: String
    /// Where its control service listens (a follower has none: port 0).
    public var address: HostPort
    /// Names the group that the room leads or follows; empty while it follows none.
    public var group: String

    init?(_ service: Service) {
        guard let role = service.attributes["role"].flatMap(Role.init(rawValue:)) else {
            return nil
        }
        name = service.attributes["name"] ?? service.name
        self.role = role
        host = service.hostName
        address = HostPort(host: service.address, port: service.port)
        group = service.attributes["group"] ?? ""
    }
}

/// One-off look around the LAN.
public enum Discovery {
    /// All rooms that answer within `duration`, by name; IPv4 addresses are preferred.
    ///
    /// - Throws: `RoomError` with code `noDiscovery` where Avahi cannot be reached.
    public static func rooms(for duration: Duration) async throws -> [DiscoveredRoom] {
        let session = try openSession()
        let stream = session.browse()
        let seen = await withTaskGroup(of: [String: DiscoveredRoom].self) { group in
            group.addTask {
                var seen: [String: DiscoveredRoom] = [:]
                for await event in stream {
                    switch event {
                    case .found(let service):
                        guard let room = DiscoveredRoom(service) else { continue }
                        if seen[service.name].map({ isBetter(room, than: $0) }) ?? true {
                            seen[service.name] = room
                        }
                    case .removed(let name): seen[name] = nil
                    case .allKnownReported, .daemonLost: break
                    }
                }
                return seen
            }
            group.addTask {
                try? await Task.sleep(for: duration)
                return [:]
            }
            // The first to end is the timer: a cancelled browser returns what it saw.
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

    /// All leaders that answer within `duration`.
    public static func leaders(for duration: Duration) async throws -> [DiscoveredRoom] {
        try await rooms(for: duration).filter { $0.role == .leader }
    }

    private static let daemonIsSilent =
        "avahi-daemon does not answer: start it (systemctl start avahi-daemon)"

    /// A daemon that was only just started is not complained about.
    static let daemonPatience = Nanoseconds.seconds(2)

    /// Says it when the daemon does not answer; who asked goes on waiting for it.
    ///
    /// - Parameter consequence: what does not work meanwhile.
    static func warnOfSilence(
        after patience: Nanoseconds = daemonPatience, consequence: String, logger: Logger,
        isConnected: () -> Bool
    ) async {
        await LoopExecutor.shared.sleep(for: patience)
        guard !Task.isCancelled, !isConnected() else { return }
        logger.warning("\(daemonIsSilent)", metadata: ["until then": "\(consequence)"])
    }

    static func openSession() throws(RoomError) -> AvahiSession {
        do {
            return try AvahiSession()
        } catch {
            throw RoomError(
                .noDiscovery,
                "rooms cannot be found by name: \(error.reason); or give the leader's address with --leader HOST:PORT"
            )
        }
    }

    /// An IPv4 address beats IPv6 (no scopes, one per host), a real interface beats none.
    static func isBetter(_ a: DiscoveredRoom, than b: DiscoveredRoom) -> Bool {
        !a.address.host.contains(":") && b.address.host.contains(":")
    }
}
