import Glibc
import Synchronization
import TuttiClockSync
public import TuttiTiming
import TuttiTrust
import TuttiWire

/// The leader's time service: the thread around a `ClockLeader`, which decides everything.
///
/// UDP on both families, marked for the voice queue. Nothing else happens on its thread, because
/// where the kernel does not stamp what leaves, t3 is as good as the thread is punctual.
///
/// With tags it answers members alone. A request is opened once its stamp is known and before anything
/// else is done with it, and nothing is answered to what does not open (see ``KnockAnswer`` for what a request
/// without a tag is good for). A reply is sealed between t3,
/// which is in it, and its departure: that the kernel stamps, or else t3 is early by as much.
public final class TimeService: Sendable {
    /// UDP port that it answers on, also where a free one was asked for.
    public let port: Int
    private let thread: RealTimeThread
    private let shared: Shared

    private final class Shared: Sendable {
        let wakeUp: WakeUp
        let state = Mutex((isStopped: false, answered: 0))
        init() throws(HostError) { wakeUp = try WakeUp() }
    }

    /// Starts to answer.
    ///
    /// - Parameters:
    ///   - port: 0 for any; see ``port``.
    ///   - priority: for SCHED_FIFO; 0 for ordinary. A refusal is in ``scheduling``.
    ///   - broadcasts: whether to send reference broadcasts to rooms that ask for them.
    ///   - clock: the group clock; called on the service's thread for each request, so it must not
    ///     wait. Nobody is answered while its quality is `none`.
    /// - Throws: kind ``HostError/Kind/portTaken`` when another program has the port.
    public static func start(
        port: Int, priority: Int, broadcasts: Bool = true,
        clock: @escaping @Sendable () -> SharedClock
    ) throws(HostError) -> TimeService {
        try start(
            port: port, priority: priority, broadcasts: broadcasts, tags: nil, clock: clock)
    }

    /// The same for members.
    ///
    /// - Parameter tags: `nil`: everybody is answered.
    package static func start(
        port: Int, priority: Int, broadcasts: Bool = true, tags: SharedLeaderTags?,
        clock: @escaping @Sendable () -> SharedClock
    ) throws(HostError) -> TimeService {
        // Made here for the error and the port, used by the thread alone from then on.
        nonisolated(unsafe) let socket = try TimeSocket(port: port)
        let shared = try Shared()
        let port = unsafe socket.port
        let thread = try RealTimeThread.start(name: "tutti-time", priority: priority) {
            unsafe serve(socket, broadcasts, shared, tags, clock)
        }
        return TimeService(port, thread, shared)
    }

    private init(_ port: Int, _ thread: RealTimeThread, _ shared: Shared) {
        self.port = port
        self.thread = thread
        self.shared = shared
    }

    deinit { stop() }

    /// Ends the thread and frees the port; returns when that is done. May be called again.
    public func stop() {
        shared.state.withLock { $0.isStopped = true }
        shared.wakeUp.signal()
        thread.join()
    }

    /// How the thread is scheduled; when real-time priority was denied, why.
    public var scheduling: RealTimeThread.Scheduling { thread.scheduling }
    /// Replies sent so far.
    public var answered: Int { shared.state.withLock { $0.answered } }

    // MARK: - On the thread

    /// The way back to whoever asked.
    fileprivate struct Route: Sendable {
        var local: TimeSocket.LocalAddress
        /// `nil` without tags.
        var asker: LeaderTags.Asker?
    }

    private typealias Leader = ClockLeader<SocketAddress, Route>

    private static func serve(
        _ socket: TimeSocket, _ broadcasts: Bool, _ shared: Shared, _ tags: SharedLeaderTags?,
        _ clock: @Sendable () -> SharedClock
    ) {
        var leader = Leader(start: HostClock.now(), broadcasts: broadcasts)
        let beacons = BeaconSender()
        let door = tags == nil ? nil : KnockAnswer(at: HostClock.now())
        while !shared.state.withLock({ $0.isStopped }) {
            let now = HostClock.now()
            let events = shared.wakeUp.wait(
                or: leader.mayLie(at: now) ? nil : socket.descriptor,
                timeoutNanoseconds: leader.nextDeadline.map { max(0, ($0 - now).count) })
            if events?.contains(.error) ?? socket.isStampAwaited { takeStamps(socket, &leader) }
            // A receive error tells of an earlier packet that nobody wanted; there is no one to
            // tell, and reading it has cleared it.
            while events != [],
                let (arrival, asker) = try? socket.receive(
                    tags, knock: { door?.send(to: $0, at: HostClock.now()) ?? false })
            {
                guard case .request(let request)? = arrival.packet else { continue }
                let receipt = leader.receive(
                    request, Leader.Arrival(arrival, asker), epoch: clock().epoch,
                    at: HostClock.now())
                if let beacon = receipt.beacon {
                    beacons.send(beacon, along: arrival.local, tags)
                }
            }
            while let answer = leader.advance(
                to: HostClock.now(), packet: socket.packetsSent, clock: clock())
            {
                do {
                    let isSent = try socket.send(
                        .reply(answer.reply), to: answer.peer, from: answer.route.local,
                        answer.route.asker, tags)
                    if !isSent { leader.forgetPending() }
                } catch {
                    leader.forgetPending()
                }
                takeStamps(socket, &leader)
            }
            shared.state.withLock { $0.answered = leader.answered }
        }
    }

    private static func takeStamps(_ socket: TimeSocket, _ leader: inout Leader) {
        while let stamp = socket.receiveTransmitStamp() {
            leader.transmitted(packet: stamp.packet, at: stamp.at)
            if !socket.isStampAwaited { return }
        }
    }
}

extension ClockLeader<SocketAddress, TimeService.Route>.Arrival {
    fileprivate init(_ arrival: TimeSocket.Arrival<TimePacket>, _ asker: LeaderTags.Asker?) {
        let isIPv4 = arrival.local.level == Int32(IPPROTO_IP)
        self.init(
            peer: arrival.from, route: TimeService.Route(local: arrival.local, asker: asker),
            instant: arrival.at,
            isKernelStamp: arrival.isKernelStamp,
            medium: Int(arrival.local.interface) * 2 + (isIPv4 ? 0 : 1))
    }
}
