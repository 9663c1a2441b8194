package import TuttiTiming

/// What happens to one side of a pairing.
package enum PairingInput: Equatable, Sendable {
    /// Of the other side, from a link that carries it whole.
    case message([UInt8])
    /// A person has typed or confirmed the digits that the other machine shows. Of the member only.
    case accepted(digits: String)
    /// A person does not want it.
    case declined
    /// The shell has done what ``PairingEffect/admit(_:_:)`` asked for: the household as bytes.
    case admitted([UInt8])
    /// The shell could not.
    case notAdmitted(reason: String)
    /// The link is gone.
    case closed
}

/// What the shell does for one side of a pairing, in order.
package enum PairingEffect: Sendable {
    case send([UInt8])
    /// Show the digits and what the other side calls itself. The name proves nothing.
    case show(PairingDigits, MemberName)
    /// Let this key into the household; answer with `.admitted` or `.notAdmitted`.
    case admit(PublicKey, MemberName)
    /// Keep this household instead of one's own: this node belongs to it now.
    case join(Household)
    /// It is over; close the link once everything is sent.
    case end(PairingOutcome)
}

/// How a pairing went.
package enum PairingOutcome: Equatable, Sendable {
    /// The candidate is a member; where the welcome got lost, it learns so from any other member.
    case paired
    /// Nothing has changed. The sentence says why.
    case failed(reason: String)
}

/// The two nodes of a pairing, as one of them sees them.
package struct PairingParties: Equatable, Sendable {
    package var own: PublicKey
    /// The key of the certificate that the other side has proved to have in this very link.
    package var peer: PublicKey
    package var ownName: MemberName

    package init(own: PublicKey, peer: PublicKey, ownName: MemberName) {
        self.own = own
        self.peer = peer
        self.ownName = ownName
    }
}

/// How long a pairing may take from its first message to the person's word. Who walks from one
/// machine to the other needs half of it.
package let pairingLimit = Nanoseconds.seconds(60)
