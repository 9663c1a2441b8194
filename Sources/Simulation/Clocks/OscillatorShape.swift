import Chance

import func Glibc.exp
import func Glibc.sin

/// What a crystal does: the deviation of its rate over time.
///
///     rate − 1 = constant + ∫ white noise + breathing + Σ thermal steps + Σ frequency steps
///
/// Sizes after measurements of data-centre hosts (5 to 10 µs/s between two, 30 at most, and a
/// visible influence of temperature) and of what sits in cheap speakers.
struct OscillatorShape: Sendable {
    /// Parts per million; positive: fast.
    var constant = 0.0
    /// Random walk of the rate: ppm per √s. 0.004 is a good crystal at rest, 0.02 a bad one.
    var wander = 0.0
    var breathing: Breathing?
    var thermalSteps: [ThermalStep] = []
    var frequencySteps: [FrequencyStep] = []

    /// Room temperature, air conditioning, day and night.
    struct Breathing: Sendable {
        var partsPerMillion: Double
        /// Seconds.
        var period: Double
        /// Turns, 0 to 1.
        var phase: Double
    }

    /// A load begins: the crystal warms up exponentially.
    struct ThermalStep: Sendable {
        /// Seconds.
        var at: Double
        var partsPerMillion: Double
        /// Time constant, seconds.
        var time: Double
    }

    /// Another rate at once: a clock that was calibrated anew, a governor.
    struct FrequencyStep: Sendable {
        /// Seconds.
        var at: Double
        var partsPerMillion: Double
    }

    /// A host at rest: a constant within ±45 ppm, a slow walk and a little breathing.
    static func typical(_ random: inout SplitMix64) -> OscillatorShape {
        OscillatorShape(
            constant: random.uniform(-45, 45), wander: 0.004,
            breathing: Breathing(
                partsPerMillion: 0.15, period: 200, phase: random.uniform()))
    }

    /// What time alone decides, without the walk; ppm.
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
