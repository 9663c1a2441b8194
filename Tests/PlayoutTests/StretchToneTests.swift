import Testing
import TuttiChance

@testable import TuttiPlayout

import func Glibc.log10
import func Glibc.sin

/// What the stretched item sounds like: pitch, purity, level, tempo, image.
@Suite struct StretchToneTests {
    static let rates = [0.5, 0.75, 1.25, 1.5, 2, 3]
    static let sampleRate = 48_000

    /// The left channel of a tone, from 0.3 s on, for `seconds` of the voice.
    private func tone(
        _ algorithm: TimePitchAlgorithm, _ rate: Double, hertz: Double, seconds: Double = 1.6
    ) throws -> [Float] {
        let count = Int(seconds * Double(Self.sampleRate))
        let item = MemoryItem.tone(hertz: hertz, frames: Int((Double(count) + 40_000) * rate))
        let transform = Stretch.make(algorithm, rate, item)
        return Stretch.channel(try Stretch.frames(of: transform, from: 14_400, count: count))
    }

    /// A restart is made up for within a second: by half a turn at most. In the time domain each
    /// joint is off by half a frame at most, besides.
    @Test(arguments: Stretch.algorithms, rates)
    func `the pitch stays`(algorithm: TimePitchAlgorithm, rate: Double) throws {
        let hertz = 440.0
        let grid = GrainGrid(sampleRate: Self.sampleRate, speed: rate, frameCount: nil)
        let perSecond = 0.5 * max(1, rate / 2)
        let joints = algorithm == .timeDomain ? 0.5 / Double(grid.hop) * hertz : 0
        let samples = try tone(algorithm, rate, hertz: hertz)
        let found = Stretch.frequency(samples[...]) * Double(Self.sampleRate)
        #expect((found - hertz).magnitude < perSecond + joints + 0.02, "\(found) Hz")
    }

    /// In pieces of 25 ms; the worst are where a chain is handed over.
    @Test(arguments: [(TimePitchAlgorithm.timeDomain, -22.0), (.spectral, -43)], rates)
    func `a tone has little else`(
        algorithm: (kind: TimePitchAlgorithm, limit: Double), rate: Double
    ) throws {
        let hertz = 1_234.5
        let samples = try tone(algorithm.kind, rate, hertz: hertz)
        let w = 2 * Double.pi * hertz / Double(Self.sampleRate)
        var worst = -200.0
        for start in stride(from: 0, to: samples.count - 1_200, by: 4_800) {
            worst = max(worst, ToneFit(samples[start..<start + 1_200], frequency: w).thdn)
        }
        #expect(worst < algorithm.limit, "\(worst) dB")
    }

    @Test(arguments: [3.0, 5.5, 0.25, 12, 32], [true, false])
    func `varispeed moves the pitch exactly`(rate: Double, isBackwards: Bool) throws {
        let hertz = 3_000 / max(1, rate)
        let item = MemoryItem.tone(hertz: hertz, frames: Int(8_000 * rate))
        let transform = Stretch.make(.varispeed, isBackwards ? -rate : rate, item)
        let samples = Stretch.channel(
            try Stretch.frames(of: transform, from: 2_000, count: 4_000))
        let w = 2 * Double.pi * hertz * rate / Double(Self.sampleRate)
        let fit = ToneFit(samples[...], frequency: w)
        #expect((fit.frequency / w - 1).magnitude < 1e-7)
        #expect((fit.amplitude / 0.5 - 1).magnitude < 0.001)
        // Beyond 8, the low-pass before has side lobes at −92 dB.
        #expect(fit.thdn < (rate > 8 ? -90 : -125), "\(fit.thdn) dB")
    }

    @Test(arguments: [3.0, 7, 12, 32])
    func `varispeed keeps out what would fold back`(rate: Double) throws {
        for part in [1.05, 1.5, 2.9] where part < 0.98 * rate {
            let hertz = part * Double(Self.sampleRate) / 2 / rate
            let item = MemoryItem.tone(hertz: hertz, frames: Int(5_000 * rate))
            let samples = Stretch.channel(
                try Stretch.frames(
                    of: Stretch.make(.varispeed, rate, item), from: 1_000, count: 3_000))
            #expect(Stretch.level(samples[...]) < -85)
        }
    }

    @Test(arguments: Stretch.algorithms, rates)
    func `a tone keeps its level, and does not sway across anchors`(
        algorithm: TimePitchAlgorithm, rate: Double
    ) throws {
        let samples = try tone(algorithm, rate, hertz: 440)
        // Eleven cycles.
        let levels = stride(from: 0, to: samples.count - 1_200, by: 1_200).map {
            Stretch.level(samples[$0..<$0 + 1_200])
        }
        let wanted = 20 * log10(0.5 / 2.0.squareRoot())
        #expect(levels.allSatisfy { ($0 - wanted).magnitude < 0.25 }, "\(levels.min()!) dB")
    }

    /// Of noise, phases that are turned differently no longer add up; what a phase vocoder loses by
    /// that was measured as 2.4 dB at 2.
    @Test(arguments: [(TimePitchAlgorithm.timeDomain, 0.3), (.spectral, 3.2)], [0.5, 0.8, 1.5, 2])
    func `noise keeps its level`(
        algorithm: (kind: TimePitchAlgorithm, tolerance: Double), rate: Double
    ) throws {
        var random = SplitMix64(seed: 3)
        let item = MemoryItem.made(Int(40_000 * rate)) { _ in
            (random.uniform(-0.5, 0.5), random.uniform(-0.5, 0.5))
        }
        let frames = try Stretch.frames(
            of: Stretch.make(algorithm.kind, rate, item, sampleRate: 16_000), from: 4_000,
            count: 30_000)
        let change = Stretch.level(frames[...]) - Stretch.level(item.samples[...])
        #expect(change.magnitude < algorithm.tolerance, "\(change) dB")
    }

    /// A grain's middle lies on the map but for the reach of the search; its edges by the hop times
    /// what the rates differ. An attack of the spectrum is placed to within a step or two.
    @Test(arguments: Stretch.algorithms, [0.5, 0.8, 1.25, 1.5, 2, 3])
    func `clicks land where the map says`(algorithm: TimePitchAlgorithm, rate: Double) throws {
        let distance = 12_000
        let item = MemoryItem.made(14 * distance) { k in
            k % distance == 5_000 ? (0.9, 0.9) : (0, 0)
        }
        let samples = Stretch.channel(try Stretch.frames(of: Stretch.make(algorithm, rate, item)))
        let grid = GrainGrid(sampleRate: Self.sampleRate, speed: rate, frameCount: nil)
        let tolerance =
            algorithm == .spectral
            ? 256.0
            : Double(grid.hop) * (1 - 1 / rate).magnitude + Double(grid.reach) / rate + 1
        var heard: Set<Int> = []
        for i in samples.indices where samples[i] > 0.12 {
            let click = Int(Double(i) * rate) / distance
            let wanted = Double(click * distance + 5_000) / rate
            #expect((Double(i) - wanted).magnitude <= tolerance, "\(i), not \(wanted)")
            heard.insert(click)
        }
        // Faster than the reach makes up for, grains leave something out.
        if algorithm == .spectral || rate <= 1.25 { #expect(heard.count == 14) }
        #expect(heard.count >= 5)
    }

    @Test(arguments: Stretch.algorithms, [0.6, 1.7])
    func `the image stands still`(algorithm: TimePitchAlgorithm, rate: Double) throws {
        let source = MemoryItem.medley(frames: 20_000).samples
        for gain in [Float(1), -0.5, 0] {
            let item = MemoryItem(
                source.indices.map { $0.isMultiple(of: 2) ? source[$0] : gain * source[$0 - 1] })
            let frames = try Stretch.frames(
                of: Stretch.make(algorithm, rate, item, sampleRate: 8_000))
            // Powers of two scale without rounding.
            #expect(
                zip(Stretch.channel(frames), Stretch.channel(frames, 1)).allSatisfy {
                    $1 == gain * $0
                })
            #expect(Stretch.level(Stretch.channel(frames)[...]) > -30)
        }
    }

    @Test(arguments: TimePitchAlgorithm.allCases, [0.4, 2.5, -1.5])
    func `silence stays silence`(algorithm: TimePitchAlgorithm, rate: Double) throws {
        let item = MemoryItem([Float](repeating: 0, count: 40_000))
        let frames = try Stretch.frames(
            of: Stretch.make(algorithm, rate, item, sampleRate: 8_000))
        #expect(frames.allSatisfy { $0 == 0 } && frames.count > 10_000)
    }

    /// Square waves at full scale, opposite channels, and samples that are no numbers at all.
    @Test(arguments: TimePitchAlgorithm.allCases, [0.4, 2.5, -1.5])
    func `whatever is in the item, numbers come out`(
        algorithm: TimePitchAlgorithm, rate: Double
    ) throws {
        var random = SplitMix64(seed: 11)
        var item = MemoryItem.made(20_000) { k in
            let x = (k / 37).isMultiple(of: 2) ? 1.0 : -1
            return (x, -x)
        }
        let loud = try Stretch.frames(of: Stretch.make(algorithm, rate, item, sampleRate: 8_000))
        #expect(loud.allSatisfy { $0.magnitude < 4 })
        item = MemoryItem(
            item.samples.map { sample in
                random.chance(0.01)
                    ? [Float.nan, .infinity, -.infinity, .greatestFiniteMagnitude, 0x1p-149]
                        .randomElement(using: &random)! : sample
            })
        let damaged = try Stretch.frames(of: Stretch.make(algorithm, rate, item, sampleRate: 8_000))
        let peak = damaged.reduce(0) { max($0, $1.isNaN ? .infinity : $1.magnitude) }
        #expect(peak < 4)
        #expect(damaged.count == loud.count)
    }

    /// What `Stretch.md` says that anchors cost: in the time domain joints while a chain is handed
    /// over, for partials a shift of half a turn in a second at most.
    @Test(arguments: Stretch.algorithms)
    func `anchors cost a few joints, or half a turn in a second`(
        algorithm: TimePitchAlgorithm
    ) throws {
        let with = try anchoredTone(algorithm, anchorSeconds: 1)
        let without = try anchoredTone(algorithm, anchorSeconds: 1_000)
        let isSpectral = algorithm == .spectral
        #expect((without.hertz - 440).magnitude < (isSpectral ? 0.003 : 0.2))
        #expect((with.hertz - 440).magnitude < (isSpectral ? 0.5 : 0.7))
        #expect(without.worst < (isSpectral ? -90 : -34), "\(without.worst) dB")
        #expect(with.worst < (isSpectral ? -45 : -24), "\(with.worst) dB")
        #expect(with.worst > without.worst)
    }

    /// 440 Hz at 1.5: its pitch, and the worst of pieces of 25 ms.
    private func anchoredTone(
        _ algorithm: TimePitchAlgorithm, anchorSeconds: Double
    ) throws -> (hertz: Double, worst: Double) {
        let item = MemoryItem.tone(hertz: 440, frames: 200_000)
        let transform = anchored(algorithm, item, anchorSeconds: anchorSeconds)
        let samples = Stretch.channel(
            try Stretch.frames(of: transform, from: 40_000, count: 60_000))
        let w = 2 * Double.pi * 440 / Double(Self.sampleRate)
        let pieces = stride(from: 0, to: samples.count - 1_200, by: 1_800).map {
            ToneFit(samples[$0..<$0 + 1_200], frequency: w).thdn
        }
        let hertz = Stretch.frequency(samples[...]) * Double(Self.sampleRate)
        return (hertz, pieces.max()!)
    }

    private func anchored(
        _ algorithm: TimePitchAlgorithm, _ item: MemoryItem, anchorSeconds: Double
    ) -> any FrameTransform {
        func frames(window: Int) -> PlayedFrames {
            PlayedFrames(
                reader: item, frameCount: item.frameCount, isReversed: false, window: window,
                sampleRate: Self.sampleRate)
        }
        let map = FrameMap(step: 1.5)
        if algorithm == .spectral {
            let grid = SpectralGrid(
                sampleRate: Self.sampleRate, speed: 1.5, anchorSeconds: anchorSeconds)
            let frames = frames(window: grid.window)
            return BlockTransform(
                map: map, frames: frames, blocks: SpectralBlocks(frames: frames, grid: grid))
        }
        let grid = GrainGrid(
            sampleRate: Self.sampleRate, speed: 1.5, frameCount: nil,
            anchorSeconds: anchorSeconds)
        let frames = frames(window: grid.window)
        return BlockTransform(
            map: map, frames: frames, blocks: SimilarityBlocks(frames: frames, grid: grid))
    }
}
