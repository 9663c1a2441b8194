import Testing
import TuttiTiming

@testable import TuttiPlayout

import func Glibc.log10
import func Glibc.sin

/// The resampler by itself: what it adds to a tone, what it lets through and what it keeps out.
///
/// Every position is known, so the wanted output is the tone at that position, and whatever differs
/// is distortion and noise. Float samples carry noise of about −150 dB against a loud tone and the
/// filter bank's side lobes −140 dB; the goal, −130 dB, is 10 dB above what adds up.
@Suite struct ResamplerTests {
    static let floor = -130.0
    /// −1 dBFS.
    static let amplitude = 0.891_250_938

    /// A tone in frames of its own rate, through the resampler at positions that `ratio` decides.
    private struct Run {
        var output: [Double] = []
        /// The tone itself where the output was read; its amplitude is 1.
        var wanted: [Double] = []

        /// - Parameter ratio: input frames per output frame at the beginning of period k.
        init(
            hertz: Double, from input: Int, to card: Int, frames: Int, ratio: (Int) -> Double
        ) {
            let w = 2 * Double.pi * hertz / Double(input)
            let period = 240
            let length = Int(Double(frames) * 1.001 * Double(input) / Double(card)) + 1_200
            let recording = (0..<length).map { k in
                Float(ResamplerTests.amplitude * sin(w * Double(k)))
            }
            let resampler = OfflineResampler(
                left: recording, right: recording.map { -$0 }, inputRate: Double(input),
                outputRate: Double(card), periodFrames: period)
            // Behind the silence that lies before the recording.
            resampler.seek(to: 400.3)
            for k in 0..<frames / period {
                let position = resampler.position
                let step = ratio(k)
                let bend = (ratio(k + 1) - step) / Double(2 * period)
                guard resampler.read(step: step, bend: bend) else { break }
                let left = resampler.period(channel: 0)
                let right = resampler.period(channel: 1)
                for i in 0..<period {
                    let n = Double(i)
                    wanted.append(sin(w * (position + n * (step + n * bend))))
                    output.append(Double(left[i]))
                    if left[i] != -right[i] { output[output.count - 1] = .nan }
                }
            }
        }

        /// Of the tone in the output, against the input; decibels.
        var gain: Double { 20 * log10(amplitude / ResamplerTests.amplitude) }

        /// Of whatever else there is, against the tone; decibels.
        var distortion: Double {
            let a = amplitude
            let rest = zip(output, wanted).reduce(0) { $0 + ($1.0 - a * $1.1) * ($1.0 - a * $1.1) }
            return 10 * log10(rest / (a * a * power))
        }

        /// Of all there is, against a tone that passes unchanged; decibels.
        var level: Double {
            let total = output.reduce(0) { $0 + $1 * $1 }
            let full = ResamplerTests.amplitude * ResamplerTests.amplitude / 2
            return 10 * log10(total / (full * Double(output.count)))
        }

        private var power: Double { wanted.reduce(0) { $0 + $1 * $1 } }
        private var amplitude: Double { zip(output, wanted).reduce(0) { $0 + $1.0 * $1.1 } / power }
    }

    @Test(arguments: [997.0, 6_000, 15_000, 19_000], [-300.0, 300])
    func `a tone stays pure while the ratio is off by 300 ppm`(
        hertz: Double, partsPerMillion: Double
    ) {
        // 300 ppm pass each phase between two frames once in 3 333 frames.
        let run = Run(hertz: hertz, from: 48_000, to: 48_000, frames: 4_080) { _ in
            1 + partsPerMillion * 1e-6
        }
        #expect(run.output.count == 4_080)
        #expect(run.distortion < Self.floor, "\(hertz) Hz: \(run.distortion) dB")
        #expect(run.gain.magnitude < 0.001)
    }

    @Test(arguments: [997.0, 6_000, 15_000, 19_000])
    func `a tone stays pure while the ratio wanders`(hertz: Double) {
        // ±5 ppm through 300 ppm and through 0, twenty times as fast as a servo does it.
        for mean in [300e-6, 0] {
            let run = Run(hertz: hertz, from: 48_000, to: 48_000, frames: 3_360) { k in
                1 + mean + 5e-6 * sin(Double(k))
            }
            #expect(run.distortion < Self.floor, "\(hertz) Hz: \(run.distortion) dB")
        }
    }

    /// Two frames that lie between the same rows of the filter are computed together. Steps are
    /// sums of powers of two, so that positions are exact however they are reached.
    @Test(arguments: [1 + 0x1p-12, 1 - 0x1p-12, 1 + 0x1p-9, 1 + 0x1p-6, 0.5, 2])
    func `a frame is the same to the last bit, computed alone or beside others`(step: Double) {
        let noise = (0..<2_000).map { Float(sin(Double($0 * $0))) }
        func render(periods: Int, of frames: Int) -> [Float] {
            let resampler = OfflineResampler(
                left: noise, right: noise.reversed(), inputRate: 48_000 * step,
                outputRate: 48_000, periodFrames: frames)
            resampler.seek(to: 100.25)
            return (0..<periods).flatMap { _ in
                #expect(resampler.read(step: step))
                return zip(resampler.period(channel: 0), resampler.period(channel: 1))
                    .flatMap { [$0, $1] }
            }
        }
        let alone = render(periods: 693, of: 1)
        #expect(alone.contains { $0 != 0 })
        for frames in [7, 11, 231] {
            let beside = render(periods: 693 / frames, of: frames)
            #expect(zip(beside, alone).allSatisfy { $0.bitPattern == $1.bitPattern })
            #expect(beside.count == alone.count)
        }
    }

    /// The same with a fade, and with a step that grows, on the path of one period.
    @Test(arguments: [1.000_3, 0.999_92, 1, 2.000_1])
    func `each frame gets its own gain, computed alone or beside others`(step: Double) {
        let count = 231
        let bank = FilterBank.shared(inputRate: 48_000 * step, outputRate: 48_000)
        let noise = (0..<2_000).map { Float(sin(Double($0 * $0))) }
        let gains = (0..<count).map { Float($0) / Float(count) }
        let path = FramePath(base: 0, offset: 100.37, step: step, bend: 1e-8)
        func render(_ pieces: [Range<Int>]) -> [UInt32] {
            var block = noise + noise.reversed() + gains
            block += [Float](repeating: 0, count: 2 * count)
            return block.withUnsafeMutableBufferPointer { block in
                let left = block.baseAddress!
                let right = left + noise.count
                let fade = right + noise.count
                let output = fade + count
                let buffers = RenderBuffers(
                    inputLeft: left, inputRight: right, sumLeft: output,
                    sumRight: output + count, gains: fade, ghostGains: fade, fade: fade,
                    fadeFrames: 0, cross: fade, crossFrames: 0)
                for piece in pieces {
                    Resampler.add(
                        outputs: piece, path: path, origin: 0, rows: UnsafePointer(bank.rows),
                        taps: bank.taps, buffers: buffers, gains: fade)
                }
                return block.suffix(2 * count).map(\.bitPattern)
            }
        }
        let alone = render((0..<count).map { $0..<$0 + 1 })
        #expect(Set(alone).count > count)
        #expect(render([0..<count]) == alone)
        #expect(render([0..<100, 100..<count]) == alone)
    }

    static let conversions = [
        (44_100, 48_000), (48_000, 44_100), (44_100, 96_000), (96_000, 44_100), (48_000, 96_000),
        (96_000, 48_000),
    ]

    /// Nine tenths of the smaller band: 19.8 kHz at 44.1.
    @Test(arguments: conversions)
    func `other rates keep the band flat and tones pure up to nine tenths of it`(
        input: Int, card: Int
    ) {
        let band = Double(min(input, card)) / 2
        for part in [0.05, 0.45, 0.7, 0.9] {
            let run = Run(hertz: part * band, from: input, to: card, frames: 960) { k in
                Double(input) / Double(card) * (1 + 300e-6)
            }
            let name = "\(input) to \(card), \(part) of the band"
            #expect(run.output.count == 960)
            #expect(run.distortion < Self.floor, "\(name): \(run.distortion) dB")
            // The edge of the band begins at 0.89.
            #expect(run.gain.magnitude < (part < 0.85 ? 0.001 : 0.02), "\(name): \(run.gain) dB")
        }
    }

    /// What an item holds above the card's band would fold back into it: from 1.03 of the band
    /// on (22.7 kHz for a card at 44.1 kHz, which would be heard at 21.4) nothing comes through.
    @Test(arguments: conversions.filter { $0.0 > $0.1 })
    func `what lies above the card's band is kept out`(input: Int, card: Int) {
        let band = Double(card) / 2
        for part in [1.035, 1.1, 1.3, 1.8] where part * band < 0.98 * Double(input) / 2 {
            let run = Run(hertz: part * band, from: input, to: card, frames: 960) { k in
                Double(input) / Double(card)
            }
            #expect(run.level < Self.floor, "\(input) to \(card), \(part): \(run.level) dB")
        }
    }

    @Test func `the images of the band's top lie where the tone is, for equal rates`() {
        // 21.5 kHz is near the edge of the shorter filter: flat within 0.6 dB, and its image at
        // 26.5 kHz still below the goal.
        let run = Run(hertz: 21_500, from: 48_000, to: 48_000, frames: 4_080) { _ in 1 + 300e-6 }
        #expect(run.distortion < Self.floor, "\(run.distortion) dB")
        #expect(run.gain < 0 && run.gain > -0.6, "\(run.gain) dB")
        let high = Run(hertz: 20_000, from: 48_000, to: 48_000, frames: 960) { _ in 1 + 300e-6 }
        #expect(high.gain.magnitude < 0.005)
        let disc = Run(hertz: 19_000, from: 44_100, to: 44_100, frames: 960) { _ in 1 + 300e-6 }
        #expect(disc.gain.magnitude < 0.03 && disc.distortion < Self.floor)
    }

    @Test func `positions have no end that the recording does not have`() {
        let resampler = OfflineResampler(
            left: [Float](repeating: 1, count: 1_000), right: [Float](repeating: 1, count: 1_000),
            inputRate: 48_000, outputRate: 48_000, periodFrames: 240)
        var periods = 0
        while resampler.read(step: 1.01) { periods += 1 }
        #expect(periods == 4)
        #expect((resampler.position - 4 * 240 * 1.01).magnitude < 1e-9)
        #expect(!resampler.read(step: -1) && !resampler.read(step: 0))
    }

    /// Sums in another order, rounded at other places. Of the eight partial sums of a result, a
    /// fifth of the noise each, every step of 64 to 128 rounds by up to half a unit in the last
    /// place of what it adds up to: 0.7 units rms between two orders, and 8 are eleven deviations.
    @Test(arguments: conversions)
    func `any processor gives the same sound`(input: Int, card: Int) {
        var state: UInt64 = 1
        let noise = (0..<4_000).map { _ in
            // A linear congruential generator's upper bits (D. Knuth, MMIX).
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Float(Int32(truncatingIfNeeded: state >> 32)) / 2_147_483_648
        }
        let resamplers = [false, true].map {
            OfflineResampler(
                left: noise, right: noise.reversed(), inputRate: Double(input),
                outputRate: Double(card), isPortable: $0)
        }
        let ratio = 1.0003 * Double(input) / Double(card)
        while resamplers.allSatisfy({ $0.read(step: ratio) }) {
            for channel in 0...1 {
                for (a, b) in zip(
                    resamplers[0].period(channel: channel), resamplers[1].period(channel: channel))
                {
                    #expect((a - b).magnitude < 8 * Float.ulpOfOne, "\(a) and \(b)")
                }
            }
        }
        #expect(resamplers[0].position > 1_000)
    }

    /// The same through a whole output: ring, line, pieces of a period, mix.
    @Test(arguments: [(48_000, 15_000.0, 1 - 300e-6), (44_100, 15_000, 1), (192_000, 6_000, 1)])
    func `an output plays a tone at its pitch, as pure as the resampler`(
        sampleRate: Int, hertz: Double, rate: Double
    ) {
        // The card's own clock and a line that runs off: the ratio is exactly constant.
        let rig = Rig()
        let w = 2 * Double.pi * hertz / Double(sampleRate)
        let voice = rig.voice(sampleRate: sampleRate) { k in
            let x = Float(0.5 * sin(w * Double(k)))
            return (x, x)
        }
        let line = Line(itemFrame: 0, instant: rig.localAsGroup + .milliseconds(150), rate: rate)
        #expect(voice.start(line, clock: nil))
        rig.run(.milliseconds(300))
        let expected = 2 * Double.pi * hertz * rate / 48_000
        let fit = ToneFit(rig.channel().suffix(4_000), frequency: expected)
        #expect((fit.frequency / expected - 1).magnitude < 1e-6)
        #expect(fit.thdn < Self.floor, "\(sampleRate) → 48 000, \(hertz) Hz: \(fit.thdn) dB")
        #expect((fit.amplitude / 0.5 - 1).magnitude < 0.001)
    }
}
