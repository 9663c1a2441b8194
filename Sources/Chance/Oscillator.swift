/// A crystal that is not quite true: how many ticks it has made, as a function of time, and back.
///
/// Its rate is what its ``OscillatorShape`` says, drawn on knots 100 ms apart and held in between,
/// so ticks are piecewise linear and exactly invertible. Only the lead over the nominal rate is
/// added up: the sum stays small, and a reading exact, for any length of run. The seed decides
/// everything; to look at the past changes nothing.
///
/// Every simulated host and every virtual card has one of these.
public struct Oscillator: Sendable {
    /// Between two knots, seconds. Shorter ones would follow a walk more closely than any figure
    /// here can tell, and cost memory.
    public static let knotSeconds = 0.1

    /// What holds during one knot.
    private struct Knot {
        /// Rate against the nominal one, minus one.
        var skew: Double
        /// Ticks ahead of the nominal rate where it begins.
        var lead: Double
    }

    private let rate: Double
    private let shape: OscillatorShape
    /// Standard deviation of the walk's change over one knot.
    private let walkStep: Double
    private let swingSpread: Double
    /// The share of a swing that is left after one knot.
    private let swingKept: Double
    /// Knots that are remembered at least; `nil`: all.
    private let memory: Int?

    private var random: SplitMix64
    private var walk = 0.0
    private var swing = 0.0
    /// Knots `firstKnot ...`.
    private var knots: [Knot] = []
    private var firstKnot = 0

    /// - Parameters:
    ///   - ticksPerSecond: as printed on the can.
    ///   - memory: knots behind the newest that can still be asked for, at least; `nil`: all of
    ///     them. With a memory, and after ``reserve()``, nothing here allocates.
    public init(
        ticksPerSecond: Double, shape: OscillatorShape, memory: Int? = nil, random: SplitMix64
    ) {
        rate = ticksPerSecond
        self.shape = shape
        self.memory = memory
        self.random = random
        walkStep = shape.wander * 1e-6 * Self.knotSeconds.squareRoot()
        swingSpread = (shape.swing?.partsPerMillion ?? 0) * 1e-6
        swingKept = shape.swing?.kept(after: Self.knotSeconds) ?? 0
        if swingSpread > 0 { swing = swingSpread * self.random.normal() }
    }

    /// Takes all the memory that this copy will ever need: before it goes to an output thread.
    public mutating func reserve() {
        if let memory { knots.reserveCapacity(2 * memory) }
    }

    /// Ticks at `seconds`, with their fraction; before 0 at the rate of the beginning.
    public mutating func ticks(at seconds: Double) -> Double {
        let index = remembered(Int(seconds / Self.knotSeconds))
        let held = knots[index - firstKnot]
        let begin = Double(index) * Self.knotSeconds
        return begin * rate + held.lead + (seconds - begin) * rate * (1 + held.skew)
    }

    /// Ticks ahead of the nominal rate, `ticks` nominal ticks into a knot: for whoever counts those
    /// in whole numbers, where a `Double` of all of them would be too coarse.
    public mutating func lead(inKnot index: Int, after ticks: Double) -> Double {
        let held = knots[remembered(index) - firstKnot]
        return held.lead + held.skew * ticks
    }

    /// When it makes tick `tick`, seconds.
    public mutating func seconds(ofTick tick: Double) -> Double {
        extend(to: max(firstKnot, Int(tick / rate / Self.knotSeconds)))
        while ticks(atPlace: knots.count - 1) < tick { extend(to: firstKnot + knots.count) }
        var low = 0
        var high = knots.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if ticks(atPlace: middle) <= tick { low = middle } else { high = middle }
        }
        return Double(firstKnot + low) * Self.knotSeconds
            + (tick - ticks(atPlace: low)) / (rate * (1 + knots[low].skew))
    }

    /// Rate minus one at `seconds`.
    public mutating func skew(at seconds: Double) -> Double {
        knots[remembered(Int(seconds / Self.knotSeconds)) - firstKnot].skew
    }

    /// Where the knot at `place` of the memory begins.
    private func ticks(atPlace place: Int) -> Double {
        Double(firstKnot + place) * Self.knotSeconds * rate + knots[place].lead
    }

    /// The knot that stands for `index`: itself, or the oldest one that is remembered.
    private mutating func remembered(_ index: Int) -> Int {
        extend(to: max(0, index))
        return max(index, firstKnot)
    }

    private mutating func extend(to index: Int) {
        while firstKnot + knots.count <= index {
            if let memory, knots.count == 2 * memory {
                firstKnot += memory
                knots.removeFirst(memory)
            }
            let middle = (Double(firstKnot + knots.count) + 0.5) * Self.knotSeconds
            let lead = knots.last.map { $0.lead + $0.skew * (Self.knotSeconds * rate) } ?? 0
            knots.append(
                Knot(skew: shape.scheduled(at: middle) * 1e-6 + walk + swing, lead: lead))
            if walkStep > 0 { walk += walkStep * random.normal() }
            if swingSpread > 0 {
                let push = (1 - swingKept * swingKept).squareRoot()
                swing = swing * swingKept + swingSpread * push * random.normal()
            }
        }
    }
}
