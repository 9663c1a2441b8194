import GroupControl
import Room

/// `tutti status --watch`: until Ctrl-C or `q`, or until whoever read along is gone
/// (`tutti status --watch | head -1`). A leader that goes away is waited for.
struct StatusWatch: Sendable {
    /// Between two frames on a terminal; elsewhere a line a second.
    private static let frame = Duration.milliseconds(250)
    private static let pause = Duration.seconds(1)

    /// Finds the leader, now or again.
    let connect: @Sendable () async throws -> GroupClient
    let hasPoints: Bool
    let isJSON: Bool
    /// Writes JSON. Each of these says whether anybody reads.
    let print: @Sendable (GroupStatus) -> Bool
    let lines: @Sendable (GroupStatus, _ width: Int, _ showsColour: Bool) -> [String]
    let line: @Sendable (GroupStatus) -> String

    func run() async throws {
        // A leader that was never there is an error, as without --watch.
        let client = try await connect()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await show(client) }
            if Terminal.output.isInteractive, !isJSON {
                let keys = TerminalMode.shared.keys()
                group.addTask {
                    for await key in keys where Self.ends(key) { return }
                    // Nobody can type: until Ctrl-C.
                    try await Task.sleep(for: .seconds(Int64(Int32.max)))
                }
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    static func ends(_ key: UInt8) -> Bool { key == UInt8(ascii: "q") || key == UInt8(ascii: "Q") }

    private func show(_ first: GroupClient) async throws {
        var screen = LiveScreen(.output)
        defer { screen.close() }
        var client: GroupClient? = first
        var last: GroupStatus?
        var said = ""
        while true {
            var reason: String?
            do {
                if client == nil { client = try await connect() }
                last = try await client?.status(hasPoints: hasPoints)
                said = ""
            } catch {
                try Task.checkCancellation()
                // It may come back somewhere else.
                client = nil
                reason = sentence(for: error)
            }
            guard tell(last, waitingBecause: reason, on: &screen, &said) else { return }
            let pause = screen.isLive && !isJSON && reason == nil ? Self.frame : Self.pause
            try await Task.sleep(for: pause)
        }
    }

    /// - Parameter said: the reason that was said last: each is said once where lines stay.
    private func tell(
        _ status: GroupStatus?, waitingBecause reason: String?, on screen: inout LiveScreen,
        _ said: inout String
    ) -> Bool {
        if screen.isLive, !isJSON {
            var text = status.map { lines($0, screen.width, screen.showsColour) } ?? []
            if let reason { text.append("waiting for the leader: \(reason)".printable) }
            return screen.draw(text)
        }
        if let reason {
            if said.isEmpty { Terminal.error.say("tutti: waiting for the leader: \(reason)") }
            said = reason
            return true
        }
        guard let status else { return true }
        return isJSON ? print(status) : screen.note(line(status))
    }
}
