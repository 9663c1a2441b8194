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
        let cause = reason(of: error)
        if cause == noSuchHost {
            throw RoomError(
                .unreachable,
                "there is no host \"\(address.host)\" on this network; check the name, or find leaders with tutti rooms"
            )
        }
        throw RoomError(
            .unreachable,
            "no leader answers at \(address) (\(cause)): is `tutti lead` running there, and is the port open?"
        )
    }
}

extension Channel {
    /// Before it connects or listens: what is lost is repeated 50 ms after its acknowledgement is
    /// overdue and not 200. On a LAN that is long, and a room that joins is missed meanwhile.
    ///
    /// Kernels before Linux 6.15 do not have the options, and repeat as they always did.
    func repeatSoon() -> EventLoopFuture<Void> {
        let options = [
            setOption(.tcpOption(TCPOption.shortestTimeout), value: 50_000),
            setOption(.tcpOption(TCPOption.longestAcknowledgement), value: 20_000),
        ]
        return EventLoopFuture.andAllComplete(options, on: eventLoop)
    }
}

/// Of <linux/tcp.h>; µs.
enum TCPOption {
    /// TCP_RTO_MIN_US: from a segment to its repetition, beyond what the path usually takes.
    static let shortestTimeout = NIOBSDSocket.Option(rawValue: 45)
    /// TCP_DELACK_MAX_US: how long an acknowledgement may wait; less than the other end's
    /// ``shortestTimeout``, or it would repeat what has arrived.
    static let longestAcknowledgement = NIOBSDSocket.Option(rawValue: 46)
}

/// Some attempts to connect, a little apart: the first that is answered counts.
///
/// The system repeats a lost first packet after a second (RFC 6298, 2.1), and for that second a room
/// would be silent.
final class ConnectionRace: Sendable {
    typealias Initializer = @Sendable (any Channel) -> EventLoopFuture<Void>

    /// When the attempts begin: on a slow path ever more rarely. After the last the system's own
    /// repetition of the first is due.
    private static let schedule: [TimeAmount] = [
        .zero, .milliseconds(50), .milliseconds(150), .milliseconds(350), .milliseconds(750),
    ]

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
        for delay in Self.schedule {
            loop.scheduleTask(in: delay) { self.attempt(result) }
        }
        return result.futureResult
    }

    private func attempt(_ result: EventLoopPromise<any Channel>) {
        guard !isDecided.withLock({ $0 }) else { return }
        let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .connectTimeout(timeout)
            .channelInitializer { channel in
                channel.repeatSoon().flatMap { self.initializer(channel) }
            }
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
