import func Glibc.sqrt
import TuttiTiming

/// Where the delays of each direction gather in blocks of some seconds, and a line through them.
///
/// Where a share of the packets meets nobody, their delays gather a little above the floor, as wide
/// as stamps and schedulers make them, and thin out above. The lowest, which an edge rests on, are
/// the luckiest of many; a mean is drawn up by all that queue. The place of the gathering is where
/// many agree, and is known the better the more there are, as that of a mean. Where a large share
/// gathers it is the crest (``ModePeak``), and on wires always; on air, where few packets of a
/// block may have met nobody, it is the mean of all places that the packets allow
/// (``ModePosterior``). It moves with the load of the hosts, but in both directions alike; half of
/// their difference is the offset.
///
/// What a block cannot tell is whether both gatherings belong to the same queueing. Where floors
/// move by themselves, blocks differ by more than they claim and neighbours resemble each other:
/// both are in the error of the line. So is by how much one direction's gathering stands higher
/// above its edge than the other's.
struct ModeBlocks: Sendable {
    /// Length of a block whose gatherings are clear, on wires, seconds. Two of them make a line.
    static let wireSpan = 2.0
    /// The same on air. Shorter blocks hold too few packets that met nobody; longer ones average
    /// over floors that move. Between 2 and 4 s nothing changes; with 6 lines are up to twice as
    /// far off.
    static let airSpan = 3.0
    /// The longest block, seconds: one without clear gatherings goes on until it has them or is as
    /// long as this.
    static let longest = 12.0
    /// How many packets of one direction a block has at most. Bounds memory and the cost of a look.
    static let mostPoints = 2_048
    /// The youngest age at which a block is looked at, seconds. Before, its packets are too few.
    static let youngest = 1.0
    /// How many blocks are kept: three minutes on wires, five on air, when gatherings are clear.
    static let limit = 100
    /// How many blocks make a line.
    static let fewest = 2
    /// How many pairs of neighbouring blocks tell whether both directions move alike.
    static let fewestPairs = 4
    /// The share of all time that must have had clear gatherings. Now and then chance makes one
    /// where there is none.
    static let clearShare = 0.4
    /// On air, as long as all packets are younger than this, all that they allow has its say beside
    /// the line (``JoiningPosterior``); seconds. Later the floors may have moved.
    static let joiningSpan = 5.5
    /// Random walks of the skew, per √s: see ``DelayBlocks``.
    static let walks = DelayBlocks.walks
    /// Half of what the gatherings of both directions may differ by although they belong to the
    /// same queueing, seconds. A block claims no smaller error.
    static let noise = 5e-6
    /// A block is measured again when the skew that was known then blurred it by this much,
    /// seconds.
    static let blur = 5e-6
    /// The share of a block's packets on air whose gathering is not one of chance: then the crest
    /// is taken, because the mean of all places, which thinks of few, would be drawn to the edge.
    /// With half of it crests of chance pass, and air is read a tenth to a fifth worse.
    static let crestShare = 0.2
    /// A block that differs from the line by more deviations than this has a wrong gathering, and
    /// counts as one that much less sure.
    static let outlier = 3.0
    /// Median of the square of a normal deviate.
    static let medianSquare = 0.455

    /// What a line needs to know of a block; seconds, and seconds².
    private struct Reading: Sendable {
        var time: Double
        var offset: Double
        var variance: Double
        /// Half of the sum of both gatherings' places: their common delay.
        var delay: Double
        /// Half of what one stands higher above its edge than the other.
        var lean: Double
    }

    /// A reading, and the packets to take it anew.
    private struct Block: Sendable {
        var forward: [ModePeak.Point]
        var backward: [ModePeak.Point]
        /// `nil` without clear gatherings.
        var reading: Reading?
        /// Along which it was measured, and as what.
        var slope = 0.0
        var isWire = true

        init(_ forward: [ModePeak.Point], _ backward: [ModePeak.Point]) {
            self.forward = forward
            self.backward = backward
        }

        var span: Double { forward[forward.count - 1].time - forward[0].time }

        mutating func measure(skew: Double, isWire: Bool) {
            (slope, self.isWire, reading) = (skew, isWire, nil)
            let middle = forward.reduce(0) { $0 + $1.time } / Double(forward.count)
            guard let out = gathering(forward, slope: skew, middle: middle),
                let home = gathering(backward, slope: -skew, middle: middle)
            else { return }
            reading = Reading(
                time: middle, offset: (out.place - home.place) / 2,
                variance: (out.variance + home.variance) / 4 + noise * noise,
                delay: (out.place + home.place) / 2,
                lean: (out.height - home.height) / 2)
        }

        private func gathering(
            _ points: [ModePeak.Point], slope: Double, middle: Double
        ) -> (place: Double, variance: Double, height: Double)? {
            let crest = ModePeak(points, slope: slope, middle: middle)
            if isWire || (crest?.share ?? 0) >= crestShare {
                return crest.map { ($0.place, $0.variance, $0.height) }
            }
            guard points.count >= ModePosterior.fewest else { return nil }
            let found = ModePosterior(points, sign: 1, now: middle, slope: slope).place(
                along: slope)
            guard found.clean >= ModePosterior.fewestClean, !found.isAtEnd else { return nil }
            let lowest = ModePeak.lowest(points.map { $0.value - slope * ($0.time - middle) })
            return (found.mean, found.variance, max(0, found.mean - lowest[3]))
        }
    }

    private var blocks: [Block] = []
    /// Whether the blocks were measured last as those of a wire.
    private var isWire = true
    /// The reading of the block under way, where it can be read already.
    private var newest: Reading?
    /// The last one, of a room that joins on air.
    private var joining: JoiningPosterior?
    private var forward: [ModePeak.Point] = []
    private var backward: [ModePeak.Point] = []

    mutating func removeAll() {
        blocks = []
        newest = nil
        joining = nil
        forward = []
        backward = []
    }

    /// Both directions of one exchange.
    mutating func insert(forward: ModePeak.Point, backward: ModePeak.Point) {
        if let first = self.forward.first, forward.time > first.time + Self.longest + Self.airSpan {
            // Nobody answered for a while, or nobody asked.
            self.forward = []
            self.backward = []
        }
        guard self.forward.count < Self.mostPoints else { return }
        self.forward.append(forward)
        self.backward.append(backward)
    }

    /// Makes a block of what has come, and looks again at those that were measured along another
    /// slope.
    ///
    /// - Parameters:
    ///   - skew: the best known.
    ///   - isWire: whether most packets gather, or few may.
    mutating func measure(skew: Double, isWire: Bool) {
        self.isWire = isWire
        for index in blocks.indices
        where (skew - blocks[index].slope).magnitude * blocks[index].span > Self.blur
            || blocks[index].isWire != isWire
        {
            blocks[index].measure(skew: skew, isWire: isWire)
        }
        newest = nil
        guard !forward.isEmpty else { return }
        var block = Block(forward, backward)
        let isFull = block.span >= Self.longest || forward.count >= Self.mostPoints
        guard isFull || block.span >= Self.youngest else { return }
        block.measure(skew: skew, isWire: isWire)
        let span = isWire ? Self.wireSpan : Self.airSpan
        guard isFull || block.span >= span && block.reading != nil else {
            newest = block.reading
            return
        }
        blocks.append(block)
        if blocks.count > Self.limit { blocks.removeFirst() }
        forward = []
        backward = []
    }

    /// A reading for each walk of the skew, or none; of the first seconds on air one of all packets.
    ///
    /// - Parameters:
    ///   - prior: of the skew, before the samples.
    ///   - delay: smallest delay known of the path.
    ///   - withheld: what is left out.
    mutating func fits(
        at now: Double, prior: (skew: Double, variance: Double), delay: Double,
        withholding withheld: Set<ReadingKind> = []
    ) -> [ClockReading] {
        var fits =
            withheld.contains(.gatherings) ? [] : lines(at: now, prior: prior, delay: delay)
        if !isWire, !withheld.contains(.joining),
            let joining = joining(at: now, prior: prior, delay: delay)
        {
            fits.append(joining)
        }
        return fits
    }

    private func lines(
        at now: Double, prior: (skew: Double, variance: Double), delay: Double
    ) -> [ClockReading] {
        let readings = blocks.compactMap(\.reading) + (newest.map { [$0] } ?? [])
        let all = blocks.reduce(0) { $0 + $1.span }
        let clear = blocks.reduce(0) { $1.reading == nil ? $0 : $0 + $1.span }
        guard readings.count >= Self.fewest, clear >= Self.clearShare * all else { return [] }
        let lean = readings.reduce(0) { $0 + $1.lean } / Double(readings.count)
        return Self.walks.map { walk in
            var line = DriftLine(
                from: (readings[0].time, readings[0].offset), prior: prior, walk: walk)
            let misses = readings.map {
                line.observe(
                    $0.offset, at: $0.time, variance: $0.variance, limit: Self.outlier)
            }
            var fit = line.fit(at: now, delay: delay, inflation: Self.inflation(misses))
            fit.error = sqrt(fit.noise * fit.noise + lean * lean)
            return fit
        }
    }

    /// How much of what gatherings move by from block to block is not in both directions alike,
    /// 0 … 1, as a ratio of root mean squares.
    ///
    /// The need: a path whose delay changes may have changed in one direction alone, which shifts
    /// the offset by half of it. Queues and floors of air do; the load of the hosts moves both
    /// ends, and there each change was taken for a doubt that was three times what they were wrong
    /// by. If the directions move independently, the offset moves as much as the common delay does,
    /// and the ratio is 1; it is that too while there are too few blocks.
    ///
    /// - Parameter skew: the best known.
    func lopsidedness(skew: Double) -> Double {
        var (apart, together, pairs) = (0.0, 0.0, 0)
        for (earlier, later) in zip(blocks, blocks.dropFirst()) {
            guard let before = earlier.reading, let after = later.reading else { continue }
            let shift = after.offset - before.offset - skew * (after.time - before.time)
            let change = after.delay - before.delay
            apart += shift * shift
            together += change * change
            pairs += 1
        }
        guard pairs >= Self.fewestPairs, apart < together else { return 1 }
        return sqrt(apart / together)
    }

    /// What the packets of a room that joins on air allow; `nil` when they are none, or tell
    /// nothing.
    private mutating func joining(
        at now: Double, prior: (skew: Double, variance: Double), delay: Double
    ) -> ClockReading? {
        guard let first = blocks.first?.forward.first ?? forward.first,
            now - first.time <= Self.joiningSpan
        else { return nil }
        // At every look: a room that joins is heard soon after, and each packet that met nobody
        // counts.
        let reading = JoiningPosterior(
            blocks.flatMap(\.forward) + forward, blocks.flatMap(\.backward) + backward, at: now,
            prior: prior, found: joining)
        joining = reading
        guard let reading else { return nil }
        let span = now - first.time
        let noise = sqrt(reading.variance + Self.noise * Self.noise)
        var fit = ClockReading(
            window: span, span: span, offset: reading.offset, skew: reading.skew, delay: delay,
            noise: noise, skewSpread: sqrt(reading.skewVariance), isPinned: false, wander: 0)
        fit.error = noise
        return fit
    }

    /// By how much the variance of a line is larger than its readings say.
    ///
    /// - Parameter misses: by how many deviations each differed from what was expected.
    private static func inflation(_ misses: [Double]) -> Double {
        // The first two make the line, and cannot contradict it.
        let misses = misses.dropFirst(2)
        guard !misses.isEmpty else { return 1 }
        let clipped = misses.map { min(max($0, -outlier), outlier) }
        let squares = misses.map { $0 * $0 }.sorted()
        let median = squares[squares.count / 2] / medianSquare
        var (square, together, before, recent) = (1e-3, 0.0, 0.0, 1.0)
        for miss in clipped {
            square += miss * miss
            together += miss * before
            before = miss
            recent += (miss * miss - recent) / DelayBlocks.recentBlocks
        }
        // Neighbours that resemble each other are fewer than they seem.
        let correlation = min(max(together / square, 0), DelayBlocks.correlationLimit)
        return max(1, median, square / Double(misses.count), recent)
            * (1 + correlation) / (1 - correlation)
    }
}
