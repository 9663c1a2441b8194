import NIOCore
import NIOPosix
import Synchronization
import Wire

/// Connects to a leader's control service.
///
/// - Parameter limit: longest message accepted, bytes.
/// - Throws: `RoomError` with code `unreachable` that names the address and the cause.
func connect(
    to address: HostPort, timeout: TimeAmount, limit: Int
) async throws -> EnvelopeChannel {
    do {
        let channel = try await ConnectionRace(address, timeout) { channel in
            channel.eventLoop.makeCompletedFuture {
                try EnvelopeCodec.add(to: channel, limit: limit)
            }
        }.winner().get()
        return try await channel.asyncChannel(of: EnvelopeChannel.self)
    } catch is CancellationError {
        throw CancellationError()
    } catch {
        throw RoomError(
            .unreachable,
            "no leader answers at \(address) (\(reason(of: error))): is `tutti lead` running there, and is the port open?"
        )
    }
}

/// Some attempts to connect, a little apart: the first that is answered counts.
///
/// The system repeats a lost first packet after a second (RFC 6298, 2.1), and for that second a room
/// would be silent.
final class ConnectionRace: Sendable {
    typealias Initializer = @Sendable (any Channel) -> EventLoopFuture<Void>

    /// The shortest time after which the system repeats any other packet.
    private static let headStart = TimeAmount.milliseconds(200)
    /// Then the system's own repetition of the first is due.
    private static let attempts = 5

    private let address: HostPort
    private let timeout: TimeAmount
    private let initializer: Initializer
    private let isDecided = Mutex(false)

    init(_ address: HostPort, _ timeout: TimeAmount, initializer: @escaping Initializer) {
        self.address = address
        self.timeout = timeout
        self.initializer = initializer
    }

    func winner() -> EventLoopFuture<any Channel> {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let result = loop.makePromise(of: (any Channel).self)
        for number in 0..<Self.attempts {
            loop.scheduleTask(in: Self.headStart * number) { self.attempt(result) }
        }
        return result.futureResult
    }

    private func attempt(_ result: EventLoopPromise<any Channel>) {
        guard !isDecided.withLock({ $0 }) else { return }
        let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .connectTimeout(timeout)
            .channelInitializer(initializer)
        bootstrap.connect(host: address.host, port: address.port).whenComplete { outcome in
            let isFirst = self.isDecided.withLock { isDecided in
                defer { isDecided = true }
                return !isDecided
            }
            if isFirst {
                result.completeWith(outcome)
            } else if case .success(let channel) = outcome {
                channel.close(promise: nil)
            }
        }
    }
}
