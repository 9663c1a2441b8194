@testable import tutti

/// What the house plays: noise that never repeats and is never silent, the same on both sides.
///
/// Noise has no period that an alignment could be off by, and no zeros that could hide a dropout.
/// The mean of two neighbours keeps its energy below where sampled signals cannot be compared.
struct NoiseAsset {
    let sampleRate: Int
    /// Mono, −0.5…0.5.
    var samples: [Float]

    init(seconds: Int, sampleRate: Int = 48_000, seed: UInt64 = 0x7477_7474_6921) {
        self.sampleRate = sampleRate
        var state = seed
        func next(_ state: inout UInt64) -> Float {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return Float(state >> 40) / Float(1 << 24) - 0.5
        }
        var samples: [Float] = []
        samples.reserveCapacity(seconds * sampleRate)
        var last: Float = 0
        for _ in 0..<(seconds * sampleRate) {
            let fresh = next(&state)
            samples.append((fresh + last) / 2)
            last = fresh
        }
        self.samples = samples
    }

    func write(to path: String) throws {
        var stereo: [Float] = []
        stereo.reserveCapacity(2 * samples.count)
        for sample in samples {
            stereo.append(sample)
            stereo.append(sample)
        }
        try WaveFile.write(stereo, sampleRate: sampleRate, to: path)
    }
}
