import func Glibc.sqrt

/// The most frequent delay of each direction in blocks of two seconds, and a line through them.
///
/// Where a share of the packets meets nobody, their delays gather a little above the floor, as wide
/// as stamps and schedulers make them, and thin out above. The lowest, which an edge rests on, are
/// the luckiest of many; a mean is drawn up by all that queue. The crest of the gathering
/// (``DelayCrest``) is where most agree, and its place is known the better the more there are, as
/// that of a mean. It moves with the load of the hosts, but in both directions alike; half of their
/// difference is the offset.
///
/// What a block cannot tell is whether both crests belong to the same queueing. Where floors move
/// by themselves, blocks differ by more than they claim and neighbours resemble each other: both
/// are in the error of the line. So is by how much one direction's crest stands higher above its
/// edge than the other's.
struct ModalBlocks: Sendable {
    static let span = 2.0
    /// A block without clear crests goes on until it has them, or until it is as long as this …
    static let longest = 12.0
    /// … or has as many packets.
    static let mostPoints = 2_048
    /// Until this age there are too few.
    static let youngest = 1.0
    /// Some three minutes.
    static let limit = 100
    static let fewest = 2
    /// Random walks of the skew, per √s: see ``DelayBlocks``.
    static let walks = DelayBlocks.walks
    /// What two crests may differ by that belong to the same queueing; seconds.
    static let noise = 5e-6
    /// A block is measured again when the skew known then blurred it by so much; seconds.
    static let blur = 5e-6
    /// A block that differs by more deviations is one with a wrong crest.
    static let outlier = 3.0
    /// Of the square of a normal deviate.
    static let medianSquare = 0.455

    /// All that a line needs to know of a block, and the packets to measure it anew.
    private struct Block: Sendable {
        var forward: [DelayCrest.Point]
        var backward: [DelayCrest.Point]
        /// Leader minus local in the middle; `nil` without clear crests.
        var reading: Reading?
        /// Along which it was measured.
        var slope = 0.0

        struct Reading: Sendable {
            var offset: Double
            var variance: Double
            /// Half of what one crest stands higher above its edge than the other.
            var lean: Double
        }

        init(_ forward: [DelayCrest.Point], _ backward: [DelayCrest.Point]) {
            self.forward = forward
            self.backward = backward
        }

        var span: Double { forward[forward.count - 1].time - forward[0].time }
        var middle: Double { forward[0].time + span / 2 }

        mutating func measure(skew: Double) {
            slope = skew
            reading = nil
            guard let out = DelayCrest(forward, slope: skew, middle: middle),
                let home = DelayCrest(backward, slope: -skew, middle: middle)
            else { return }
            reading = Reading(
                offset: (out.place - home.place) / 2,
                variance: (out.variance + home.variance) / 4 + noise * noise,
                lean: (out.height - home.height) / 2)
        }
    }

    private var blocks: [Block] = []
    /// The one under way, where it can be read already.
    private var open: Block?
    private var forward: [DelayCrest.Point] = []
    private var backward: [DelayCrest.Point] = []

    mutating func removeAll() {
        blocks.removeAll()
        open = nil
        forward.removeAll(keepingCapacity: true)
        backward.removeAll(keepingCapacity: true)
    }

    /// Both directions of one exchange.
    mutating func insert(forward: DelayCrest.Point, backward: DelayCrest.Point) {
        guard self.forward.count < Self.mostPoints else { return }
        self.forward.append(forward)
        self.backward.append(backward)
    }

    /// Makes a block of what has come, and looks at earlier ones again that were measured along
    /// another slope.
    ///
    /// - Parameter skew: the best known.
    mutating func measure(skew: Double) {
        for index in blocks.indices
        where (skew - blocks[index].slope).magnitude * blocks[index].span > Self.blur {
            blocks[index].measure(skew: skew)
        }
        open = nil
        guard let first = forward.first, let last = forward.last,
            last.time - first.time >= Self.youngest
        else { return }
        var block = Block(forward, backward)
        block.measure(skew: skew)
        let isClear = block.reading != nil
        let isFull = block.span >= Self.longest || forward.count >= Self.mostPoints
        guard isFull || isClear && block.span >= Self.span else {
            if isClear { open = block }
            return
        }
        blocks.append(block)
        if blocks.count > Self.limit { blocks.removeFirst() }
        forward.removeAll(keepingCapacity: true)
        backward.removeAll(keepingCapacity: true)
    }

    /// A reading for each walk of the skew, or none.
    ///
    /// - Parameters:
    ///   - prior: of the skew, before the samples.
    ///   - delay: smallest delay known of the path.
    func fits(
        at now: Double, prior: (skew: Double, variance: Double), delay: Double
    ) -> [EnvelopeFit] {
        var readings = blocks.compactMap { block in block.reading.map { (block.middle, $0) } }
        if let open, let reading = open.reading { readings.append((open.middle, reading)) }
        guard readings.count >= Self.fewest else { return [] }
        let lean = readings.reduce(0) { $0 + $1.1.lean } / Double(readings.count)
        return Self.walks.map { walk in
            var line = DriftLine(
                from: (readings[0].0, readings[0].1.offset), prior: prior, walk: walk)
            let misses = readings.map { middle, reading in
                line.observe(
                    reading.offset, at: middle, variance: reading.variance, limit: Self.outlier)
            }
            var fit = line.fit(at: now, delay: delay, inflation: Self.inflation(misses))
            fit.error = sqrt(fit.noise * fit.noise + lean * lean)
            return fit
        }
    }

    /// By how much the variance of a line is larger than its readings say.
    ///
    /// - Parameter misses: by how many deviations each differed from what was expected.
    private static func inflation(_ misses: [Double]) -> Double {
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
