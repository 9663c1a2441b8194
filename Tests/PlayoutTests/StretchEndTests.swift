import Testing
import TuttiChance

@testable import TuttiPlayout

/// Where a voice begins and ends, backwards, and what cannot be played.
@Suite struct StretchEndTests {
    private static let rates = [1.0 / 32, 0.3, 0.5, 0.75, 1.1, 1.5, 2, 3, 7.3, 32]

    /// Voice frames that lie before the end by the map alone.
    private func length(_ frameCount: Int, _ rate: Double) -> Int {
        var count = 0
        while Double(count) * rate.magnitude < Double(frameCount) { count += 1 }
        return count
    }

    @Test(arguments: TimePitchAlgorithm.allCases)
    func `a voice is as long as the map says, known or not`(
        algorithm: TimePitchAlgorithm
    ) throws {
        for frameCount in [0, 1, 2, 3, 17, 191, 192, 193, 500, 2_047, 3_001] {
            let item = MemoryItem.medley(frames: frameCount)
            for rate in Self.rates {
                let wanted = length(frameCount, rate)
                for sign in [1.0, -1] {
                    for knowsLength in sign > 0 ? [true, false] : [true] {
                        guard
                            let transform = FrameTransforms.make(
                                rate: sign * rate, algorithm: algorithm, sampleRate: 8_000,
                                frameCount: knowsLength ? item.frameCount : nil, reader: item)
                        else {
                            #expect(algorithm == .varispeed && rate * sign >= 0.5)
                            continue
                        }
                        let frames = try Stretch.frames(of: transform)
                        #expect(
                            frames.count == 2 * wanted, "\(frameCount) at \(sign * rate)")
                        #expect(
                            try Stretch.frames(of: transform, from: Int64(wanted)).isEmpty)
                    }
                }
            }
        }
    }

    /// At 32 grains lie so far apart that what is between them is not read: the end may lie there.
    @Test(arguments: Stretch.algorithms)
    func `an unknown end between two grains is found`(algorithm: TimePitchAlgorithm) throws {
        for frameCount in stride(from: 59_000, to: 75_000, by: 733) {
            let item = MemoryItem.made(frameCount) { _ in (0.1, 0.1) }
            let transform = Stretch.make(
                algorithm, 32, item, sampleRate: 8_000, knowsLength: false)
            let frames = try Stretch.frames(of: transform)
            #expect(frames.count == 2 * length(frameCount, 32))
        }
    }

    @Test(arguments: TimePitchAlgorithm.allCases)
    func `an item that is shorter than it said ends where it ends`(
        algorithm: TimePitchAlgorithm
    ) throws {
        let item = MemoryItem.medley(frames: 9_000)
        let forwards = FrameTransforms.make(
            rate: 3, algorithm: algorithm, sampleRate: 8_000, frameCount: 20_000, reader: item)!
        #expect(try Stretch.frames(of: forwards).count == 2 * length(9_000, 3))
        let backwards = FrameTransforms.make(
            rate: -1, algorithm: algorithm, sampleRate: 8_000, frameCount: 20_000, reader: item)!
        let frames = try Stretch.frames(of: backwards)
        #expect(frames.count == 40_000)
        #expect(frames.prefix(22_000).allSatisfy { $0 == 0 })
        #expect(frames.suffix(2) == item.samples.prefix(2))
    }

    @Test(arguments: [0.5, 0.8, 1.5, 2, 4])
    func `time domain: a voice begins and ends with the very frames of its item`(
        rate: Double
    ) throws {
        let item = MemoryItem.medley(frames: 16_003)
        let frames = try Stretch.frames(
            of: Stretch.make(.timeDomain, rate, item, sampleRate: 8_000))
        let hop = GrainGrid(sampleRate: 8_000, speed: rate, frameCount: nil).hop
        // The next grain has faded in by a few hundredths of a percent.
        #expect(zip(frames.prefix(6), item.samples).allSatisfy { ($0 - $1).magnitude < 1e-3 })
        let last = 2 * ((frames.count / 2 - 1) % hop + 1)
        let end = zip(frames.suffix(last), item.samples.suffix(last))
        #expect(end.allSatisfy { ($0 - $1).magnitude < 1e-5 })
    }

    @Test(arguments: TimePitchAlgorithm.allCases)
    func `backwards is each frame in turn, and twice backwards the item`(
        algorithm: TimePitchAlgorithm
    ) throws {
        for frameCount in [1, 1_000, 8_192, 20_001] {
            let item = MemoryItem.medley(frames: frameCount)
            let backwards = Stretch.make(algorithm, -1, item)
            let frames = try Stretch.frames(of: backwards, atOnce: 777)
            #expect(frames.count == item.samples.count)
            #expect(frames.prefix(2) == item.samples.suffix(2))
            let again = MemoryItem(frames)
            #expect(try Stretch.frames(of: Stretch.make(algorithm, -1, again)) == item.samples)
            let nested = FrameTransforms.make(
                rate: -1, algorithm: algorithm, sampleRate: 48_000, frameCount: item.frameCount,
                reader: backwards)!
            #expect(try Stretch.frames(of: nested) == item.samples)
        }
    }

    @Test(arguments: TimePitchAlgorithm.allCases, [0.3, 2.5, 12])
    func `backwards at a rate is the item turned round, played at that rate`(
        algorithm: TimePitchAlgorithm, rate: Double
    ) throws {
        let item = MemoryItem.medley(frames: Int(12_345 * max(1, rate)))
        let turned = MemoryItem(try Stretch.frames(of: Stretch.make(.varispeed, -1, item)))
        let wanted = try Stretch.frames(
            of: Stretch.make(algorithm, rate, turned, sampleRate: 8_000))
        let frames = try Stretch.frames(
            of: Stretch.make(algorithm, -rate, item, sampleRate: 8_000), atOnce: 333)
        #expect(frames == wanted && frames.count > 2_000)
    }

    @Test func `the map says how frames lie, and what cannot be played`() {
        typealias Maps = FrameTransforms
        func map(
            _ rate: Double, _ algorithm: TimePitchAlgorithm = .spectral, _ count: Int64? = 1_000
        ) -> FrameMap? {
            Maps.map(rate: rate, algorithm: algorithm, frameCount: count)
        }
        #expect(map(1.5) == FrameMap(origin: 0, step: 1.5))
        #expect(map(-1.5) == FrameMap(origin: 1_000, step: -1.5))
        #expect(map(3, .varispeed, nil) == FrameMap(origin: 0, step: 3))
        #expect(map(1) == .identity)
        for rate in [0.5, 0.7, 1, 2] { #expect(map(rate, .varispeed) == .identity) }
        #expect(map(-2, .varispeed) == FrameMap(origin: 1_000, step: -2))
        #expect(map(-1, .timeDomain, nil) == nil)
        for rate in [0, -0.0, .nan, .infinity, -.infinity, 32.1, -33, 0.03, -1e-300] {
            #expect(map(rate) == nil)
        }
        for count in [-1, Int64.min, Int64.max] { #expect(map(2, .spectral, count) == nil) }
        let item = MemoryItem.medley(frames: 1_000)
        for algorithm in TimePitchAlgorithm.allCases {
            for rate in [.nan, 0, 1, 0.5, 1.5, 2, 3, -1, -0.5, -40, 0.1] {
                let transform = FrameTransforms.make(
                    rate: rate, algorithm: algorithm, sampleRate: 8_000, frameCount: 1_000,
                    reader: item)
                let map = map(rate, algorithm)
                #expect(transform?.map == (map == .identity ? nil : map))
            }
        }
    }

    @Test(arguments: TimePitchAlgorithm.allCases)
    func `frames that no voice has are silent before it and none behind it`(
        algorithm: TimePitchAlgorithm
    ) throws {
        let item = MemoryItem.medley(frames: 3_000)
        for knowsLength in [true, false] {
            let transform = Stretch.make(
                algorithm, 3, item, sampleRate: 8_000, knowsLength: knowsLength)
            let whole = try Stretch.frames(of: transform)
            let early = try Stretch.frames(of: transform, from: -10, count: 20)
            #expect(early == [Float](repeating: 0, count: 20) + whole.prefix(20))
            for frame in [1_000, 123_456, 1 << 46, 1 << 50, Int64.max] {
                #expect(try Stretch.frames(of: transform, from: frame, count: 4).isEmpty)
            }
            var buffer: [Float] = [7, 7, 7]
            let counts = try buffer.withUnsafeMutableBufferPointer { buffer in
                [
                    try transform.read(at: 5, into: .init(rebasing: buffer[..<0])),
                    try transform.read(at: .min, into: buffer),
                    try transform.read(at: 5, into: buffer),
                ]
            }
            #expect(counts == [0, 1, 1])
            #expect(buffer == [whole[10], whole[11], 7])
        }
    }

    @Test(arguments: TimePitchAlgorithm.allCases, [1, 100, 11_025, 768_000, .max, .min])
    func `any sample rate plays`(algorithm: TimePitchAlgorithm, sampleRate: Int) throws {
        let item = MemoryItem.medley(frames: 3_000)
        let transform = Stretch.make(algorithm, 2.5, item, sampleRate: sampleRate)
        #expect(try Stretch.frames(of: transform).count == 2 * 1_200)
    }
}
