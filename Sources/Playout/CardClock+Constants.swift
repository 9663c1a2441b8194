/// What ``CardClock`` takes crystals and pointers for. Computed, because a stored global could be
/// made lazily, which the output thread must not wait for.
extension CardClock {
    /// Random walk of the rate, seconds per second per √s: a crystal in a room has 0.01 ppm/√s, one
    /// beside a warm processor more. Larger follows faster and is noisier.
    static var rateNoise: Double {
        @_noLocks @_noAllocation get { 3e-8 }
    }
    /// Before the first reading, standard deviation of the rate: 200 ppm.
    static var firstRateVariance: Double {
        @_noLocks @_noAllocation get { 200e-6 * 200e-6 }
    }
    /// The same after a restart of a card whose rate is known: 5 ppm.
    static var keptRateVariance: Double {
        @_noLocks @_noAllocation get { 5e-6 * 5e-6 }
    }
    /// A reading is at first believed to 20 µs, one frame.
    static var firstNoise: Double {
        @_noLocks @_noAllocation get { 20e-6 * 20e-6 }
    }
    static var leastNoise: Double {
        @_noLocks @_noAllocation get { 1e-13 }
    }
    /// What a dozen readings say of their noise is not worth more than this: 1 µs, and 2 ppm.
    static var probedNoise: Double {
        @_noLocks @_noAllocation get { 1e-12 }
    }
    static var leastSlopeVariance: Double {
        @_noLocks @_noAllocation get { 4e-12 }
    }
    /// Until the phase is known so well, windows are short; seconds.
    static var foundPhase: Double {
        @_noLocks @_noAllocation get { 10e-6 }
    }
    /// Between the freshest looks of the first window, at least, seconds: unless the steps are
    /// smaller.
    static var firstEdgeSpacing: Double {
        @_noLocks @_noAllocation get { 10e-6 }
    }
    /// Edges in a row far off on the same side: then it is the line that is wrong.
    static var farEdgesMax: Int {
        @_noLocks @_noAllocation get { 3 }
    }
    /// By how much its rate may then be wrong.
    static var wrongRate: Double {
        @_noLocks @_noAllocation get { 50e-6 }
    }
    /// No edge is known better than to 1 µs: stamps are not.
    static var leastEdgeNoise: Double {
        @_noLocks @_noAllocation get { 1e-12 }
    }
    /// Readings in a row that lie far off on the same side before the line is taken up anew: the
    /// card has jumped.
    static var outliersBeforeJump: Int {
        @_noLocks @_noAllocation get { 12 }
    }
    /// Noise, as a variance, from which on a pointer that was taken for a fine one is not: 75 µs.
    static var coarseNoise: Double {
        @_noLocks @_noAllocation get { 75e-6 * 75e-6 }
    }
    /// Longest window of which the edge is taken, seconds.
    static var longestWindow: Double {
        @_noLocks @_noAllocation get { 0.4 }
    }
    /// The shortest, and in steps: the card wakes us once a step at best, and a window without some
    /// fresh looks has no edge.
    static var shortestSeconds: Double {
        @_noLocks @_noAllocation get { 0.05 }
    }
    static var shortestSteps: Double {
        @_noLocks @_noAllocation get { 6 }
    }
    /// Of one innovation in their mean: a third of a second of readings, or two edges.
    static var trendWeight: Double {
        @_noLocks @_noAllocation get { 1 / 32.0 }
    }
    static var edgeTrendWeight: Double {
        @_noLocks @_noAllocation get { 0.4 }
    }
    /// Square of the mean's standard deviations beyond which it is a trend: 3. Chance has that once
    /// in 370, and a rate that is freed for nothing is found again in a second.
    static var trendLimit: Double {
        @_noLocks @_noAllocation get { 9 }
    }
    /// By how much the rate may then have changed, at once.
    static var freedRate: Double {
        @_noLocks @_noAllocation get { 1e-6 }
    }
    /// How long a voice waits for a card that is hard to read, seconds.
    static var patience: Double {
        @_noLocks @_noAllocation get { 3 }
    }
    /// The same for one whose position wanders.
    static var wanderPatience: Double {
        @_noLocks @_noAllocation get { 1.2 }
    }
    /// After a jump an ordinary card is found again in this: a voice keeps its rate meanwhile.
    static var jumpPatience: Double {
        @_noLocks @_noAllocation get { 0.5 }
    }
    /// Readings that a window must have before its edge means anything.
    static var looksNeeded: Int {
        @_noLocks @_noAllocation get { 5 }
    }
}
