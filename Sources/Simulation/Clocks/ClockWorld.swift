import TuttiChance
import TuttiClockSync
import TuttiTiming

/// A room's clock on its own schedule: the follower that runs in a room, the leader's server, the
/// network between them and the kernels that stamp; in virtual time.
struct ClockWorld {
    private enum Event {
        case timer
        case request(TimeRequest, arrival: LocalInstant, reading: Nanoseconds)
        /// Something is due there.
        case leaderWakes
        case reply(TimeReply, arrival: LocalInstant)
        case requestStamp(UInt32, LocalInstant)
        case replyStamp(UInt32, LocalInstant)
        case beacon(ReferenceBeacon, stamp: LocalInstant)
    }

    /// The share of transmit stamps that the kernel fails to deliver.
    var missingStamps = 0.0
    /// The share of packets that arrive again: requests soon, replies any time. Drawn apart, so
    /// that nothing else changes with it.
    var copies = 0.0
    /// What the leader calls its line.
    var epoch: UInt64 = 42

    var follower: ClockFollower
    private(set) var published: SharedClock?
    private(set) var clocks: ClockPair
    private(set) var now = TrueInstant(nanoseconds: 0)
    /// Every publication, in order, when asked for.
    private(set) var publications: [SharedClock] = []
    var keepsPublications = false
    /// What each packet took to the leader and to the room, when asked for.
    private(set) var travels: (toLeader: [Travel], toRoom: [Travel]) = ([], [])
    var keepsTravels = false

    struct Travel {
        var departure: TrueInstant
        var duration: Nanoseconds
    }

    /// What the leader tells the room about its reference broadcasts.
    var verdict: ((TimeRequest) -> ReferenceVerdict?)?
    private var requests: [TimeRequest] = []

    private let stamps: StampShape
    private var leader: ClockLeader<Int, Void>
    private var toLeader: NetworkPath
    private var toRoom: NetworkPath
    private var queue = EventQueue<Event>()
    private var stamping: SplitMix64
    private var copying: SplitMix64
    private var packets: UInt32 = 0
    private var alarm: LocalInstant?

    /// - Parameter start: what the room waits for.
    init(
        _ parts: ClockParts, stored: StoredSkew = .unknown, start: ExpectedStart = .joining,
        withholding withheld: Set<ReadingKind> = []
    ) {
        clocks = parts.clocks
        stamps = parts.stamps
        (toLeader, toRoom) = (parts.toLeader, parts.toRoom)
        leader = ClockLeader(start: LocalInstant(nanoseconds: 0), broadcasts: false)
        stamping = SplitMix64(seed: parts.seed, "stamps of the world")
        copying = SplitMix64(seed: parts.seed, "copies")
        follower = ClockFollower(
            start: clocks.local(now), seed: parts.seed, stored: stored, withholding: withheld)
        follower.expectStart(start, at: clocks.local(now))
        arm()
    }

    /// Runs until `end`; seconds of true time.
    mutating func run(until end: Double) {
        let limit = TrueInstant(nanoseconds: Int64(end * 1e9))
        while step(until: limit) {}
        now = max(now, limit)
    }

    /// Lets the next thing happen.
    ///
    /// - Returns: false when nothing happens until `limit`.
    @discardableResult
    mutating func step(until limit: TrueInstant = TrueInstant(nanoseconds: .max)) -> Bool {
        guard let next = queue.next(until: limit) else { return false }
        now = max(now, next.instant)
        handle(next.event)
        arm()
        return true
    }

    /// Published line minus the leader's clock at this moment; seconds. `nil` before the first.
    mutating func error() -> Double? {
        let local = clocks.local(now)
        return published.map { ($0.map(local) - clocks.group(now)).seconds }
    }

    /// What the room's clock reads at this moment.
    var local: LocalInstant { mutating get { clocks.local(now) } }

    /// What the room says of its clock at this moment.
    mutating func sharedClock() -> SharedClock? { follower.sharedClock(at: clocks.local(now)) }

    mutating func statistics() -> ClockStatistics { follower.statistics(at: clocks.local(now)) }

    /// The requests that the leader has read since the last call.
    mutating func takeRequests() -> [TimeRequest] {
        defer { requests.removeAll() }
        return requests
    }

    /// The leader's own clock at this moment.
    var leaderNow: LocalInstant { leaderReading(now) }

    /// The room's kernel will stamp a beacon at `instant`; not before this moment.
    mutating func hear(_ beacon: ReferenceBeacon, at instant: TrueInstant) {
        queue.schedule(.beacon(beacon, stamp: clocks.local(instant)), at: max(now, instant))
    }

    // MARK: -

    private mutating func arm() {
        guard alarm != follower.nextDeadline else { return }
        alarm = follower.nextDeadline
        let due = clocks.instant(of: follower.nextDeadline)
        // A real-time thread wakes some µs late.
        let late = Nanoseconds(seconds: 4e-6 + stamping.exponential(mean: 6e-6))
        queue.schedule(.timer, at: max(now, due) + late)
    }

    private mutating func handle(_ event: Event) {
        let local = clocks.local(now)
        switch event {
        case .timer:
            guard local >= follower.nextDeadline else { return }
            alarm = nil
            perform(follower.advance(to: local))
        case .request(let request, let arrival, let reading):
            let receipt = leader.receive(
                request,
                .init(
                    peer: 1, route: (), instant: arrival, isKernelStamp: stamps != .program),
                epoch: epoch, at: arrival)
            guard let due = receipt.due else { return }
            queue.schedule(.leaderWakes, at: now + (due - arrival) + reading)
        case .leaderWakes: answerAll()
        case .reply(let reply, let arrival):
            perform(
                follower.receive(
                    reply, t4: arrival, isKernelStamp: stamps != .program, at: local))
        case .requestStamp(let sequence, let stamp):
            perform(follower.transmitted(sequence: sequence, at: stamp, now: local))
        case .replyStamp(let number, let stamp): leader.transmitted(packet: number, at: stamp)
        case .beacon(let beacon, let stamp): follower.receive(beacon, at: stamp)
        }
    }

    private mutating func perform(_ effects: [ClockFollower.Effect]) {
        for effect in effects {
            switch effect {
            case .publish(let clock):
                published = clock
                if keepsPublications { publications.append(clock) }
            case .send(let request): ask(request)
            }
        }
    }

    private mutating func ask(_ request: TimeRequest) {
        let departure = now + sendDuration()
        let local = clocks.local(departure)
        if deliversTransmitStamp() {
            queue.schedule(
                .requestStamp(request.sequence, local), at: departure + .microseconds(3))
        }
        for arrival in toLeader.arrivals(of: departure) {
            if keepsTravels {
                travels.toLeader.append(Travel(departure: departure, duration: arrival - departure))
            }
            let stamped = arrival + receiveLateness()
            let reading = Nanoseconds(seconds: stamping.exponential(mean: 15e-6))
            queue.schedule(
                .request(request, arrival: leaderReading(stamped), reading: reading), at: stamped)
            if copies > 0, copying.chance(copies) {
                // After the first has arrived, and within the server's memory of 64 requests, which
                // may come in trains of 16, 8 ms apart.
                let again = stamped + Nanoseconds(seconds: copying.uniform(0.5e-3, 0.02))
                queue.schedule(
                    .request(request, arrival: leaderReading(again), reading: .zero), at: again)
            }
        }
    }

    private mutating func answerAll() {
        while let answer = leader.advance(
            to: leaderReading(now), packet: packets,
            clock: .own(at: leaderReading(now), epoch: epoch))
        {
            send(answer)
        }
    }

    private mutating func send(_ answer: ClockLeader<Int, Void>.Answer) {
        var reply = answer.reply
        if let verdict {
            requests.append(answer.request)
            reply.reference = verdict(answer.request)
        }
        let number = packets
        packets += 1
        let departure = now + sendDuration()
        if deliversTransmitStamp() {
            queue.schedule(
                .replyStamp(number, leaderReading(departure)), at: departure + .microseconds(3))
        }
        for arrival in toRoom.arrivals(of: departure) {
            if keepsTravels {
                travels.toRoom.append(Travel(departure: departure, duration: arrival - departure))
            }
            let stamped = arrival + receiveLateness()
            queue.schedule(.reply(reply, arrival: clocks.local(stamped)), at: stamped)
            if copies > 0, copying.chance(copies) {
                let again = stamped + Nanoseconds(seconds: copying.exponential(mean: 1))
                queue.schedule(.reply(reply, arrival: clocks.local(again)), at: again)
            }
        }
    }

    /// The leader's own clock is the group's, number for number.
    private func leaderReading(_ instant: TrueInstant) -> LocalInstant {
        LocalInstant(nanoseconds: clocks.group(instant).nanoseconds)
    }

    private mutating func deliversTransmitStamp() -> Bool {
        stamps != .program && !stamping.chance(missingStamps)
    }

    private mutating func receiveLateness() -> Nanoseconds {
        Nanoseconds(seconds: stamps.receiveLateness(&stamping))
    }

    /// From the program's look at its clock to the packet's departure.
    private mutating func sendDuration() -> Nanoseconds {
        Nanoseconds(
            seconds: 3e-6 + stamps.sendEarliness(&stamping) + stamping.exponential(mean: 6e-6))
    }
}
