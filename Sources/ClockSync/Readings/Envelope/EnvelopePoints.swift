/// One direction of one exchange: when it was measured and what it said.
struct EnvelopePoint: Equatable, Sendable {
    /// Local time, seconds from the estimator's base.
    var time: Double
    /// One-way difference of the clocks plus the delay, seconds from the base.
    var value: Double
    /// How many samples of the bin this point stands for.
    var weight: Int
}

/// The samples of one direction that can still touch the lower envelope.
///
/// Queueing only adds delay, so of many samples only the lowest say something. Each half second
/// keeps its two lowest, 96 s make at most 384 points and a solve stays cheap. The first seconds
/// keep everything: there is nothing else yet.
struct EnvelopePoints: Sendable {
    /// The longest window the solver uses; older samples only blur a wandering crystal.
    static let span = 96.0
    /// Seconds. Four samples at the steady rate fall into one bin.
    static let bin = 0.5
    static let keptPerBin = 2
    /// Seconds after the first sample in which all are kept.
    static let startSpan = 4.0
    /// Bound for a peer that floods us: 2 × 192 in bins and the start.
    static let limit = 640

    /// Ascending by time.
    private(set) var points: [EnvelopePoint] = []
    private var first: Double?

    mutating func removeAll() {
        points.removeAll(keepingCapacity: true)
        first = nil
    }

    /// - Parameter slope: the best known slope of the values, to compare within a bin.
    mutating func insert(time: Double, value: Double, slope: Double) {
        let start = first ?? time
        first = start
        let newest = points.last?.time ?? time
        guard time > newest - Self.span else { return }
        var new = EnvelopePoint(time: time, value: value, weight: 1)
        guard time - start > Self.startSpan else { return place(new) }

        let bin = (time / Self.bin).wholePart
        var (inBin, highest, highestValue) = (0, -1, value)
        var index = points.count - 1
        while index >= 0 {
            let point = points[index]
            let itsBin = (point.time / Self.bin).wholePart
            if itsBin < bin { break }
            if itsBin == bin {
                if point.time == time, point.value == value { return }
                inBin += 1
                let detrended = point.value - slope * (point.time - time)
                if detrended > highestValue { (highest, highestValue) = (index, detrended) }
            }
            index -= 1
        }
        guard inBin >= Self.keptPerBin else { return place(new) }
        guard highest >= 0 else {
            // Higher than what is kept: it counts, that is all. `index` stands before the bin.
            points[index + 1].weight += 1
            return
        }
        new.weight += points[highest].weight
        points.remove(at: highest)
        place(new)
    }

    private mutating func place(_ new: EnvelopePoint) {
        var index = points.count
        while index > 0, points[index - 1].time >= new.time {
            let other = points[index - 1]
            if other.time == new.time, other.value == new.value { return }
            index -= 1
        }
        points.insert(new, at: index)
        var expired = 0
        while expired < points.count,
            points[expired].time <= points[points.count - 1].time - Self.span
        {
            expired += 1
        }
        if points.count - expired > Self.limit { expired = points.count - Self.limit }
        if expired > 0 { points.removeFirst(expired) }
    }
}

extension Double {
    /// Towards minus infinity, for the small values used here; `rounded()` needs the C library.
    fileprivate var wholePart: Int {
        let whole = Int(self)
        return Double(whole) > self ? whole - 1 : whole
    }
}
