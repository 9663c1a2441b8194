package import TuttiTiming

/// Lets in datagrams of members and nothing else, each once.
///
/// What comes in is dropped as cheaply as it can be: its length and header are looked at first, then
/// its number, then the tag; the payload is not looked at before all of these are right. Nothing is
/// ever answered to what is dropped.
package struct DatagramGate: Sendable {
    /// How long packets of the term before are taken: what was under way, from rooms that the news
    /// of the new one has not reached yet.
    package static let grace = Nanoseconds.seconds(5)
    /// Senders of one term: every room that a leader has places for, with one restart each.
    package static let mostSenders = 512
    /// Longest datagram: what fits an Ethernet frame.
    package static let longest = 1_472

    /// Why a datagram was dropped.
    package enum Reason: String, CaseIterable, Sendable {
        case length, header, term, sender, receiver, replay, tag
    }

    package enum Verdict: Equatable, Sendable {
        /// Of the term whose key it was sealed with, by which it is to be answered.
        case payload(ArraySlice<UInt8>, from: SenderNumber, term: UInt64)
        case dropped(Reason)
    }

    private struct Epoch: Sendable {
        var term: UInt64
        var key: TagKey
        var own: SenderNumber
        /// One's own number before this one; what was sent to it is still under way.
        var former: (number: SenderNumber, end: LocalInstant)?
        var windows: [SenderNumber: ReplayWindow] = [:]

        init(_ key: GroupKey, _ channel: DatagramChannel, as own: SenderNumber) {
            term = key.term
            self.key = key.tagKey(for: channel)
            self.own = own
        }
    }

    private let channel: DatagramChannel
    private var current: Epoch
    private var previous: (epoch: Epoch, end: LocalInstant)?
    /// Since the gate was made, by reason.
    package private(set) var dropped: [Reason: Int] = [:]
    package private(set) var acceptedCount = 0

    package init(_ key: GroupKey, _ channel: DatagramChannel, as own: SenderNumber) {
        self.channel = channel
        current = Epoch(key, channel, as: own)
    }

    package var term: UInt64 { current.term }

    /// From now on another key, another number of one's own, and no senders yet.
    ///
    /// - Throws: for a term that is not newer; nothing changes then.
    package mutating func begin(
        _ key: GroupKey, as own: SenderNumber, at now: LocalInstant
    ) throws(TrustError) {
        guard key.term > current.term else {
            throw TrustError(
                .refused, "group key",
                "is of term \(key.term), and term \(current.term) has begun")
        }
        previous = (current, now + Self.grace)
        current = Epoch(key, channel, as: own)
    }

    /// One's own number is another one from now on, in the same term: on a new link a room is a new
    /// sender. What was taken stays taken.
    package mutating func renumber(to own: SenderNumber, at now: LocalInstant) {
        guard own != current.own else { return }
        current.former = (current.own, now + Self.grace)
        current.own = own
    }

    /// Forgets the key of the term before, and a number of one's own, once its grace is over.
    package mutating func advance(to now: LocalInstant) {
        if let previous, now >= previous.end { self.previous = nil }
        if let former = current.former, now >= former.end { current.former = nil }
    }

    /// When the grace ends; `nil` without one.
    package var nextDeadline: LocalInstant? { previous?.end }

    /// From now on datagrams of this sender are let in, in the current term.
    ///
    /// - Parameter sequence: what the sender had used when the key was handed out.
    package mutating func allow(
        _ sender: SenderNumber, after sequence: UInt64 = 0
    ) throws(TrustError) {
        guard current.windows.count < Self.mostSenders || current.windows[sender] != nil else {
            throw TrustError(
                .tooMany, "datagrams", "\(Self.mostSenders) senders are known; begin a new term")
        }
        // Allowed twice, it does not begin anew: what was taken stays taken.
        if current.windows[sender] == nil {
            current.windows[sender] = ReplayWindow(after: sequence)
        }
    }

    /// Nothing of this sender is let in any more, in neither term. Its number is not to be given out
    /// again.
    package mutating func forbid(_ sender: SenderNumber, in term: UInt64) {
        if current.term == term { current.windows[sender] = nil }
        if previous?.epoch.term == term { previous?.epoch.windows[sender] = nil }
    }

    package mutating func receive(_ bytes: [UInt8], at now: LocalInstant) -> Verdict {
        advance(to: now)
        let verdict = judge(bytes)
        switch verdict {
        case .payload: acceptedCount += 1
        case .dropped(let reason): dropped[reason, default: 0] += 1
        }
        return verdict
    }

    private mutating func judge(_ bytes: [UInt8]) -> Verdict {
        guard (DatagramSealer.overhead...Self.longest).contains(bytes.count) else {
            return .dropped(.length)
        }
        guard let header = DatagramHeader(bytes[...]), header.channel == channel.byte else {
            return .dropped(.header)
        }
        if header.term == UInt16(truncatingIfNeeded: current.term) {
            return Self.judge(bytes, header, &current)
        }
        guard var before = previous,
            header.term == UInt16(truncatingIfNeeded: before.epoch.term)
        else { return .dropped(.term) }
        // Out of the gate while it is changed, so that its windows are not copied.
        previous = nil
        defer { previous = before }
        return Self.judge(bytes, header, &before.epoch)
    }

    private static func judge(
        _ bytes: [UInt8], _ header: DatagramHeader, _ epoch: inout Epoch
    ) -> Verdict {
        guard let window = epoch.windows[header.sender] else { return .dropped(.sender) }
        guard [epoch.own, .everybody, epoch.former?.number].contains(header.receiver) else {
            return .dropped(.receiver)
        }
        guard window.isNew(header.sequence) else { return .dropped(.replay) }
        let end = bytes.count - TagKey.tagByteCount
        guard epoch.key.isTag(bytes[end...], over: bytes[..<end]) else { return .dropped(.tag) }
        _ = epoch.windows[header.sender]?.take(header.sequence)
        return .payload(
            bytes[DatagramHeader.byteCount..<end], from: header.sender, term: epoch.term)
    }
}
