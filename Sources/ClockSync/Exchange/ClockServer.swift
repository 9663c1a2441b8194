public import TuttiTiming

/// The leader's side of the exchange: what to answer to a request, and when; until then it lies in
/// a ``ReplyQueue``.
///
/// The kernel says when a reply left only after it left, so the stamp travels in the next reply to
/// the same peer. What must be remembered for that is bounded: ``peerLimit`` peers, the newest
/// replacing the oldest. A peer that was dropped loses one transmit stamp and nothing else.
///
/// Inlinable for the reason given at ``ReplyQueue``.
public struct ClockServer<Peer: Hashable & Sendable>: Sendable {
    /// How many peers are remembered: a group of 200 rooms, five times over.
    @inlinable public static var peerLimit: Int { 1024 }
    /// How many replies may wait for their transmit stamp. The kernel delivers one within a
    /// fraction of a millisecond.
    @inlinable static var pendingLimit: Int { 256 }

    /// After this many replies to a peer without a stamp, that way out is taken to have none. Each
    /// way is judged by itself, since a wired interface may stamp and the radio beside it not.
    @inlinable static var unstampedLimit: Int { 8 }

    /// A request that lies this many sequence numbers back may be late or a copy. One further back
    /// means that the peer has started anew.
    @inlinable static var window: Int32 { 64 }

    @usableFromInline struct LastReply: Sendable {
        @usableFromInline var peer: Peer
        /// The number of the request answered last.
        @usableFromInline var sequence: UInt32 = 0
        @usableFromInline var epoch: UInt64 = 0
        @usableFromInline var transmitted: LocalInstant?
        /// Replies since the kernel stamped one; ``ClockServer/unstampedLimit`` at first.
        @usableFromInline var unstamped = ClockServer.unstampedLimit
        /// The last answer that others keep a distance from: when it is due, and how far.
        @usableFromInline var spaced: (due: LocalInstant, spacing: Nanoseconds)?
        /// The newest request admitted, and in bit k whether the one k before it was (as in the
        /// anti-replay window of RFC 4303).
        @usableFromInline var newest: UInt32 = 0
        @usableFromInline var admitted: UInt64 = 0

        @inlinable init(peer: Peer) { self.peer = peer }

        /// Whether `sequence` is seen for the first time; remembers it.
        @inlinable
        mutating func admit(_ sequence: UInt32) -> Bool {
            let progress = Int32(bitPattern: sequence &- newest)
            if admitted == 0 || progress <= -ClockServer.window {
                (newest, admitted) = (sequence, 1)
                return true
            }
            if progress > 0 {
                admitted = progress < ClockServer.window ? admitted << UInt64(progress) | 1 : 1
                newest = sequence
                return true
            }
            let bit: UInt64 = 1 << UInt64(-progress)
            defer { admitted |= bit }
            return admitted & bit == 0
        }
    }
    @usableFromInline struct Pending: Sendable {
        @usableFromInline var packet: UInt32
        @usableFromInline var slot: Int
        @usableFromInline var sequence: UInt32
        @inlinable init(packet: UInt32, slot: Int, sequence: UInt32) {
            self.packet = packet
            self.slot = slot
            self.sequence = sequence
        }
    }

    @usableFromInline var slots: [LastReply] = []
    @usableFromInline var slotOfPeer: [Peer: Int] = [:]
    @usableFromInline var nextSlot = 0
    @usableFromInline var pending: [Pending] = []
    @usableFromInline var nextPending = 0

    @usableFromInline var answeredCount = 0
    /// Requests answered so far.
    @inlinable public var answered: Int { answeredCount }

    /// A server that has heard of nobody yet.
    @inlinable public init() {}

    /// A request has arrived.
    ///
    /// Requests that the path held up arrive together. Answered together, they would share one fate
    /// on the way home, of which only the first finds it empty. So answers to one peer leave nearly
    /// as far apart as the silences between its requests were meant to be, as far as
    /// ``TimeRequest/Hold`` goes.
    ///
    /// - Parameters:
    ///   - peer: where it came from.
    ///   - arrival: when, by the local clock.
    ///   - now: local time of this call.
    /// - Returns: when its answer is due, by the local clock; `nil` for a copy made by the network.
    ///   Answering it would overwrite the transmit stamp that the first answer's owner waits for
    ///   with a later one.
    @inlinable
    public mutating func admit(
        _ request: TimeRequest, from peer: Peer, arrival: LocalInstant, at now: LocalInstant
    ) -> LocalInstant? {
        let slot = slot(of: peer)
        guard slots[slot].admit(request.sequence) else { return nil }
        let hold = request.hold
        var due = max(arrival + hold.usual, now)
        if let last = slots[slot].spaced {
            let spacing = min(last.spacing, hold.spacing)
            due = max(due, min(last.due + spacing, arrival + hold.longest))
        }
        if hold.spacing > .zero { slots[slot].spaced = (due, hold.spacing) }
        return due
    }

    /// The answer to a request that was admitted.
    ///
    /// - Parameters:
    ///   - peer: where it came from.
    ///   - arrival: when, by the local clock.
    ///   - isKernelStamp: whether the kernel says so, or the program.
    ///   - departure: local time now, just before the reply is sent.
    ///   - packet: the number by which ``transmitted(packet:at:)`` will name this reply.
    ///   - clock: the group clock.
    /// - Returns: `nil` while the group clock is unknown here.
    @inlinable
    public mutating func reply(
        to request: TimeRequest, from peer: Peer, arrival: LocalInstant, isKernelStamp: Bool,
        departure: LocalInstant, packet: UInt32, clock: SharedClock
    ) -> TimeReply? {
        guard clock.quality != .none else { return nil }
        let slot = slot(of: peer)
        var previous: TimeReply.Transmission?
        if slots[slot].epoch == clock.epoch, let left = slots[slot].transmitted {
            previous = .init(sequence: slots[slot].sequence, t3: clock.map(left))
        }
        slots[slot].sequence = request.sequence
        slots[slot].epoch = clock.epoch
        slots[slot].transmitted = nil
        let isStamped = slots[slot].unstamped < Self.unstampedLimit
        if isStamped { slots[slot].unstamped += 1 }
        expect(Pending(packet: packet, slot: slot, sequence: request.sequence))
        answeredCount += 1
        return TimeReply(
            sequence: request.sequence, epoch: clock.epoch, t1: request.t1, t2: clock.map(arrival),
            t3: clock.map(departure),
            stamps: StampClass(receive: isKernelStamp, transmit: isStamped),
            previous: previous)
    }

    /// The kernel's stamp of the reply that was sent as `packet`.
    @inlinable
    public mutating func transmitted(packet: UInt32, at instant: LocalInstant) {
        guard let match = pending.first(where: { $0.packet == packet }) else { return }
        // The slot may have another peer by now; that one's next replies tell.
        slots[match.slot].unstamped = 0
        guard slots[match.slot].sequence == match.sequence else { return }
        slots[match.slot].transmitted = instant
    }

    /// Packet numbers start over: no stamp of an earlier reply can be told apart from later ones.
    @inlinable
    public mutating func forgetPending() {
        pending.removeAll(keepingCapacity: true)
        nextPending = 0
    }

    @inlinable
    mutating func slot(of peer: Peer) -> Int {
        if let slot = slotOfPeer[peer] { return slot }
        let fresh = LastReply(peer: peer)
        let slot = nextSlot
        nextSlot = (nextSlot + 1) % Self.peerLimit
        if slot < slots.count {
            slotOfPeer[slots[slot].peer] = nil
            slots[slot] = fresh
        } else {
            slots.append(fresh)
        }
        slotOfPeer[peer] = slot
        return slot
    }

    @inlinable
    mutating func expect(_ entry: Pending) {
        if pending.count < Self.pendingLimit {
            pending.append(entry)
        } else {
            pending[nextPending] = entry
            nextPending = (nextPending + 1) % Self.pendingLimit
        }
    }
}
