public import TuttiTiming

/// A follower asks for the time.
public struct TimeRequest: Equatable, Sendable {
    /// Counts the follower's requests and wraps around; the reply repeats it.
    public var sequence: UInt32
    /// When it was sent, by the follower's own clock as the program read it. The leader returns it
    /// untouched; a reply that does not know it is not an answer to this request.
    public var t1: LocalInstant
    /// What the follower's socket delivers, told to the leader.
    public var stamps: StampClass
    /// How long the path will be silent until the next request, the time that request and answer
    /// travel not counted; zero: unknown. Half of it passes before the answer, half after.
    public var pause: Nanoseconds
    /// The answer shall leave at once, and the next request follows it as quickly: so each packet
    /// finds a path that the one before has just woken. Then `pause` counts for nothing.
    public var isPrompt: Bool
    /// What the room heard of the leader's broadcasts; `nil`: it takes no part in them.
    public var reference: ReferenceReport?

    /// A request to be sent at `t1`; the defaults are those of a follower that tells nothing more.
    public init(
        sequence: UInt32, t1: LocalInstant, stamps: StampClass, pause: Nanoseconds = .zero,
        isPrompt: Bool = false, reference: ReferenceReport? = nil
    ) {
        self.sequence = sequence
        self.t1 = t1
        self.stamps = stamps
        self.pause = pause
        self.isPrompt = isPrompt
        self.reference = reference
    }
}

/// The leader's answer to one ``TimeRequest``.
public struct TimeReply: Equatable, Sendable {
    /// The number of the request that it answers.
    public var sequence: UInt32
    /// Changes whenever the leader's line is not the continuation of what it was: another leader,
    /// or a restart.
    public var epoch: UInt64
    /// The `t1` of the request.
    public var t1: LocalInstant
    /// When the request arrived.
    public var t2: GroupInstant
    /// When the program was about to send this reply.
    public var t3: GroupInstant
    /// What the leader's socket delivers. ``StampClass/kernel``: the kernel's transmit stamp of
    /// this reply follows in the next one.
    public var stamps: StampClass
    /// The kernel's transmit stamp of the reply before, which was not known when that was sent
    /// (interleaved mode, RFC 9769).
    public var previous: Transmission?
    /// What the leader makes of what the rooms heard; `nil` for a room that takes no part.
    public var reference: ReferenceVerdict?

    /// When an earlier reply really left, as the kernel said afterwards.
    public struct Transmission: Equatable, Sendable {
        /// The number of that reply's request.
        public var sequence: UInt32
        /// When that reply left, by the group clock.
        public var t3: GroupInstant

        /// The true departure of the reply to request `sequence`.
        public init(sequence: UInt32, t3: GroupInstant) {
            self.sequence = sequence
            self.t3 = t3
        }
    }

    /// An answer with the stamps that are known before it leaves.
    public init(
        sequence: UInt32, epoch: UInt64, t1: LocalInstant, t2: GroupInstant, t3: GroupInstant,
        stamps: StampClass, previous: Transmission?, reference: ReferenceVerdict? = nil
    ) {
        self.sequence = sequence
        self.epoch = epoch
        self.t1 = t1
        self.t2 = t2
        self.t3 = t3
        self.stamps = stamps
        self.previous = previous
        self.reference = reference
    }
}
