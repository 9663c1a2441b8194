import NIOCore
import Synchronization
public import TuttiGroupControl
package import TuttiLinuxHost
import TuttiTiming
import TuttiTrust
import TuttiWire

/// Talks to a leader over one connection, which is made with the first question and kept until the
/// client goes: the group's status, commands, the queue, events.
///
/// A leader may close a connection on which nothing is said for a while, and one that restarts closes
/// all: the next question makes another one.
public final class GroupClient: GroupControlling {
    /// Whether the leader is still there is looked at so often while somebody listens.
    private static let look = Duration.seconds(5)

    /// The leader that is asked; another one is another client.
    public let address: HostPort
    let timeout: Duration
    private let attempts: ConnectionRace.Attempts
    let credentials: Credentials
    private let kept = Mutex<ControlConnection?>(nil)

    /// Of a leader that is known to answer at this address.
    ///
    /// - Parameters:
    ///   - timeout: for each question, the connection included.
    ///   - credentials: of a member of the leader's household.
    public convenience init(
        address: HostPort, timeout: Duration = .seconds(3), credentials: Credentials = .open
    ) {
        self.init(address: address, timeout: timeout, attempts: .many, credentials)
    }

    init(
        address: HostPort, timeout: Duration, attempts: ConnectionRace.Attempts,
        _ credentials: Credentials
    ) {
        self.credentials = credentials
        self.address = address
        self.timeout = timeout
        self.attempts = attempts
    }

    /// Looks whether a leader answers at `address`, or a node that knows where one is.
    ///
    /// - Throws: `RoomError`, code `unreachable`, `timedOut` or `stranger`.
    public static func connect(
        to address: HostPort, timeout: Duration = .seconds(3), credentials: Credentials = .open
    ) async throws -> GroupClient {
        try await GroupClient(address: address, timeout: timeout, credentials: credentials)
            .whoeverLeads { client in
                _ = try await client.status()
                return client
            }
    }

    public func status(hasPoints: Bool) async throws -> GroupStatus {
        guard case .status(let status) = try await ask(hasPoints ? .syncStatus : .status) else {
            throw unexpected()
        }
        return status
    }

    /// - Throws: `RoomError` with code `refused` and the leader's reason.
    @discardableResult
    public func perform(_ command: GroupCommand) async throws -> CommandEffect {
        // The leader answers when it knows what comes of it.
        let patience = timeout + .nanoseconds(command.longestWait.count)
        guard case .done(let effect) = try await ask(.command(command), within: patience) else {
            throw unexpected()
        }
        return effect
    }

    public func queue(first: Int, count: Int) async throws -> QueueListing {
        guard case .queue(let listing) = try await ask(.queue(first: first, count: count)) else {
            throw unexpected()
        }
        return listing
    }

    /// - Throws: `RoomError` with code `refused` and the leader's reason.
    public func add(_ addition: QueueAddition) async throws {
        guard case .done = try await ask(.add(addition)) else { throw unexpected() }
    }

    public func events() -> AsyncThrowingStream<GroupEvent, any Error> {
        AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let connection = connection()
            let listening = Task {
                do {
                    for try await event in connection.events() { continuation.yield(event) }
                    continuation.finish()
                } catch is IntroducedError {
                    // Who asks again is heard.
                    continuation.finish(throwing: closed)
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            // A leader whose machine lost its power closes nothing.
            let looking = Task {
                while (try? await Task.sleep(for: Self.look)) != nil {
                    _ = try? await connection.ask(.status, within: timeout)
                }
            }
            continuation.onTermination = { _ in
                listening.cancel()
                looking.cancel()
            }
        }
    }

    // MARK: The connection

    /// The one that is kept, or another one when that is closed.
    private func connection() -> ControlConnection {
        kept.withLock { kept in
            if let kept, kept.isOpen { return kept }
            let connection = ControlConnection(to: address, within: timeout, attempts, credentials)
            kept = connection
            return connection
        }
    }

    /// With what the leader's time service can be asked while this client lives; `nil`: without.
    package func datagramTags() async throws -> SharedRoomTags? {
        guard case .datagramKey(let key) = try await ask(.datagramKey) else { throw unexpected() }
        return try key.map { SharedRoomTags(try RoomTags(try DatagramGrant($0))) }
    }

    /// Whether the leader is on the machine that asks, so that both know files by the same paths.
    func isOnThisMachine() async throws -> Bool {
        _ = try await status()
        return connection().isToThisMachine
    }

    func ask(
        _ request: ControlRequest, within patience: Duration? = nil
    ) async throws -> ControlReply {
        var wasIntroduced = false
        while true {
            let connection = connection()
            let isNew = !connection.hasAnswered
            let reply: ControlReply?
            do {
                reply = try await connection.ask(request, within: patience ?? timeout)
            } catch let error as RoomError
                where error.code == .unreachable && !isNew && request.isQuestion
            {
                // The leader closed it, or restarted, and that was not known yet. A command may have
                // been done all the same, and is not given twice.
                continue
            } catch is IntroducedError {
                // It was not even heard.
                guard !wasIntroduced else { throw closed }
                wasIntroduced = true
                continue
            }
            if case .refused(let reason)? = reply { throw RoomError(.refused, reason) }
            if let reply { return reply }
        }
    }

    /// A sentence for who gave an address and a name that do not fit.
    package static func otherName(
        _ leader: String, at address: HostPort, insteadOf name: String
    ) -> String {
        "the leader at \(address) is called \"\(leader)\", not \"\(name)\"; it is taken all the same, "
            + "since its address is given: leave --leader out to look for \"\(name)\", or --group"
    }

    private var closed: RoomError {
        RoomError(.unreachable, "the leader at \(address) closed the connection")
    }

    func unexpected() -> RoomError {
        RoomError(
            .protocolViolation,
            "\(address) answered something else than was asked: is it a leader of this version?")
    }
}

extension ControlRequest {
    /// Asked twice it does nothing twice.
    fileprivate var isQuestion: Bool {
        switch self {
        // What was read is as it was read.
        case .status, .syncStatus, .queue, .wanted, .read, .watch, .datagramKey, .lead(_): true
        case .command, .add: false
        }
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
