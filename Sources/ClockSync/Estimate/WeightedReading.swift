/// One of several values for the same thing, and the error that it claims; in one unit, all.
struct WeightedReading {
    var value: Double
    var error: Double
    /// Its error counts for so many times as much as another's.
    var errorFactor = 1.0
}

extension [WeightedReading] {
    /// Of reweighing. Two, four and eight left the same errors on simulated wires.
    private static var rounds: Int { 4 }

    /// By the inverse squares of the errors; the best while none is larger than claimed. Not empty.
    var mean: Double { mean(around: nil) }

    /// The mean of those that agree.
    ///
    /// The need: an edge that chance made out of Gaussian jitter claimed 5 µs and was off by 30, and
    /// drew the mean of thirteen along by 15. What lies far from the others therefore counts as if it
    /// were so far off by its own fault: its distance is a part of its error (Cauchy weights, by
    /// iterated least squares, from the median on).
    var consensus: Double {
        var center = median
        for _ in 0..<Self.rounds { center = mean(around: center) }
        return center
    }

    /// - Parameter center: what the distance to counts as error; `nil`: nothing.
    private func mean(around center: Double?) -> Double {
        var (weights, sum) = (0.0, 0.0)
        for opinion in self {
            let distance = center.map { opinion.value - $0 } ?? 0
            let square = opinion.error * opinion.error + distance * distance
            let weight = 1 / (opinion.errorFactor * opinion.errorFactor * square)
            weights += weight
            sum += weight * opinion.value
        }
        return sum / weights
    }

    /// Half of the weight lies on either side of it, by the inverse of the errors.
    private var median: Double {
        let sorted = sorted { $0.value < $1.value }
        var rest = sorted.reduce(0) { $0 + 1 / ($1.errorFactor * $1.error) } / 2
        for opinion in sorted {
            rest -= 1 / (opinion.errorFactor * opinion.error)
            if rest <= 0 { return opinion.value }
        }
        return sorted.last?.value ?? 0
    }
}
