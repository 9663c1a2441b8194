import NIOCore
import NIOPosix
import Synchronization
import TuttiLinuxHost
import TuttiSecureLinks
import TuttiWire

/// Connects to a leader's control service.
///
/// - Parameters:
///   - timeout: for the connection; the handshake has its own.
///   - patience: for both; `nil`: as long as they take.
///   - limit: longest message accepted, bytes.
///   - whenTaken: called once somebody has taken the connection, whoever it is.
/// - Throws: `RoomError` with code `unreachable` that names the address and the cause;
///   ``StrangerError`` where the leader is of another household.
func connect(
    to address: HostPort, timeout: TimeAmount, patience: TimeAmount? = nil, limit: Int,
    attempts: ConnectionRace.Attempts = .many, _ credentials: Credentials,
    whenTaken: @escaping @Sendable () -> Void = {}
) async throws -> EnvelopeChannel {
    let race = ConnectionRace(address, timeout, attempts, whenTaken: whenTaken) { channel in
        channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(FirstByte())
            try EnvelopeCodec.add(to: channel, limit: limit)
        }
    }
    let made = try await race.made(address) {
        let link = race.link(credentials, .control)
        if let patience {
            let end = link.eventLoop.scheduleTask(in: patience) { race.giveUp() }
            link.whenComplete { _ in end.cancel() }
        }
        return link
    }
    made.channel.markAsControl()
    return try await made.channel.asyncChannel(of: EnvelopeChannel.self)
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

    /// Marks what is sent as control (``PacketMarks``). A hint to the network: where it is refused, it
    /// is merely ordinary.
    func markAsControl() {
        guard PacketMarks.areSet else { return }
        for option in [IPOption.typeOfService, IPOption.trafficClass] {
            setOption(option, value: Int(PacketMarks.assuredForwarding41)).whenFailure { _ in }
        }
    }
}

/// Of <linux/in.h> and <linux/in6.h>.
enum IPOption {
    /// IP_TOS.
    static let typeOfService = ChannelOptions.Types.SocketOption(
        level: .ip, name: NIOBSDSocket.Option(rawValue: 1))
    /// IPV6_TCLASS.
    static let trafficClass = ChannelOptions.Types.SocketOption(
        level: .ipv6, name: NIOBSDSocket.Option(rawValue: 67))
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
    enum Attempts {
        case many
        /// Where many addresses are tried of which most are of nobody: each attempt is a descriptor.
        case few

        var schedule: [TimeAmount] {
            switch self {
            case .many:
                [
                    .zero, .milliseconds(50), .milliseconds(150), .milliseconds(350),
                    .milliseconds(750),
                ]
            case .few: [.zero, .milliseconds(200)]
            }
        }
    }

    private struct State {
        var isDecided = false
        /// Its time was over before there was a link.
        var isOver = false
        /// Somebody has taken a connection.
        var isTaken = false
        /// Under way, to be closed when another one has won.
        var channels: [any Channel] = []
        var winner: (any Channel)?
        var result: EventLoopPromise<any Channel>?
    }

    private let address: HostPort
    private let timeout: TimeAmount
    private let attempts: Attempts
    private let initializer: Initializer
    private let whenTaken: @Sendable () -> Void
    private let state = Mutex(State())

    init(
        _ address: HostPort, _ timeout: TimeAmount, _ attempts: Attempts = .many,
        whenTaken: @escaping @Sendable () -> Void = {}, initializer: @escaping Initializer
    ) {
        self.address = address
        self.timeout = timeout
        self.attempts = attempts
        self.whenTaken = whenTaken
        self.initializer = initializer
    }

    func winner() -> EventLoopFuture<any Channel> {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let result = loop.makePromise(of: (any Channel).self)
        let isDecided = state.withLock { state in
            state.result = result
            return state.isDecided
        }
        guard !isDecided else {
            result.fail(CancellationError())
            return result.futureResult
        }
        for delay in attempts.schedule {
            loop.scheduleTask(in: delay) { self.attempt() }
        }
        return result.futureResult
    }

    /// Nobody waits for it any more; whatever is under way is closed.
    func cancel() {
        decide(.failure(CancellationError()))
        // Connected, and perhaps on the way to become a link.
        state.withLock { $0.winner.take() }?.close(promise: nil)
    }

    /// Its time is over.
    func giveUp() {
        state.withLock { $0.isOver = true }
        cancel()
    }

    var isOver: Bool { state.withLock { $0.isOver } }
    var isTaken: Bool { state.withLock { $0.isTaken } }

    private func attempt() {
        guard !state.withLock({ $0.isDecided }) else { return }
        let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .connectTimeout(timeout)
            .channelInitializer { channel in
                let isLate = self.state.withLock { state in
                    if !state.isDecided { state.channels.append(channel) }
                    return state.isDecided
                }
                if isLate { return channel.eventLoop.makeFailedFuture(CancellationError()) }
                return channel.repeatSoon().flatMap { self.initializer(channel) }
            }
        bootstrap.connect(host: address.host, port: address.port).whenComplete { outcome in
            self.decide(outcome)
        }
    }

    /// The first outcome counts.
    private func decide(_ outcome: Result<any Channel, any Error>) {
        let winner = try? outcome.get()
        let (isFirst, result, channels) = state.withLock { state in
            defer {
                if !state.isDecided { (state.winner, state.isTaken) = (winner, winner != nil) }
                state.isDecided = true
                state.channels = []
            }
            return (!state.isDecided, state.result, state.channels)
        }
        for channel in channels where channel !== winner { channel.close(promise: nil) }
        if isFirst {
            if winner != nil { whenTaken() }
            result?.completeWith(outcome)
        } else {
            winner?.close(promise: nil)
        }
    }
}
