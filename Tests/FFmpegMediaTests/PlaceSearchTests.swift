import Testing

@testable import TuttiFFmpegMedia

struct PlaceSearchTests {
    private static let rate = 48_000
    private static let seconds: Int64 = 120
    private static let first: Int64 = 8_192

    /// Looks until the place is found, in a file of packets of 4096 frames, of which the first half
    /// takes so many bytes a frame and the second so many.
    ///
    /// - Returns: how many looks; `nil` when one is behind the last packet, which tells nothing.
    private func looks(for wanted: Int64, _ densities: (Double, Double)) throws -> Int? {
        let end = Self.seconds * Int64(Self.rate)
        let half = Double(end) / 2
        func byte(_ frame: Int64) -> Int64 {
            let frame = Double(frame)
            return Self.first
                + Int64(min(frame, half) * densities.0 + max(0, frame - half) * densities.1)
        }
        let search = PlaceSearch(
            of: wanted, firstByte: Self.first, end: (end, byte(end)), sampleRate: Self.rate)
        var known = try #require(search)
        for look in 1...40 {
            let place = try #require(known.next)
            let begins = stride(from: Int64(0), to: end, by: 4_096)
            guard let begin = begins.first(where: { byte($0) >= place }) else { return nil }
            if known.take(frame: begin, at: place) {
                #expect(begin <= wanted && wanted - begin <= Int64(Self.rate) / 2)
                return look
            }
        }
        Issue.record("frame \(wanted) was not found in 40 looks")
        return 40
    }

    @Test(arguments: [(3.0, 3.0), (1.0, 2.0), (2.0, 1.0), (1.0, 3.0), (3.0, 1.0)])
    func `any place is found, in an even file at once`(densities: (Double, Double)) throws {
        for second in stride(from: Int64(1), to: Self.seconds - 1, by: 7) {
            let count = try looks(for: second * Int64(Self.rate), densities)
            #expect(densities.0 != densities.1 || count == 1, "looks at \(second) s")
            #expect(count != nil || densities.0 > densities.1, "behind the end for \(second) s")
        }
    }

    @Test func `nonsense leads to no byte outside the file`() throws {
        let end = (frame: Int64(5_760_000), byte: Int64(20_000_000))
        let search = PlaceSearch(of: 3_000_000, firstByte: 0, end: end, sampleRate: Self.rate)
        var known = try #require(search)
        for frame: Int64 in [.max / 4, 1, 2, .max / 8, -5, 0, 3_000_001] {
            guard let byte = known.next else { return }
            #expect((0..<end.byte).contains(byte))
            _ = known.take(frame: frame, at: byte)
        }
    }

    @Test func `an empty file has no places`() {
        #expect(PlaceSearch(of: 0, firstByte: 0, end: (0, 100), sampleRate: 48_000) == nil)
        #expect(PlaceSearch(of: 0, firstByte: 100, end: (10, 100), sampleRate: 48_000) == nil)
    }
}
