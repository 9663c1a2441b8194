import TuttiChance

@testable import TuttiPlayout

import func Glibc.log10
import func Glibc.sin

/// An item in memory that counts what is read of it, and can be slow or fail.
final class MemoryItem: FrameReader {
    let samples: [Float]
    /// Frames that one read gives at most.
    var atOnce = Int.max
    /// Calls from now on until one fails, once; `nil`: none does.
    var callsUntilFailure: Int?
    /// Reading from this frame on fails.
    var failsAt = Int64.max
    private(set) var framesRead = 0
    private(set) var calls = 0

    static let failure = MediaError(
        .network, operation: "read", subject: "test", reason: "the cable was pulled")

    var frameCount: Int64 { Int64(samples.count / 2) }

    /// - Parameter samples: interleaved stereo.
    init(_ samples: [Float]) { self.samples = samples }

    func read(
        at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>
    ) throws(MediaError) -> Int {
        calls += 1
        if let left = callsUntilFailure {
            callsUntilFailure = left > 0 ? left - 1 : nil
            if left == 0 { throw Self.failure }
        }
        precondition(frame >= 0, "frame \(frame) of an item")
        guard frame < failsAt else { throw Self.failure }
        guard frame < frameCount else { return 0 }
        let count = min(buffer.count / 2, atOnce, Int(min(failsAt, frameCount) - frame))
        let first = 2 * Int(frame)
        _ = buffer.update(fromContentsOf: samples[first..<first + 2 * count])
        framesRead += count
        return count
    }

    /// Left and right from one function of the frame's number.
    static func made(_ count: Int, _ sample: (Int) -> (Double, Double)) -> MemoryItem {
        var samples = [Float](repeating: 0, count: 2 * count)
        for i in 0..<count {
            let (left, right) = sample(i)
            samples[2 * i] = Float(left)
            samples[2 * i + 1] = Float(right)
        }
        return MemoryItem(samples)
    }

    static func tone(
        hertz: Double, frames: Int, sampleRate: Int = 48_000, amplitude: Double = 0.5
    ) -> MemoryItem {
        let w = 2 * Double.pi * hertz / Double(sampleRate)
        return made(frames) { k in
            let x = amplitude * sin(w * Double(k))
            return (x, x)
        }
    }

    /// Two tones, noise and clicks: something for every part of an algorithm to do.
    static func medley(frames: Int, seed: UInt64 = 1, sampleRate: Int = 8_000) -> MemoryItem {
        var random = SplitMix64(seed: seed)
        let w = 2 * Double.pi / Double(sampleRate)
        return made(frames) { k in
            let t = Double(k)
            let click = k % 1_777 == 600 ? 0.4 : 0
            let x = 0.2 * sin(w * 220 * t) + 0.1 * sin(w * (700 + t / 200) * t) + click
            return (
                x + 0.05 * random.uniform(-1, 1), 0.6 * x + 0.05 * random.uniform(-1, 1)
            )
        }
    }
}

/// What is asked of a transform in these tests.
enum Stretch {
    static let algorithms: [TimePitchAlgorithm] = [.timeDomain, .spectral]

    static func make(
        _ algorithm: TimePitchAlgorithm, _ rate: Double, _ item: MemoryItem,
        sampleRate: Int = 48_000, knowsLength: Bool = true
    ) -> any FrameTransform {
        FrameTransforms.make(
            rate: rate, algorithm: algorithm, sampleRate: sampleRate,
            frameCount: knowsLength ? item.frameCount : nil, reader: item)!
    }

    /// Interleaved frames from `frame` on, until `count` of them or the end.
    static func frames(
        of reader: any FrameReader, from frame: Int64 = 0, count: Int = 1 << 40, atOnce: Int = 4_096
    ) throws -> [Float] {
        var result: [Float] = []
        var buffer = [Float](repeating: .nan, count: 2 * min(count, atOnce))
        while result.count < 2 * count {
            let wanted = min(buffer.count, 2 * count - result.count)
            let position = frame + Int64(result.count / 2)
            let read = try buffer.withUnsafeMutableBufferPointer {
                try reader.read(at: position, into: .init(rebasing: $0[..<wanted]))
            }
            if read == 0 { break }
            result += buffer[..<(2 * read)]
        }
        return result
    }

    /// One channel of interleaved frames.
    static func channel(_ frames: [Float], _ channel: Int = 0) -> [Float] {
        stride(from: channel, to: frames.count, by: 2).map { frames[$0] }
    }

    /// Root mean square, decibels.
    static func level(_ samples: ArraySlice<Float>) -> Double {
        let power = samples.reduce(0.0) { $0 + Double($1) * Double($1) }
        return 10 * log10(power / Double(max(1, samples.count)) + 1e-30)
    }

    /// Cycles per sample between the first and the last rise through zero.
    static func frequency(_ samples: ArraySlice<Float>) -> Double {
        var first: Double?
        var last = 0.0
        var cycles = -1.0
        for i in samples.indices.dropFirst() where samples[i - 1] < 0 && samples[i] >= 0 {
            let (a, b) = (Double(samples[i - 1]), Double(samples[i]))
            last = Double(i - 1) + a / (a - b)
            first = first ?? last
            cycles += 1
        }
        return cycles / (last - (first ?? 0))
    }
}
