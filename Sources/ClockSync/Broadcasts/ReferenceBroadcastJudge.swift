public import TuttiTiming

/// The leader's side of reference broadcasts: when to send a beacon, and what the rooms' reports of
/// it say about each room's clock.
///
/// Rooms that hear the same packets form a cluster. For each of them a ``ReferenceLine`` says how
/// its clock runs against the others', to a µs or two, and its two-way line says what the group's
/// time is, to some tens of µs. So within a cluster all errors of the two-way lines are known but
/// for one number, their mean, which is smaller than each. Each room is told how far it is from it.
///
/// What the rooms say is believed only as far as it fits: what each room thinks itself wrong by
/// decides how much it counts, and a room that is off by far more counts for nothing. An offset
/// that stays is not corrected (``PersistentOffset``): it may be the packets' as well as the
/// clocks'.
///
/// Everything is bounded, and a room that is silent for ``silence`` is forgotten.
public struct ReferenceBroadcastJudge<Peer: Hashable & Sendable>: Sendable {
    /// How many rooms are known at most: the 200 that a leader is made for, and some.
    public static var peerLimit: Int { 256 }
    /// A room that has not asked for this long is gone.
    public static var silence: Nanoseconds { .seconds(5) }
    /// The shortest time between two beacons. They leave when a request has just arrived and the
    /// thread is awake, so that some ten a second come of it.
    static var spacing: Nanoseconds { .milliseconds(80) }
    static var idleSpacing: Nanoseconds { .milliseconds(450) }
    /// Requests a second that an idle room does not exceed.
    static var idleRate: Double { 4 }
    /// How long a beacon waits for everybody's report: two idle requests, one of them lost, or the
    /// pause between two trains of requests.
    static var patience: Nanoseconds { .milliseconds(1_500) }
    /// A room leaves its cluster above this spread, and joins one when it is clearly below. A
    /// packet of its own for each station waits a random back-off of up to 15 slots of 9 µs even on
    /// quiet air (IEEE 802.11 EDCA), which alone spreads over 34 µs; receivers of one frame over
    /// less.
    public static var spreadLimit: Double { 30e-6 }
    static var sortingInterval: Nanoseconds { .seconds(1) }

    var receivers: [Receiver] = []
    var clusters: [[Int]] = []
    private var places: [Peer: Int] = [:]
    private var media: [Medium] = []
    private var epoch: UInt64 = 0
    private var sortedAt: LocalInstant?
    /// Turns over whom newcomers are compared with.
    var passes = 0
    /// Names of clusters, never used again.
    var clustersMade = 0

    struct Receiver: Sendable {
        let peer: Peer
        var medium: Int
        var askedAt: LocalInstant
        /// Since ``sort(at:)`` looked last.
        var requests = 0
        /// Beacons that left on this room's requests.
        var rides = 0
        /// When it asked last by its own clock, and its two-way line through that moment.
        var t1 = LocalInstant(nanoseconds: 0)
        var twoWay: ClockMap<LocalClock, GroupClock>
        /// What it thinks itself wrong by, seconds.
        var expectedError = 0.0
        var heard = BeaconMemory()
        var hearsAny = false
        /// Zero: none.
        var cluster = 0
        var line: ReferenceLine?
        /// How far its two-way line is from the mean of its cluster.
        var offset = PersistentOffset()
        /// How its times of hearing beacons scatter against those of the nearest other room,
        /// seconds.
        var spread = Double.infinity
    }

    private struct Medium: Sendable {
        let name: Int
        var next: UInt32 = 1
        var judged: UInt32 = 1
        var sentAt = [LocalInstant](
            repeating: LocalInstant(nanoseconds: 0), count: BeaconMemory.capacity)
        var lastSent: LocalInstant?
        var askers = 0
        var isIdle = false

        /// Those that receivers still remember.
        var recent: Range<UInt32> {
            next - min(next - 1, UInt32(BeaconMemory.capacity))..<next
        }
    }

    /// A judge who has heard of no room yet.
    public init() {}

    // MARK: - Input

    /// Takes what came with a time request.
    ///
    /// - Parameters:
    ///   - report: `nil` from a room that wants no broadcasts.
    ///   - medium: where the request came in: an interface and a family of addresses. Packets of
    ///     different media are different packets.
    ///   - now: local time.
    public mutating func receive(
        _ report: ReferenceReport?, of request: TimeRequest, from peer: Peer, medium: Int,
        at now: LocalInstant
    ) {
        guard let report else { return }
        // Places change when it forgets somebody.
        if sortedAt.map({ now - $0 >= Self.sortingInterval }) ?? true { sort(at: now) }
        let place = place(of: peer, medium, report, request, at: now)
        guard let place else { return }
        receivers[place].askedAt = now
        receivers[place].requests += 1
        receivers[place].t1 = request.t1
        receivers[place].twoWay = ClockMap(
            from: request.t1, to: report.reading, skew: Double(report.skewTrillionths) * 1e-12)
        receivers[place].expectedError = max(0, report.expectedError.seconds)
        guard report.epoch == epoch, let medium = media.firstIndex(where: { $0.name == medium })
        else { return }
        let recent = media[medium].recent
        for back in 0..<ReferenceReport.beaconLimit where report.ages[back] > 0 {
            let number = report.newest &- UInt32(back)
            guard recent.contains(number) else { continue }
            receivers[place].hearsAny = true
            receivers[place].heard.insert(
                number, request.t1 - Nanoseconds(Int64(report.ages[back])))
        }
        judge(medium, at: now)
    }

    /// The beacon to send now, on the medium where a request of `peer` has just arrived; `nil`:
    /// none.
    ///
    /// The room that asked is awake, and hears what follows a few µs earlier than the others; so no
    /// room's requests give the occasion more often than its share.
    public mutating func beacon(
        on peer: Peer, epoch: UInt64, at now: LocalInstant
    ) -> ReferenceBeacon? {
        guard let place = places[peer],
            let medium = media.firstIndex(where: { $0.name == receivers[place].medium }),
            media[medium].askers >= 2
        else { return nil }
        if epoch != self.epoch { begin(epoch) }
        let spacing = media[medium].isIdle ? Self.idleSpacing : Self.spacing
        if let last = media[medium].lastSent {
            guard now - last >= spacing else { return nil }
            let isFair = receivers[place].rides * media[medium].askers < Int(media[medium].next)
            guard isFair || now - last >= spacing * 3 else { return nil }
        }
        receivers[place].rides += 1
        let number = media[medium].next
        media[medium].sentAt[Int(number % UInt32(BeaconMemory.capacity))] = now
        media[medium].lastSent = now
        media[medium].next += 1
        return ReferenceBeacon(epoch: epoch, number: number)
    }

    // MARK: - Output

    /// What to tell `peer` in the answer to `request`; `nil` when it wants no broadcasts.
    public func verdict(for peer: Peer, on request: TimeRequest) -> ReferenceVerdict? {
        guard let report = request.reference, let place = places[peer] else { return nil }
        let receiver = receivers[place]
        guard let line = receiver.line else {
            let askers = media.first { $0.name == receiver.medium }?.askers ?? 1
            let state: ReferenceState =
                askers < 2
                ? .alone
                : !receiver.hearsAny
                    ? .notHeard : receiver.spread.isFinite ? .scattered : .gathering
            return ReferenceVerdict(
                state: state,
                spread: receiver.spread.isFinite ? Nanoseconds(seconds: receiver.spread) : .zero)
        }
        let systematic = Self.systematic(line)
        let noise = line.variance + systematic * systematic
        let expected = report.expectedError.seconds * report.expectedError.seconds
        let own = max(expected, receiver.offset.meanSquare - noise)
        return ReferenceVerdict(
            state: receiver.offset.standing > 0.5 ? .standingOffset : .inUse,
            rooms: receivers.count { $0.cluster == receiver.cluster },
            correction: line.map(request.t1) - report.reading,
            share: (1 - receiver.offset.standing) * own / (own + noise),
            noise: Nanoseconds(seconds: noise.squareRoot()),
            spread: Nanoseconds(seconds: receiver.spread))
    }

    /// What two receivers of one packet may be apart on average: other cards, other drivers. A part
    /// of what they scatter by, and a µs; seconds.
    private static func systematic(_ line: ReferenceLine) -> Double { 1e-6 + 0.05 * line.scale }

    // MARK: - Rooms

    private mutating func place(
        of peer: Peer, _ medium: Int, _ report: ReferenceReport, _ request: TimeRequest,
        at now: LocalInstant
    ) -> Int? {
        if let place = places[peer] {
            if receivers[place].medium == medium { return place }
            forget([place])
        }
        guard receivers.count < Self.peerLimit else { return nil }
        receivers.append(
            Receiver(
                peer: peer, medium: medium, askedAt: now,
                twoWay: ClockMap(from: request.t1, to: report.reading)))
        places[peer] = receivers.count - 1
        return receivers.count - 1
    }

    private mutating func forget(_ gone: [Int]) {
        for place in gone.sorted(by: >) {
            receivers.remove(at: place)
        }
        places.removeAll(keepingCapacity: true)
        for (place, receiver) in receivers.enumerated() { places[receiver.peer] = place }
        rebuildClusters()
    }

    /// The leader's line is another one: packets are counted anew.
    private mutating func begin(_ epoch: UInt64) {
        self.epoch = epoch
        for place in receivers.indices {
            receivers[place].heard.removeAll()
            receivers[place].hearsAny = false
            receivers[place].cluster = 0
            receivers[place].line = nil
            receivers[place].rides = 0
        }
        for medium in media.indices {
            media[medium] = Medium(
                name: media[medium].name, askers: media[medium].askers,
                isIdle: media[medium].isIdle)
        }
        rebuildClusters()
    }

    /// Forgets who is gone, counts who asks, and looks who hears what.
    private mutating func sort(at now: LocalInstant) {
        let interval = sortedAt.map { (now - $0).seconds } ?? 0
        sortedAt = now
        passes += 1
        let gone = receivers.indices.filter { now - receivers[$0].askedAt > Self.silence }
        if !gone.isEmpty { forget(gone) }
        for name in Set(receivers.map(\.medium)) where !media.contains(where: { $0.name == name }) {
            media.append(Medium(name: name))
        }
        media.removeAll { medium in !receivers.contains { $0.medium == medium.name } }
        for medium in media.indices {
            let here = receivers.indices.filter { receivers[$0].medium == media[medium].name }
            if here.count != media[medium].askers {
                // Fair shares count from now on.
                for place in here { receivers[place].rides = Int(media[medium].next) / here.count }
            }
            media[medium].askers = here.count
            media[medium].isIdle = here.allSatisfy {
                Double(receivers[$0].requests) <= Self.idleRate * interval
            }
            for place in here { receivers[place].requests = 0 }
            sortClusters(of: here, beacons: media[medium].recent)
        }
        agree(after: min(max(interval, 0.1), 5))
    }

    // MARK: - Beacons

    /// Learns from the beacons that everybody had the time to report.
    private mutating func judge(_ medium: Int, at now: LocalInstant) {
        media[medium].judged = max(media[medium].judged, media[medium].recent.lowerBound)
        while media[medium].judged < media[medium].next {
            let number = media[medium].judged
            let sentAt = media[medium].sentAt[Int(number % UInt32(BeaconMemory.capacity))]
            guard now - sentAt >= Self.patience else { return }
            media[medium].judged += 1
            for cluster in clusters where receivers[cluster[0]].medium == media[medium].name {
                judge(number, cluster)
            }
        }
    }
}
