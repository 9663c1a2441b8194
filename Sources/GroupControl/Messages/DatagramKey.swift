/// What somebody needs who takes part in a leader's datagrams: time requests and replies, reference
/// broadcasts and commits carry a tag that nobody can make without it.
///
/// Goes over a link of the leader's, and nowhere else.
public struct DatagramKey: Equatable, Sendable, CustomStringConvertible {
    /// Bytes of a secret.
    public static let secretByteCount = 32

    /// Of the key; rises with each, whoever leads.
    public var term: UInt64
    /// ``secretByteCount`` bytes that the leader has drawn.
    public var secret: [UInt8]
    /// The number of whoever gets this, which nobody else has in this term; 0 is the leader.
    public var sender: UInt16
    /// Used last by the leader for time replies.
    public var clockSequence: UInt64
    /// The same for reference broadcasts.
    public var beaconSequence: UInt64
    /// The same for commits.
    public var commitSequence: UInt64

    /// A key; the secret has ``secretByteCount`` bytes.
    public init(
        term: UInt64, secret: [UInt8], sender: UInt16, clockSequence: UInt64 = 0,
        beaconSequence: UInt64 = 0, commitSequence: UInt64 = 0
    ) {
        self.term = term
        self.secret = secret
        self.sender = sender
        self.clockSequence = clockSequence
        self.beaconSequence = beaconSequence
        self.commitSequence = commitSequence
    }

    /// Says nothing of the secret: messages are written to logs.
    public var description: String { "the datagram key of term \(term) for sender \(sender)" }
}

extension DatagramKey: CustomReflectable {
    /// The same for whoever looks into it.
    public var customMirror: Mirror {
        Mirror(self, children: ["term": term, "sender": sender], displayStyle: .struct)
    }
}
