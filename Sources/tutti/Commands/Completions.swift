import GroupControl
import Logging
import Room

/// What the shell offers after Tab: values that are known, and names that the network tells.
///
/// Whoever presses Tab waits: nothing is said when the network does not answer soon, and errors
/// are none of the shell's.
enum Completions {
    /// As long as a person waits after Tab without pressing it again.
    private static let patience = Duration.milliseconds(400)

    static let logLevels = Logger.Level.allCases.map(\.rawValue)

    /// The rooms of the group that the settings mean, and, without a leader, those that Avahi finds.
    static func rooms() async -> [String] {
        if let settings = try? await Settings.load(flags: [:], file: nil),
            let leader = settings.leader,
            let client = try? await GroupClient.connect(to: leader, timeout: patience),
            let status = try? await client.status()
        {
            return status.rooms.map(\.name).map(escaped)
        }
        return await found().map(\.name).map(escaped)
    }

    static func leaderNames() async -> [String] {
        await found().filter { $0.role == .leader }.map(\.name).map(escaped)
    }

    static func leaderAddresses() async -> [String] {
        await found().filter { $0.role == .leader }.map { "\($0.address)" }
    }

    private static func found() async -> [DiscoveredRoom] {
        (try? await Discovery.rooms(for: patience)) ?? []
    }

    /// A line of the shell's list must be one line of letters that can be seen.
    private static func escaped(_ name: String) -> String { name.printable }
}
