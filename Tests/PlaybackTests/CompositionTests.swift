import Synchronization
import Testing
import TuttiChance
import TuttiPlayout
import TuttiTiming

@testable import TuttiPlayback

/// Compositions as values, and what edits make of them.
@Suite struct CompositionTests: ComposedFrames {
    // MARK: Against a model

    /// The same edits made with arrays of samples.
    private struct Model {
        var tracks: [[Float]] = [[]]

        mutating func insert(_ samples: [Float], at frame: Int, track: Int) {
            guard !samples.isEmpty else { return }
            let missing = 2 * frame - tracks[track].count
            if missing > 0 { tracks[track] += Array(repeating: 0, count: missing) }
            tracks[track].insert(contentsOf: samples, at: 2 * frame)
        }

        mutating func remove(_ frames: Range<Int>, track: Int) {
            let all = tracks[track].indices
            let part = (2 * frames.lowerBound..<2 * frames.upperBound).clamped(to: all)
            tracks[track].removeSubrange(part)
        }

        var sum: [Float] {
            var sum = [Float](repeating: 0, count: tracks.map(\.count).max() ?? 0)
            for track in tracks {
                for index in track.indices { sum[index] += track[index] }
            }
            return sum
        }
    }

    private func edited(_ random: inout SplitMix64, _ library: NoiseLibrary) throws -> (
        Composition, Model
    ) {
        let lengths = [400, 1_000, 50]
        let assets = lengths.enumerated().map { library.asset("asset\($0)", frames: Int64($1)) }
        var (composition, model) = (try Composition(sampleRate: Self.rate), Model())
        for _ in 0..<Int.random(in: 0...2, using: &random) {
            _ = try composition.addTrack()
            model.tracks.append([])
        }
        for _ in 0..<30 {
            let track = Int.random(in: composition.tracks, using: &random)
            let length = Int.random(in: 0...300, using: &random)
            let place = Int.random(in: 0...model.tracks[track].count / 2 + 60, using: &random)
            let everywhere = random.chance(0.3)
            let tracks = everywhere ? composition.tracks : track..<track + 1
            switch Int.random(in: 0..<5, using: &random) {
            case 0:
                try composition.remove(
                    Self.range(place, length), track: everywhere ? nil : track)
                for track in tracks { model.remove(place..<place + length, track: track) }
            case 1:
                try composition.insertEmpty(
                    Self.range(place, length), track: everywhere ? nil : track)
                let silence = [Float](repeating: 0, count: 2 * length)
                for track in tracks { model.insert(silence, at: place, track: track) }
            default:
                // Some reach beyond the end of their asset.
                let which = Int.random(in: 0..<3, using: &random)
                let first = Int.random(in: 0...lengths[which], using: &random)
                try composition.insert(
                    Self.range(first, length), of: assets[which], at: Self.time(place),
                    track: track)
                let end = min(lengths[which], first + length)
                var samples = NoiseLibrary.noise("asset\(which)", first..<max(first, end))
                samples += Array(repeating: 0, count: 2 * length - samples.count)
                model.insert(samples, at: place, track: track)
            }
        }
        return (composition, model)
    }

    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func `edits at random are what the same edits of arrays are`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let library = NoiseLibrary()
        let (composition, model) = try edited(&random, library)
        #expect(library.state.withLock { $0.opened.isEmpty })
        #expect(composition.duration == Self.time(model.sum.count / 2))
        let source = try ComposedSource(composition)
        #expect(source.format.frameCount == Int64(model.sum.count / 2))
        let reader = SourceReader(source)
        let whole = try reader.frames { Int.random(in: 1...700, using: &random) }
        let isSame = whole == model.sum
        #expect(isSame, "\(whole.count) samples and \(model.sum.count)")
        // Read again from places at random, as after seeks.
        for _ in 0..<20 where !whole.isEmpty {
            let first = Int.random(in: 0..<whole.count / 2, using: &random)
            let part = try reader.frames(from: Int64(first), count: 100)
            let isSame = part == Array(whole[(2 * first)...].prefix(200))
            #expect(isSame, "from frame \(first)")
        }
        let bound = composition.tracks.count + SourceShelf.spare
        #expect(library.state.withLock { $0.mostLiving } <= bound)
    }

    @Test func `times between frames leave neither a gap nor a frame twice`() throws {
        let asset = NoiseLibrary().asset("a", frames: 1_000)
        var composition = try Composition(sampleRate: Self.rate)
        // Thirds and sevenths of a millisecond, put together again in order.
        let cuts = [0, 100, 233, 467, 700].map { MediaTime(value: $0, timescale: 700) }
        for (first, last) in zip(cuts, cuts.dropFirst()) {
            try composition.insert(
                TimeRange(start: first, end: last), of: asset, at: composition.duration)
        }
        let isWhole = try read(composition) == NoiseLibrary.noise("a", 0..<1_000)
        #expect(isWhole)
    }

    @Test func `what is parted and joined again is as it was, at another rate too`() throws {
        let library = NoiseLibrary()
        let asset = library.asset("a", sampleRate: 44_100, frames: 30_000)
        let other = library.asset("b", sampleRate: 44_100, frames: 5_000)
        var composition = try Composition(sampleRate: 48_000)
        let all = TimeRange(
            start: MediaTime(value: 1, timescale: 100), duration: MediaTime(value: 1, timescale: 2))
        try composition.insert(all, of: asset, at: .zero)
        let before = try read(composition)
        let place = MediaTime(value: 1_234_567, timescale: 10_000_000)
        let part = TimeRange(start: .zero, duration: MediaTime(value: 1, timescale: 30))
        try composition.insert(part, of: other, at: place)
        let isParted = try read(composition) != before
        try composition.remove(TimeRange(start: place, duration: part.duration))
        let isJoined = try read(composition) == before
        #expect(isParted && isJoined && before.count == 48_000)
    }

    @Test func `a segment begins with exactly the frame of its time`() throws {
        let library = NoiseLibrary()
        let asset = library.asset("a", frames: 1_000)
        for place in [0, 1, 3] {
            // At a place that is half a frame behind one.
            let time = MediaTime(value: Int64(2 * place + 1), timescale: 2_000)
            var composition = try Composition(sampleRate: Self.rate)
            try composition.insert(Self.range(137, 20), of: asset, at: time)
            let frames = try read(composition)
            let first = try #require(frames.firstIndex { $0 != 0 })
            #expect(frames[first] == NoiseLibrary.sample("a", 137, 0))
        }
    }

    @Test func `without a rate it is that of what was inserted first`() async throws {
        let library = NoiseLibrary()
        let (first, second) = (
            library.asset("a", sampleRate: 2_000, frames: 100),
            library.asset("b", sampleRate: 500, frames: 100)
        )
        var composition = Composition()
        // Of an empty range nothing is inserted.
        try composition.insert(Self.range(7, 0), of: second, at: Self.time(9))
        try composition.insert(Self.range(0, 40), of: first, at: .zero)
        try composition.insert(Self.range(0, 10), of: second, at: .zero)
        try composition.remove(Self.range(10, 40))
        let asset = Asset(composition)
        #expect(library.state.withLock { $0.opened.isEmpty })
        let (format, duration) = try await asset.load(.format, .duration)
        #expect(format.sampleRate == 2_000 && format.frameCount == 20)
        #expect(duration == composition.duration)
    }

    // MARK: As an asset

    @Test func `an asset is of the composition as it was when it was made`() async throws {
        let library = NoiseLibrary()
        var composition = try Composition(sampleRate: Self.rate)
        try composition.insert(
            Self.range(0, 100), of: library.asset("a", frames: 100), at: .zero)
        let asset = Asset(composition)
        try composition.insert(
            Self.range(0, 100), of: library.asset("b", frames: 100), at: .zero)
        #expect(try await asset.load(.duration) == Self.time(100))
        #expect(try await asset.load(.isPlayable))
        // The ranges say it all: no file was looked at.
        #expect(library.state.withLock { $0.opened.isEmpty })
        let source = try asset.opener.open(asset.location)
        #expect(try SourceReader(source).frames() == NoiseLibrary.noise("a", 0..<100))
    }

    @Test func `a composition may be made of compositions`() throws {
        let library = NoiseLibrary()
        var inner = try Composition(sampleRate: Self.rate)
        for name in ["a", "b"] {
            try inner.insert(
                Self.range(5, 50), of: library.asset(name, frames: 100), at: inner.duration)
        }
        var outer = try Composition(sampleRate: Self.rate)
        try outer.insert(Self.range(30, 60), of: Asset(inner), at: .zero)
        #expect(
            try read(outer) == NoiseLibrary.noise("a", 35..<55) + NoiseLibrary.noise("b", 5..<45))
    }

    // MARK: What is refused

    @Test func `bad ranges, times and tracks are refused and change nothing`() throws {
        let asset = NoiseLibrary().asset("a", frames: 100)
        var composition = try Composition(sampleRate: Self.rate)
        try composition.insert(Self.range(0, 100), of: asset, at: .zero)
        let before = try read(composition)
        let far = MediaTime(value: .max, timescale: 1)
        let ranges = [
            TimeRange.invalid, TimeRange(start: Self.time(5), end: Self.time(4)),
            TimeRange(start: Self.time(-5), duration: Self.time(10)),
            TimeRange(start: .zero, duration: .positiveInfinity),
            TimeRange(start: .negativeInfinity, duration: Self.time(1)),
            TimeRange(start: .zero, duration: .indefinite), TimeRange(start: .zero, duration: far),
            TimeRange(start: far, duration: far),
        ]
        func expect(
            _ codes: Set<PlaybackError.Code>, _ edit: (inout Composition) throws -> Void,
            sourceLocation: SourceLocation = #_sourceLocation
        ) {
            let error = #expect(throws: PlaybackError.self, sourceLocation: sourceLocation) {
                try edit(&composition)
            }
            #expect(error.map { codes.contains($0.code) } == true, sourceLocation: sourceLocation)
        }
        for range in ranges {
            expect([.rangeNotValid]) { try $0.insert(range, of: asset, at: .zero) }
            expect([.rangeNotValid]) { try $0.insertEmpty(range) }
            expect([.rangeNotValid]) { try $0.remove(range) }
        }
        for time in [MediaTime.invalid, .indefinite, .positiveInfinity, Self.time(-1), far] {
            expect([.timeNotNumeric, .rangeNotValid]) {
                try $0.insert(Self.range(0, 1), of: asset, at: time)
            }
        }
        for track in [-1, 1, .min, .max] {
            expect([.noSuchTrack]) {
                try $0.insert(Self.range(0, 1), of: asset, at: .zero, track: track)
            }
            expect([.noSuchTrack]) { try $0.remove(Self.range(0, 1), track: track) }
        }
        let most = TimeRange(start: .zero, duration: Composition.longest)
        expect([.tooLarge]) { try $0.insert(most, of: asset, at: .zero) }
        #expect(composition.duration == Self.time(100))
        #expect(try read(composition) == before)
        for rate in [0, -1, 768_001, .max] {
            #expect(throws: PlaybackError.self) { try Composition(sampleRate: rate) }
        }
    }

    @Test func `tracks and segments have a bound`() throws {
        var composition = try Composition(sampleRate: Self.rate)
        while composition.tracks.count < Composition.trackLimit { _ = try composition.addTrack() }
        #expect(throws: PlaybackError.self) { try composition.addTrack() }
        let asset = NoiseLibrary().asset("a", frames: 1)
        for index in 0..<Composition.segmentLimit - 1 {
            try composition.insert(Self.range(0, 1), of: asset, at: Self.time(index))
        }
        let error = #expect(throws: PlaybackError.self) {
            for _ in 0..<2 {
                try composition.insert(Self.range(0, 1), of: asset, at: composition.duration)
            }
        }
        #expect(error?.code == .tooLarge)
        try composition.remove(Self.range(0, 1 << 20))
        #expect(composition.duration == .zero)
    }
}
