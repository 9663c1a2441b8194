import func Glibc.sqrt

/// Where most of the delays of one direction agree: the mode of a kernel density estimate.
///
///     place = argmax Σ k((vᵢ − place)/h),    k(x) = 1/(1 + x²)
///
/// Found with counts in bins and refined by weighted means (weights (1 + x²)⁻²; S. Geman, D.
/// McClure, 1985). How well it is known is what the sandwich of an M-estimator says (P. Huber,
/// 1967), so that few packets at the floor, or none that agree, tell so themselves.
struct ModePeak: Sendable {
    /// One way, as measured: when, and what the clocks differ by plus the delay; seconds.
    typealias Point = (time: Double, value: Double)

    /// Half width h of a gathering, seconds: what stamps and schedulers of two busy hosts blur a
    /// floor by. Between 24 and 38 µs crests are found equally well.
    static let width = 30e-6
    /// How many packets must lie at a crest, weighed by their distance. Fewer prove nothing.
    static let fewest = 8.0
    /// Number of bins above the lowest packet, each half a width wide.
    static let binCount = 44
    /// How far above the lowest packet a crest is looked for, seconds.
    static let reach = Double(binCount) * width / 2
    /// A crest that lies this many bins away or more is a rival.
    static let rivalBins = 9
    /// Nothing is known where a rival is not lower by this many roots of the number of packets at
    /// the crest. (The difference of two such numbers scatters by 1.2 roots.)
    static let clearance = 1.0
    /// How many weighted means refine the place; the first two have twice the width.
    static let steps = 6

    /// Seconds.
    private(set) var place: Double
    /// Variance of the place, seconds².
    private(set) var variance = 0.0
    /// By how much it lies above the edge: the fourth lowest packet, for one or two are luck.
    private(set) var height = 0.0
    /// The share of all packets that gather here, weighed by their distance.
    private(set) var share: Double

    /// `nil` where nothing gathers, or as much elsewhere.
    ///
    /// - Parameters:
    ///   - points: of one block, in any order.
    ///   - slope: of the values.
    ///   - middle: the time to which they are brought along it.
    init?(_ points: [Point], slope: Double, middle: Double) {
        guard points.count >= 4 else { return nil }
        let values = points.map { $0.value - slope * ($0.time - middle) }
        guard let found = Self.search(values), found.isClear() else { return nil }
        place = found.place
        share = found.count / Double(points.count)
        for step in 0..<Self.steps {
            let width = step < 2 ? 2 * Self.width : Self.width
            var (weights, rests) = (0.0, 0.0)
            for value in values {
                let rest = value - self.place
                let root = Self.weight(rest / width)
                weights += root * root
                rests += root * root * rest
            }
            guard weights > 0 else { return nil }
            self.place += rests / weights
        }
        var (square, curvature) = (0.0, 0.0)
        for value in values {
            let rest = value - self.place
            let x = rest / Self.width
            let root = Self.weight(x)
            let influence = rest * root * root
            square += influence * influence
            curvature += (1 - 3 * x * x) * root * root * root
        }
        guard curvature > 0 else { return nil }
        variance = square / (curvature * curvature)
        height = max(0, place - Self.lowest(values)[3])
    }

    /// The four lowest, ascending.
    static func lowest(_ values: [Double]) -> [Double] {
        var lowest = [Double](repeating: .infinity, count: 4)
        for value in values where value < lowest[3] {
            var place = 3
            while place > 0, lowest[place - 1] > value {
                lowest[place] = lowest[place - 1]
                place -= 1
            }
            lowest[place] = value
        }
        return lowest
    }

    /// The bin around which most lie, and what that proves.
    struct Gathering {
        /// Place of the middle of the bin, seconds.
        var place: Double
        /// Packets, weighed by their distance.
        var count: Double
        /// The same where most of the others lie.
        var rival: Double

        /// Enough for a crest, and no rival as high.
        func isClear(fewest: Double = ModePeak.fewest) -> Bool {
            count >= fewest && rival <= count - ModePeak.clearance * sqrt(count)
        }
    }

    static func search(_ values: [Double]) -> Gathering? {
        guard let lowest = values.min() else { return nil }
        let bin = width / 2
        let start = lowest - 2 * bin
        var bins = [Double](repeating: 0, count: binCount)
        for value in values where value - start < reach { bins[Int((value - start) / bin)] += 1 }
        func count(_ k: Int) -> Double {
            bins[k] + 0.7 * (bins[k - 1] + bins[k + 1]) + 0.25 * (bins[k - 2] + bins[k + 2])
        }
        let inner = 2..<binCount - 2
        var (top, most, rival) = (inner.lowerBound, 0.0, 0.0)
        for k in inner where count(k) > most { (top, most) = (k, count(k)) }
        for k in inner where (k - top).magnitude >= rivalBins { rival = max(rival, count(k)) }
        return Gathering(
            place: start + (Double(top) + 0.5) * bin, count: most, rival: rival)
    }

    /// Root of a packet's weight, `x` half widths from the crest; none beyond four.
    static func weight(_ x: Double) -> Double { x * x < 16 ? 1 / (1 + x * x) : 0 }
}
