package import TuttiTiming

/// Seals on one channel, whichever term it is.
///
/// A new key reaches rooms by their links, each at its own time. So an answer is sealed with the key that
/// the question came with, and what nobody asked for goes on with the old key for a moment: whoever has
/// the new one takes both, see ``DatagramGate/grace``.
package struct TermSealer: Sendable {
    /// By then whoever is heard has the new key. Shorter than the grace of receivers.
    package static let lag = Nanoseconds.seconds(1)

    private struct Epoch: Sendable {
        var term: UInt64
        var sealer: DatagramSealer
        init(_ key: GroupKey, _ channel: DatagramChannel, as sender: SenderNumber) {
            term = key.term
            sealer = DatagramSealer(key, channel, as: sender)
        }
    }

    private let channel: DatagramChannel
    private var current: Epoch
    private var previous: (epoch: Epoch, replacedAt: LocalInstant)?

    package init(_ key: GroupKey, _ channel: DatagramChannel, as sender: SenderNumber) {
        self.channel = channel
        current = Epoch(key, channel, as: sender)
    }

    /// From now on another key, and numbers from 1.
    package mutating func begin(_ key: GroupKey, as sender: SenderNumber, at now: LocalInstant) {
        previous = (current, now)
        current = Epoch(key, channel, as: sender)
    }

    /// Used last in the present term; what a receiver that begins now is told.
    package var sequence: UInt64 { current.sealer.sequence }

    /// Seals an answer with the key of `term`.
    ///
    /// - Returns: `nil` for a term that is over, and when there are no numbers left.
    package mutating func seal(
        _ payload: [UInt8], to receiver: SenderNumber, in term: UInt64, at now: LocalInstant
    ) -> [UInt8]? {
        if term == current.term { return current.sealer.seal(payload, to: receiver) }
        guard let previous, previous.epoch.term == term else { return nil }
        guard now - previous.replacedAt < DatagramGate.grace else {
            self.previous = nil
            return nil
        }
        return self.previous?.epoch.sealer.seal(payload, to: receiver)
    }

    /// Seals what nobody asked for.
    ///
    /// - Parameter term: of the receiver's first key; it knows none before.
    package mutating func seal(
        _ payload: [UInt8], to receiver: SenderNumber, knowing term: UInt64 = 0,
        at now: LocalInstant
    ) -> [UInt8]? {
        if let previous, previous.epoch.term >= term, now - previous.replacedAt < Self.lag {
            return seal(payload, to: receiver, in: previous.epoch.term, at: now)
        }
        return current.sealer.seal(payload, to: receiver)
    }
}
