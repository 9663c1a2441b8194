import Testing
import TuttiChance
import TuttiPlayout
import TuttiTiming

@testable import TuttiPlayback

/// Volumes over time, as values and in the sound.
@Suite struct AudioMixTests {
    private static let rate = 1_000

    private static func time(_ frame: Int64) -> MediaTime {
        MediaTime(frame: frame, sampleRate: rate)
    }

    private static func range(_ first: Int64, _ end: Int64) -> TimeRange {
        TimeRange(start: time(first), end: time(end))
    }

    private static func input(_ samples: [Float], _ track: Int = 0) -> MixedReader.Input {
        MixedReader.Input(reader: ArrayReader(samples), trackID: track)
    }

    /// What frames of constant 1 become.
    private func gains(
        _ mix: AudioMix, count: Int, track: Int = 0, size: () -> Int = { 4_096 }
    ) throws -> [Float] {
        let ones = Self.input(Array(repeating: 1, count: 2 * count), track)
        let frames = try MixedReader([ones], mix: mix, sampleRate: Self.rate).frames(size: size)
        return stride(from: 0, to: frames.count, by: 2).map { frames[$0] }
    }

    private static func noise(_ seed: UInt64, _ count: Int) -> [Float] {
        var random = SplitMix64(seed: seed)
        return (0..<2 * count).map { _ in Float(random.uniform()) - 0.5 }
    }

    // MARK: Closed form

    /// The example of AVFoundation's header: 1 until a ramp from 0.5 to 0.2, then 0.2.
    @Test func `a volume holds until a ramp, which jumps to its start and holds its end`() throws {
        var mix = AudioMix()
        try mix.setVolumeRamp(from: 0.5, to: 0.2, over: Self.range(400, 900))
        try mix.setVolume(1, at: .zero)
        let gains = try gains(mix, count: 1_200)
        #expect(gains[..<400].allSatisfy { $0 == 1 })
        for frame in 400..<900 {
            let expected = 0.5 - 0.3 * Double(frame - 400) / 500
            #expect(abs(Double(gains[frame]) - expected) < 1e-7)
        }
        #expect(gains[900...].allSatisfy { $0 == 0.2 })
    }

    @Test func `before the first volume it is 1, unless that is set at time zero`() throws {
        var mix = AudioMix()
        try mix.setVolume(0.25, at: Self.time(300))
        var gains = try gains(mix, count: 500)
        #expect(gains[..<300].allSatisfy { $0 == 1 } && gains[300...].allSatisfy { $0 == 0.25 })
        try mix.setVolume(0.5, at: .zero)
        try mix.setVolume(0.75, at: Self.time(300))
        gains = try self.gains(mix, count: 500)
        #expect(gains[..<300].allSatisfy { $0 == 0.5 } && gains[300...].allSatisfy { $0 == 0.75 })
    }

    @Test func `a frame's volume depends on its number only`() throws {
        var mix = AudioMix()
        var random = SplitMix64(seed: 5)
        for index in 0..<40 as Range<Int64> {
            let (from, to) = (Float(random.uniform()), Float(random.uniform()))
            let end = 100 * index + Int64.random(in: 1...100, using: &random)
            try mix.setVolumeRamp(from: from, to: to, over: Self.range(100 * index, end))
        }
        let whole = try gains(mix, count: 5_000)
        let pieces = try gains(mix, count: 5_000) { Int.random(in: 1...300, using: &random) }
        #expect(pieces == whole)
        let curve = GainCurve(mix, track: nil, sampleRate: Self.rate)
        #expect(whole.indices.allSatisfy { Float(curve.value(at: Int64($0))) == whole[$0] })
        let ones = Self.input(Array(repeating: 1, count: 10_000))
        let reader = MixedReader([ones], mix: mix, sampleRate: Self.rate)
        for _ in 0..<50 {
            let first = Int.random(in: 0..<4_900, using: &random)
            let part = try reader.frames(from: Int64(first), count: 100)
            let left = stride(from: 0, to: 200, by: 2).map { part[$0] }
            #expect(left == Array(whole[first..<first + 100]))
        }
        // No step within a ramp is larger than its slope.
        var slope = AudioMix()
        try slope.setVolumeRamp(from: 0, to: 1, over: Self.range(0, 4_500))
        let ramp = try gains(slope, count: 5_000)
        let steps = zip(ramp, ramp.dropFirst()).map { $1 - $0 }
        #expect(steps.allSatisfy { $0 >= 0 && $0 < 1.01 / 4_500 })
    }

    @Test func `tracks are added up, each with its volume and all with the item's`() throws {
        let (first, second) = (Self.noise(1, 600), Self.noise(2, 900))
        var mix = AudioMix()
        try mix.setVolumeRamp(from: 0, to: 1, over: Self.range(0, 500), track: 1)
        try mix.setVolume(0.5, at: .zero, track: 2)
        try mix.setVolume(2, at: Self.time(700))
        let reader = MixedReader(
            [Self.input(first, 1), Self.input(second, 2)], mix: mix, sampleRate: Self.rate)
        let sum = try reader.frames()
        #expect(sum.count == 1_800)
        for index in 0..<1_800 {
            let frame = index / 2
            let rising = min(1, Double(frame) / 500)
            let one = frame < 600 ? Double(first[index]) * rising : 0
            let whole = frame < 700 ? 1.0 : 2
            let expected = (one + Double(second[index]) * 0.5) * whole
            #expect(abs(Double(sum[index]) - expected) < 1e-6)
        }
    }

    @Test func `a sum above full scale is not clipped`() throws {
        let loud = [Float](repeating: 0.9, count: 200)
        let reader = MixedReader([Self.input(loud), Self.input(loud, 1)], sampleRate: Self.rate)
        #expect(try reader.frames().allSatisfy { $0 == 1.8 })
    }

    // MARK: Nothing to do

    @Test func `one track as loud as it is passes through as it is, at no cost`() throws {
        let samples = Self.noise(3, 9_000) + [.infinity, -0.0, .leastNonzeroMagnitude, .nan]
        let source = ArrayReader(samples)
        var mix = AudioMix()
        try mix.setVolume(0, at: Self.time(1 << 30))
        try mix.setVolume(0, at: .zero, track: 7)
        let reader = MixedReader(
            [MixedReader.Input(reader: source, trackID: 0)], mix: mix, sampleRate: Self.rate)
        let result = try reader.frames(size: { 8_000 })
        let isSame = result.map(\.bitPattern) == samples.map(\.bitPattern)
        #expect(isSame)
        // The whole buffer is handed down: two reads, and one that finds the end.
        #expect(source.reads == 3)
    }

    @Test func `a volume that begins within a long read is not missed`() throws {
        var mix = AudioMix()
        try mix.setVolume(0.5, at: Self.time(6_000))
        let gains = try gains(mix, count: 8_000) { 8_000 }
        #expect(gains[..<6_000].allSatisfy { $0 == 1 } && gains[6_000...].allSatisfy { $0 == 0.5 })
    }

    @Test func `without tracks there is nothing to read`() throws {
        #expect(try MixedReader([], sampleRate: Self.rate).frames().isEmpty)
    }

    // MARK: Another mix

    @Test(arguments: [1, 2])
    func `another mix takes over within milliseconds and without a step`(tracks: Int) throws {
        let sampleRate = 48_000
        let ones = [Float](repeating: 1, count: 40_000)
        let inputs = (0..<tracks).map { Self.input(ones, $0) }
        let reader = MixedReader(inputs, sampleRate: sampleRate)
        var result = try reader.frames(count: 1_000)
        var quiet = AudioMix()
        try quiet.setVolume(0.25, at: .zero)
        reader.setMix(quiet)
        result += try reader.frames(from: 1_000, count: 100)
        // In the middle of the change.
        reader.setMix(AudioMix())
        result += try reader.frames(from: 1_100, count: 1_000)
        reader.setMix(quiet)
        result += try reader.frames(from: 2_100, count: 1_000)
        let gains = stride(from: 0, to: result.count, by: 2).map { result[$0] / Float(tracks) }
        let change = Int(MixedReader.changeSeconds * Double(sampleRate))
        #expect(gains[..<1_000].allSatisfy { $0 == 1 })
        #expect(gains[1_099] < 0.8 && gains[1_099] > 0.6)
        #expect(gains[(1_100 + change)..<2_100].allSatisfy { $0 == 1 })
        #expect(gains[(2_100 + change)...].allSatisfy { $0 == 0.25 })
        let steepest = zip(gains, gains.dropFirst()).map { abs($1 - $0) }.max() ?? 1
        #expect(steepest < 1.001 * 0.75 / Float(change))
    }

    @Test func `where nothing was read, or elsewhere, another mix is in force at once`() throws {
        let ones = Self.input(Array(repeating: 1, count: 4_000))
        var quiet = AudioMix()
        try quiet.setVolume(0.25, at: .zero)
        let reader = MixedReader([ones], sampleRate: Self.rate)
        reader.setMix(quiet)
        #expect(try reader.frames(count: 10).allSatisfy { $0 == 0.25 })
        reader.setMix(AudioMix())
        #expect(try reader.frames(from: 10, count: 2).allSatisfy { $0 < 1 })
        #expect(try reader.frames(from: 13, count: 1).allSatisfy { $0 == 1 })
        #expect(try reader.frames(from: 500, count: 10).allSatisfy { $0 == 1 })
        #expect(try reader.frames(from: 10, count: 10).allSatisfy { $0 == 1 })
    }

    @Test func `the same mix again changes nothing`() throws {
        let source = ArrayReader(Self.noise(4, 100))
        let reader = MixedReader(
            [MixedReader.Input(reader: source, trackID: 0)], sampleRate: Self.rate)
        _ = try reader.frames(count: 10)
        reader.setMix(AudioMix())
        #expect(try reader.frames(from: 10, count: 20) == Array(source.samples[20..<60]))
    }

    // MARK: What is refused

    @Test func `volumes that would be in force at once are refused`() throws {
        var mix = AudioMix()
        try mix.setVolumeRamp(from: 0, to: 1, over: Self.range(100, 200))
        try mix.setVolumeRamp(from: 1, to: 0, over: Self.range(300, 400))
        let before = mix
        func isRefused(_ first: Int64, _ end: Int64) -> Bool {
            var copy = mix
            let edit: () throws -> Void = {
                if first == end {
                    try copy.setVolume(0.5, at: Self.time(first))
                } else {
                    try copy.setVolumeRamp(from: 0, to: 0.5, over: Self.range(first, end))
                }
            }
            do { try edit() } catch {
                return (error as? PlaybackError)?.code == .volumesOverlap && copy == before
            }
            return false
        }
        // All ranges on a grid that has every kind of neighbour.
        for first in stride(from: 0, through: 500, by: 50) as StrideThrough<Int64> {
            for end in stride(from: first, through: 500, by: 50) {
                let overlaps = [(100, 200), (300, 400)].contains { $0.0 < end && first < $0.1 }
                #expect(isRefused(first, end) == overlaps, "\(first) to \(end)")
            }
        }
        // Another track is another row, and so is the whole item.
        try mix.setVolumeRamp(from: 1, to: 0, over: Self.range(150, 350), track: 3)
        // A ramp may begin where a volume was set, whichever is said first.
        var other = AudioMix()
        try other.setVolume(0, at: Self.time(100))
        try other.setVolumeRamp(from: 0.5, to: 1, over: Self.range(100, 200))
        var same = AudioMix()
        try same.setVolumeRamp(from: 0.5, to: 1, over: Self.range(100, 200))
        try same.setVolume(0, at: Self.time(100))
        #expect(same == other)
        #expect(try gains(other, count: 300)[100] == 0.5)
    }

    @Test func `volumes, times and ranges that are none are refused`() {
        for volume in [-0.1, 16.1, .nan, .infinity, -.infinity] as [Float] {
            var mix = AudioMix()
            for edit in [
                { try mix.setVolume(volume, at: .zero) },
                { try mix.setVolumeRamp(from: volume, to: 1, over: Self.range(0, 1)) },
                { try mix.setVolumeRamp(from: 1, to: volume, over: Self.range(0, 1)) },
            ] as [() throws -> Void] {
                let error = #expect(throws: PlaybackError.self) { try edit() }
                #expect(error?.code == .volumeNotSupported)
            }
            #expect(mix == AudioMix())
        }
        var mix = AudioMix()
        for time in [MediaTime.invalid, .indefinite, .positiveInfinity, Self.time(-1)] {
            #expect(throws: PlaybackError.self) { try mix.setVolume(1, at: time) }
        }
        let far = MediaTime(value: .max, timescale: 1)
        for range in [
            TimeRange.invalid, .zero, Self.range(-1, 5),
            TimeRange(start: .zero, duration: .positiveInfinity),
            TimeRange(start: far, duration: far),
        ] {
            let error = #expect(throws: PlaybackError.self) {
                try mix.setVolumeRamp(from: 0, to: 1, over: range)
            }
            #expect(error?.code == .rangeNotValid)
        }
        #expect(mix == AudioMix())
    }

    @Test func `times as far away as there are do not overflow`() throws {
        var mix = AudioMix()
        let far = MediaTime(value: .max, timescale: 1)
        try mix.setVolume(0.5, at: far)
        let end = MediaTime(value: 1 << 60, timescale: 1)
        try mix.setVolumeRamp(from: 0, to: 1, over: TimeRange(start: Self.time(10), end: end))
        let gains = try gains(mix, count: 50)
        #expect(gains[9] == 1 && gains[10...].allSatisfy { $0 < 1e-6 })
    }
}
