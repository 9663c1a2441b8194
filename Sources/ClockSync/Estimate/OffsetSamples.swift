/// One exchange as a measurement of the offset.
struct OffsetSample: Equatable, Sendable {
    /// Local time of the middle, seconds from the estimator's base.
    var time: Double
    /// Leader minus local by (f − b)/2, seconds from the base.
    var offset: Double
    /// f + b: the round trip without the leader's time to answer, seconds.
    var delay: Double
}

/// The exchanges of the last seconds, for estimates that average.
struct OffsetSamples: Sendable {
    /// Bound of memory and of the cost of a solve; at 25 a second a minute and a half.
    static let limit = 2_400

    /// Ascending by time, but for late packets.
    private(set) var samples: [OffsetSample] = []

    mutating func insert(_ sample: OffsetSample) {
        samples.append(sample)
        var place = samples.count - 1
        while place > 0, samples[place - 1].time > samples[place].time {
            samples.swapAt(place - 1, place)
            place -= 1
        }
        let oldest = samples[samples.count - 1].time - EnvelopePoints.span
        // Dropped in blocks: moving the rest once a second is cheaper than once a sample.
        if samples.count > Self.limit + 64 || samples[0].time < oldest - 8 {
            let expired = samples.prefix { $0.time < oldest }.count
            samples.removeFirst(max(expired, samples.count - Self.limit))
        }
    }

    /// The shortest round trip, and what the six shortest differ by; seconds.
    var extremes: (shortest: Double, spread: Double) {
        var shortest: [Double] = []
        shortest.reserveCapacity(7)
        for sample in samples where shortest.count < 6 || sample.delay < shortest[5] {
            shortest.insert(
                sample.delay, at: shortest.firstIndex { $0 > sample.delay } ?? shortest.count)
            if shortest.count > 6 { shortest.removeLast() }
        }
        guard let first = shortest.first, let last = shortest.last else { return (.infinity, 0) }
        return (first, last - first)
    }

    /// The shortest round trip since `start`.
    func shortest(since start: Double) -> Double {
        var least = Double.infinity
        for sample in samples.reversed() {
            if sample.time < start { break }
            least = min(least, sample.delay)
        }
        return least
    }

    mutating func removeAll() { samples.removeAll(keepingCapacity: true) }
}
