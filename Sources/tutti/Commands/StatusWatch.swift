import TuttiGroupControl
import TuttiRoom

/// `tutti status --watch`: until Ctrl-C or `q`, or until whoever read along is gone
/// (`tutti status --watch | head -1`). A leader that goes away is waited for.
struct StatusWatch: Sendable {
    /// Between two frames on a terminal: the position moves on between events.
    private static let frame = Duration.milliseconds(250)
    /// Between two attempts to find a leader that went away, and between two lines of text.
    private static let pause = Duration.seconds(1)
    /// A node that has handed over knows in less than a second where the next leader is.
    private static let looksForNext = 10
    private static let lookForNext = Duration.milliseconds(100)

    /// Finds the leader, now or again.
    let connect: @Sendable () async throws -> GroupClient
    let hasPoints: Bool
    let isJSON: Bool
    /// Writes JSON; false when nobody reads any more.
    let print: @Sendable (GroupStatus, _ sequence: UInt64) -> Bool
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
                    // Where nobody can type, only Ctrl-C ends the watch.
                    try await Task.sleep(for: .seconds(Int64(Int32.max)))
                }
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    static func ends(_ key: UInt8) -> Bool { key == UInt8(ascii: "q") || key == UInt8(ascii: "Q") }

    /// What there is to show.
    private enum Moment: Sendable {
        case event(GroupEvent)
        case lost(String)
        case tick
    }

    private func show(_ first: GroupClient) async throws {
        var screen = LiveScreen(.output)
        defer { screen.close() }
        let (moments, moment) = AsyncStream.makeStream(
            of: Moment.self, bufferingPolicy: .bufferingNewest(8))
        let listening = Task { await listen(first) { moment.yield($0) } }
        let isDrawn = screen.isLive && !isJSON
        let ticking = Task {
            while isDrawn, (try? await Task.sleep(for: Self.frame)) != nil { moment.yield(.tick) }
        }
        defer {
            listening.cancel()
            ticking.cancel()
        }
        var last: (event: GroupEvent, at: ContinuousClock.Instant)?
        var reason: String?
        var said = ""
        var spoken: ContinuousClock.Instant?
        for await moment in moments {
            let now = ContinuousClock.now
            switch moment {
            case .event(let event):
                last = (event, now)
                reason = nil
                said = ""
                // Lines of text are for people: one a second is enough.
                if !isDrawn, !isJSON, let spoken, now - spoken < Self.pause { continue }
                spoken = now
            case .lost(let why): reason = why
            case .tick: break
            }
            var event = last?.event
            if let last, reason == nil {
                event?.status.advance(by: (now - last.at) / .seconds(1))
            }
            guard tell(event, waitingBecause: reason, on: &screen, &said) else { return }
        }
    }

    /// Listens to a leader, and to the next one when it is gone.
    private func listen(_ first: GroupClient, _ say: @Sendable (Moment) -> Void) async {
        var client: GroupClient? = first
        while !Task.isCancelled {
            var leader: GroupClient?
            do {
                let current = if let client { client } else { try await connect() }
                (client, leader) = (nil, current)
                for try await event in current.events() {
                    guard hasPoints else {
                        say(.event(event))
                        continue
                    }
                    let status = try await current.status(hasPoints: true)
                    say(.event(GroupEvent(sequence: event.sequence, status: status)))
                    try await Task.sleep(for: Self.pause)
                }
            } catch {
                guard !Task.isCancelled else { return }
                client = await Self.next(after: leader)
                guard client == nil else { continue }
                // The leader may come back at another address, so it is looked for again.
                say(.lost(sentence(for: error)))
                try? await Task.sleep(for: Self.pause)
            }
        }
    }

    /// Who leads since the lead went over; `nil` where a leader is lost, or is there again.
    private static func next(after leader: GroupClient?) async -> GroupClient? {
        guard let leader else { return nil }
        for _ in 0..<looksForNext {
            do {
                let next = try await leader.whoeverLeads { client in
                    _ = try await client.status()
                    return client
                }
                return next.address == leader.address ? nil : next
            } catch let error as RoomError where error.code == .refused {
                // It follows by now, and does not hear the next one yet.
                try? await Task.sleep(for: lookForNext)
            } catch {
                return nil
            }
        }
        return nil
    }

    /// - Parameter said: the reason that was said last: each is said once where lines stay.
    private func tell(
        _ event: GroupEvent?, waitingBecause reason: String?, on screen: inout LiveScreen,
        _ said: inout String
    ) -> Bool {
        let status = event?.status
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
        guard let event else { return true }
        return isJSON ? print(event.status, event.sequence) : screen.note(line(event.status))
    }
}
