import TuttiTiming

/// How the position that a card reports moves; it decides how the position is read.
@frozen
public enum CardClass: UInt8, Sendable, BitwiseCopyable, CaseIterable {
    /// Not known yet: the card has been open for less than some tenths of a second.
    case probing
    /// Frame by frame, read once a period; or in bursts of less than 16, of which a few more looks find
    /// the edges.
    case fine
    /// At the interrupt of a period only.
    case batch
    /// In larger steps, by the millisecond as on USB, or irregularly.
    case coarse
    /// Not at all: nobody knows what is heard when, and a steady rate is assumed.
    case unreadable
}

/// Finds out from a card's first readings in which steps its pointer moves.
///
/// A pointer that moves in steps is right just after a step and late ever after, by anything up to
/// a step. So its readings, taken at scattered moments, lie below the card's line in a strip as
/// wide as a step; a uniform distribution of width w has the deviation w/√12. The line is fitted by
/// least squares with running sums, so no reading is kept. Where all moves of the count are
/// multiples of a number, that number is the step; it is exact where the deviation is an estimate.
struct PointerProbe: BitwiseCopyable {
    /// Enough to tell 12 frames from 1: either many readings (a device that is looked at densely),
    /// or some for longer.
    private static var readingsNeeded: Int {
        @_noLocks @_noAllocation get { 64 }
    }
    private static var secondsNeeded: Double {
        @_noLocks @_noAllocation get { 0.1 }
    }
    private static var fewReadingsNeeded: Int {
        @_noLocks @_noAllocation get { 15 }
    }
    private static var longSecondsNeeded: Double {
        @_noLocks @_noAllocation get { 0.14 }
    }
    /// A count of fractions that lies on a line is no pointer with steps; that shows at once.
    private static var exactReadingsNeeded: Int {
        @_noLocks @_noAllocation get { 8 }
    }
    private static var exactSecondsNeeded: Double {
        @_noLocks @_noAllocation get { 0.06 }
    }
    private static var exactFrames: Double {
        @_noLocks @_noAllocation get { 0.5 }
    }
    /// Moves of the count before their common divisor says anything: eight whole numbers have one
    /// by chance with a probability of 2⁻⁸.
    private static var movesNeeded: Int {
        @_noLocks @_noAllocation get { 8 }
    }
    /// Share of a step that the strip must be wide.
    private static var seenShare: Double {
        @_noLocks @_noAllocation get { 0.25 }
    }
    /// Width of the strip in frames from which on a pointer without a divisor is not fine. Stamps
    /// that jitter by ±100 µs still count as fine and are averaged.
    private static var irregularFrames: Double {
        @_noLocks @_noAllocation get { 12 }
    }

    private var count = 0.0
    private var first = 0.0
    private var last = 0.0
    private var sumT = 0.0
    private var sumTT = 0.0
    private var sumZ = 0.0
    private var sumZZ = 0.0
    private var sumTZ = 0.0
    private var lastFrames = 0.0
    private var moves = 0
    /// Of all moves; 0: none yet; 1: no step.
    private var divisor = 0

    @_noLocks @_noAllocation
    init() {}

    /// What came of it.
    struct Verdict: BitwiseCopyable {
        /// Frames; 1 or less: fine.
        var step: Double
        /// Of the readings about their line, seconds squared.
        var noise: Double
        /// Line through the readings: seconds at the last, slope, and the variances of both.
        var z: Double
        var slope: Double
        var phaseVariance: Double
        var slopeVariance: Double
    }

    /// Takes in one reading.
    ///
    /// - Parameters:
    ///   - frames: as the card said.
    ///   - z: the same in seconds, minus the time.
    /// - Returns: the verdict, once.
    @_noLocks @_noAllocation
    mutating func observe(frames: Double, z: Double, at time: Double, rate: Double) -> Verdict? {
        if count == 0 {
            first = time
            lastFrames = frames
        }
        count += 1
        last = time
        let t = time - first
        sumT += t
        sumTT += t * t
        sumZ += z
        sumZZ += z * z
        sumTZ += t * z
        let moved = frames - lastFrames
        if moved != 0, divisor != 1 {
            moves += 1
            let whole = moved > -1e9 && moved < 1e9 ? Int(moved) : 1
            divisor = Double(whole) == moved ? Self.commonDivisor(divisor, whole) : 1
        }
        lastFrames = frames
        let isEnough =
            count >= Double(Self.readingsNeeded) && t >= Self.secondsNeeded
            || count >= Double(Self.fewReadingsNeeded) && t >= Self.longSecondsNeeded
        if isEnough { return verdict(rate) }
        guard divisor == 1, count >= Double(Self.exactReadingsNeeded), t >= Self.exactSecondsNeeded
        else { return nil }
        let early = verdict(rate)
        return early.noise * rate * rate * 12 < Self.exactFrames * Self.exactFrames ? early : nil
    }

    @_noLocks @_noAllocation
    private func verdict(_ rate: Double) -> Verdict {
        let t = last - first
        let meanT = sumT / count
        let meanZ = sumZ / count
        let spreadT = max(1e-12, sumTT - count * meanT * meanT)
        let slope = (sumTZ - count * meanT * meanZ) / spreadT
        let spreadZ = sumZZ - count * meanZ * meanZ
        let variance = max(1e-14, (spreadZ - slope * slope * spreadT) / (count - 2))
        let width = squareRoot(of: 12 * variance) * rate
        var step = width > Self.irregularFrames ? width : 1
        // Looks that always meet the step, and never the time between two, tell nothing of it.
        if divisor > 1, moves >= Self.movesNeeded, width > Self.seenShare * Double(divisor) {
            step = Double(divisor)
        }
        let lead = t - meanT
        return Verdict(
            step: step, noise: variance, z: meanZ + slope * lead, slope: slope,
            phaseVariance: variance * (1 / count + lead * lead / spreadT),
            slopeVariance: variance / spreadT)
    }

    @_noLocks @_noAllocation
    private static func commonDivisor(_ a: Int, _ b: Int) -> Int {
        var a = a < 0 ? -a : a
        var b = b < 0 ? -b : b
        while b != 0 { (a, b) = (b, a % b) }
        return a
    }
}
