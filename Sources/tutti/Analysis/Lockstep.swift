/// How well several rooms kept together, computed from what left their cards.
struct Lockstep: Sendable {
    /// One measured window of one pair.
    struct Point: Sendable {
        var pair: Int
        /// Middle of the window, seconds after the programme began.
        var seconds: Double
        /// Positive: the second room of the pair is later. `nil`: unmatched.
        var skewMicroseconds: Double?
    }

    var rooms: [String]
    var pairs: [(first: Int, second: Int)]
    var points: [Point]
    /// Worst pair within the first half second of the programme; NaN when it cannot be told.
    var startSkewMicroseconds: Double
    var dropouts: [Dropout]
    var programmeSeconds: Double

    /// Steady windows, in seconds.
    static let window = 1.0
    static let hop = 0.5
    /// Windows of the start: short enough that several fit into what a start is.
    static let startWindow = 0.2
    static let startHop = 0.05
    static let startLength = 0.5

    var unmatchedCount: Int { points.count { $0.skewMicroseconds == nil } }

    /// |skew| that `share` of all matched windows do not exceed; NaN without any.
    func percentile(_ share: Double) -> Double {
        points.compactMap { $0.skewMicroseconds.map(abs) }.nearestRank(share) ?? .nan
    }

    var maximum: Double { percentile(1) }

    /// Rooms are in lockstep up to a quarter of a sample at 48 kHz, µs.
    static let skewLimit = 1e6 / 48_000 / 4

    /// Why the rooms were not in lockstep, as a sentence; `nil` when they were.
    var complaint: String? {
        if points.allSatisfy({ $0.skewMicroseconds == nil }) {
            return "not in lockstep: the recordings hold no second in which two rooms play the same"
        }
        if !dropouts.isEmpty {
            let rooms = Set(dropouts.map(\.room)).sorted().map { self.rooms[$0] }
            return
                "not in lockstep: \(dropouts.count) dropouts or steps in \(rooms.joined(separator: ", ")), the first \(dropouts[0].seconds.text(2)) s after the start"
        }
        if !(percentile(0.99) <= Self.skewLimit) {
            return
                "not in lockstep: p99 of the skew is \(percentile(0.99).text(2)) µs, the limit is \(Self.skewLimit.text(2)) µs"
        }
        if unmatchedCount > 0 {
            return
                "not in lockstep: in \(unmatchedCount) of \(points.count) windows two rooms did not play the same"
        }
        return nil
    }
}

/// A hole in what a room played, or a jump of its content.
struct Dropout: Equatable, Sendable {
    enum Kind: String, Sendable { case gap, underrun, step }
    var room: Int
    var kind: Kind
    /// Seconds from the beginning of the programme.
    var seconds: Double
    /// How long the hole is, or how far the content jumped.
    var milliseconds: Double
}

extension [Double] {
    /// The smallest of them that a share of all does not exceed, 0…1: one that was measured, never one between
    /// two. `nil` without any.
    func nearestRank(_ share: Double) -> Double? {
        guard !isEmpty else { return nil }
        let rank = Int((share * Double(count)).rounded(.up)) - 1
        return sorted()[Swift.min(Swift.max(rank, 0), count - 1)]
    }
}
