public import TuttiTiming

/// How a room kept time during the last minutes: its error and its bound, once a second.
///
/// Kept by the leader from the room's reports, so that it survives a broken link; a ring of fixed
/// size.
public struct SyncHistory: Equatable, Sendable {
    /// Five minutes.
    public static let capacity = 300
    /// Between two points; what comes much sooner is not kept.
    public static let interval = Nanoseconds.seconds(1)

    /// One second of a room's past.
    public struct Point: Equatable, Sendable {
        /// Audible position against the line at the card, microseconds; positive: late.
        public var error: Float
        /// The bound at the same moment, microseconds.
        public var bound: Float
        /// How long ago that was, seconds.
        public var age: Float
    }

    private struct Entry: Equatable, Sendable {
        var error: Float
        var bound: Float
        var at: GroupInstant
    }
    private var ring: [Entry] = []
    /// Where the next point goes once the ring is full.
    private var next = 0
    private var lastAt: GroupInstant?

    /// A history without points.
    public init() {}

    /// Of the last five minutes, oldest first.
    public func points(at now: GroupInstant) -> [Point] {
        (ring[next...] + ring[..<next]).compactMap { entry in
            let age = Float((now - entry.at).seconds)
            guard age <= Float(Self.capacity) else { return nil }
            return Point(error: entry.error, bound: entry.bound, age: max(0, age))
        }
    }

    /// Takes a point, unless the one before is less than a second old.
    ///
    /// Reports come once a second; what comes more often is as good as one of them.
    public mutating func note(error: Nanoseconds, bound: Nanoseconds, at now: GroupInstant) {
        // A report that is a little early must not halve the rate.
        if let lastAt, now - lastAt < Self.interval - .milliseconds(250), now >= lastAt { return }
        lastAt = now
        let point = Entry(
            error: Float(error.microseconds), bound: Float(bound.microseconds), at: now)
        if ring.count < Self.capacity {
            ring.append(point)
        } else {
            ring[next] = point
            next = (next + 1) % Self.capacity
        }
    }
}

/// The spread of some values; `nil` has no values.
public struct Spread: Codable, Equatable, Sendable {
    /// The smallest value.
    public var min: Double
    /// Half of the values are not above it.
    public var p50: Double
    /// 99 of a hundred values are not above it.
    public var p99: Double
    /// The largest value.
    public var max: Double

    /// A spread that was computed elsewhere; nothing is sorted.
    public init(min: Double, p50: Double, p99: Double, max: Double) {
        self.min = min
        self.p50 = p50
        self.p99 = p99
        self.max = max
    }

    /// Nearest-rank percentiles of the magnitudes.
    public init?(magnitudesOf values: [Float]) {
        let sorted = values.map { Double($0.magnitude) }.sorted()
        guard let first = sorted.first, let last = sorted.last else { return nil }
        func rank(_ hundredths: Int) -> Double {
            sorted[Swift.max(0, (sorted.count * hundredths + 99) / 100 - 1)]
        }
        self.init(min: first, p50: rank(50), p99: rank(99), max: last)
    }
}
