import ClockSync
import Glibc
import Synchronization
public import Timing
import Wire

/// The leader's time service: a thread that answers time requests, each when `ClockServer` says.
///
/// UDP on both families, marked for the voice queue. Nothing else happens on its thread, because
/// where the kernel does not stamp what leaves, t3 is as good as the thread is punctual.
public final class TimeService: Sendable {
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
        // Made here for the error and the port, used by the thread alone from then on.
        nonisolated(unsafe) let socket = try TimeSocket(port: port)
        let shared = try Shared()
        let port = unsafe socket.port
        let thread = try RealTimeThread.start(name: "tutti-time", priority: priority) {
            unsafe serve(socket, broadcasts ? BroadcastSender() : nil, shared, clock)
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

    public var scheduling: RealTimeThread.Scheduling { thread.scheduling }
    /// Replies sent so far.
    public var answered: Int { shared.state.withLock { $0.answered } }

    // MARK: - On the thread

    private struct Waiting {
        var request: TimeRequest
        var arrival: TimeSocket.Arrival
    }

    private static func serve(
        _ socket: TimeSocket, _ desk: BroadcastSender?, _ shared: Shared,
        _ clock: @Sendable () -> SharedClock
    ) {
        var server = ClockServer<SocketAddress>()
        var hold = ReplyQueue<Waiting>()
        var patience = WakePolicy(start: HostClock.now())
        while !shared.state.withLock({ $0.isStopped }) {
            let now = HostClock.now()
            let events = shared.wakeUp.wait(
                or: patience.mayLie(until: hold.nextDeadline, at: now) ? nil : socket.descriptor,
                timeoutNanoseconds: hold.nextDeadline.map { max(0, ($0 - now).count) })
            if events?.contains(.error) ?? socket.isStampAwaited { takeStamps(socket, &server) }
            // A receive error tells of an earlier packet that nobody wanted; there is no one to
            // tell, and reading it has cleared it.
            while events != [], let arrival = try? socket.receive() {
                guard case .request(let request)? = arrival.packet else { continue }
                patience.take(request, isKernelStamp: arrival.isKernelStamp, at: arrival.at)
                guard !hold.isFull,
                    let due = server.admit(
                        request, from: arrival.from, arrival: arrival.at, at: HostClock.now())
                else { continue }
                hold.insert(Waiting(request: request, arrival: arrival), until: due)
                desk?.take(request, arrival, epoch: clock().epoch)
            }
            while let waiting = hold.next(dueAt: HostClock.now()) {
                answer(waiting, socket, desk, &server, clock())
                takeStamps(socket, &server)
            }
            shared.state.withLock { $0.answered = server.answered }
        }
    }

    private static func takeStamps(
        _ socket: TimeSocket, _ server: inout ClockServer<SocketAddress>
    ) {
        while let stamp = socket.receiveTransmitStamp() {
            server.transmitted(packet: stamp.packet, at: stamp.at)
            if !socket.isStampAwaited { return }
        }
    }

    private static func answer(
        _ waiting: Waiting, _ socket: TimeSocket, _ desk: BroadcastSender?,
        _ server: inout ClockServer<SocketAddress>, _ clock: SharedClock
    ) {
        let arrival = waiting.arrival
        guard
            var reply = server.reply(
                to: waiting.request, from: arrival.from, arrival: arrival.at,
                isKernelStamp: arrival.isKernelStamp, departure: HostClock.now(),
                packet: socket.packetsSent, clock: clock)
        else { return }
        if waiting.request.reference != nil {
            reply.reference =
                desk?.judge.verdict(for: arrival.from, on: waiting.request)
                ?? ReferenceVerdict(state: .off)
        }
        do {
            try socket.send(.reply(reply), to: arrival.from, from: arrival.local)
        } catch {
            server.forgetPending()
        }
    }
}

/// The part of the service that sends beacons and judges what rooms heard. Confined to its thread.
private final class BroadcastSender {
    var judge = ReferenceBroadcastJudge<SocketAddress>()
    private let sender = BeaconSender()

    /// A request has arrived; where a beacon is due, this wake-up sends it.
    func take(_ request: TimeRequest, _ arrival: TimeSocket.Arrival, epoch: UInt64) {
        guard request.reference != nil else { return }
        let isIPv4 = arrival.local.level == Int32(IPPROTO_IP)
        judge.receive(
            request.reference, of: request, from: arrival.from,
            medium: Int(arrival.local.interface) * 2 + (isIPv4 ? 0 : 1), at: arrival.at)
        if let beacon = judge.beacon(on: arrival.from, epoch: epoch, at: arrival.at) {
            sender.send(beacon, along: arrival.local)
        }
    }
}
