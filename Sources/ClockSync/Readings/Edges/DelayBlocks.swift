import func Glibc.sqrt

/// The lower edges of both directions in blocks of three seconds, and a line through them.
///
/// The need: on air the floor itself moves, every ten seconds or so and in each direction for
/// itself, by more than everything else. An envelope over a minute trusts the lowest moment of each
/// direction; when the lowest floor was not met, or lies at the far end of the window, its slope
/// and offset are wrong by what the floors differ. The idea: within a block the edges take away
/// the queueing; what a block's delay exceeds the smallest by says how much its offset may be off,
/// and blocks of different floors average. A Kalman filter of offset and skew over five minutes,
///
///     R = κ·(σ² + (c·(delay − floor))²),   κ = (1 + ρ)/(1 − ρ)
///
/// where ρ is the correlation of neighbouring blocks' delays: blocks under one floor repeat each
/// other. After RADclock's weighting by excess delay (Veitch, Ridoux, Korada); blocks and the
/// correction for their correlation are ours.
struct DelayBlocks: Sendable {
    /// Length of a block, seconds: shorter than floors of air stay, long enough to meet one.
    static let span = 3.0
    /// How many blocks are kept: five minutes.
    static let limit = 100
    /// How many blocks make a line. Fewer say nothing about their own floor.
    static let fewest = 4
    /// Delay that was added lies anywhere between wholly in one direction, which shifts the offset
    /// by half of it, and in both alike.
    static let share = 0.4
    /// Random walks of the skew, per √s: of a crystal at rest, in a quiet room, in a warming host.
    static let walks = [0.006e-6, 0.02e-6, 0.1e-6]
    /// How many of the latest blocks tell whether the line still fits.
    static let recentBlocks = 4.0
    /// Error of an edge without queueing, seconds.
    static let edgeNoise = 2e-6
    /// The largest correlation of neighbouring blocks that is believed. A longer memory of the
    /// floors cannot be told from a straight line.
    static let correlationLimit = 0.8

    struct Block: Sendable {
        var start: Double
        /// The lowest sample of each direction.
        var forward: (time: Double, value: Double)
        var backward: (time: Double, value: Double)
    }

    private var blocks: [Block] = []
    private var samples: [OffsetSample] = []
    private var delays: [Double] = []

    mutating func removeAll() {
        blocks.removeAll(keepingCapacity: true)
        samples.removeAll(keepingCapacity: true)
        delays.removeAll(keepingCapacity: true)
    }

    /// - Parameter slope: the best known slope of the values, to compare within a block.
    mutating func insert(
        forward: (time: Double, value: Double), backward: (time: Double, value: Double),
        slope: Double
    ) {
        let index = blocks.count - 1
        guard index >= 0, forward.time < blocks[index].start + Self.span else {
            blocks.append(Block(start: forward.time, forward: forward, backward: backward))
            if blocks.count > Self.limit { blocks.removeFirst() }
            return
        }
        let lowest = blocks[index]
        let forwardDrift = slope * (forward.time - lowest.forward.time)
        if forward.value - forwardDrift < lowest.forward.value {
            blocks[index].forward = forward
        }
        let backwardDrift = slope * (backward.time - lowest.backward.time)
        if backward.value + backwardDrift < lowest.backward.value {
            blocks[index].backward = backward
        }
    }

    /// The line at `now`, for a skew that walks at random by `walk` per √s.
    ///
    /// - Parameters:
    ///   - prior: of the skew, before the samples.
    ///   - known: smallest delay known of the path; both directions need not meet theirs in one
    ///     block.
    func fit(
        at now: Double, prior: (skew: Double, variance: Double), walk: Double, floor known: Double
    ) -> ClockReading? {
        guard samples.count >= Self.fewest else { return nil }
        let floor = delays[0]
        // A floor that two other blocks confirm is one, if no other is known.
        let unsure = max(delays[2] - floor, floor - known) / 2
        let correlation = min(max(self.correlation, 0), Self.correlationLimit)
        let repetition = (1 + correlation) / (1 - correlation)
        var line = DriftLine(
            from: (samples[0].time, samples[0].offset), prior: prior, walk: walk)
        var (misfit, recentMisfit) = (0.0, 1.0)
        for sample in samples {
            let doubt = Self.share * (sample.delay - floor + unsure)
            let miss = line.observe(
                sample.offset, at: sample.time,
                variance: repetition * (Self.edgeNoise * Self.edgeNoise + doubt * doubt))
            misfit += miss * miss
            recentMisfit += (miss * miss - recentMisfit) / Self.recentBlocks
        }
        // Blocks that scatter more than they say make the result worse than it says.
        let inflation = max(1, misfit / Double(samples.count), recentMisfit)
        return line.fit(at: now, delay: floor, inflation: inflation)
    }

    /// Makes of each block a sample.
    ///
    /// - Parameter skew: the best known, to bring both directions of a block to one moment.
    mutating func measure(skew: Double) {
        samples.removeAll(keepingCapacity: true)
        delays.removeAll(keepingCapacity: true)
        for block in blocks {
            let middle = (block.forward.time + block.backward.time) / 2
            let f = block.forward.value - skew * (block.forward.time - middle)
            let b = block.backward.value + skew * (block.backward.time - middle)
            samples.append(OffsetSample(time: middle, offset: (f - b) / 2, delay: f + b))
            delays.append(f + b)
        }
        delays.sort()
    }

    /// How far off the mean of the blocks since `start` may be because floors that stay for longer
    /// than a block do not average as samples do. Zero when blocks do not resemble their neighbours
    /// by more than chance. Of the sum of both directions' floors, twice what an offset suffers if
    /// they change independently: with half of it the comparison of clocks came out worse.
    func drift(since start: Double) -> Double {
        guard samples.count >= Self.fewest else { return 0 }
        let number = Double(delays.count)
        let mean = delays.reduce(0, +) / number
        let variance = delays.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / number
        let recent = Double(samples.lazy.filter { $0.time >= start }.count)
        let likeness = min(max(correlation - 1 / sqrt(number), 0), Self.correlationLimit)
        return sqrt(variance * 2 * likeness / (1 - likeness) / max(1, recent))
    }

    /// Correlation of neighbouring blocks' delays, 0 to ``correlationLimit``.
    private var correlation: Double {
        let mean = delays.reduce(0, +) / Double(delays.count)
        var (alone, together, before) = (1e-18, 0.0, 0.0)
        for sample in samples {
            let rest = sample.delay - mean
            alone += rest * rest
            together += rest * before
            before = rest
        }
        return together / alone
    }
}
