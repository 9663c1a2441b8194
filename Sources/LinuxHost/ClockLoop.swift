import Glibc
import Synchronization
import TuttiClockSync
import TuttiTiming
import TuttiWire

/// The body of the clock thread: moves packets and time between the socket and the machine.
struct ClockLoop {
    var place: ClockClient.Shared.Place
    let shared: ClockClient.Shared
    let publish: @Sendable (SharedClock, ClockStatistics) -> Void
    var follower: ClockFollower
    var socket: TimeSocket?
    let usesBroadcasts: Bool
    var tags: SharedRoomTags?
    /// Nothing is asked yet.
    var isSilent = false
    let seed: UInt64
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
        broadcasts: Bool, manner: ClockClient.Manner, shared: ClockClient.Shared,
        publish: @escaping @Sendable (SharedClock, ClockStatistics) -> Void
    ) {
        let now = HostClock.now()
        place = ClockClient.Shared.Place(host: host, port: port)
        self.shared = shared
        self.publish = publish
        usesBroadcasts = broadcasts
        self.seed = seed
        switch manner {
        case .asking(let tags): self.tags = tags
        case .silent: isSilent = true
        }
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
                    state.orders.begins = nil
                }
                return state.orders
            }
            if orders.isStopped { return }
            let now = HostClock.now()
            if let begins = orders.begins { begin(begins, at: now) }
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
            } else if !isSilent, due >= follower.nextDeadline {
                hear()
                perform(follower.advance(to: due), at: due)
                takeStamps()
            }
            let next = min(isSilent ? deafAt : follower.nextDeadline, knock?.next ?? deafAt)
            let wake = socket == nil ? pauseEnd : min(next, deafAt)
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
                guard let arrival = try socket.receive(tags) else { return }
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
        while let heard = beacons?.receive(tags) { follower.receive(heard.beacon, at: heard.at) }
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
        do throws(HostError) { try socket.send(.request(request), tags) } catch { report(error) }
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
            // With a key the leader was reached by a link.
            let knocks = mayKnock && tags == nil
            knock = knocks ? AddressNudge(beside: open, leader: leader, at: now) : nil
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

    /// What is known of a clock stays; one that was not asked yet begins now.
    private mutating func begin(_ tagging: ClockClient.Shared.Tagging, at now: LocalInstant) {
        tags = tagging.tags
        knock = nil
        guard isSilent else { return }
        isSilent = false
        let stored = shared.state.withLock { $0.storedSkew }
        follower = ClockFollower(start: now, seed: seed, stored: stored)
        follower.setReferenceRefusal(
            beacons != nil ? nil : usesBroadcasts ? .noMulticast : .off)
        openedAt = now
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
