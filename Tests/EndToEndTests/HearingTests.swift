import Glibc
import Testing
import TuttiTiming

@testable import TuttiDeviceOutput
@testable import tutti

/// What judges the house is judged first: errors that are made on purpose must be seen.
@Suite struct HearingTests {
    /// A card of 48 kHz and no error that plays these from an instant on.
    static func card(_ samples: [Float], at start: Int64) throws -> CardRecording {
        let end = start + Int64(samples.count) * 1_000_000_000 / 48_000
        let times = """
            TUTTI-CARD 1 rate=48000 channels=1 ppm=0 wander=0 seed=0
            START frame=0.000000 raw_ns=\(start).000
            END frame=\(samples.count).000000 raw_ns=\(end).000

            """
        let data = samples.flatMap { sample in
            (0..<4).map { UInt8(truncatingIfNeeded: sample.bitPattern >> (8 * $0)) }
        }
        return try CardRecording(times: times, data: data, path: "a test")
    }

    @Test(arguments: [-9_000_000, -30_000, 0, 1_000, 30_000])
    func `a room that is late by some nanoseconds is heard to be`(late: Int64) throws {
        let noise = NoiseAsset(seconds: 1).samples
        let cards = [
            try Self.card(noise, at: 1_000_000_000), try Self.card(noise, at: 1_000_000_000 + late),
        ]
        let hearing = try #require(Hearing(cards, names: ["a", "b"]))
        #expect(hearing.gaps.map(\.count) == [0, 0])
        let middle = hearing.audible[0].lowerBound + 0.5e9
        let skew = try #require(hearing.skew(0, 1, at: middle))
        // The interpolation behind it is good to about a thousandth of a frame.
        #expect(abs(skew - Double(late) / 1e3) < 0.5, "\(skew) µs")
    }

    @Test func `another piece is no match, and a hole in one is a gap`() throws {
        let noise = NoiseAsset(seconds: 1).samples
        var holed = noise
        for frame in 10_000..<10_096 { holed[frame] = 0 }
        let other = NoiseAsset(seconds: 1, seed: 2).samples
        let cards = try [noise, holed, other].map { try Self.card($0, at: 1_000_000_000) }
        let hearing = try #require(Hearing(cards, names: ["a", "b", "c"]))
        #expect(hearing.gaps.map(\.count) == [0, 1, 0])
        let gap = try #require(hearing.gaps[1].first)
        // Two milliseconds, and up to a frame at each end.
        #expect(abs(gap.upperBound - gap.lowerBound - 2e6) < 2 * 1e9 / 48_000)
        let middle = hearing.audible[0].lowerBound + 0.5e9
        #expect(hearing.skew(0, 2, at: middle) == nil)
    }

    @Test func `a room that never sounds is not overheard`() throws {
        let cards = [
            try Self.card(NoiseAsset(seconds: 1).samples, at: 5),
            try Self.card([Float](repeating: 0, count: 48_000), at: 5),
        ]
        #expect(Hearing(cards, names: ["a", "b"]) == nil)
    }
}
