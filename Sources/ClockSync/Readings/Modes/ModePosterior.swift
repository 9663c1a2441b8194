import func Glibc.exp
import func Glibc.log

/// The packets of one direction, to be counted in bins along any slope.
///
///     q(d) = a·k(d/h)/h + (1 − a)·e^(−d/λ)/λ,    k(x) = 2/(π·(1 + x²)²)
///
/// is how likely a packet is d above the place: a share a met nobody and lies h around it, the rest
/// is behind queues of λ; beyond the bins queues are of one length, whatever λ is. Places count
/// alike wherever they are, h and λ are of a few values each (Bayes, with nuisance parameters
/// integrated out). Counted in bins, most of the work does not grow with the number of packets.
struct ModePosterior {
    /// How many packets a direction must have.
    static let fewest = 4
    /// How many of them, by likelihood, must have met nobody. Fewer may agree by chance.
    static let fewestClean = 4.0

    /// What a slope makes of them.
    struct Place {
        /// Logarithm of the evidence for the slope.
        var evidence: Double
        /// Mean of the place, seconds, and its variance, seconds².
        var mean: Double
        var variance: Double
        /// Packets that met nobody, at the likeliest place.
        var clean: Double
        /// Higher places would have to be looked at too.
        var isAtEnd: Bool
    }

    /// Width of a bin, and the step from place to place, seconds: a third of what stamps blur.
    private static let step = 4e-6
    /// Number of bins above the lowest packet. Packets further up are behind queues, whatever the
    /// place.
    private static let binCount = 38
    /// How many places below the lowest packet are tried, and how many above.
    private static let below = 4
    private static let placeCount = 28
    /// When the highest place has this share of the likelihood, higher ones would have to be tried.
    private static let endShare = 0.05
    /// Widths h by which a floor may be blurred, seconds. Stamps and schedulers of busy hosts blur
    /// it by 12 µs.
    private static let widths = [6e-6, 14e-6, 32e-6]
    /// The share a of packets that met nobody. Half and twice of it read emulated wifi equally
    /// well.
    private static let share = 0.05
    /// Lengths λ of queues, in medians of the distance from the lowest packet: one of air on which
    /// packets wait for one another without an end, and one of air that is idle or takes a while,
    /// so that few wait a little. With the longer one alone what waits a little passes for packets
    /// that met nobody; with the shorter one alone lines of rooms that join on air without a clear
    /// floor are up to twice as far off.
    private static let queueStretches = [1.0, 4.0]
    /// The length of queues beyond the bins, in the same unit.
    private static let farStretch = 3.0
    /// The shortest median that is believed, seconds.
    private static let shortestQueue = 60e-6
    /// Density below a place, 1/s, where no packet should be: stamps may be wrong.
    private static let impossible = 1e-3

    /// One h and one λ.
    private struct Shape {
        /// Seconds.
        var width: Double
        var queue: Double
        /// log q at a bin's distance from a place, the furthest below it first; q in
        /// 1/``farQueue``.
        var densities: [Double] = []
    }

    private let sign: Double
    /// Times of the packets, seconds from now.
    private let times: [Double]
    private let values: [Double]
    /// λ beyond the bins, seconds.
    private let farQueue: Double
    private let shapes: [Shape]

    /// - Parameters:
    ///   - points: ``fewest`` at least.
    ///   - sign: of the slope's effect on their values.
    ///   - now: same scale as their time.
    ///   - slope: near which they will be looked at.
    init(_ points: [ModePeak.Point], sign: Double, now: Double, slope: Double) {
        precondition(points.count >= Self.fewest)
        self.sign = sign
        times = points.map { $0.time - now }
        values = points.map(\.value)
        let rests = zip(times, values).map { $1 - sign * slope * $0 }.sorted()
        let median = max(rests[rests.count / 2] - rests[0], Self.shortestQueue)
        let unit = Self.farStretch * median
        farQueue = unit
        shapes = Self.widths.flatMap { width in
            Self.queueStretches.map { stretch in
                var shape = Shape(width: width, queue: stretch * median)
                shape.densities = (0..<Self.placeCount + Self.binCount).map {
                    let (gathered, queued) = Self.densities(at: $0, shape)
                    return log(unit * (gathered + queued))
                }
                return shape
            }
        }
    }

    /// Densities of packets that met nobody and of the others, 1/s.
    private static func densities(
        at index: Int, _ shape: Shape
    ) -> (gathered: Double, queued: Double) {
        let distance = Double(index - placeCount + 1 + below) * step
        let x = distance / shape.width
        let root = 1 / (1 + x * x)
        let queued = distance < 0 ? 0 : exp(-distance / shape.queue) / shape.queue
        return (
            share * 2 / (.pi * shape.width) * root * root, (1 - share) * (queued + impossible)
        )
    }

    func place(along slope: Double) -> Place {
        var lowest = Double.infinity
        for index in times.indices {
            lowest = min(lowest, values[index] - sign * slope * times[index])
        }
        var counts = [Double](repeating: 0, count: Self.binCount)
        // Beyond the bins: how many, and by how much.
        var (far, beyond) = (0.0, 0.0)
        let last = Double(Self.binCount - 1)
        for index in times.indices {
            let rest = values[index] - sign * slope * times[index] - lowest
            let bin = rest / Self.step
            guard bin < last else {
                far += 1
                beyond += rest - last * Self.step
                continue
            }
            // Between two bins it counts for both.
            let first = Int(bin)
            counts[first] += Double(first + 1) - bin
            counts[first + 1] += bin - Double(first)
        }
        let full = counts.indices.filter { counts[$0] > 0 }.map { (bin: $0, count: counts[$0]) }
        let farthest = far * log(1 - Self.share) - beyond / farQueue
        var logs: [Double] = []
        logs.reserveCapacity(Self.placeCount * shapes.count)
        for place in 0..<Self.placeCount {
            let reach = last * Self.step - distance(of: place)
            for shape in shapes {
                logs.append(
                    farthest - far * reach / shape.queue + likelihood(full, place, shape.densities))
            }
        }
        return summary(logs, full, lowest)
    }

    /// How far a place lies above the lowest packet, seconds.
    private func distance(of place: Int) -> Double { Double(place - Self.below) * Self.step }

    private func likelihood(
        _ full: [(bin: Int, count: Double)], _ place: Int, _ densities: [Double]
    ) -> Double {
        let start = Self.placeCount - 1 - place
        var sum = 0.0
        // In bounds: a start and a bin are less than the counts of places and of bins, whose sum is
        // that of the densities.
        full.withUnsafeBufferPointer { full in
            densities.withUnsafeBufferPointer { densities in
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

    /// - Parameter logs: likelihoods of all shapes at each place.
    private func summary(
        _ logs: [Double], _ full: [(bin: Int, count: Double)], _ lowest: Double
    ) -> Place {
        let most = logs.max() ?? 0
        let best = logs.firstIndex(of: most) ?? 0
        var (weight, first, second) = (0.0, 0.0, 0.0)
        for index in logs.indices {
            let factor = exp(logs[index] - most)
            let distance = distance(of: index / shapes.count)
            weight += factor
            first += factor * distance
            second += factor * distance * distance
        }
        let mean = first / weight
        let last = logs.suffix(shapes.count).reduce(0) { $0 + exp($1 - most) }
        let start = Self.placeCount - 1 - best / shapes.count
        let clean = full.reduce(0.0) {
            let (gathered, queued) = Self.densities(
                at: start + $1.bin, shapes[best % shapes.count])
            return $0 + $1.count * gathered / (gathered + queued)
        }
        return Place(
            evidence: most + log(weight), mean: lowest + mean,
            variance: max(0, second / weight - mean * mean), clean: clean,
            isAtEnd: last > Self.endShare * weight)
    }
}
