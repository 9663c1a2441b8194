import Testing
import TuttiChance
import TuttiPlayout

import func Glibc.sin

/// Reading at another rate, frame by frame.
@Suite struct ResampledReaderTests {
    /// A function of the frame, left and its negative right; yields less at once than is wanted.
    private final class Formula: FrameReader {
        let count: Int64
        let value: (Int64) -> Float
        private(set) var seeks = 0
        private var next: Int64 = 0
        var failsAt = Int64.max

        init(count: Int64, _ value: @escaping (Int64) -> Float) {
            (self.count, self.value) = (count, value)
        }

        func read(
            at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>
        ) throws(MediaError) -> Int {
            if frame != next { seeks += 1 }
            guard frame < failsAt else {
                throw MediaError(.damaged, operation: "read", subject: "a", reason: "scratched")
            }
            let left = min(Int64(buffer.count / 2), 500, count - frame, failsAt - frame)
            let read = max(0, Int(left))
            for i in 0..<read {
                buffer[2 * i] = value(frame + Int64(i))
                buffer[2 * i + 1] = -buffer[2 * i]
            }
            next = frame + Int64(read)
            return read
        }
    }

    private static let rates = [
        (44_100, 48_000), (48_000, 44_100), (8_000, 48_000), (192_000, 44_100), (48_000, 48_048),
        (22_050, 44_100),
    ]

    private func sine(_ frequency: Double, rate: Int, count: Int64 = 60_000) -> Formula {
        Formula(count: count) { Float(0.5 * sin(2 * .pi * frequency * Double($0) / Double(rate))) }
    }

    private func noise(count: Int64 = 20_000) -> Formula {
        Formula(count: count) { frame in
            var random = SplitMix64(seed: UInt64(bitPattern: frame))
            return Float(random.uniform()) - 0.5
        }
    }

    private func frames(
        _ reader: ResampledReader, from first: Int64 = 0, count: Int = .max,
        size: () -> Int = { 4_096 }
    ) throws -> [Float] {
        var result: [Float] = []
        var buffer = [Float](repeating: .nan, count: 2 * 8_192)
        while result.count / 2 < count {
            let wanted = min(size(), count - result.count / 2)
            let read = try buffer.withUnsafeMutableBufferPointer {
                try reader.read(
                    at: first + Int64(result.count / 2),
                    into: UnsafeMutableBufferPointer(rebasing: $0[..<(2 * wanted)]))
            }
            if read == 0 { break }
            result += buffer[..<(2 * read)]
        }
        return result
    }

    /// Each frame lies where it should: a tone in the middle of the band is the same tone.
    @Test(arguments: rates)
    func `a tone is the same tone at its own times`(input: Int, output: Int) throws {
        let (frequency, origin) = (0.17 * Double(min(input, output)), Int64(12_340))
        let reader = ResampledReader(
            of: sine(frequency, rate: input), inputRate: input, outputRate: output, origin: origin)
        // Also before the frame that it counts from.
        let first = -2_000
        let result = try frames(reader, from: Int64(first), count: 5_000)
        var worst = 0.0
        for k in 0..<5_000 {
            let seconds = Double(origin) / Double(input) + Double(first + k) / Double(output)
            let expected = 0.5 * sin(2 * .pi * frequency * seconds)
            worst = max(worst, abs(Double(result[2 * k]) - expected))
            #expect(result[2 * k] == -result[2 * k + 1])
        }
        // −100 dB of the tone: the noise of the Float that it comes in is −150.
        #expect(worst < 5e-6, "\(worst)")
    }

    /// Above the lower band nothing comes through.
    @Test func `what the lower rate cannot hold is gone`() throws {
        let reader = ResampledReader(
            of: sine(24_000, rate: 96_000), inputRate: 96_000, outputRate: 44_100, origin: 5_000)
        let loudest = try frames(reader, count: 5_000).map(abs).max() ?? 1
        #expect(loudest < 1e-5)
    }

    @Test(arguments: rates)
    func `each frame is a function of its number, bit for bit`(input: Int, output: Int) throws {
        var random = SplitMix64(seed: UInt64(input + output))
        func makeReader() -> ResampledReader {
            ResampledReader(of: noise(), inputRate: input, outputRate: output, origin: 77)
        }
        let whole = try frames(makeReader())
        let inPieces = try frames(makeReader()) { Int.random(in: 1...3_000, using: &random) }
        let isSame = inPieces == whole
        #expect(isSame)
        let jumping = makeReader()
        for _ in 0..<50 {
            let first = Int.random(in: 0..<whole.count / 2, using: &random)
            let part = try frames(jumping, from: Int64(first), count: 300)
            let isSame = part == Array(whole[(2 * first)...].prefix(600))
            #expect(isSame, "from frame \(first)")
        }
    }

    @Test(arguments: rates)
    func `reading on reads the input once`(input: Int, output: Int) throws {
        let source = noise()
        let result = try frames(
            ResampledReader(of: source, inputRate: input, outputRate: output), size: { 700 })
        #expect(source.seeks == 0)
        // All of it, and what rings behind it up to the end of a window.
        let length = 20_000 * output / input
        // Half of 128 frames at the lower rate, made a multiple of eight.
        let ringing = 72 * max(1, output / input + 1)
        #expect(result.count / 2 >= length && result.count / 2 < length + ringing + 1_024)
        #expect(result.dropFirst(2 * (length + ringing + 1)).allSatisfy { $0 == 0 })
    }

    @Test(arguments: [1, 700, 4_096])
    func `what fails is said at its place, and can be read again`(size: Int) throws {
        let source = noise()
        source.failsAt = 5_000
        let reader = ResampledReader(of: source, inputRate: 44_100, outputRate: 48_000)
        // Those that lie before it: 5442.2 of them.
        #expect(try frames(reader, count: 5_443, size: { size }).count == 2 * 5_443)
        #expect(throws: MediaError.self) { try frames(reader, from: 5_443) }
        source.failsAt = .max
        let again = try frames(reader)
        let fresh = try frames(
            ResampledReader(of: noise(), inputRate: 44_100, outputRate: 48_000))
        let isSame = again == fresh
        #expect(isSame)
    }

    @Test(arguments: [(1, 768_000), (768_000, 1), (768_000, 8_000), (1, 1)])
    func `the furthest rates and frames do not overflow`(input: Int, output: Int) throws {
        let reader = ResampledReader(
            of: Formula(count: 50) { _ in 0.25 }, inputRate: input, outputRate: output)
        #expect(try frames(reader, count: 30).allSatisfy { $0.isFinite })
        for frame in [Int64.max, .max / 2, .min, -1] {
            // Silence, its end, or an error: no trap.
            let part = try? frames(reader, from: frame, count: 1)
            #expect((part ?? []).allSatisfy { $0.isFinite })
        }
    }
}
