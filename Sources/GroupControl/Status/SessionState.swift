public import TuttiTiming

/// Where a session stands, as a word.
public enum SessionPhase: String, CaseIterable, Codable, Sendable {
    /// Not enough rooms have joined to start.
    case waiting
    /// Rooms are opening and prerolling; the start comes when they are ready.
    case preparing
    case playing
    case paused
    /// Stopped by command, at the beginning of the queue.
    case stopped
    /// The last item has been played to its end.
    case ended
}

/// Everything a room must know about the session to play it, or to continue it.
///
/// A newer state replaces an older one as a whole: higher term first, then higher sequence.
public struct SessionState: Equatable, Sendable {
    /// Most items in a queue. A state of this size with the longest titles fits one message to a
    /// room (`FrameDecoder.roomLimit`).
    public static let longestQueue = 10_000

    /// Counts leaders: each session of a leader has its own.
    public var term: UInt64
    /// Counts changes within the term.
    public var sequence: UInt64
    /// The items that can be played, in order.
    public var queue: [AssetDescriptor]
    /// The current item; 0 when the queue is empty.
    public var index: Int
    /// The line in force, or about to be; `nil` before the first start and after stop.
    public var change: RateChange?
    /// Where the session stands.
    public var phase: SessionPhase

    /// A state as a leader tells it.
    public init(
        term: UInt64, sequence: UInt64, queue: [AssetDescriptor], index: Int, change: RateChange?,
        phase: SessionPhase
    ) {
        self.term = term
        self.sequence = sequence
        self.queue = queue
        self.index = index
        self.change = change
        self.phase = phase
    }

    /// Of the leader that goes on with the session. What comes over the wire may be the last number.
    public var nextTerm: UInt64 { term == .max ? term : term + 1 }

    /// The current item; `nil` when the queue is empty.
    public var current: AssetDescriptor? { queue.indices.contains(index) ? queue[index] : nil }

    /// The frame of the current item at `instant`, within 0 to its length.
    ///
    /// Before the line's own instant it is the frame the line begins with.
    public func itemFrame(at instant: GroupInstant) -> Double {
        guard let change, let current else { return 0 }
        let frame = change.itemFrame(
            at: max(instant, change.instant), sampleRate: current.sampleRate)
        return min(max(frame, 0), Double(current.frameCount))
    }

    /// When the current item ends on the line in force; `nil` while paused or without a line.
    public var endInstant: GroupInstant? {
        guard let change, let current else { return nil }
        return change.instant(ofFrame: current.frameCount, sampleRate: current.sampleRate)
    }

    /// Whether this state was made later than `other`.
    public func isNewer(than other: SessionState) -> Bool {
        (term, sequence) > (other.term, other.sequence)
    }
}

/// A ``SessionState`` without its queue, which seldom changes and can be large.
public struct SessionProgress: Equatable, Sendable {
    /// Counts leaders, as ``SessionState/term``.
    public var term: UInt64
    /// Counts changes within the term.
    public var sequence: UInt64
    /// Place of the current item; 0 when the queue is empty.
    public var index: Int
    /// The line in force, or about to be; `nil` before the first start and after stop.
    public var change: RateChange?
    /// Where the session stands.
    public var phase: SessionPhase

    /// A state whose queue was told before.
    public init(
        term: UInt64, sequence: UInt64, index: Int, change: RateChange?, phase: SessionPhase
    ) {
        self.term = term
        self.sequence = sequence
        self.index = index
        self.change = change
        self.phase = phase
    }
}

extension SessionState {
    /// Bytes of the two largest items, the larger one first; of fewer where there are fewer.
    public var largestItems: [Int64] {
        var (first, second) = (queue.first, AssetDescriptor?.none)
        for item in queue.dropFirst() where item.hash != first?.hash {
            if item.byteCount > first?.byteCount ?? 0 {
                (first, second) = (item, first)
            } else if item.byteCount > second?.byteCount ?? 0 {
                second = item
            }
        }
        return [first, second].compactMap { $0?.byteCount }
    }

    /// The same state without its queue.
    public var progress: SessionProgress {
        SessionProgress(
            term: term, sequence: sequence, index: index, change: change, phase: phase)
    }

    /// The state that this one becomes; `nil` for the progress of another queue.
    public func with(_ progress: SessionProgress) -> SessionState? {
        guard progress.term == term,
            queue.isEmpty ? progress.index == 0 : queue.indices.contains(progress.index)
        else { return nil }
        return SessionState(
            term: term, sequence: progress.sequence, queue: queue, index: progress.index,
            change: progress.change, phase: progress.phase)
    }
}

/// Items that stand in place of some of a queue.
public struct QueueChange: Equatable, Sendable {
    /// Of the leader's session whose queue it is.
    public var term: UInt64
    /// Of the state that has the changed queue.
    public var sequence: UInt64
    /// Place of the first of them: within the queue, or at its end.
    public var first: Int
    /// So many that were there from this place on are gone.
    public var removed: Int
    /// What stands there now, in order.
    public var items: [AssetDescriptor]
    /// Of the current item, from now on.
    public var index: Int

    /// A change that makes state `sequence` of the one before it.
    public init(
        term: UInt64, sequence: UInt64, first: Int, removed: Int, items: [AssetDescriptor],
        index: Int
    ) {
        self.term = term
        self.sequence = sequence
        self.first = first
        self.removed = removed
        self.items = items
        self.index = index
    }
}

extension SessionState {
    /// The state that this one becomes; `nil` for the change of another queue.
    public func with(_ change: QueueChange) -> SessionState? {
        guard change.term == term, change.first >= 0, change.first <= queue.count,
            change.removed >= 0, change.removed <= queue.count - change.first
        else { return nil }
        var state = self
        state.sequence = change.sequence
        let end = change.first + change.removed
        state.queue.replaceSubrange(change.first..<end, with: change.items)
        state.index = change.index
        guard state.queue.count <= Self.longestQueue,
            state.queue.isEmpty ? state.index == 0 : state.queue.indices.contains(state.index)
        else { return nil }
        return state
    }
}
