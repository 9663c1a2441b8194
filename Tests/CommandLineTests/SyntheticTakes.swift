import Glibc
import TuttiChance

@testable import tutti

/// Content that is known at every instant, not only at samples: many tones that never repeat.
struct Content {
    private var tones: [(omega: Double, phase: Double, gain: Double)] = []

    init(seed: UInt64, tones count: Int = 24) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<count {
            // Even on a logarithmic scale from 120 Hz to 14 kHz, as loud as music is there.
            let frequency = 120 * exp(random.uniform() * log(14_000.0 / 120))
            tones.append(
                (
                    2 * .pi * frequency, 2 * .pi * random.uniform(),
                    0.15 * sqrt(300 / (300 + frequency))
                )
            )
        }
    }

    func value(_ seconds: Double) -> Double {
        tones.reduce(0) { $0 + $1.gain * sin($1.omega * seconds + $1.phase) }
    }
}

extension Take {
    /// A take of `content` from a card with a crystal of its own, late by `delay` seconds.
    ///
    /// - Parameter sounds: seconds of true time within which the content is heard.
    static func synthetic(
        _ name: String, of content: Content, partsPerMillion: Double, delay: Double,
        length: Double, sounds: ClosedRange<Double>, phase: Double = 0
    ) -> Take {
        let rate = 48_000.0
        let period = 1e9 / (rate * (1 + partsPerMillion * 1e-6))
        let count = Int(length * 1e9 / period)
        let samples = (0..<count).map { frame -> Float in
            let seconds = (Double(frame) + phase) * period / 1e9 - delay
            return sounds.contains(seconds) ? Float(content.value(seconds)) : 0
        }
        return Take(
            name: name, sampleRate: rate,
            segments: [
                .init(
                    samples: samples, anchorFrames: [0, Double(count)],
                    anchorTimes: [phase * period, (Double(count) + phase) * period])
            ])
    }
}
