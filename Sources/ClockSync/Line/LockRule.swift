import func Glibc.exp2
import func Glibc.sqrt
import TuttiTiming

/// Decides when a line is good enough to be played by.
///
/// A good line is played by soon. For a worse one the rule waits, and is content with less the
/// longer it has waited: until somebody plays by a line it may be set anew, and afterwards it only
/// leans. How fast the demand falls depends on who waits (``ExpectedStart``), and counts from when
/// they began to wait.
struct LockRule: Equatable, Sendable {
    /// The age before which no line is played by: it is set to the estimate again and again.
    static let settling = Nanoseconds.milliseconds(300)
    /// Expected error of a good line, which a joining room plays by at once, seconds: less than a
    /// third of a sample at 48 kHz.
    static let goodError = 6e-6
    /// On a long path this share of the shortest round trip is good, too. That such a path is alike
    /// in both directions to less nobody can see, and where jitter is like noise less takes many
    /// seconds.
    private static let pathShare = 0.003
    /// The largest expected error that is good on any path, seconds.
    private static let longestGoodError = 20e-6
    /// How long a common start waits, seconds: as long as the leader is asked densely, since never
    /// again so much comes in so short a time. Rooms that begin sooner are twice as far apart in
    /// their first half second, and converge while they are heard.
    private static let commonSpan = RequestSchedule.denseSpan.seconds
    /// A line whose expected error is this share of a good one's does not wait for that.
    private static let commonCaution = 0.4
    /// How long a joining room waits for the best that can be had, seconds. It should be heard half
    /// a second after it found its leader; opening the item and the output take the rest.
    private static let joiningSpan = 0.3
    /// How many times a good line's error a joining room is content with in addition by then.
    /// Before, it grows with the fourth power of the time, since what can still become better is
    /// waited for.
    private static let joiningGrowth = 5.0
    /// By how many times a good line's error that grows in each further second. Without it, half of
    /// the rooms on busy air play more than a second later.
    private static let lateGrowth = 8.0
    /// The largest expected error, seconds, with which a room joins before it has waited as long as
    /// for a common start.
    private static let outOfStep = 100e-6
    /// How long an unknown skew counts, seconds: what a card queues before a sound is heard, and
    /// half as much again, in which the line follows what is learnt.
    private static let untilHeard = 0.15
    /// The longest that anybody waits for a path that is bad. When the clocks jump meanwhile
    /// measuring begins anew, and so does this.
    private static let longest = Nanoseconds.seconds(12)
    /// How much of that may pass while nobody wants to play yet. The rest is less than a group
    /// waits.
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

    /// A common start: nobody hears that it waits, so hardly any line will do before
    /// ``commonSpan``. Afterwards the demand falls with the root of the time only. Rooms that begin
    /// with a bad line stay apart for seconds, because then it may only lean.
    private static func growth(after waited: Nanoseconds) -> Double {
        let seconds = max(0, waited.seconds)
        return seconds < commonSpan ? commonCaution : 1 + sqrt(seconds)
    }

    /// A room that is missing is wanted soon rather than well, though not before ``joiningSpan``
    /// has told what it can.
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
