public import Timing

/// Requests that wait for their answer, so that both directions meet the same path.
///
/// A request usually comes out of silence: processors sleep, queues are empty, network cards wait
/// to interrupt, a radio rests. A reply sent at once follows on the heels of its request and finds
/// all of that awake. It is faster by 5 µs between two processes on one machine and by 40 to 80 µs
/// through a software switch, always in the same direction, and half of it would be an error that
/// two-way exchange cannot see. So the leader lets the path fall silent again before it answers.
///
/// The wait costs nothing in precision: t2 and t3 are stamped where they happen, and each
/// direction is fitted for itself. It swings, evenly over 10 ms, so that replies do not fall into
/// step with a burst whose requests are 10 ms apart and neither direction trails the other. It
/// swings slowly, so that replies leave in the order of their requests.
public struct ReplyHold<Request: Sendable>: Sendable {
    /// Shortest wait. Processors and emulated switches were as slow as ever after it.
    public static var shortest: Nanoseconds { .milliseconds(10) }
    /// The longest is this much longer: one whole period of a burst.
    public static var range: Nanoseconds { ClockFollower.burstSpacing }
    /// A thousand rooms that join at once fit; more are answered by their next request.
    public static var limit: Int { 2_048 }

    private struct Entry: Sendable {
        var due: LocalInstant
        var request: Request
    }
    /// Descending by due time.
    private var entries: [Entry] = []

    public init() {}

    /// Requests from the shortest wait to the longest. Requests closer than a 32nd of the range
    /// would overtake each other; nobody sends them.
    private static var steps: Int64 { 32 }

    /// How long the request `sequence` waits: a triangle of 64 requests.
    public static func wait(of sequence: UInt32) -> Nanoseconds {
        let step = Int64(sequence) % (2 * steps)
        let height = step < steps ? step : 2 * steps - step
        return shortest + Nanoseconds(range.count * height / steps)
    }

    /// Keeps `request` until its time.
    ///
    /// - Returns: whether there was room.
    @discardableResult
    public mutating func insert(
        _ request: Request, sequence: UInt32, arrivedAt arrival: LocalInstant
    ) -> Bool {
        guard entries.count < Self.limit else { return false }
        let due = arrival + Self.wait(of: sequence)
        var place = entries.count
        while place > 0, entries[place - 1].due < due { place -= 1 }
        entries.insert(Entry(due: due, request: request), at: place)
        return true
    }

    /// The next request whose time has come.
    public mutating func next(dueAt now: LocalInstant) -> Request? {
        guard let last = entries.last, last.due <= now else { return nil }
        entries.removeLast()
        return last.request
    }

    /// When the next answer is due.
    public var nextDeadline: LocalInstant? { entries.last?.due }
}
