/// How long one direction of a path takes, and what it loses: the shape of its delays.
///
///     delay = floor + regime + Γ(shape, scale) + contention + retries + queue + spike + …
///
/// The figures are plausible, not recorded. What an estimator cannot know is the point of them:
/// floors that change separately in both directions, and delays without any mass near the floor.
/// Parts that a path does not have draw nothing, so that a new part changes no existing trace.
struct PathShape: Sendable {
    /// µs; never less than this.
    var floor: Double
    var jitterShape = 0.8
    /// µs.
    var jitterScale = 2.5
    /// Mean of the waiting for the medium, µs.
    var contention = 0.0
    /// Probability of one more attempt on the air, 300 µs and an exponential 300 µs each.
    var retryChance = 0.0
    var queueChance = 0.0
    /// Mean of the time in a busy queue, µs.
    var queue = 0.0
    var spikeChance = 0.0
    /// Mean of a spike, µs.
    var spike = 0.0
    /// Added to the floor, µs; another one every nine seconds or so (rate adaptation).
    var regimes: [Double] = [0]
    var loss = 0.0
    var duplication = 0.0

    /// Largest wait for a coalesced interrupt, uniform; µs.
    var coalescing = 0.0
    var access: LogNormal?
    var bursts: Bursts?
    var emulation: Emulation?
    var download: Download?
    var powerSave: PowerSave?
    var stalls: Stalls?
    var lossBursts: LossBursts?
    /// What happens once, at a time.
    var episodes: [Episode] = []
    /// Nothing arrives; seconds.
    var outages: [Range<Double>] = []
    /// Further hops on the way, each as slow as it is.
    var further: [PathShape] = []

    /// Access to the medium whose logarithm is normal: no mass at zero, a long tail.
    struct LogNormal: Sendable {
        /// µs.
        var median: Double
        /// Standard deviation of the natural logarithm.
        var deviation: Double
    }

    /// Times in which every packet waits: a neighbour's transfer.
    struct Bursts: Sendable {
        /// Mean time from the end of one to the beginning of the next; seconds.
        var every: Double
        /// Mean length; seconds.
        var lasting: Double
        /// Mean wait of a packet in it; µs.
        var wait: Double
    }

    /// Jitter as network emulators make it, packets in order but for some that overtake.
    struct Emulation: Sendable {
        /// µs, all three.
        var mean: Double
        var deviation: Double
        var least: Double
        /// A quarter normal and three quarters Pareto instead of normal.
        var hasTail = false
        /// Correlation of a packet's jitter with that of the one before, 0…1.
        var correlation = 0.0
        var overtaking = 0.0
        /// Scale of how late the emulating process wakes to send a packet on, µs. It may also be
        /// ``earliest`` µs early: a process that is awake does not go to sleep for so little.
        var lateness = 0.0
        static let earliest = 5.0
    }

    /// Times in which nothing leaves; what would have leaves at their end.
    struct Stalls: Sendable {
        /// Mean time from the end of one to the beginning of the next; seconds.
        var every: Double
        /// Mean length; seconds.
        var lasting: Double
    }

    /// A download through a bloated queue: a saw-tooth of TCP, once in every period.
    struct Download: Sendable {
        /// Seconds, all four.
        var period: Double
        var begin: Double
        var length: Double
        var tooth: Double
        /// Delay of the queue at the ends of a tooth; µs.
        var low: Double
        var high: Double
    }

    /// The first packet after a silence waits for the station to wake up.
    struct PowerSave: Sendable {
        /// Silence after which it sleeps; seconds.
        var idle: Double
        /// Largest wait, uniform; µs. A beacon interval is 102 400.
        var wait: Double
    }

    /// Gilbert and Elliott: a chain of two states, lossy in one of them.
    struct LossBursts: Sendable {
        /// Probability per packet of going over to the bad state, and of going back.
        var begin: Double
        var end: Double
        /// Loss in the bad state.
        var loss: Double
    }

    /// More delay for a while, or for good: another route, a queue.
    struct Episode: Sendable {
        /// Seconds.
        var times: Range<Double>
        /// µs.
        var delay: Double
    }
}
