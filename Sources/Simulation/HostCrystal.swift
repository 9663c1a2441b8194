import TuttiChance
import TuttiTiming

/// The unsteered clock of one host, as a function of true time: an ``Chance/Oscillator`` that ticks
/// in nanoseconds.
///
/// Nanoseconds are counted in whole numbers and only the crystal's lead in floating point, so a
/// reading is exact to a nanosecond for any epoch and any length of run.
struct HostCrystal {
    private static let rate: Int64 = 1_000_000_000
    private static let knot = Int64(Oscillator.knotSeconds * Double(rate))

    private var epoch: Int64
    private var oscillator: Oscillator

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
        oscillator = Oscillator(
            ticksPerSecond: Double(Self.rate), shape: shape, random: random)
    }

    /// What the clock reads at a true instant, not before zero.
    mutating func reading(at instant: TrueInstant) -> LocalInstant {
        LocalInstant(
            nanoseconds: epoch + instant.nanoseconds
                + Int64(saturating: lead(at: instant.nanoseconds)))
    }

    /// The first true instant at which the clock reads `reading` or more.
    mutating func instant(of reading: LocalInstant) -> TrueInstant {
        let elapsed = reading.nanoseconds.subtracting(saturating: epoch)
        var guess = elapsed
        // The lead changes by at most some 1e-4 of the guess's error: three rounds do.
        for _ in 0..<3 { guess = elapsed - Int64(saturating: lead(at: max(0, guess))) }
        while self.reading(at: TrueInstant(nanoseconds: guess)) < reading { guess += 1 }
        return TrueInstant(nanoseconds: guess)
    }

    /// It stood still for so long, until now.
    mutating func stoodStill(for span: Nanoseconds) { epoch -= span.count }

    private mutating func lead(at nanoseconds: Int64) -> Double {
        let index = max(0, Int(nanoseconds / Self.knot))
        return oscillator.lead(
            inKnot: index, after: Double(nanoseconds - Int64(index) * Self.knot))
    }
}
