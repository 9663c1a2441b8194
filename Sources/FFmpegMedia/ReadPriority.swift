/// Whose turn it is on the path: the fetch of a file, or who reads it.
///
/// A reader that waits for what comes next hurries the fetch, one that asks on a connection of its
/// own has the path for itself, and otherwise the fetch keeps its ``FetchPace``.
struct ReadPriority: Equatable, Sendable {
    /// From one block that a reader got from the server to the next that it asks for.
    static let askLasts = Duration.milliseconds(100)
    /// For so long after its last bytes the fetch makes way.
    static let longestWay = Duration.seconds(1)
    /// By how much a fetch that was held up may hurry.
    static let longestCatchUp = Duration.milliseconds(250)

    let pace: FetchPace
    /// Readers that wait for what comes next.
    var waiting = 0
    /// Readers that wait for bytes on a connection of their own, …
    private var asking = 0
    /// … and when the last of them had got some.
    private var askedAt: ContinuousClock.Instant?
    /// When the first bytes had come, the last ones had, and the next are due.
    private var beganAt: ContinuousClock.Instant?
    private var fetchedAt: ContinuousClock.Instant?
    private var nextFetch: ContinuousClock.Instant?

    init(_ pace: FetchPace) { self.pace = pace }

    /// A reader asks on a connection of its own, …
    mutating func asks() { asking += 1 }

    /// … and has its answer, or none.
    mutating func hasAsked(at now: ContinuousClock.Instant) {
        asking -= 1
        askedAt = now
    }

    /// Bytes have come.
    ///
    /// - Parameter isWhole: they were the last ones.
    mutating func fetched(_ count: Int64, isWhole: Bool, at now: ContinuousClock.Instant) {
        let began = beganAt ?? now
        beganAt = began
        fetchedAt = now
        // What somebody waited for is not owed, and nothing is due after the last byte.
        guard waiting == 0, !isWhole else { return nextFetch = now }
        let begin = max(nextFetch ?? now, now - Self.longestCatchUp)
        nextFetch = begin + .seconds(Double(count) / pace.rate(after: now - began))
    }

    /// Whether the fetch may go on.
    mutating func mayFetch(at now: ContinuousClock.Instant) -> Bool {
        guard let fetchedAt, let nextFetch else { return true }
        if waiting > 0 {
            self.nextFetch = now
            return true
        }
        let isAsking = asking > 0 || askedAt.map { now - $0 < Self.askLasts } ?? false
        if isAsking, now - fetchedAt < Self.longestWay {
            self.nextFetch = max(nextFetch, now)
            return false
        }
        return now >= nextFetch
    }
}
