public import GroupControl
import NIOCore
import Synchronization
import Wire

/// Talks to a leader: asks for the group's status and gives commands.
///
/// One connection a request: a person's commands are rare, and a leader that restarts in between
/// is not noticed.
public struct GroupClient: Sendable {
    public let address: HostPort
    private let timeout: Duration
    private let attempts: ConnectionRace.Attempts

    /// Of a leader that is known to answer at this address.
    public init(address: HostPort, timeout: Duration = .seconds(3)) {
        self.init(address: address, timeout: timeout, attempts: .many)
    }

    init(address: HostPort, timeout: Duration, attempts: ConnectionRace.Attempts) {
        self.address = address
        self.timeout = timeout
        self.attempts = attempts
    }

    /// Looks whether a leader answers at `address`.
    ///
    /// - Throws: `RoomError`, code `unreachable` or `timedOut`.
    public static func connect(
        to address: HostPort, timeout: Duration = .seconds(3)
    ) async throws -> GroupClient {
        let client = GroupClient(address: address, timeout: timeout)
        _ = try await client.status()
        return client
    }

    /// The group as the leader sees it now.
    ///
    /// - Parameter hasPoints: with every point of the rooms' histories; up to 3.6 kB a room.
    public func status(hasPoints: Bool = false) async throws -> GroupStatus {
        guard case .status(let status) = try await ask(hasPoints ? .syncStatus : .status) else {
            throw unexpected()
        }
        return status
    }

    /// Gives a command; returns when the leader has taken it.
    ///
    /// - Throws: `RoomError` with code `refused` and the leader's reason.
    public func perform(_ command: GroupCommand) async throws {
        guard case .outcome(let outcome) = try await ask(.command(command)) else {
            throw unexpected()
        }
        if case .refused(let reason) = outcome { throw RoomError(.refused, reason) }
    }

    /// So many items of the queue from this position on; at most ``QueueListing/mostItems``.
    public func queue(first: Int = 0, count: Int = QueueListing.mostItems) async throws
        -> QueueListing
    {
        guard case .queue(let listing) = try await ask(.queue(first: first, count: count)) else {
            throw unexpected()
        }
        return listing
    }

    /// Puts something into the queue; returns when the leader has begun to look into it.
    ///
    /// - Throws: `RoomError` with code `refused` and the leader's reason.
    public func add(_ addition: QueueAddition) async throws {
        guard case .outcome(let outcome) = try await ask(.add(addition)) else {
            throw unexpected()
        }
        if case .refused(let reason) = outcome { throw RoomError(.refused, reason) }
    }

    /// The present state and each that follows, over one connection.
    ///
    /// Each is whole: whoever connects again misses nothing that still counts.
    ///
    /// - Returns: a sequence that ends with a `RoomError` when the connection does.
    public func events() -> AsyncThrowingStream<GroupEvent, any Error> {
        let (address, timeout, attempts) = (address, timeout, attempts)
        return AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let task = Task {
                do {
                    let channel = try await Room.connect(
                        to: address, timeout: .nanoseconds(timeout.wholeNanoseconds),
                        limit: FrameDecoder.clientLimit, attempts: attempts)
                    try await channel.executeThenClose { inbound, outbound in
                        try await outbound.write(.request(.watch))
                        for try await envelope in inbound {
                            if case .reply(.event(let event)) = envelope {
                                continuation.yield(event)
                            }
                        }
                    }
                    continuation.finish(
                        throwing: RoomError(
                            .unreachable, "the leader at \(address) closed the connection"))
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    /// How far an attempt has come when its time is over.
    private final class Progress: Sendable {
        let isConnected = Atomic(false)
    }

    private func ask(_ request: ControlRequest) async throws -> ControlReply {
        let address = address
        let timeout = timeout
        let attempts = attempts
        let progress = Progress()
        return try await withThrowingTaskGroup(of: ControlReply?.self) { group in
            group.addTask {
                let channel = try await Room.connect(
                    to: address, timeout: .nanoseconds(timeout.wholeNanoseconds),
                    limit: FrameDecoder.clientLimit, attempts: attempts)
                progress.isConnected.store(true, ordering: .relaxed)
                do {
                    return try await channel.executeThenClose { inbound, outbound in
                        try await outbound.write(.request(request))
                        for try await envelope in inbound {
                            if case .reply(let reply) = envelope { return reply }
                        }
                        return nil
                    }
                } catch let error as WireError {
                    throw RoomError(
                        .protocolViolation,
                        "what answers at \(address) is no Tutti leader of this version: is the port right? A leader's is \(HostPort.defaultPort) as a rule",
                        call: "\(error)")
                } catch let error as IOError {
                    // It was taken, and broken off: the leader is on its way out.
                    throw RoomError(
                        .unreachable, "the leader at \(address) broke off the connection (\(error))"
                    )
                }
            }
            group.addTask {
                try await Task.sleep(for: timeout)
                throw RoomError(
                    .timedOut,
                    progress.isConnected.load(ordering: .relaxed)
                        ? "what listens at \(address) took the connection but did not answer: is it a Tutti leader, and is that machine overloaded?"
                        : "nobody answers at \(address): is that machine on, and its name or address right?"
                )
            }
            defer { group.cancelAll() }
            guard let reply = try await group.next() ?? nil else {
                throw RoomError(.unreachable, "the leader at \(address) closed the connection")
            }
            return reply
        }
    }

    /// A sentence for who gave an address and a name that do not fit.
    package static func otherName(
        _ leader: String, at address: HostPort, insteadOf name: String
    ) -> String {
        "the leader at \(address) is called \"\(leader)\", not \"\(name)\"; it is taken all the same, "
            + "since its address is given: leave --leader out to look for \"\(name)\", or --group"
    }

    private func unexpected() -> RoomError {
        RoomError(
            .protocolViolation,
            "\(address) answered something else than was asked: is it a leader of this version?")
    }
}

extension Duration {
    /// Whole nanoseconds, truncated; saturates.
    var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return (seconds.multipliedReportingOverflow(by: 1_000_000_000).overflow)
            ? .max : seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
