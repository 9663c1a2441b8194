import Dispatch
import GroupControl
import Logging
import Room
import Synchronization

/// What the shell offers after Tab: values that are known, and names that the network tells.
///
/// Whoever presses Tab waits: when the network does not answer soon, or fails, nothing is offered
/// and no error is printed into the prompt.
enum Completions {
    /// As long as a person waits after Tab without pressing it again.
    private static let patience = Duration.milliseconds(400)

    static let logLevels = Logger.Level.allCases.map(\.rawValue)

    /// The rooms of the group that the settings mean; without a leader, those that Avahi finds.
    static func rooms() -> [String] {
        waiting {
            if let settings = try? await Settings.load(flags: [:], file: nil),
                let leader = settings.leader,
                let client = try? await GroupClient.connect(to: leader, timeout: patience),
                let status = try? await client.status()
            {
                return status.rooms.map(\.name)
            }
            return await found().map(\.name)
        }
    }

    static func leaderNames() -> [String] {
        waiting { await found().filter { $0.role == .leader }.map(\.name) }
    }

    static func leaderAddresses() -> [String] {
        waiting { await found().filter { $0.role == .leader }.map { "\($0.address)" } }
    }

    private static func found() async -> [DiscoveredRoom] {
        (try? await Discovery.rooms(for: patience)) ?? []
    }

    /// Asynchronous completions would need the whole command line to be parsed asynchronously; who
    /// presses Tab has a process that does nothing else.
    private static func waiting(_ names: @escaping @Sendable () async -> [String]) -> [String] {
        let answer = Answer()
        Task.detached {
            let names = await names()
            answer.names.withLock { $0 = names }
            answer.isThere.signal()
        }
        answer.isThere.wait()
        // A line of the shell's list is one line of letters that can be seen.
        return answer.names.withLock { $0 }.map(\.printable)
    }

    private final class Answer: Sendable {
        let names = Mutex<[String]>([])
        let isThere = DispatchSemaphore(value: 0)
    }
}
