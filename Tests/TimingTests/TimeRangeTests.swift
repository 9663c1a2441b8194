import Testing
import TuttiTiming

/// All ranges within a few units, checked against sets of their moments.
struct TimeRangeTests {
    static func seconds(_ n: Int) -> MediaTime { MediaTime(value: Int64(n), timescale: 1) }
    static let all: [TimeRange] = (0...5).flatMap { start in
        (0...5 - start).map { TimeRange(start: seconds(start), duration: seconds($0)) }
    }
    /// The moments at whole and half seconds that a range contains.
    static func moments(_ range: TimeRange) -> Set<MediaTime> {
        Set((-1...13).map { MediaTime(value: $0, timescale: 2) }.filter(range.contains))
    }

    @Test func `intersection has the moments of both and union covers them`() {
        for a in Self.all {
            for b in Self.all {
                let both = a.intersection(b)
                #expect(
                    Self.moments(both) == Self.moments(a).intersection(Self.moments(b)),
                    "\(a) \(b)")
                let union = a.union(b)
                #expect(union.start == min(a.start, b.start))
                #expect(union.end == max(a.end, b.end))
                if !b.isEmpty {
                    #expect(a.contains(b) == Self.moments(a).isSuperset(of: Self.moments(b)))
                }
            }
        }
    }

    @Test func `the end is outside and the start inside`() {
        for range in Self.all where !range.isEmpty {
            #expect(range.contains(range.start))
            #expect(!range.contains(range.end))
            #expect(range.clamping(range.end + Self.seconds(1)) == range.end)
            #expect(range.clamping(.negativeInfinity) == range.start)
        }
    }

    @Test func `nonsense is invalid`() {
        #expect(!TimeRange(start: .zero, duration: Self.seconds(-1)).isValid)
        #expect(!TimeRange(start: .invalid, duration: .zero).isValid)
        #expect(!TimeRange(start: Self.seconds(2), end: Self.seconds(1)).isValid)
        #expect(!TimeRange.invalid.contains(MediaTime.zero))
        #expect(TimeRange.invalid.intersection(.zero) == .invalid)
        #expect(TimeRange.zero.clamping(.invalid) == .invalid)
    }

    @Test func `a range without an end contains every later number`() {
        let live = TimeRange(start: Self.seconds(1), duration: .positiveInfinity)
        #expect(live.contains(Self.seconds(1_000_000)))
        #expect(!live.contains(MediaTime.zero))
        #expect(!live.contains(.positiveInfinity))
    }

    @Test func `mapping keeps ends and proportions`() {
        let from = TimeRange(start: Self.seconds(2), duration: Self.seconds(4))
        let to = TimeRange(start: Self.seconds(10), duration: Self.seconds(2))
        #expect(from.mapping(Self.seconds(2), to: to) == Self.seconds(10))
        #expect(from.mapping(Self.seconds(6), to: to) == Self.seconds(12))
        #expect(from.mapping(Self.seconds(3), to: to) == MediaTime(value: 21, timescale: 2))
        #expect(TimeRange.zero.mapping(.zero, to: to) == .invalid)
    }
}
