import Testing

import func Glibc.sin

@testable import TuttiDeviceOutput

@Suite struct SampleEncoderTests {
    /// Encodes and reads back as whole numbers of the format's smallest step.
    static func encode(
        _ samples: [Float], as format: SampleFormat, significantBits: Int? = nil, seed: UInt64 = 1
    ) -> [Int] {
        var encoder = SampleEncoder(
            format: format, significantBits: significantBits, seed: seed)
        let size = format.bytesPerSample
        var bytes = [UInt8](repeating: 0xAA, count: samples.count * size)
        unsafe bytes.withUnsafeMutableBytes { bytes in
            unsafe encoder.encode(samples, count: samples.count, into: bytes.baseAddress!)
        }
        return (0..<samples.count).map { i in
            var word = 0
            for k in 0..<size { word |= Int(bytes[i * size + k]) << (8 * k) }
            let bits = 8 * size
            return (word << (64 - bits)) >> (64 - bits)
        }
    }

    @Test func `32 bits hold every sample of 24 exactly`() {
        let steps = [-8_388_608, -8_388_607, -4_194_305, -1, 1, 2, 3, 65_537, 8_388_607]
        let encoded = Self.encode(steps.map { Float($0) / 8_388_608 }, as: .signed32)
        #expect(encoded == steps.map { $0 * 256 })
    }

    @Test func `a Float card gets the samples as they are, limited to full scale`() {
        let samples: [Float] = [0.1, -0.7, 1e-30, 1, -1, 3, -3, .infinity, .nan]
        let wanted: [Float] = [0.1, -0.7, 1e-30, 1, -1, 1, -1, 1, 0]
        let encoded = Self.encode(samples, as: .float32)
        #expect(encoded.map { Float(bitPattern: UInt32(truncatingIfNeeded: $0)) } == wanted)
    }

    @Test(arguments: [
        (SampleFormat.signed16, 32_767), (.signed24, 8_388_607), (.signed24Packed, 8_388_607),
        (.signed32, 2_147_483_647),
    ])
    func `too loud is full scale and not a number is silence`(format: SampleFormat, top: Int) {
        // Dither moves a sample by at most one step; none of these is near zero but the last.
        let samples: [Float] = [2, .infinity, 1e30, -2, -.infinity, -1e30, .nan]
        let encoded = Self.encode(samples, as: format)
        #expect(encoded[..<3].allSatisfy { $0 == top })
        #expect(encoded[3..<6].allSatisfy { $0 == -top - 1 })
        #expect(abs(encoded[6]) <= 1)
    }

    /// Lipshitz, Wannamaker, Vanderkooy: with TPDF dither the total error has mean 0 and variance
    /// 1/4 step² for every input: 1/6 from the noise and 1/12 from the rounding.
    @Test(
        arguments: [SampleFormat.signed16, .signed24, .signed24Packed],
        [0.0, 0.25, 0.5, 0.75, -1000.3])
    func `dither makes mean and variance of the error independent of the sample`(
        format: SampleFormat, steps: Double
    ) {
        let scale = format == .signed16 ? 32_768.0 : 8_388_608.0
        let count = 40_000
        // The first sample is not zero, or the period would be digital silence.
        let samples = [0.5] + [Float](repeating: Float(steps / scale), count: count)
        let errors = Self.encode(samples, as: format, seed: 7).dropFirst()
            .map { Double($0) - Double(samples[1]) * scale }
        let mean = errors.reduce(0, +) / Double(count)
        let variance = errors.reduce(0) { $0 + $1 * $1 } / Double(count)
        // Five standard errors: of the mean 0.5/√n; of the variance at most √(E[e⁴])/√n < 0.4/√n.
        let rootCount = Double(count).squareRoot()
        #expect(abs(mean) < 5 * 0.5 / rootCount)
        #expect(abs(variance - 0.25) < 5 * 0.4 / rootCount)
        #expect(errors.allSatisfy { abs($0) <= 1.5 })
    }

    @Test func `dither leaves no correlation between neighbours`() {
        let count = 40_000
        let samples = [0.5] + [Float](repeating: 0.3 / 32_768, count: count)
        let errors = Self.encode(samples, as: .signed16, seed: 3).dropFirst()
            .map { Double($0) - 0.3 }
        let product = zip(errors, errors.dropFirst()).reduce(0) { $0 + $1.0 * $1.1 }
        #expect(abs(product / Double(count) / 0.25) < 5 / Double(count).squareRoot())
    }

    /// Truncation would make a square of it, or nothing. With dither each sample's mean is the
    /// sample itself: over n periods of the tone known to 0.5/√n steps; and so no harmonic is left.
    @Test(arguments: [SampleFormat.signed16, .signed24, .signed24Packed])
    func `a tone smaller than a step keeps its shape`(format: SampleFormat) {
        let scale = format == .signed16 ? 32_768.0 : 8_388_608.0
        let shape = (0..<24).map { 0.7 * sin(2 * .pi * (Double($0) + 0.5) / 24) }
        let periods = 3_000
        let samples = (0..<periods).flatMap { _ in shape.map { Float($0 / scale) } }
        let encoded = Self.encode(samples, as: format, seed: 5)
        var worst = 0.0
        for (i, wanted) in shape.enumerated() {
            let sum = (0..<periods).reduce(0) { $0 + encoded[$1 * shape.count + i] }
            worst = max(worst, abs(Double(sum) / Double(periods) - wanted))
        }
        // Five standard errors; rounding alone is off by 0.3 at the tone's top.
        #expect(worst < 5 * 0.5 / Double(periods).squareRoot())
    }

    /// A card of 24 bits that takes them in words of 32 would drop the rest, which follows the
    /// music.
    @Test(arguments: [
        (SampleFormat.signed32, 16), (.signed32, 20), (.signed32, 24), (.signed24, 20),
        (.signed24Packed, 16),
    ])
    func `words of which the card converts fewer bits are dithered to those`(
        format: SampleFormat, bits: Int
    ) {
        let count = 40_000
        let width = format == .signed32 ? 32 : 24
        let step = Double(1 << (width - bits))
        let x = Float(0.25 * step / Double(1 << (width - 1)))
        let samples = [0.5] + [Float](repeating: x, count: count)
        let encoded = Self.encode(samples, as: format, significantBits: bits, seed: 7)
            .dropFirst()
        #expect(encoded.allSatisfy { $0 % (1 << (width - bits)) == 0 })
        let errors = encoded.map { Double($0) / step - 0.25 }
        let mean = errors.reduce(0, +) / Double(count)
        let variance = errors.reduce(0) { $0 + $1 * $1 } / Double(count)
        let rootCount = Double(count).squareRoot()
        #expect(abs(mean) < 5 * 0.5 / rootCount)
        #expect(abs(variance - 0.25) < 5 * 0.4 / rootCount)
        let loud = Self.encode([2, -2], as: format, significantBits: bits)
        #expect(loud == [1 << (width - 1) - 1 << (width - bits), -1 << (width - 1)])
    }

    @Test(arguments: [25, 32, 0, 99])
    func `more bits than a Float has need no noise, and nonsense is all bits`(bits: Int) {
        let samples = (0..<500).map { Float($0 - 250) / 251 }
        let plain = Self.encode(samples, as: .signed32)
        #expect(Self.encode(samples, as: .signed32, significantBits: bits) == plain)
    }

    @Test func `32 bits are the nearest whole number, without noise`() {
        var word: UInt64 = 77
        let samples = (0..<2_000).map { _ -> Float in
            word = word &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            // Over 60 dB, where a Float has bits below the step.
            return Float(Int64(bitPattern: word) >> 20) / Float(1 << 43) / Float(1 << (word & 15))
        }
        let encoded = Self.encode(samples, as: .signed32)
        let errors = zip(samples, encoded).map { Double($0) * 2_147_483_648 - Double($1) }
        #expect(errors.allSatisfy { abs($0) <= 0.5 })
        #expect(errors.contains { $0 != 0 })
    }

    @Test(arguments: SampleFormat.allCases)
    func `a period of digital silence stays digital silence`(format: SampleFormat) {
        #expect(Self.encode([Float](repeating: 0, count: 64), as: format).allSatisfy { $0 == 0 })
    }

    @Test func `24 bits are the same numbers packed or not, and a seed repeats them`() {
        let samples = (0..<500).map { Float($0 - 250) / 251 }
        let plain = Self.encode(samples, as: .signed24, seed: 11)
        let packed = Self.encode(samples, as: .signed24Packed, seed: 11)
        let other = Self.encode(samples, as: .signed24, seed: 12)
        #expect((0..<samples.count).first { plain[$0] != packed[$0] } == nil)
        #expect((0..<samples.count).first { plain[$0] != other[$0] } != nil)
    }
}
