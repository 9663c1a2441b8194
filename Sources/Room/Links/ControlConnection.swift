import Dispatch
import NIOCore
import Synchronization
import TuttiGroupControl
import TuttiSecureLinks
import TuttiWire

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

    /// Questions at once: more than any program has.
    private static let mostQuestions = 256

    fileprivate enum Phase {
        case connecting
        /// Somebody has taken it, and has not shown yet who it is.
        case taken
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
        /// When an answer came last.
        var answered = ContinuousClock.now
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

    init(
        to address: HostPort, within timeout: Duration, _ attempts: ConnectionRace.Attempts,
        _ credentials: Credentials
    ) {
        let shared = Shared(address)
        self.shared = shared
        let task = Task { await shared.run(timeout, attempts, credentials) }
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
    ///
    /// The time of a question begins with the answer before its own: a leader answers in order, and
    /// holds back the answer to a command until it is known what comes of it.
    func ask(_ request: ControlRequest, within timeout: Duration) async throws -> ControlReply? {
        let shared = shared
        let id = shared.newID()
        let asked = ContinuousClock.now
        let timer = Task {
            while true {
                let deadline = max(asked, shared.answered) + timeout
                guard ContinuousClock.now < deadline else { return shared.expire() }
                try await Task.sleep(until: deadline)
            }
        }
        defer {
            timer.cancel()
            shared.forget(id)
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation {
                shared.put(request, id, $0, most: Self.mostQuestions)
            }
        } onCancel: {
            shared.withdraw(id)
        }
    }

    /// The present state and each that follows.
    func events() -> Events {
        let shared = shared
        return Events(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let id = shared.listen(continuation)
            // The connection is kept as long as somebody listens. Not on the thread that cancels:
            // it holds the lock of the task that listened, for which whoever tells it of an event
            // waits, with our lock.
            continuation.onTermination = { [self] _ in
                DispatchQueue.global().async { withExtendedLifetime(self) { shared.leave(id) } }
            }
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

    func put(
        _ request: ControlRequest, _ id: Int, _ answer: ControlConnection.Answer, most: Int
    ) {
        let problem: Result<ControlReply?, any Error>? = state.withLock { state in
            if state.withdrawn.remove(id) != nil { return .failure(CancellationError()) }
            // One that never was a leader's is no better at the next try.
            if case .closed(let error) = state.phase {
                return state.hasAnswered ? .success(nil) : .failure(error)
            }
            guard state.asked.count < most else {
                return .failure(
                    RoomError(.refused, "\(most) questions wait for their answers already"))
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

    /// Nobody waits for this question any more.
    func forget(_ id: Int) { state.withLock { _ = $0.withdrawn.remove(id) } }

    var answered: ContinuousClock.Instant { state.withLock { $0.answered } }

    /// - Returns: what ``leave(_:)`` knows it by.
    func listen(_ continuation: ControlConnection.Events.Continuation) -> Int {
        let id = newID()
        let error = state.withLock { state -> (any Error)? in
            if case .closed(let error) = state.phase { return error }
            state.listeners[id] = continuation
            // Under the lock: what comes later must not be overtaken by it.
            if let latest = state.latest { continuation.yield(latest) }
            if !state.isWatching { request.yield(.watch) }
            state.isWatching = true
            return nil
        }
        if let error { continuation.finish(throwing: error) }
        return id
    }

    /// Whoever listened does not any more. A connection on which nobody waits for anything is closed:
    /// its leader would tell of every change for ever.
    func leave(_ id: Int) {
        let isIdle = state.withLock { state in
            guard state.listeners.removeValue(forKey: id) != nil else { return false }
            return state.listeners.isEmpty && state.asked.isEmpty
        }
        if isIdle { close(RoomError(.unreachable, "nobody listens any more")) }
    }

    /// An answer took too long; those behind it would too.
    func expire() {
        let isConnected = state.withLock { if case .connecting = $0.phase { false } else { true } }
        close(RoomError.silence(of: address, isTaken: isConnected, .timedOut))
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

    func run(
        _ timeout: Duration, _ attempts: ConnectionRace.Attempts, _ credentials: Credentials
    ) async {
        do {
            let channel = try await introduced(to: address, credentials) {
                try await connect(
                    to: address, timeout: .nanoseconds(timeout.wholeNanoseconds),
                    limit: FrameDecoder.clientLimit, attempts: attempts, credentials,
                    whenTaken: { self.advance(to: .taken) })
            }
            advance(to: .open)
            state.withLock { $0.isToThisMachine = channel.channel.isFromHere }
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
            close(
                await reasonForClosing(address, credentials)
                    ?? RoomError(.unreachable, "the leader at \(address) closed the connection"))
        } catch let error as WireError {
            close(
                RoomError(
                    .protocolViolation,
                    "what answers at \(address) is no Tutti leader of this version: is the port right? A leader's is \(HostPort.defaultPort) as a rule",
                    call: "\(error)"))
        } catch let error as IOError {
            // It was taken, and broken off: the leader is on its way out.
            close(
                await reasonForClosing(address, credentials)
                    ?? RoomError(
                        .unreachable,
                        "the leader at \(address) broke off the connection (\(error))"))
        } catch let error as ChannelError {
            close(
                await reasonForClosing(address, credentials)
                    ?? RoomError(
                        .unreachable,
                        "the leader at \(address) closed the connection (\(error))"))
        } catch  where isBrokenOff(error) {
            close(
                await reasonForClosing(address, credentials)
                    ?? RoomError(
                        .unreachable, "the leader at \(address) broke off the connection"))
        } catch {
            close(error)
        }
    }

    private func advance(to phase: ControlConnection.Phase) {
        state.withLock {
            if case .closed = $0.phase { return }
            $0.phase = phase
        }
    }

    /// A leader that has never answered does not know this node, perhaps.
    private func reasonForClosing(
        _ address: HostPort, _ credentials: Credentials
    ) async -> (any Error)? {
        guard !state.withLock({ $0.hasAnswered }) else { return nil }
        return await HouseholdLink.reasonForRefusal(by: address, credentials)
    }

    private func take(_ reply: ControlReply) {
        if case .event(let event) = reply {
            state.withLock { state in
                state.latest = event
                for listener in state.listeners.values { listener.yield(event) }
            }
            return
        }
        let asked = state.withLock { state in
            state.hasAnswered = true
            state.answered = .now
            return state.asked.isEmpty ? nil : state.asked.removeFirst()
        }
        asked?.answer?.resume(returning: reply)
    }
}
