/// How much one reader of an ``IncomingFile`` asks the server for before the fetch is under way.
///
/// Whoever looks for a place gets what that takes. From there on it gets what plays for a second and
/// a half, and then as much as the line goes on: enough to begin with at any time. The rest may wait,
/// since the path is wanted for measuring the clock.
struct ReadAhead: Sendable {
    /// Seconds.
    private static let lead = 1.5

    /// Bytes.
    private let perSecond: Double
    /// When the place was found, and what has been asked for since.
    private var found: (at: ContinuousClock.Instant, asked: Int64)?

    init(_ pace: FetchPace) { perSecond = pace.second }

    mutating func foundPlace(at now: ContinuousClock.Instant) { found = (now, 0) }

    mutating func looksForPlace() { found = nil }

    mutating func asked(_ count: Int64) { found?.asked += count }

    /// Whether it has what it needs by now.
    func isEnough(at now: ContinuousClock.Instant) -> Bool {
        guard let found else { return false }
        let seconds = Self.lead + (now - found.at) / .seconds(1)
        return Double(found.asked) >= seconds * perSecond
    }
}
