import Chance

/// The crystal of a simulated card, as a function of true time: ticks, and back.
///
/// Its rate is off by a constant, walks (white noise in the rate's change, drawn on knots 100 ms
/// apart and held in between) and changes once by a step, as a room does whose heating starts or a
/// card that has been switched on. Exactly invertible, and every tick can be asked for, past ones
/// too.
struct CardOscillator {
    private static let knot = 0.1

    private let rate: Double
    private let constant: Double
    /// Standard deviation of the rate's change over one knot.
    private let walkStep: Double
    private let step: Double
    private let stepKnot: Int
    private var walk = 0.0
    private var random: SplitMix64
    /// Rate minus one during each knot, and the ticks at its beginning.
    private var knots: [(skew: Double, ticks: Double)] = []

    /// - Parameters:
    ///   - rate: nominal ticks per second.
    ///   - partsPerMillion: constant deviation; positive: fast.
    ///   - walk: ppm per √s; a crystal in a room has about 0.01.
    ///   - step: ppm, added for good at `stepSeconds`.
    init(
        rate: Double, partsPerMillion: Double, walk: Double, step: Double, stepSeconds: Double,
        random: SplitMix64
    ) {
        self.rate = rate
        constant = partsPerMillion * 1e-6
        walkStep = walk * 1e-6 * Self.knot.squareRoot()
        self.step = step * 1e-6
        stepKnot = Int(stepSeconds / Self.knot)
        self.random = random
    }

    /// Ticks at `seconds` of true time, not before 0.
    mutating func ticks(at seconds: Double) -> Double {
        let index = max(0, Int(seconds / Self.knot))
        extend(to: index)
        let held = knots[index]
        return held.ticks + (seconds - Double(index) * Self.knot) * rate * (1 + held.skew)
    }

    /// When the card makes tick `ticks`.
    mutating func seconds(ofTick ticks: Double) -> Double {
        var index = max(0, Int(ticks / rate / Self.knot))
        extend(to: index + 1)
        while knots[index].ticks > ticks, index > 0 { index -= 1 }
        while knots[index + 1].ticks <= ticks {
            index += 1
            extend(to: index + 1)
        }
        let held = knots[index]
        return Double(index) * Self.knot + (ticks - held.ticks) / (rate * (1 + held.skew))
    }

    /// Rate minus one at `seconds`.
    mutating func skew(at seconds: Double) -> Double {
        let index = max(0, Int(seconds / Self.knot))
        extend(to: index)
        return knots[index].skew
    }

    private mutating func extend(to index: Int) {
        while knots.count <= index {
            let ticks = knots.last.map { $0.ticks + Self.knot * rate * (1 + $0.skew) } ?? 0
            let added = knots.count >= stepKnot ? step : 0
            knots.append((constant + walk + added, ticks))
            if walkStep > 0 { walk += walkStep * random.normal() }
        }
    }
}
