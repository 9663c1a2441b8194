public import TuttiTiming

/// Requests that wait for their answer, so that both directions meet the same path.
///
/// A request usually comes out of silence: processors sleep, queues are empty, network cards wait
/// to interrupt, a radio rests. A reply sent at once follows on the heels of its request and finds
/// all of that awake. It is faster, by 5 µs between two processes and by 40 to 80 µs through a
/// switch in software, always in the same direction, and half of that would be an error that
/// two-way exchange cannot see. On a wire the next request follows the reply as closely, so that
/// only the first of a train comes out of silence, and nothing waits (``TimeRequest/isPrompt``).
/// Elsewhere the leader lets the path fall silent again before it answers; the request says how
/// long nothing else will travel.
///
/// In the middle of that silence, both directions come out of one of the same length (later, where
/// requests were held up on their way: ``ClockServer/admit(_:from:arrival:at:)``). The wait
/// costs nothing in precision: t2 and t3 are stamped where they happen, and each direction is
/// fitted for itself.
///
/// Inlinable: not specialised, the generic code of a leader took a third of its time service.
public struct ReplyQueue<Request: Sendable>: Sendable {
    /// How many requests wait at most. A thousand rooms that join at once fit: on air, where each
    /// has three on the way. Who finds no place is answered by the next request.
    @inlinable public static var limit: Int { 4_096 }

    @usableFromInline struct Entry: Sendable {
        @usableFromInline var due: LocalInstant
        @usableFromInline var request: Request
        @inlinable init(due: LocalInstant, request: Request) {
            self.due = due
            self.request = request
        }
    }
    /// Descending by due time.
    @usableFromInline var entries: [Entry] = []

    /// An empty queue; it grows up to its limit.
    @inlinable public init() {}

    /// Whether a request more would not be kept.
    @inlinable public var isFull: Bool { entries.count >= Self.limit }

    /// Keeps `request` until `due`.
    ///
    /// - Returns: whether there was room.
    @inlinable @discardableResult
    public mutating func insert(
        _ request: Request, until due: LocalInstant
    ) -> Bool {
        guard !isFull else { return false }
        var place = entries.count
        while place > 0, entries[place - 1].due < due { place -= 1 }
        entries.insert(Entry(due: due, request: request), at: place)
        return true
    }

    /// The next request whose time has come.
    @inlinable
    public mutating func next(dueAt now: LocalInstant) -> Request? {
        guard let last = entries.last, last.due <= now else { return nil }
        entries.removeLast()
        return last.request
    }

    /// When the next answer is due.
    @inlinable public var nextDeadline: LocalInstant? { entries.last?.due }
}

extension TimeRequest {
    /// How long its answer waits.
    public struct Hold: Equatable, Sendable {
        /// Not at all, or half of the silence (``TimeRequest/pause``), 0.2 to 100 ms; 10 where that
        /// is not known.
        public var usual: Nanoseconds
        /// How long it waits at most, where the answer before it would be less than ``spacing``
        /// away: up to 115 ms.
        public var longest: Nanoseconds
        /// Its distance from other answers to the same peer that are spaced, too; zero: it has
        /// none.
        public var spacing: Nanoseconds
    }

    /// The hold of a request that does not say when the next will follow. After so long a path has
    /// fallen asleep again.
    private static let usualHold = Nanoseconds.milliseconds(10)
    private static let shortestHold = Nanoseconds.microseconds(200)
    /// The longest hold. It bounds how long a flood of requests stays here, and how long others
    /// wait because of it.
    private static let longestHold = Nanoseconds.milliseconds(100)
    /// Answers to requests further apart keep no distance: hardly any catches up with another, and
    /// after a long pause an answer is wanted soon.
    private static let longestSpacing = Nanoseconds.milliseconds(30)
    /// How many answers to one room may wait for each other. With more, the room would forget its
    /// requests before they are answered (``ClockFollower/outstandingLimit``).
    private static let longestQueue: Int64 = 16

    /// How long the answer to this request waits, from what the request says of itself.
    public var hold: Hold {
        if isPrompt { return Hold(usual: .zero, longest: .zero, spacing: .zero) }
        let half = pause > .zero ? Nanoseconds(pause.count / 2) : Self.usualHold
        let usual = min(max(half, Self.shortestHold), Self.longestHold)
        // A little less than requests are apart, so that those that waited catch up.
        let isClose = pause <= Self.longestSpacing
        let spacing = isClose ? Nanoseconds(pause.count / 16 * 15) : .zero
        let queue = min(spacing * Self.longestQueue, Self.longestHold)
        return Hold(usual: usual, longest: usual + queue, spacing: spacing)
    }
}
