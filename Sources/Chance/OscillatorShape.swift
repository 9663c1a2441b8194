import func Glibc.exp
import func Glibc.sin

/// What a crystal does: the deviation of its rate over time.
///
///     rate − 1 = constant + ∫ white noise + swing + breathing + Σ thermal steps + Σ frequency steps
///
/// Sizes after measurements of data-centre hosts (5 to 10 µs/s between two, 30 at most, and a
/// visible influence of temperature) and of what sits in cheap speakers.
public struct OscillatorShape: Sendable {
    /// Parts per million; positive: fast.
    public var constant: Double
    /// Random walk of the rate: ppm per √s. 0.004 is a good crystal at rest, 0.02 a bad one.
    public var wander: Double
    /// Quick changes about the mean; `nil`: none.
    public var swing: Swing?
    /// A slow sine; `nil`: none.
    public var breathing: Breathing?
    /// Loads that begin, each by itself; their sum counts.
    public var thermalSteps: [ThermalStep]
    /// Changes of rate at once; their sum counts.
    public var frequencySteps: [FrequencyStep]

    /// A crystal that is exact in whatever is left out.
    public init(
        constant: Double = 0, wander: Double = 0, swing: Swing? = nil, breathing: Breathing? = nil,
        thermalSteps: [ThermalStep] = [], frequencySteps: [FrequencyStep] = []
    ) {
        self.constant = constant
        self.wander = wander
        self.swing = swing
        self.breathing = breathing
        self.thermalSteps = thermalSteps
        self.frequencySteps = frequencySteps
    }

    /// Moves about at random and does not go away, as temperature moves a crystal: an
    /// Ornstein-Uhlenbeck process.
    public struct Swing: Sendable {
        /// Standard deviation.
        public var partsPerMillion: Double
        /// Time constant, seconds.
        public var time: Double

        /// A swing with a spread in ppm and a time constant in seconds.
        public init(partsPerMillion: Double, time: Double = 60) {
            self.partsPerMillion = partsPerMillion
            self.time = time
        }

        func kept(after seconds: Double) -> Double { exp(-seconds / time) }
    }

    /// Room temperature, air conditioning, day and night.
    public struct Breathing: Sendable {
        /// Amplitude: the rate goes as far to either side.
        public var partsPerMillion: Double
        /// Seconds.
        public var period: Double
        /// Turns, 0 to 1.
        public var phase: Double

        /// A sine of the rate; see the properties for units.
        public init(partsPerMillion: Double, period: Double, phase: Double) {
            self.partsPerMillion = partsPerMillion
            self.period = period
            self.phase = phase
        }
    }

    /// A load begins: the crystal warms up exponentially.
    public struct ThermalStep: Sendable {
        /// Seconds.
        public var at: Double
        /// How much faster it runs once it is warm; positive: fast.
        public var partsPerMillion: Double
        /// Time constant, seconds.
        public var time: Double

        /// A step at a time in seconds, approached with a time constant in seconds.
        public init(at: Double, partsPerMillion: Double, time: Double) {
            self.at = at
            self.partsPerMillion = partsPerMillion
            self.time = time
        }
    }

    /// Another rate at once: a clock that was calibrated anew, a governor.
    public struct FrequencyStep: Sendable {
        /// Seconds.
        public var at: Double
        /// Added to the rate from then on; positive: fast.
        public var partsPerMillion: Double

        /// A step at a time in seconds.
        public init(at: Double, partsPerMillion: Double) {
            self.at = at
            self.partsPerMillion = partsPerMillion
        }
    }

    /// A host at rest: a constant within ±45 ppm, a slow walk and a little breathing.
    public static func typical(_ random: inout SplitMix64) -> OscillatorShape {
        OscillatorShape(
            constant: random.uniform(-45, 45), wander: 0.004,
            breathing: Breathing(
                partsPerMillion: 0.15, period: 200, phase: random.uniform()))
    }

    /// What time alone decides, without the walk and the swing; ppm.
    func scheduled(at seconds: Double) -> Double {
        var rate = constant
        if let breathing {
            let turns = seconds / breathing.period + breathing.phase
            rate += breathing.partsPerMillion * sin(2 * .pi * turns)
        }
        for step in thermalSteps where seconds >= step.at {
            rate += step.partsPerMillion * (1 - exp((step.at - seconds) / step.time))
        }
        for step in frequencySteps where seconds >= step.at { rate += step.partsPerMillion }
        return rate
    }
}
