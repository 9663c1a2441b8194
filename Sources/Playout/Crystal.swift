import TuttiChance
public import TuttiTiming

/// The ``Chance/Oscillator`` of a virtual card, counted in frames from the local instant at which
/// it was started: a constant deviation plus a swing (temperature moves a crystal about but not
/// away).
///
/// Look-ups must not go back behind the knots that have been dropped (25 s of them are kept). After
/// ``reserve()`` nothing here allocates.
public struct Crystal: Sendable {
    private static let memoryKnots = 256

    private var oscillator: Oscillator
    /// Local instant of tick 0: the first instant that was asked for.
    private var start: LocalInstant?

    /// - Parameters:
    ///   - nominalRate: ticks per second as printed on the can.
    ///   - partsPerMillion: constant deviation; positive: fast.
    ///   - wander: standard deviation of the swing in ppm.
    public init(nominalRate: Int, partsPerMillion: Double, wander: Double = 0, seed: UInt64 = 1) {
        oscillator = Oscillator(
            ticksPerSecond: Double(nominalRate),
            shape: OscillatorShape(
                constant: partsPerMillion, swing: .init(partsPerMillion: wander)),
            memory: Self.memoryKnots, random: SplitMix64(seed: seed))
    }

    /// Takes all the memory that this copy will ever need: before it goes to an output thread.
    public mutating func reserve() { oscillator.reserve() }

    /// Begins to count at `instant`; otherwise the first look does.
    public mutating func start(at instant: LocalInstant) { start = instant }

    /// Ticks from the start to `instant`, with their fraction; negative before the start.
    public mutating func frames(at instant: LocalInstant) -> Double {
        if start == nil { start = instant }
        return oscillator.ticks(at: (instant - start!).seconds)
    }

    /// When tick `frame` happens, and the fraction of a nanosecond behind that.
    public mutating func instant(ofFrame frame: Double) -> (instant: LocalInstant, fraction: Double)
    {
        precondition(start != nil, "a crystal is asked for a tick before it was started")
        let nanoseconds = oscillator.seconds(ofTick: frame) * 1e9
        var whole = Int64(saturating: nanoseconds)
        if Double(whole) > nanoseconds { whole -= 1 }
        return (start! + Nanoseconds(whole), nanoseconds - Double(whole))
    }
}
