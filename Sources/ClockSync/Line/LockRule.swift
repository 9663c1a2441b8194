import func Glibc.exp2
import func Glibc.sqrt
import Timing

/// When a line is good enough to be played by: soon when it is good, and with time for less, as long
/// as nobody plays by it and it may be set anew.
///
/// How fast the demand falls depends on who waits (``ExpectedStart``), and counts from when they
/// began to.
struct LockRule: Equatable, Sendable {
    /// No line is younger than that: it is set to the estimate again and again.
    static let settling = Nanoseconds.milliseconds(300)
    /// Expected error of a good line, which a joining room plays by at once, seconds: less than a
    /// third of a sample at 48 kHz.
    static let goodError = 6e-6
    /// … or this share of the shortest round trip, up to ``longestGoodError``: a path so long is not
    /// alike in both directions to that, which nobody can see, and where its jitter is like noise less
    /// takes many seconds.
    private static let pathShare = 0.003
    private static let longestGoodError = 20e-6
    /// A common start waits as long as the leader is asked densely, seconds: never again does so much
    /// come in so short a time. When nobody waited, pairs of rooms on an emulated wire were 5 µs apart
    /// in their first half second, and 2.4 from 1.25 s on (root of the mean square, 72 pairs), …
    private static let commonSpan = RequestSchedule.denseSpan.seconds
    /// … so only a line that is that much better than good does not wait.
    private static let commonCaution = 0.4
    /// A joining room should be heard half a second after it found its leader. Of that it waits so long
    /// for the best that can be had; opening the item and the output take the rest, …
    private static let joiningSpan = 0.3
    /// … and is content with so many times as much more by then. The fourth power of the time: what
    /// can still become better in that span is waited for.
    private static let joiningGrowth = 5.0
    /// Later, so many times as much for each second. On simulated busy air (`em-busy`) half of the
    /// rooms played after 0.9 s that way when it was new, after 2.3 without.
    private static let lateGrowth = 8.0
    /// Nobody joins with a larger expected error, seconds, who has not waited as long as for a
    /// common start.
    private static let outOfStep = 100e-6
    /// For so long an unknown skew counts, seconds: what a card queues before a sound is heard, and
    /// half as much again, in which the line follows what is learnt.
    private static let untilHeard = 0.15
    /// … but nobody waits longer than this for a path that is bad; longer only when the clocks jump
    /// meanwhile, since measuring then begins anew.
    private static let longest = Nanoseconds.seconds(12)
    /// So much of it may pass while nobody wants to play yet. The rest is less than a group waits.
    private static let longestUnhurried = Nanoseconds.seconds(8)

    /// What is known at the moment; seconds.
    struct Knowledge {
        /// Expected error of the estimate.
        var error: Double
        /// Standard deviation of the skew.
        var skewDeviation: Double
        /// The shortest round trip of the path.
        var roundTrip: Double
    }

    /// When somebody first wanted to play by the line.
    private var wantedSince: LocalInstant?
    private var wantedFor = ExpectedStart.common

    /// Somebody waits.
    mutating func expectUse(for start: ExpectedStart, at now: LocalInstant) {
        if wantedSince == nil { wantedSince = now }
        wantedFor = start
    }

    /// Whether a line that began at `start` may be played by: it is good, or will not soon be
    /// better.
    ///
    /// - Parameters:
    ///   - knowledge: `nil` while there is no estimate: then there is nothing to wait for.
    ///   - isHeard: another line was played by before, and jumped.
    func isSatisfied(
        with knowledge: Knowledge?, since start: LocalInstant, at now: LocalInstant, isHeard: Bool
    ) -> Bool {
        guard now - start >= Self.settling else { return false }
        // Waiting counts from when somebody wants the line, and before that only a little.
        let wantedAt = max(wantedSince ?? now, start)
        let wanted = now - wantedAt
        let waited = wanted + min(wantedAt - start, Self.longestUnhurried)
        guard waited < Self.longest, let knowledge else { return true }
        // Also when the first sound is heard. By then more is known of the skew.
        let drift = Self.untilHeard * knowledge.skewDeviation
        let error = sqrt(knowledge.error * knowledge.error + drift * drift)
        let good = min(
            max(Self.goodError, Self.pathShare * knowledge.roundTrip), Self.longestGoodError)
        if isHeard { return error <= good * Self.growthWhenHeard(after: waited) }
        if error <= good * Self.growth(after: waited) { return true }
        let hasty = good * Self.growthWhenJoining(after: wanted)
        return wantedFor == .joining && error <= min(hasty, Self.outOfStep)
    }

    // So many times the error of a good line will do after waiting so long.

    /// A common start: nobody hears that it waits, so hardly any line will do before ``commonSpan``.
    /// In recorded exchanges of emulated wifi, rooms
    /// that began in the fourth second, all three, were 70 µs apart in half of the pairs and still
    /// 60 two seconds later; in the eighth 18 and 9.
    private static func growth(after waited: Nanoseconds) -> Double {
        let seconds = max(0, waited.seconds)
        return seconds < commonSpan ? commonCaution : 1 + sqrt(seconds)
    }

    /// A room that is missing is wanted soon rather than well, though not before ``joiningSpan`` has
    /// told what it can.
    private static func growthWhenJoining(after waited: Nanoseconds) -> Double {
        let seconds = max(0, waited.seconds)
        let share = min(1, seconds / joiningSpan)
        let late = max(0, seconds - joiningSpan)
        return 1 + joiningGrowth * share * share * share * share + lateGrowth * late
    }

    /// After a jump what is wrong may be heard.
    private static func growthWhenHeard(after waited: Nanoseconds) -> Double {
        exp2(max(0, waited.seconds))
    }
}
