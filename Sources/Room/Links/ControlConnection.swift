import GroupControl
import NIOCore
import Synchronization
import Wire

/// One connection to a leader: questions and their answers in order, events in between.
///
/// It may be asked while it is still being made. Once it is closed it stays so.
final class ControlConnection: Sendable {
    typealias Events = AsyncThrowingStream<GroupEvent, any Error>
    fileprivate typealias Answer = CheckedContinuation<ControlReply?, any Error>

    /// A question on its way. Its place is kept when nobody waits for the answer any more: the
    /// answers come in order.
    fileprivate struct Asked {
        var id: Int
        var answer: Answer?
    }

    fileprivate enum Phase {
        case connecting
        case open
        case closed(any Error)
    }

    fileprivate struct State {
        var phase = Phase.connecting
        var asked: [Asked] = []
        var listeners: [Int: Events.Continuation] = [:]
        /// Questions that were given up before they were put.
        var withdrawn: Set<Int> = []
        var latest: GroupEvent?
        var isWatching = false
        var hasAnswered = false
        var isToThisMachine = false
        var lastID = 0
        var running: Task<Void, Never>?
    }

    /// What the task that serves the connection knows; it does not keep the connection itself.
    fileprivate final class Shared: Sendable {
        let address: HostPort
        let state = Mutex(State())
        let (requests, request) = AsyncStream.makeStream(of: ControlRequest.self)

        init(_ address: HostPort) { self.address = address }
    }

    private let shared: Shared

    init(to address: HostPort, within timeout: Duration, _ attempts: ConnectionRace.Attempts) {
        let shared = Shared(address)
        self.shared = shared
        let task = Task { await shared.run(timeout, attempts) }
        shared.state.withLock { $0.running = task }
    }

    deinit {
        shared.close(RoomError(.unreachable, "the connection to \(shared.address) was given up"))
    }

    var isOpen: Bool {
        shared.state.withLock { if case .closed = $0.phase { false } else { true } }
    }

    /// Whether it ever came to an answer: then it is a leader's, and worth another connection.
    var hasAnswered: Bool { shared.state.withLock { $0.hasAnswered } }

    /// Whether the other end is on this machine; false until it is known.
    var isToThisMachine: Bool { shared.state.withLock { $0.isToThisMachine } }

    /// - Returns: `nil` when the connection was closed before the question was put.
    /// - Throws: `RoomError` when it is closed afterwards, or the answer takes too long.
    func ask(_ request: ControlRequest, within timeout: Duration) async throws -> ControlReply? {
        let shared = shared
        let id = shared.newID()
        let timer = Task {
            try await Task.sleep(for: timeout)
            shared.expire()
        }
        defer { timer.cancel() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { shared.put(request, id, $0) }
        } onCancel: {
            shared.withdraw(id)
        }
    }

    /// The present state and each that follows.
    func events() -> Events {
        let shared = shared
        return Events(bufferingPolicy: .bufferingNewest(1)) { continuation in
            shared.listen(continuation)
            // The connection is kept as long as somebody listens.
            continuation.onTermination = { [self] _ in withExtendedLifetime(self) {} }
        }
    }
}

extension ControlConnection.Shared {
    func newID() -> Int {
        state.withLock {
            $0.lastID += 1
            return $0.lastID
        }
    }

    func put(_ request: ControlRequest, _ id: Int, _ answer: ControlConnection.Answer) {
        let problem: Result<ControlReply?, any Error>? = state.withLock { state in
            if state.withdrawn.remove(id) != nil { return .failure(CancellationError()) }
            // One that never was a leader's is no better at the next try.
            if case .closed(let error) = state.phase {
                return state.hasAnswered ? .success(nil) : .failure(error)
            }
            state.asked.append(ControlConnection.Asked(id: id, answer: answer))
            // In the order of the list, which is that of the answers.
            self.request.yield(request)
            return nil
        }
        if let problem { answer.resume(with: problem) }
    }

    func withdraw(_ id: Int) {
        let answer = state.withLock { state -> ControlConnection.Answer? in
            guard let place = state.asked.firstIndex(where: { $0.id == id }) else {
                state.withdrawn.insert(id)
                return nil
            }
            defer { state.asked[place].answer = nil }
            return state.asked[place].answer
        }
        answer?.resume(throwing: CancellationError())
    }

    func listen(_ continuation: ControlConnection.Events.Continuation) {
        let id = newID()
        let (latest, error) = state.withLock { state -> (GroupEvent?, (any Error)?) in
            if case .closed(let error) = state.phase { return (nil, error) }
            state.listeners[id] = continuation
            if !state.isWatching { request.yield(.watch) }
            state.isWatching = true
            return (state.latest, nil)
        }
        if let latest { continuation.yield(latest) }
        if let error { continuation.finish(throwing: error) }
    }

    /// An answer took too long; those behind it would too.
    func expire() {
        let isConnected = state.withLock { if case .connecting = $0.phase { false } else { true } }
        close(
            RoomError(
                .timedOut,
                isConnected
                    ? "what listens at \(address) took the connection but did not answer: is it a Tutti leader, and is that machine overloaded?"
                    : "nobody answers at \(address): is that machine on, and its name or address right?"
            ))
    }

    /// The first reason counts.
    func close(_ error: any Error) {
        let before = state.withLock { state -> ControlConnection.State? in
            if case .closed = state.phase { return nil }
            let hasAnswered = state.hasAnswered
            defer {
                state = ControlConnection.State()
                state.phase = .closed(error)
                state.hasAnswered = hasAnswered
            }
            return state
        }
        guard let before else { return }
        request.finish()
        before.running?.cancel()
        for asked in before.asked { asked.answer?.resume(throwing: error) }
        for listener in before.listeners.values { listener.finish(throwing: error) }
    }

    // MARK: Serving

    func run(_ timeout: Duration, _ attempts: ConnectionRace.Attempts) async {
        do {
            let channel = try await connect(
                to: address, timeout: .nanoseconds(timeout.wholeNanoseconds),
                limit: FrameDecoder.clientLimit, attempts: attempts)
            state.withLock {
                guard case .connecting = $0.phase else { return }
                $0.phase = .open
                $0.isToThisMachine = channel.channel.isFromHere
            }
            try await channel.executeThenClose { inbound, outbound in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask {
                        for await request in self.requests {
                            try await outbound.write(.request(request))
                        }
                    }
                    group.addTask {
                        for try await envelope in inbound {
                            guard case .reply(let reply) = envelope else { continue }
                            self.take(reply)
                        }
                    }
                    defer { group.cancelAll() }
                    try await group.next()
                }
            }
            close(RoomError(.unreachable, "the leader at \(address) closed the connection"))
        } catch let error as WireError {
            close(
                RoomError(
                    .protocolViolation,
                    "what answers at \(address) is no Tutti leader of this version: is the port right? A leader's is \(HostPort.defaultPort) as a rule",
                    call: "\(error)"))
        } catch let error as IOError {
            // It was taken, and broken off: the leader is on its way out.
            close(
                RoomError(
                    .unreachable, "the leader at \(address) broke off the connection (\(error))"))
        } catch {
            close(error)
        }
    }

    private func take(_ reply: ControlReply) {
        if case .event(let event) = reply {
            let listeners = state.withLock { state in
                state.latest = event
                return Array(state.listeners.values)
            }
            for listener in listeners { listener.yield(event) }
            return
        }
        let asked = state.withLock { state in
            state.hasAnswered = true
            return state.asked.isEmpty ? nil : state.asked.removeFirst()
        }
        asked?.answer?.resume(returning: reply)
    }
}
