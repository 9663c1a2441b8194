public import TuttiTiming

/// Decides whether the leader's thread must wake for each request that arrives.
///
/// Rooms on wires want their answers at once, or send requests a millisecond apart that are to be
/// answered halfway to the next (``ReplyQueue``). Requests of rooms that pause for longer may wait
/// in the socket, where the kernel has stamped them, until an answer is due and wakes the thread
/// anyway.
public struct WakePolicy: Sendable {
    /// A room that announces a shorter pause than this hangs on wires.
    static let hurry = Nanoseconds.milliseconds(4)
    /// How long after a request of such a room each request wakes the thread.
    static let hurryMemory = Nanoseconds.seconds(2)
    /// The longest that a request may wait in the socket. The first of a new room on wires does.
    static let longest = Nanoseconds.milliseconds(15)

    private var hurriesUntil: LocalInstant

    /// - Parameter start: local time now. Who asks is not known yet.
    public init(start: LocalInstant) { hurriesUntil = start + Self.hurryMemory }

    /// A request arrived at `instant`.
    ///
    /// - Parameter isKernelStamp: whether the kernel says when it arrived. What the program stamps
    ///   must be read at once.
    public mutating func take(_ request: TimeRequest, isKernelStamp: Bool, at instant: LocalInstant)
    {
        guard request.isPrompt || request.pause < Self.hurry || !isKernelStamp else { return }
        hurriesUntil = max(hurriesUntil, instant + Self.hurryMemory)
    }

    /// Whether what arrives after `now` may wait in the socket until `deadline`, when the thread
    /// wakes (`nil`: never).
    public func mayLie(until deadline: LocalInstant?, at now: LocalInstant) -> Bool {
        guard let deadline else { return false }
        return now > hurriesUntil && deadline - now <= Self.longest
    }
}
