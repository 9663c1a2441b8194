import func Glibc.exp
import func Glibc.log
import func Glibc.sqrt

/// Offset and skew as far as the packets of the first seconds tell them: the mean of all that they
/// allow, each by how likely it makes them.
///
///     p(f, b | F, B, s) = Π q(fᵢ − F − s·uᵢ) · Π q(bᵢ − B + s·uᵢ)
///     q(d) = a·k(d/h)/h + (1 − a)·e^(−d/λ)/λ,    k(x) = 2/(π·(1 + x²)²)
///
/// with u the time from now, a share a of packets that met nobody and lie h around the place F or B
/// of their direction, and the rest behind queues of λ. Places count alike wherever they are, skews
/// by what was known before, and h is one of a few values (Bayes, with nuisance parameters
/// integrated out). Packets are counted in bins, so that most of the work does not grow with their
/// number.
///
/// The need: a room that joins knows its rate to 80 ppm only, and plays after 0.35 s. The one best
/// slope (``CrestPair``) is chosen by chance while few packets are clean, or there is none yet; here
/// all slopes that are possible have their say. In 36 joins recorded on emulated wifi the line 50 ms
/// ahead was off by 15, 12, 7.4 µs (root of the mean square) 0.2, 0.5, 1 s after it was first played
/// by, instead of 22, 17, 8.8.
struct JoiningPosterior: Sendable {
    /// Packets that a direction must have.
    private static let fewest = 4
    /// So many packets, by likelihood, must have met nobody in each direction.
    private static let fewestClean = 4.0
    /// Deviations of the prior that are tried, and of what was found before; to either side.
    private static let reach = (prior: 3.0, found: 4.5)
    /// Slopes to either side that are tried around what was found before.
    private static let nearSteps = 8
    /// Steps of slopes where nothing was found yet: deviations of the prior, and by so much the ends of
    /// the packets may move; seconds.
    private static let firstStep = (share: 0.1, blur: 12e-6)
    /// No steps are shorter: what a crystal does by itself in a second is more.
    private static let finest = 1e-10
    /// So much at the ends of what was tried says that more has to be: …
    private static let edgeShare = 1e-3
    /// … steps of so many times the length, …
    private static let widening = 4.0
    /// … and so many times at most that slopes are tried anew.
    private static let passes = 5

    /// Group minus local at the time asked for; seconds, and seconds².
    private(set) var offset = 0.0
    private(set) var variance = 0.0
    /// Leader's rate against ours, minus one; and its variance.
    private(set) var skew = 0.0
    private(set) var skewVariance = 0.0

    /// `nil` where nothing gathers, or too few packets came.
    ///
    /// - Parameters:
    ///   - forward, backward: all packets of both directions.
    ///   - now: same scale as the points' time.
    ///   - prior: of the skew.
    ///   - found: what an earlier look at these packets found: slopes far from it are not tried.
    init?(
        _ forward: [DelayCrest.Point], _ backward: [DelayCrest.Point], at now: Double,
        prior: (skew: Double, variance: Double), found: JoiningPosterior? = nil
    ) {
        guard min(forward.count, backward.count) >= Self.fewest else { return nil }
        let sides = (
            DelayBins(forward, sign: 1, now: now, slope: prior.skew),
            DelayBins(backward, sign: -1, now: now, slope: prior.skew)
        )
        let deviation = sqrt(prior.variance)
        let span = max(now - forward[0].time, 1e-3)
        var (middle, step) = (
            prior.skew, min(Self.firstStep.share * deviation, Self.firstStep.blur / span)
        )
        var half = Int(Self.reach.prior * deviation / step)
        if let found {
            (middle, half) = (found.skew, Self.nearSteps)
            step = max(Self.finest, Self.reach.found * sqrt(found.skewVariance) / Double(half))
        }
        for _ in 0..<Self.passes {
            guard let isInside = integrate(sides, around: middle, step: step, half: half, prior)
            else { return nil }
            let isFine = skewVariance >= step * step
            if isInside && isFine { return }
            (middle, half) = (skew, Self.nearSteps)
            let wanted =
                isInside
                ? Self.reach.found * max(sqrt(skewVariance), step / 2) / Double(half)
                : step * Self.widening
            step = max(Self.finest, wanted)
        }
    }

    /// Sums over slopes.
    ///
    /// - Returns: whether hardly anything lies at the ends; `nil` where nothing gathers.
    private mutating func integrate(
        _ sides: (DelayBins, DelayBins), around middle: Double, step: Double, half: Int,
        _ prior: (skew: Double, variance: Double)
    ) -> Bool? {
        let slopes = (-half...half).map { middle + Double($0) * step }
        let places = slopes.map { (sides.0.place(along: $0), sides.1.place(along: $0)) }
        let logs = zip(slopes, places).map { slope, place in
            let distance = slope - prior.skew
            return place.0.evidence + place.1.evidence
                - distance * distance / (2 * prior.variance)
        }
        let most = logs.max() ?? 0
        let weights = logs.map { exp($0 - most) }
        let sum = weights.reduce(0, +)
        func mean(_ value: (Int) -> Double) -> Double {
            weights.indices.reduce(0) { $0 + weights[$1] * value($1) } / sum
        }
        let clean = min(mean { places[$0].0.clean }, mean { places[$0].1.clean })
        guard clean >= Self.fewestClean else { return nil }
        let (skew, offset) = (
            mean { slopes[$0] }, mean { (places[$0].0.mean - places[$0].1.mean) / 2 }
        )
        self.skew = skew
        self.offset = offset
        skewVariance = mean { (slopes[$0] - skew) * (slopes[$0] - skew) }
        variance = mean {
            let rest = (places[$0].0.mean - places[$0].1.mean) / 2 - offset
            return rest * rest + (places[$0].0.variance + places[$0].1.variance) / 4
        }
        return weights[0] + weights[weights.count - 1] <= Self.edgeShare * sum
    }
}

/// The packets of one direction, to be counted in bins along any slope.
private struct DelayBins {
    /// What a slope makes of them.
    struct Place {
        /// Logarithm of the evidence for the slope.
        var evidence: Double
        /// Of the place, seconds, and seconds².
        var mean: Double
        var variance: Double
        /// Packets that met nobody.
        var clean: Double
    }

    /// Of a bin, and from place to place; seconds.
    private static let step = 4e-6
    /// Bins above the lowest packet; those further up are behind queues, whatever the place.
    private static let binCount = 38
    /// Places below the lowest packet, and above.
    private static let below = 4
    private static let placeCount = 28
    /// Widths h that a floor may be blurred by; seconds. Stamps and schedulers of busy hosts: 12 µs.
    private static let widths = [6e-6, 14e-6, 32e-6]
    /// a. With 0.02 and 0.1 recordings of emulated wifi were read as well.
    private static let share = 0.05
    /// λ, as so many times the median distance from the lowest packet: near the place queues are
    /// thinner than an exponential, since air that is idle meets nobody and air that is not takes a
    /// while. With 1, offsets on air without a clear floor (`wifi5`) were off by up to twice as much.
    private static let queueStretch = 3.0
    /// The shortest median believed.
    private static let shortestQueue = 60e-6
    /// Density below a place, 1/s, where no packet should be: stamps may be wrong.
    private static let impossible = 1e-3

    private let sign: Double
    /// From now.
    private let times: [Double]
    private let values: [Double]
    /// λ, seconds.
    private let queue: Double
    /// For each width: log λ·q at a bin's distance from a place, the furthest below it first.
    private let densities: [[Double]]

    init(_ points: [DelayCrest.Point], sign: Double, now: Double, slope: Double) {
        self.sign = sign
        times = points.map { $0.time - now }
        values = points.map(\.value)
        let rests = zip(times, values).map { $1 - sign * slope * $0 }.sorted()
        let queue =
            Self.queueStretch * max(rests[rests.count / 2] - rests[0], Self.shortestQueue)
        self.queue = queue
        densities = Self.widths.map { width in
            (0..<Self.placeCount + Self.binCount).map {
                let (gathered, other) = Self.densities(at: $0, width: width, queue: queue)
                return log(gathered + other)
            }
        }
    }

    /// Of those that met nobody and of the others, times λ.
    private static func densities(
        at index: Int, width: Double, queue: Double
    ) -> (gathered: Double, other: Double) {
        let distance = Double(index - placeCount + 1 + below) * step
        let x = distance / width
        let root = 1 / (1 + x * x)
        let impossible = queue * impossible
        // 1 − d/λ: λ is longer than the distances looked at.
        let queued = distance < 0 ? 0 : 1 - distance / queue
        return (
            share * queue * 2 / (.pi * width) * root * root, (1 - share) * (queued + impossible)
        )
    }

    func place(along slope: Double) -> Place {
        var lowest = Double.infinity
        for index in times.indices {
            lowest = min(lowest, values[index] - sign * slope * times[index])
        }
        var counts = [Double](repeating: 0, count: Self.binCount)
        var (far, beyond) = (0.0, 0.0)
        let reach = Double(Self.binCount - 1)
        for index in times.indices {
            let rest = values[index] - sign * slope * times[index] - lowest
            let bin = rest / Self.step
            guard bin < reach else {
                far += 1
                beyond += rest
                continue
            }
            // Between two bins it counts for both.
            let first = Int(bin)
            counts[first] += Double(first + 1) - bin
            counts[first + 1] += bin - Double(first)
        }
        let full = counts.indices.filter { counts[$0] > 0 }.map { (bin: $0, count: counts[$0]) }
        var (logs, most, best) = ([Double](), -Double.infinity, (place: 0, width: 0))
        logs.reserveCapacity(Self.placeCount * Self.widths.count)
        for place in 0..<Self.placeCount {
            let queued = (far * distance(of: place) - beyond) / queue
            for width in Self.widths.indices {
                let sum = queued + likelihood(full, place, width)
                logs.append(sum)
                if sum > most { (most, best) = (sum, (place, width)) }
            }
        }
        return summary(logs, most, full, best, lowest)
    }

    /// Of a place above the lowest packet.
    private func distance(of place: Int) -> Double { Double(place - Self.below) * Self.step }

    private func likelihood(
        _ full: [(bin: Int, count: Double)], _ place: Int, _ width: Int
    ) -> Double {
        let start = Self.placeCount - 1 - place
        var sum = 0.0
        full.withUnsafeBufferPointer { full in
            densities[width].withUnsafeBufferPointer { densities in
                var index = 0
                while index < full.count {
                    let next = unsafe full[index]
                    sum += unsafe next.count * densities[start + next.bin]
                    index += 1
                }
            }
        }
        return sum
    }

    /// - Parameter best: the most likely.
    private func summary(
        _ logs: [Double], _ most: Double, _ full: [(bin: Int, count: Double)],
        _ best: (place: Int, width: Int),
        _ lowest: Double
    ) -> Place {
        var (weight, first, second) = (0.0, 0.0, 0.0)
        for index in logs.indices {
            let factor = exp(logs[index] - most)
            let distance = distance(of: index / Self.widths.count)
            weight += factor
            first += factor * distance
            second += factor * distance * distance
        }
        let mean = first / weight
        let start = Self.placeCount - 1 - best.place
        let clean = full.reduce(0.0) {
            let (gathered, other) = Self.densities(
                at: start + $1.bin, width: Self.widths[best.width], queue: queue)
            return $0 + $1.count * gathered / (gathered + other)
        }
        return Place(
            evidence: most + log(weight), mean: lowest + mean,
            variance: max(0, second / weight - mean * mean), clean: clean)
    }
}
