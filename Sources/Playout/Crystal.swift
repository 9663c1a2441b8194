import Chance
public import Timing

import func Glibc.exp

/// The oscillator of a virtual card: how many ticks it has made by a local instant.
///
/// A constant deviation plus a wander, an Ornstein-Uhlenbeck process with a time constant of 60 s:
/// temperature moves a crystal about but not away. The wander is drawn on knots 100 ms apart from a
/// generator of its own and held in between, so ticks are piecewise linear and exactly invertible.
/// Deterministic per seed. Look-ups must not go back behind the knots that have been dropped
/// (25 s of them are kept). After ``reserve()`` nothing here allocates.
public struct Crystal: Sendable {
    private static let knotSeconds = 0.1
    private static let memoryKnots = 256

    private let nominalRate: Double
    private let constant: Double
    private let spread: Double
    private var random: SplitMix64
    /// Local instant of tick 0: the first instant that was asked for.
    private var start: LocalInstant?
    /// Wander (1 = 1e6 ppm) and ticks at the beginning of knots `firstKnot ...`.
    private var knots: [(skew: Double, ticks: Double)] = []
    private var firstKnot = 0
    private var wander = 0.0

    /// - Parameters:
    ///   - nominalRate: ticks per second as printed on the can.
    ///   - partsPerMillion: constant deviation; positive: fast.
    ///   - wander: standard deviation of the wander in ppm.
    public init(nominalRate: Int, partsPerMillion: Double, wander: Double = 0, seed: UInt64 = 1) {
        self.nominalRate = Double(nominalRate)
        constant = partsPerMillion * 1e-6
        spread = wander * 1e-6
        random = SplitMix64(seed: seed)
        self.wander = spread == 0 ? 0 : spread * random.normal()
    }

    /// Takes all the memory that this copy will ever need: before it goes to an output thread.
    public mutating func reserve() { knots.reserveCapacity(2 * Self.memoryKnots) }

    /// Begins to count at `instant`; otherwise the first look does.
    public mutating func start(at instant: LocalInstant) { start = instant }

    /// Ticks from the start to `instant`, with their fraction; negative before the start.
    public mutating func frames(at instant: LocalInstant) -> Double {
        if start == nil { start = instant }
        let seconds = (instant - start!).seconds
        let knot = max(0, Int(seconds / Self.knotSeconds))
        extend(to: knot)
        let held = knots[max(0, knot - firstKnot)]
        let begin = Double(max(knot, firstKnot)) * Self.knotSeconds
        return held.ticks + (seconds - begin) * nominalRate * (1 + held.skew)
    }

    /// When tick `frame` happens, and the fraction of a nanosecond behind that.
    public mutating func instant(ofFrame frame: Double) -> (instant: LocalInstant, fraction: Double)
    {
        precondition(start != nil, "a crystal is asked for a tick before it was started")
        extend(to: max(firstKnot, Int(frame / nominalRate / Self.knotSeconds)))
        while knots.last!.ticks < frame { extend(to: firstKnot + knots.count) }
        var low = 0
        var high = knots.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if knots[middle].ticks <= frame { low = middle } else { high = middle }
        }
        let held = knots[low]
        let seconds =
            Double(firstKnot + low) * Self.knotSeconds
            + (frame - held.ticks) / (nominalRate * (1 + held.skew))
        let nanoseconds = seconds * 1e9
        var whole = Int64(saturating: nanoseconds)
        if Double(whole) > nanoseconds { whole -= 1 }
        return (start! + Nanoseconds(whole), nanoseconds - Double(whole))
    }

    private mutating func extend(to knot: Int) {
        while firstKnot + knots.count <= knot {
            if knots.count == 2 * Self.memoryKnots {
                firstKnot += Self.memoryKnots
                knots.removeFirst(Self.memoryKnots)
            }
            let ticks =
                knots.last.map { $0.ticks + Self.knotSeconds * nominalRate * (1 + $0.skew) } ?? 0
            knots.append((constant + wander, ticks))
            if spread > 0 {
                let keep = exp(-Self.knotSeconds / 60)
                wander = wander * keep + spread * (1 - keep * keep).squareRoot() * random.normal()
            }
        }
    }
}
