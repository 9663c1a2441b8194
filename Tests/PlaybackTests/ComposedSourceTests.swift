import Synchronization
import Testing
import TuttiChance
import TuttiPlayout
import TuttiTiming

@testable import TuttiPlayback

/// Compositions as they are read: other rates, open sources, and what fails.
@Suite struct ComposedSourceTests: ComposedFrames {
    // MARK: Other rates

    /// Ranges of assets at three rates, of one of them twice.
    private func mixture(_ random: inout SplitMix64) throws -> [(TimeRange, Asset)] {
        let library = NoiseLibrary()
        let assets = [44_100, 48_000, 32_000].map {
            library.asset("\($0)", sampleRate: $0, frames: 20_000)
        }
        return (0..<6).map { index in
            let start = Int.random(in: 0...300, using: &random)
            let length = Int.random(in: 1...80, using: &random)
            return (Self.range(start, length), assets[index % 3])
        }
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `a frame at another rate is a function of its number, bit for bit`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var composition = try Composition(sampleRate: 48_000)
        var alone: [Float] = []
        for (range, asset) in try mixture(&random) {
            try composition.insert(range, of: asset, at: composition.duration)
            var part = try Composition(sampleRate: 48_000)
            try part.insert(range, of: asset, at: .zero)
            alone += try read(part)
        }
        let reader = SourceReader(try ComposedSource(composition))
        let whole = try reader.frames { Int.random(in: 1...3_000, using: &random) }
        // Nothing of a segment reaches into its neighbours.
        let isTheirs = whole == alone
        #expect(isTheirs)
        for _ in 0..<30 {
            let first = Int.random(in: 0..<whole.count / 2, using: &random)
            let part = try reader.frames(from: Int64(first), count: 500)
            let isSame = part == Array(whole[(2 * first)...].prefix(1_000))
            #expect(isSame, "from frame \(first)")
        }
    }

    @Test func `a file that is shorter than was said is silent from there on`() throws {
        let library = NoiseLibrary()
        library.state.withLock { $0.endsAt = 600 }
        var composition = try Composition(sampleRate: Self.rate)
        try composition.insert(
            Self.range(0, 9_000), of: library.asset("a", frames: 9_000), at: .zero)
        let silence = [Float](repeating: 0, count: 2 * 8_400)
        let reader = SourceReader(try ComposedSource(composition))
        let isSame =
            try reader.frames(size: { 100 }) == NoiseLibrary.noise("a", 0..<600) + silence
        #expect(isSame)
        // Once it was found to end, it is left alone.
        let reads = library.state.withLock { $0.reads }
        #expect(try reader.frames(from: 600, size: { 100 }) == silence)
        #expect(library.state.withLock { $0.reads } == reads)
    }

    // MARK: Volumes

    @Test func `a mix calls tracks by their numbers`() throws {
        let library = NoiseLibrary()
        var composition = try Composition(sampleRate: Self.rate)
        let second = try composition.addTrack()
        for (track, name) in [(0, "a"), (second, "b")] {
            try composition.insert(
                Self.range(0, 500), of: library.asset(name, frames: 500), at: .zero, track: track)
        }
        for (silent, heard) in [(0, "b"), (second, "a")] {
            var mix = AudioMix()
            try mix.setVolume(0, at: .zero, track: silent)
            try mix.setVolume(0.5, at: Self.time(300))
            let source = try ComposedSource(composition)
            let mixed = MixedReader(source.inputs, mix: mix, sampleRate: Self.rate)
            let noise = NoiseLibrary.noise(heard, 0..<500)
            let expected = noise[..<600] + noise[600...].map { $0 * 0.5 }
            let isSame = try mixed.frames(size: { 70 }) == Array(expected)
            #expect(isSame, "only \(heard)")
        }
    }

    // MARK: Open sources

    @Test(arguments: [1, 3])
    func `five hundred files are open a few at a time, and none afterwards`(tracks: Int) throws {
        let library = NoiseLibrary()
        var composition = try Composition(sampleRate: Self.rate)
        while composition.tracks.count < tracks { _ = try composition.addTrack() }
        for number in 0..<500 {
            for track in composition.tracks {
                let asset = library.asset("\(track).\(number)", frames: 20)
                try composition.insert(
                    Self.range(0, 20), of: asset, at: Self.time(20 * number), track: track)
            }
        }
        do {
            let reader = SourceReader(try ComposedSource(composition))
            #expect(library.state.withLock { $0.opened.isEmpty })
            #expect(try reader.frames(count: 10).count == 20)
            #expect(library.state.withLock { $0.opened.count } == tracks)
            #expect(try reader.frames().count == 20_000)
            // Each once: the first ones were still open.
            #expect(library.state.withLock { $0.opened.count } == 500 * tracks)
            #expect(library.state.withLock { $0.mostLiving } <= tracks + SourceShelf.spare)
        }
        #expect(library.state.withLock { $0.living } == 0)
    }

    // MARK: Failures

    @Test func `an asset that cannot be opened fails where it begins and says which it is`()
        throws
    {
        let library = NoiseLibrary()
        var composition = try Composition(sampleRate: Self.rate)
        for name in ["a", "gone.flac", "c"] {
            try composition.insert(
                Self.range(0, 100), of: library.asset(name, frames: 100),
                at: composition.duration)
        }
        library.state.withLock { $0.missing = ["gone.flac"] }
        let reader = SourceReader(try ComposedSource(composition))
        #expect(try reader.frames(count: 100) == NoiseLibrary.noise("a", 0..<100))
        let error = #expect(throws: MediaError.self) { try reader.frames(from: 100) }
        #expect(error?.code == .notFound && error?.subject == "gone.flac")
        #expect(error?.description.contains("from 0.1 s on") == true)
        #expect(try reader.frames(from: 200) == NoiseLibrary.noise("c", 0..<100))
        // A server that is back can be asked again.
        library.state.withLock { $0.missing = [] }
        #expect(
            try reader.frames(from: 100, count: 100) == NoiseLibrary.noise("gone.flac", 0..<100))
    }

    @Test(arguments: [0, 1])
    func `what is damaged is read up to there, on all tracks`(damaged: Int) throws {
        let (library, sound) = (NoiseLibrary(), NoiseLibrary())
        var composition = try Composition(sampleRate: Self.rate)
        _ = try composition.addTrack()
        try composition.insert(
            Self.range(0, 800), of: sound.asset("a", frames: 800), at: .zero, track: 1 - damaged)
        try composition.insert(
            Self.range(0, 800), of: library.asset("b", frames: 800), at: .zero, track: damaged)
        library.state.withLock { $0.failsAt = 523 }
        let reader = SourceReader(try ComposedSource(composition))
        let expected = zip(NoiseLibrary.noise("a", 0..<523), NoiseLibrary.noise("b", 0..<523)).map {
            $0 + $1
        }
        // One read that could be longer.
        var buffer = [Float](repeating: .nan, count: 2 * 800)
        let count = try buffer.withUnsafeMutableBufferPointer { try reader.read(at: 0, into: $0) }
        #expect(count == 523 && Array(buffer[..<(2 * 523)]) == expected)
        #expect(throws: MediaError.self) { try reader.frames(from: 523) }
    }

    @Test func `without a sample rate it cannot be opened, which says what to do`() throws {
        let empty = #expect(throws: MediaError.self) { try ComposedSource(Composition()) }
        #expect(empty?.code == .noAudio)
        let library = NoiseLibrary()
        library.state.withLock { $0.missing = ["a"] }
        var composition = Composition()
        try composition.insert(Self.range(0, 9), of: library.asset("a", frames: 9), at: .zero)
        let missing = #expect(throws: MediaError.self) { try ComposedSource(composition) }
        #expect(missing?.subject == "a" && missing?.code == .notFound)
        var odd = try Composition(sampleRate: Self.rate)
        let source = library.asset("odd", sampleRate: 0, frames: 9)
        try odd.insert(Self.range(0, 9), of: source, at: .zero)
        #expect(throws: MediaError.self) { try read(odd) }
    }

    @Test func `the longest composition of all is read without overflow`() throws {
        let library = NoiseLibrary()
        let asset = library.asset("a", sampleRate: 768_000, frames: 10)
        for rate in [1, 767_999] {
            var composition = try Composition(sampleRate: rate)
            let most = TimeRange(start: .zero, duration: Composition.longest)
            try composition.insert(most, of: asset, at: .zero)
            let source = try ComposedSource(composition)
            let count = try #require(source.format.frameCount)
            #expect(count == 1_000_000_000 * Int64(rate))
            let last = try SourceReader(source).frames(from: count - 3)
            #expect(last == Array(repeating: 0, count: 6))
        }
    }
}
