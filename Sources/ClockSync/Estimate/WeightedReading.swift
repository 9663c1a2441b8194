/// One of several values for the same thing, and the error that it claims, in the same unit.
struct WeightedReading {
    var value: Double
    var error: Double
    /// How many times as large its error counts as it claims.
    var errorFactor = 1.0
}

extension [WeightedReading] {
    /// How often the values are weighed anew. From two to eight the errors on wires stay the same.
    private static var rounds: Int { 4 }

    /// The mean, weighed by the inverse squares of the errors: the best there is while no value is
    /// further off than it claims. There must be one.
    var mean: Double { mean(around: nil) }

    /// The mean of those that agree.
    ///
    /// The need: now and then chance makes an edge out of Gaussian jitter, which claims a sixth of
    /// what it is off by and draws the mean of all others along. What lies far from the others
    /// therefore counts as if it were that far off by its own fault: its distance is a part of its
    /// error (Cauchy weights, by iterated least squares, from the median on).
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
