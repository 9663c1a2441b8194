import TuttiTiming

import func Glibc.exp

/// A room's side of reference broadcasts: what to tell the leader of the beacons heard, and how to
/// follow its verdict.
///
/// The verdict says where the cluster's line is, seen from this room's two-way line, and how sure
/// that is. Between two answers both run on by the crystal's skew, so the room knows at any moment
/// how far apart they are. It goes the share of the way that Kalman would, with σ the error of the
/// two-way line and r the noise of the verdict, and never further than half of the round trip,
/// within which two-way exchange cannot contradict:
///
///     correction = σ²/(σ² + r²) · (cluster − own),   |correction| ≤ round trip/2
///
/// How it goes there is up to ``ReferenceCorrection``.
struct ReferenceListener: Sendable {
    /// A verdict older than this is going stale …
    static let verdictLife = 5.0
    /// … and loses its weight with this time constant; seconds.
    static let fading = 60.0
    /// Without a beacon for so long, none arrive.
    static let deafness = Nanoseconds.seconds(5)

    /// Why the room takes no part; `nil`: it does.
    private(set) var refusal: ReferenceState? = .off
    private(set) var heard = 0
    private var epoch: UInt64 = 0
    private var numbers: [UInt32] = []
    private var instants: [LocalInstant] = []
    private var verdict: ReferenceVerdict?
    private var judgedAt: LocalInstant?
    private var heardAt: LocalInstant?
    /// A point of the cluster's line. Its slope is what is known of the skew by now: in the first
    /// seconds that is far from what was known then.
    private var cluster: (at: LocalInstant, reading: GroupInstant)?
    private var share = 0.0

    private var correction = ReferenceCorrection()
    /// What ``report(at:_:error:)`` said last, to know what a verdict is about.
    private var told: [(sequence: UInt32, t1: LocalInstant, reading: GroupInstant)] = []
    private static let toldLimit = 64

    mutating func setRefusal(_ state: ReferenceState?) {
        refusal = state
        if state != nil { forget() }
    }

    // MARK: Telling

    mutating func receive(_ beacon: ReferenceBeacon, at instant: LocalInstant) {
        guard refusal == nil else { return }
        if beacon.epoch != epoch {
            epoch = beacon.epoch
            numbers.removeAll()
            instants.removeAll()
        }
        guard !numbers.contains(beacon.number) else { return }
        if numbers.count == ReferenceReport.beaconLimit {
            numbers.removeFirst()
            instants.removeFirst()
        }
        numbers.append(beacon.number)
        instants.append(instant)
        heard += 1
        heardAt = instant
    }

    /// What to say with the request that leaves at `now`.
    ///
    /// - Parameter line: the two-way line, uncorrected, with the crystal's skew.
    mutating func report(
        at now: LocalInstant, sequence: UInt32, _ line: SharedClock?, skew: Double,
        error: Nanoseconds?
    ) -> ReferenceReport? {
        guard refusal == nil, let line, let error else { return nil }
        let reading = line.map(now)
        if told.count == Self.toldLimit { told.removeFirst() }
        told.append((sequence, now, reading))
        var report = ReferenceReport(
            epoch: epoch, reading: reading,
            skewTrillionths: Int32(clamping: Int64(saturating: skew * 1e12)), expectedError: error)
        guard let newest = numbers.max() else { return report }
        report.newest = newest
        for (number, instant) in zip(numbers, instants) {
            let back = Int(newest - number)
            let age = (now - instant).count
            guard back < ReferenceReport.beaconLimit, age > 0, age <= Int64(UInt32.max) else {
                continue
            }
            report.ages[back] = UInt32(age)
        }
        return report
    }

    // MARK: Following

    /// The leader's verdict on what request `sequence` said.
    ///
    /// - Parameter isNeeded: not on a path of wires. There two-way exchange is as good, and what
    ///   the receivers differ by for good, in interrupts and in waking, is not small against its
    ///   error.
    mutating func take(
        _ verdict: ReferenceVerdict?, sequence: UInt32, isNeeded: Bool, at now: LocalInstant
    ) {
        guard refusal == nil, var verdict,
            let place = told.firstIndex(where: { $0.sequence == sequence })
        else { return }
        let about = told[place]
        told.removeSubrange(...place)
        // A wire hears a frame before the air does: among rooms of both kinds it is scattered.
        if !isNeeded, [.inUse, .scattered, .standingOffset].contains(verdict.state) {
            (verdict.state, verdict.share) = (.unneeded, 0)
        }
        self.verdict = verdict
        switch verdict.state {
        case .inUse, .standingOffset, .unneeded: judgedAt = now
        // Without a cluster the last one counts a little longer, then fades.
        default: return
        }
        cluster = (about.t1, about.reading + verdict.correction)
        share = min(max(verdict.share, 0), 1)
    }

    /// Decides how the published line goes on from `now`; see ``ReferenceCorrection``.
    ///
    /// - Parameters:
    ///   - line: the two-way line from now on.
    ///   - skew: of the crystal.
    ///   - error: expected of the two-way line.
    ///   - limit: the largest correction.
    mutating func aim(
        at now: LocalInstant, _ line: ClockMap<LocalClock, GroupClock>, skew: StoredSkew,
        error: Nanoseconds, limit: Nanoseconds, maySet: Bool
    ) {
        guard let cluster, let judgedAt else {
            return correction.aim(
                at: now, line, skew: skew.skew, wanted: nil, slope: 0, maySet: maySet)
        }
        // What the cluster's line has gone astray since, against what the two-way line errs by.
        let astray = skew.deviation * (now - cluster.at).seconds / max(error.seconds, 1e-9)
        let age = (now - judgedAt).seconds - Self.verdictLife
        let share = share * (age > 0 ? exp(-age / Self.fading) : 1) / (1 + astray * astray)
        let reading = ClockMap(from: cluster.at, to: cluster.reading, skew: skew.skew)(now)
        let wanted = share * (reading - line(now)).seconds
        let most = limit.seconds
        let isFar = wanted.magnitude > most
        correction.aim(
            at: now, line, skew: skew.skew,
            wanted: isFar ? (wanted < 0 ? -most : most) : wanted,
            slope: isFar ? 0 : share * (skew.skew - line.skew), maySet: maySet)
    }

    func corrected(_ clock: SharedClock, at now: LocalInstant) -> SharedClock {
        correction.corrected(clock, at: now)
    }

    /// This room's clock jumped: what was heard by it counts no more.
    mutating func forget() {
        numbers.removeAll()
        instants.removeAll()
        told.removeAll()
        verdict = nil
        cluster = nil
    }

    func statistics(at now: LocalInstant) -> ReferenceStatistics {
        var all = ReferenceStatistics()
        all.heard = heard
        all.correction = correction.value(at: now)
        if let refusal {
            all.state = refusal
            return all
        }
        let isDeaf = heardAt.map { now - $0 > Self.deafness } ?? true
        guard let verdict else {
            all.state = .notHeard
            return all
        }
        // A leader that sends none says so.
        let isSilent = verdict.state == .alone || verdict.state == .off
        all.state = isDeaf && !isSilent ? .notHeard : verdict.state
        all.rooms = verdict.rooms
        all.spread = verdict.spread
        all.noise = verdict.noise
        return all
    }
}
