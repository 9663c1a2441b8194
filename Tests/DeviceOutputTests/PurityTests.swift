import Testing
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

import func Glibc.log10
import func Glibc.sin

@testable import TuttiDeviceOutput

/// A tone from the item to the numbers that the DAC gets, while the servo works.
///
/// The card drifts and is read with jitter, the shared clock runs beside the local one, and a
/// change of the latency makes the servo lean. Each period's report says exactly where in the item
/// it ends and at which ratio, so that the wanted output is known at every frame.
@Suite struct PurityTests {
    private static let amplitude = 0.891_250_938  // −1 dBFS
    private static let period = 240

    private struct Take {
        /// Distortion and noise against the tone, decibels.
        var distortion = 0.0
        /// Between the lowest and the highest ratio, ppm.
        var travel = 0.0
    }

    private func play(hertz: Double, as format: SampleFormat) -> Take {
        let output = OutputFormat(
            sampleRate: 48_000, channelCount: 2, periodFrames: Self.period, bufferFrames: 960)
        let engine = OutputEngine(format: output)
        var encoder = SampleEncoder(format: format, seed: 5)
        var card = VirtualCard(
            format: output,
            crystal: Crystal(nominalRate: 48_000, partsPerMillion: -280, wander: 0.5, seed: 3))
        var now = LocalInstant(nanoseconds: 1_000_000_000)
        let clock = ClockCell(
            SharedClock(
                map: ClockMap(from: now, to: GroupInstant(nanoseconds: 0), skew: 20e-6),
                uncertainty: .zero, estimatedAt: now, epoch: 1, quality: .locked))
        let voice = engine.port.makeVoice(sampleRate: 48_000)!
        let w = 2 * Double.pi * hertz / 48_000
        let tone = (0..<60_000).flatMap { k -> [Float] in
            let x = Float(Self.amplitude * sin(w * Double(k)))
            return [x, x]
        }
        _ = tone.withUnsafeBufferPointer { voice.ring.write($0) }
        voice.start(
            Line(itemFrame: 0, instant: GroupInstant(nanoseconds: 300_000_000)), clock: clock)

        var samples = [Float](repeating: 0, count: 2 * Self.period)
        let size = format.bytesPerSample
        var bytes = [UInt8](repeating: 0, count: 2 * Self.period * size)
        var random: UInt64 = 9
        var last = VoiceReport()
        var cross = 0.0
        var square = 0.0
        var total = 0.0
        var ratios: [Double] = []
        for _ in 0..<1_000 where ratios.count < 40 {
            _ = card.advance(to: now)
            while card.writableFrames >= Self.period {
                if var reading = card.reading(at: now) {
                    random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                    reading.framesHeard += Double(random >> 40) / Double(1 << 24) - 0.5
                    engine.observe(reading)
                }
                samples.withUnsafeMutableBufferPointer { buffer in
                    engine.render(into: buffer.baseAddress!, now: now)
                    card.write(UnsafeBufferPointer(buffer), now: now)
                    bytes.withUnsafeMutableBytes { bytes in
                        encoder.encode(
                            buffer.baseAddress!, count: buffer.count, into: bytes.baseAddress!)
                    }
                }
                let report = voice.report
                if ratios.count == 5 { engine.port.setLatencyOffset(.microseconds(150)) }
                defer { last = report }
                guard report.state == .playing, last.state == .playing, last.itemFrame > 200 else {
                    continue
                }
                // From one report to the next the step grows evenly, and ends at the second's
                // ratio.
                let n = Double(Self.period)
                let step =
                    (2 * (report.itemFrame - last.itemFrame) / n)
                    - (1 + report.ratioPartsPerMillion * 1e-6)
                let bend = ((report.itemFrame - last.itemFrame) / n - step) / n
                ratios.append(report.ratioPartsPerMillion)
                for i in 0..<Self.period {
                    let k = Double(i)
                    let wanted = sin(w * (last.itemFrame + k * (step + k * bend)))
                    let heard = Self.value(bytes, at: 2 * i, as: format)
                    cross += wanted * heard
                    square += wanted * wanted
                    total += heard * heard
                }
            }
            now += .milliseconds(5)
        }
        #expect(ratios.count >= 40)
        let level = cross / square
        return Take(
            distortion: 10 * log10((total - level * cross) / (level * cross)),
            travel: ratios.max()! - ratios.min()!)
    }

    /// The number that the DAC gets, −1…1.
    private static func value(_ bytes: [UInt8], at sample: Int, as format: SampleFormat) -> Double {
        let size = format.bytesPerSample
        var word = 0
        for k in 0..<size { word |= Int(bytes[sample * size + k]) << (8 * k) }
        if format == .signed24 { word &= 0xFF_FFFF }
        let bits = format == .signed24 ? 24 : 8 * size
        let signed = (word << (64 - bits)) >> (64 - bits)
        return Double(signed) / Double(1 << (bits - 1))
    }

    /// Dither and rounding make half a step, root mean square: with 24 bits −140.5 dB against a
    /// tone of −1 dBFS; the resampler's −140 dB beside it give −137. −130 leaves room for the side
    /// lobes of the filter, and is 20 dB better than the goal.
    @Test(arguments: [997.0, 6_000, 15_000, 19_000])
    func `a tone at a 24-bit DAC stays pure while the servo moves`(hertz: Double) {
        let take = play(hertz: hertz, as: .signed24)
        #expect(take.travel > 5, "the servo did not move: \(take.travel) ppm")
        #expect(take.distortion < -130, "\(hertz) Hz: \(take.distortion) dB")
    }

    /// Half a step of 16 bits against −1 dBFS: 20·log(0.5 · 2⁻¹⁵ · √2 / 0.891) = −92.3 dB. Over 9
    /// 600 frames the power of the noise is known to ±5·√(2/9 600) = 7 %, 0.3 dB; less than
    /// expected would mean that there is no dither (−94 dB with rounding alone).
    @Test func `at 16 bits what is left is the dither's noise and nothing else`() {
        let take = play(hertz: 997, as: .signed16)
        #expect((take.distortion + 92.3).magnitude < 0.4, "\(take.distortion) dB")
    }
}
