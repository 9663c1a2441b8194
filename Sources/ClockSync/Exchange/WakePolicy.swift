public import Timing

/// Whether the leader's thread must wake for each request that arrives.
///
/// Rooms on wires want their answers at once, or send requests a millisecond apart that are to be
/// answered halfway to the next (``ReplyQueue``). Of those that pause for longer, several may lie,
/// stamped by the kernel, until an answer is due and wakes the thread anyway.
public struct WakePolicy: Sendable {
    /// A shorter silence is that of a room on wires.
    static let hurry = Nanoseconds.milliseconds(4)
    /// How long after such a room's request each one wakes the thread.
    static let hurryMemory = Nanoseconds.seconds(2)
    /// What a request may lie for at most: the first of a new room on wires does.
    static let longest = Nanoseconds.milliseconds(15)

    private var hurriesUntil: LocalInstant

    /// - Parameter start: local time now. Who asks is not known yet.
    public init(start: LocalInstant) { hurriesUntil = start + Self.hurryMemory }

    /// A request arrived at `instant`.
    ///
    /// - Parameter isKernelStamp: whether the kernel says so; what it does not stamp must not lie.
    public mutating func take(_ request: TimeRequest, isKernelStamp: Bool, at instant: LocalInstant)
    {
        guard request.isPrompt || request.pause < Self.hurry || !isKernelStamp else { return }
        hurriesUntil = max(hurriesUntil, instant + Self.hurryMemory)
    }

    /// Whether what arrives after `now` may lie until `deadline`, when the thread wakes; `nil`:
    /// never.
    public func mayLie(until deadline: LocalInstant?, at now: LocalInstant) -> Bool {
        guard let deadline else { return false }
        return now > hurriesUntil && deadline - now <= Self.longest
    }
}
