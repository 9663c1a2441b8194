public import ClockSync
import Glibc
import Synchronization
public import Timing
import Wire

/// A follower's clock thread: asks a leader for the time for as long as it lives.
///
/// It does not give up: a name that cannot be resolved, a missing network or a silent leader is
/// reported in ``problem`` and tried again with back-off, while the line runs on.
public final class ClockClient: Sendable {
    /// First pause after a failure, doubled up to ``longestRetry``.
    static let firstRetry = Nanoseconds.milliseconds(500)
    static let longestRetry = Nanoseconds.seconds(10)
    /// Without an answer for this long the name is looked up again and another address tried.
    static let deafLimit = Nanoseconds.seconds(10)

    private let thread: RealTimeThread
    private let shared: Shared

    /// What the thread and its owner tell each other.
    final class Shared: Sendable {
        /// What the thread looks at each time it wakes.
        struct Orders {
            var isStopped = false
            var wantsBurst = false
            var expectedStart: ExpectedStart?
            var recalled: StoredSkew?
            var isIdle = false
            var place: Place?
        }
        struct Place: Equatable {
            var host: String
            var port: Int
        }
        struct State {
            var orders = Orders()
            var statistics = ClockStatistics()
            var storedSkew = StoredSkew.unknown
            var problem: HostError?
            var resolution: (of: Place, result: Result<[SocketAddress], HostError>)?
        }
        let wakeUp: WakeUp
        let state = Mutex(State())
        init() throws(HostError) { wakeUp = try WakeUp() }
    }

    /// Starts to ask `host`; returns at once.
    ///
    /// - Parameters:
    ///   - host: a name, or a numeric address of either family.
    ///   - priority: for SCHED_FIFO; 0 for ordinary. A refusal is in ``scheduling``.
    ///   - seed: of sequence numbers and spacing; should differ from start to start.
    ///   - stored: ``storedSkew`` of an earlier session with this leader.
    ///   - continuing: a clock that is played by and goes on; `nil`: it begins with what is measured.
    ///   - broadcasts: whether to take part in reference broadcasts, where the network has
    ///     multicast.
    ///   - publish: takes every new snapshot and how it came about; called on the clock thread up
    ///     to 100 times a second, so it must not wait.
    /// - Throws: only when there can be no thread.
    public static func start(
        host: String, port: Int, priority: Int, seed: UInt64, stored: StoredSkew = .unknown,
        continuing: SharedClock? = nil,
        broadcasts: Bool = true, publish: @escaping @Sendable (SharedClock, ClockStatistics) -> Void
    ) throws(HostError) -> ClockClient {
        let shared = try Shared()
        shared.state.withLock { $0.storedSkew = stored }
        let thread = try RealTimeThread.start(name: "tutti-clock", priority: priority) {
            var loop = ClockLoop(
                host: host, port: port, seed: seed, stored: stored, continuing: continuing,
                broadcasts: broadcasts, shared: shared, publish: publish)
            loop.run()
        }
        return ClockClient(thread, shared)
    }

    private init(_ thread: RealTimeThread, _ shared: Shared) {
        self.thread = thread
        self.shared = shared
    }

    deinit { stop() }

    /// Ends the thread; returns when it has ended, within milliseconds. May be called again.
    public func stop() {
        shared.state.withLock { $0.orders.isStopped = true }
        shared.wakeUp.signal()
        thread.join()
    }

    /// Somebody is about to play by the clock, and waits until it is good: within twelve seconds of
    /// this and of the first answer it is `locked`, while somebody answers. Without this call it may
    /// stay `acquiring` on a poor path.
    ///
    /// - Parameter start: who joins what already sounds is content with less, and sooner.
    public func expectStart(_ start: ExpectedStart) {
        shared.state.withLock { $0.orders.expectedStart = start }
        shared.wakeUp.signal()
    }

    /// ``storedSkew`` of an earlier session, when the leader turned out to be a known one only after
    /// it was asked first.
    public func recall(_ stored: StoredSkew) {
        shared.state.withLock { $0.orders.recalled = stored }
        shared.wakeUp.signal()
    }

    /// The same clock is somewhere else now: what is known of it stays, and is asked for there.
    public func move(host: String, port: Int) {
        shared.state.withLock { $0.orders.place = Shared.Place(host: host, port: port) }
        shared.wakeUp.signal()
    }

    /// 16 exchanges from now on, 10 ms apart at most; after it was idle. Nothing within 0.1 s of the
    /// burst before.
    public func burst() {
        shared.state.withLock { $0.orders.wantsBurst = true }
        shared.wakeUp.signal()
    }

    /// Two or three exchanges a second while nothing plays, instead of 6 to 50, or 100 in the first half
    /// minute.
    public func setIdle(_ isIdle: Bool) {
        shared.state.withLock { $0.orders.isIdle = isIdle }
        shared.wakeUp.signal()
    }

    public var scheduling: RealTimeThread.Scheduling { thread.scheduling }
    /// As of the latest exchange or silence.
    public var statistics: ClockStatistics { shared.state.withLock { $0.statistics } }
    /// To be kept for the next session with this leader.
    public var storedSkew: StoredSkew { shared.state.withLock { $0.storedSkew } }
    /// Why there is no answer just now; `nil` while there is, or while nothing is wrong yet.
    public var problem: HostError? { shared.state.withLock { $0.problem } }
}

/// The body of the clock thread: moves packets and time between the socket and the machine.
private struct ClockLoop {
    var place: ClockClient.Shared.Place
    let shared: ClockClient.Shared
    let publish: @Sendable (SharedClock, ClockStatistics) -> Void
    var follower: ClockFollower
    var socket: TimeSocket?
    let usesBroadcasts: Bool
    var beacons: BeaconReceiver?
    /// While the leader has not been heard.
    var knock: AddressNudge?
    /// Once in a silence.
    var mayKnock = true
    var addresses: [SocketAddress] = []
    var nextAddress = 0
    var retryAt: LocalInstant
    var retryPause = ClockClient.firstRetry
    var openedAt: LocalInstant
    var isResolving = false
    /// Sequence of the packet with number k at k modulo the size.
    var sequences = [UInt32](repeating: 0, count: 64)
    var suspendedTime = HostClock.suspendedTime()
    /// What the last wait saw at the socket; `nil`: it did not look.
    var events: WakeUp.SocketEvents?

    init(
        host: String, port: Int, seed: UInt64, stored: StoredSkew, continuing: SharedClock?,
        broadcasts: Bool, shared: ClockClient.Shared,
        publish: @escaping @Sendable (SharedClock, ClockStatistics) -> Void
    ) {
        let now = HostClock.now()
        place = ClockClient.Shared.Place(host: host, port: port)
        self.shared = shared
        self.publish = publish
        usesBroadcasts = broadcasts
        follower =
            continuing.map {
                ClockFollower(start: now, seed: seed, continuing: $0, stored: stored)
            } ?? ClockFollower(start: now, seed: seed, stored: stored)
        retryAt = now
        openedAt = now
    }

    mutating func run() {
        while true {
            let orders = shared.state.withLock { state in
                defer {
                    state.orders.wantsBurst = false
                    state.orders.expectedStart = nil
                    state.orders.recalled = nil
                    state.orders.place = nil
                }
                return state.orders
            }
            if orders.isStopped { return }
            let now = HostClock.now()
            if let place = orders.place { move(to: place, at: now) }
            if let recalled = orders.recalled { follower.recall(recalled) }
            if orders.wantsBurst { follower.burst(at: now) }
            if let start = orders.expectedStart { follower.expectStart(start, at: now) }
            follower.setIdle(orders.isIdle, at: now)
            watchSuspend(at: now)
            connect(at: now)
            receive()
            knock?.advance(to: now)
            let due = HostClock.now()
            if socket == nil {
                // Nothing can be sent, but the line must be seen to age.
                if let clock = follower.sharedClock(at: due) { perform([.publish(clock)], at: due) }
            } else if due >= follower.nextDeadline {
                hear()
                perform(follower.advance(to: due), at: due)
                takeStamps()
            }
            let wake =
                socket == nil
                ? pauseEnd : min(follower.nextDeadline, deafAt, knock?.next ?? deafAt)
            let pause = wake - HostClock.now()
            events = shared.wakeUp.wait(
                or: follower.mayAnswersWait(pause) ? nil : socket?.descriptor,
                timeoutNanoseconds: pause.count)
        }
    }

    // MARK: - Packets

    private mutating func receive() {
        if events?.contains(.error) ?? true { takeStamps() }
        // At least once when something is there; what comes twice is read when the next one is.
        while events != [], let socket {
            do throws(HostError) {
                guard let arrival = try socket.receive() else { return }
                guard case .reply(let reply)? = arrival.packet else { continue }
                let now = HostClock.now()
                let before = follower.answered
                let effects = follower.receive(
                    reply, t4: arrival.at, isKernelStamp: arrival.isKernelStamp, at: now)
                if follower.answered > before { isHeard(at: now) }
                perform(effects, at: now)
                if !follower.isAnswerAwaited { return }
            } catch {
                // Reported by the network for an earlier packet; the schedule backs off by itself.
                report(error)
                // Whoever refuses has an address.
                knock = nil
                // A name with several addresses: nobody listens here, perhaps at the next one.
                if addresses.count > 1 {
                    let soon = HostClock.now() + ClockClient.firstRetry - ClockClient.deafLimit
                    openedAt = min(openedAt, soon)
                }
                return
            }
        }
    }

    /// The kernel has stamped what it keeps for us: no beacon wakes this thread.
    private mutating func hear() {
        while let heard = beacons?.receive() { follower.receive(heard.beacon, at: heard.at) }
    }

    /// Up to the last packet's; what is left then was late, and shows as an error of the socket.
    private mutating func takeStamps() {
        while let socket, socket.isStampAwaited || events?.contains(.error) ?? false,
            let stamp = socket.receiveTransmitStamp()
        {
            let now = HostClock.now()
            let sequence = sequences[Int(stamp.packet % UInt32(sequences.count))]
            perform(follower.transmitted(sequence: sequence, at: stamp.at, now: now), at: now)
        }
    }

    private mutating func perform(_ effects: [ClockFollower.Effect], at now: LocalInstant) {
        for effect in effects {
            switch effect {
            case .send(let request):
                send(request)
                // How often nobody answered; once there is a clock, each publication says how it goes.
                if follower.sharedClock(at: now) == nil { _ = note(at: now) }
            case .publish(let clock): publish(clock, note(at: now))
            }
        }
    }

    private func note(at now: LocalInstant) -> ClockStatistics {
        let statistics = follower.statistics(at: now)
        let skew = follower.storedSkew
        shared.state.withLock {
            $0.statistics = statistics
            $0.storedSkew = skew
        }
        return statistics
    }

    private mutating func send(_ request: TimeRequest) {
        guard let socket else { return }
        sequences[Int(socket.packetsSent % UInt32(sequences.count))] = request.sequence
        do throws(HostError) { try socket.send(.request(request)) } catch { report(error) }
    }

    // MARK: - Connection

    private var pauseEnd: LocalInstant {
        isResolving ? HostClock.now() + ClockClient.longestRetry : retryAt
    }

    private var deafAt: LocalInstant { openedAt + ClockClient.deafLimit }

    private mutating func isHeard(at now: LocalInstant) {
        openedAt = now
        retryPause = ClockClient.firstRetry
        knock = nil
        mayKnock = true
        shared.state.withLock { $0.problem = nil }
    }

    private mutating func connect(at now: LocalInstant) {
        if socket != nil, now >= deafAt {
            disconnect()
            retryAt = now
        }
        guard socket == nil else { return }
        if isResolving {
            guard
                let resolution = shared.state.withLock({ state in
                    defer { state.resolution = nil }
                    return state.resolution
                })
            else { return }
            isResolving = false
            // It was asked for where the leader was before.
            guard resolution.of == place else { return resolve() }
            switch resolution.result {
            case .success(let found): addresses = found
            case .failure(let error): return fail(error, at: now)
            }
        } else {
            guard now >= retryAt else { return }
            nextAddress += 1
            if nextAddress >= addresses.count { return resolve() }
        }
        nextAddress = nextAddress < addresses.count ? nextAddress : 0
        do throws(HostError) {
            guard !addresses.isEmpty else {
                throw HostError(
                    "getaddrinfo", code: EAI_NONAME, subject: "\(place.host):\(place.port)")
            }
            let leader = addresses[nextAddress]
            let open = try TimeSocket(connectedTo: leader)
            socket = open
            openedAt = now
            knock = mayKnock ? AddressNudge(beside: open, leader: leader, at: now) : nil
            mayKnock = false
            // Where there is no multicast, two-way exchange is all there is, and the status says
            // so.
            beacons = usesBroadcasts ? try? BeaconReceiver(beside: open, leader: leader) : nil
            follower.setReferenceRefusal(
                beacons != nil ? nil : usesBroadcasts ? .noMulticast : .off)
        } catch {
            fail(error, at: now)
        }
    }

    /// A name server that does not answer blocks for half a minute, and `stop()` shall not: a
    /// thread of its own asks, and nobody waits for it.
    private mutating func resolve() {
        isResolving = true
        addresses = []
        nextAddress = 0
        do throws(HostError) {
            _ = try RealTimeThread.start(name: "tutti-resolve", priority: 0) {
                [place, shared] in
                let result: Result<[SocketAddress], HostError>
                do throws(HostError) {
                    result = .success(
                        try SocketAddress.resolve(host: place.host, port: place.port))
                } catch {
                    result = .failure(error)
                }
                shared.state.withLock { $0.resolution = (place, result) }
                shared.wakeUp.signal()
            }
        } catch {
            isResolving = false
            fail(error, at: HostClock.now())
        }
    }

    /// The estimate runs on; only who is asked changes.
    private mutating func move(to place: ClockClient.Shared.Place, at now: LocalInstant) {
        guard place != self.place else { return }
        self.place = place
        disconnect()
        addresses = []
        nextAddress = 0
        retryAt = now
        retryPause = ClockClient.firstRetry
        mayKnock = true
        follower.burst(at: now)
    }

    private mutating func disconnect() {
        socket = nil
        beacons = nil
        knock = nil
    }

    private mutating func fail(_ error: HostError, at now: LocalInstant) {
        report(error)
        disconnect()
        retryAt = now + retryPause
        retryPause = min(retryPause * 2, ClockClient.longestRetry)
    }

    private func report(_ error: HostError) {
        shared.state.withLock { $0.problem = error }
    }

    private mutating func watchSuspend(at now: LocalInstant) {
        let suspended = HostClock.suspendedTime()
        defer { suspendedTime = suspended }
        guard suspended - suspendedTime > HostClock.suspendThreshold else { return }
        perform(follower.localClockJumped(at: now), at: now)
    }
}
