@testable import tutti

/// Items of noise that tell which item is heard, and where in it.
///
/// The noise is loud or quiet in blocks of 20 ms, by a sequence of chance that no two places share
/// for long. So some tens of blocks of a recording are found again among all items by their
/// loudness alone, to a few milliseconds and in milliseconds of computing; the noise itself then
/// says where to a fraction of a sample.
struct PlaceNoise {
    static let sampleRate = 48_000
    private static let block = sampleRate / 50
    private static let quiet: Float = 0.35
    /// Loudness is looked at so often: four times a block.
    static let step = sampleRate / 200
    /// Steps that are compared: 40 blocks, of which no two places have three quarters in common.
    private static let span = 160

    let items: [NoiseAsset]
    /// Of each item, the loudness at each step.
    private let levels: [[Float]]

    init(count: Int, seconds: Int, seed: UInt64) {
        items = (0..<count).map { item in
            var asset = NoiseAsset(seconds: seconds, seed: seed &+ UInt64(item + 1) &* 7_919)
            var state = seed &* 31 &+ UInt64(item + 1) &* 0x9E37_79B9_7F4A_7C15
            var samples = asset.samples
            samples.withUnsafeMutableBufferPointer { samples in
                for begin in stride(from: 0, to: samples.count, by: Self.block) {
                    state ^= state << 13
                    state ^= state >> 7
                    state ^= state << 17
                    guard state >> 40 & 1 == 0 else { continue }
                    for k in begin..<min(samples.count, begin + Self.block) {
                        samples[k] *= Self.quiet
                    }
                }
            }
            asset.samples = samples
            return asset
        }
        levels = items.map { Self.levels($0.samples) }
    }

    /// Where the middle of a stretch of sound is from.
    ///
    /// - Parameter sound: `PlaceNoise.window` samples at the rate of the items.
    /// - Returns: item and frame, to a step or so; `nil` when it is from none of them.
    func place(of sound: [Float]) -> (item: Int, frame: Double)? {
        let heard = Self.centred(Self.levels(sound))
        guard heard.count >= Self.span else { return nil }
        var best: (item: Int, step: Int, value: Float) = (0, 0, 0)
        for (item, levels) in levels.enumerated() where levels.count >= Self.span {
            levels.withUnsafeBufferPointer { levels in
                heard.withUnsafeBufferPointer { heard in
                    var step = 0
                    while step + Self.span <= levels.count {
                        var (sum, total, squares): (Float, Float, Float) = (0, 0, 0)
                        var k = 0
                        while k < Self.span {
                            let level = levels[step + k]
                            sum += heard[k] * level
                            total += level
                            squares += level * level
                            k += 1
                        }
                        let spread = squares - total * total / Float(Self.span)
                        let value = spread > 0 ? sum / spread.squareRoot() : 0
                        if value > best.value { best = (item, step, value) }
                        step += 1
                    }
                }
            }
        }
        let norm = heard.reduce(0) { $0 + $1 * $1 }.squareRoot()
        guard norm > 0, best.value / norm > 0.75 else { return nil }
        return (best.item, Double(best.step * Self.step + Self.window / 2))
    }

    static let window = span * step

    private static func levels(_ samples: [Float]) -> [Float] {
        samples.withUnsafeBufferPointer { samples in
            stride(from: 0, through: samples.count - step, by: step).map { begin in
                var sum: Float = 0
                var k = begin
                while k < begin + step {
                    sum += samples[k] * samples[k]
                    k += 1
                }
                return (sum / Float(step)).squareRoot()
            }
        }
    }

    private static func centred(_ values: [Float]) -> [Float] {
        let mean = values.reduce(0, +) / Float(max(1, values.count))
        return values.map { $0 - mean }
    }
}
