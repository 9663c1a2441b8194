import Chance
import Timing

/// The unsteered clock of one host, as a function of true time.
///
/// Its rate is off by a constant and wanders: white noise in the rate's change (random-walk
/// frequency noise), drawn on knots 100 ms apart and held in between, like whatever else its
/// ``OscillatorShape`` has. Only the deviation is kept in
/// floating point, so a reading is exact to a nanosecond for any epoch and any length of run.
struct HostCrystal {
    static let knot: Int64 = 100_000_000

    private let epoch: Int64
    private let shape: OscillatorShape
    /// Standard deviation of the rate's change over one knot.
    private let step: Double
    private var walk = 0.0
    private var random: SplitMix64
    /// Skew during each knot, and the deviation in nanoseconds where it begins.
    private var knots: [(skew: Double, deviation: Double)] = []

    /// - Parameters:
    ///   - epoch: what the clock reads at true time zero, nanoseconds.
    ///   - partsPerMillion: constant deviation; positive: fast.
    ///   - wander: ppm per √s; a crystal in a room has about 0.01.
    init(epoch: Int64, partsPerMillion: Double, wander: Double, random: SplitMix64) {
        self.init(
            epoch: epoch,
            shape: OscillatorShape(constant: partsPerMillion, wander: wander), random: random)
    }

    init(epoch: Int64, shape: OscillatorShape, random: SplitMix64) {
        self.epoch = epoch
        self.shape = shape
        step = shape.wander * 1e-6 * (Double(Self.knot) * 1e-9).squareRoot()
        self.random = random
    }

    /// What the clock reads at a true instant, not before zero.
    mutating func reading(at instant: TrueInstant) -> LocalInstant {
        LocalInstant(
            nanoseconds: epoch + instant.nanoseconds
                + Int64(saturating: deviation(at: instant.nanoseconds)))
    }

    /// The first true instant at which the clock reads `reading` or more.
    mutating func instant(of reading: LocalInstant) -> TrueInstant {
        let elapsed = reading.nanoseconds.subtracting(saturating: epoch)
        var guess = elapsed
        // The deviation changes by at most some 1e-4 of the guess's error: three rounds do.
        for _ in 0..<3 {
            guess = elapsed - Int64(saturating: deviation(at: max(0, guess)))
        }
        while self.reading(at: TrueInstant(nanoseconds: guess)) < reading { guess += 1 }
        return TrueInstant(nanoseconds: guess)
    }

    private mutating func deviation(at nanoseconds: Int64) -> Double {
        let index = max(0, Int(nanoseconds / Self.knot))
        while knots.count <= index {
            let deviation = knots.last.map { $0.deviation + $0.skew * Double(Self.knot) } ?? 0
            let middle = (Double(knots.count) + 0.5) * Double(Self.knot) * 1e-9
            knots.append((shape.scheduled(at: middle) * 1e-6 + walk, deviation))
            walk += step * random.normal()
        }
        let held = knots[index]
        return held.deviation + held.skew * Double(nanoseconds - Int64(index) * Self.knot)
    }
}
