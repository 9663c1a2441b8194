/// Which sequence numbers of one sender have been seen: each is taken once (RFC 4303, 3.4.3).
///
/// Packets may overtake one another by up to 127 places. What is older than that is taken for seen,
/// because nobody remembers.
package struct ReplayWindow: Equatable, Sendable {
    package static let width: UInt64 = 128

    /// Highest that was taken; 0: none, and nobody sends 0.
    package private(set) var newest: UInt64
    /// Bit `n`: `newest − n` was taken.
    private var seen: UInt128

    /// - Parameter newest: the sender has used all numbers up to this one. A receiver that was
    ///   restarted in the middle of a term learns it with the key, or old packets would be new to it.
    package init(after newest: UInt64 = 0) {
        self.newest = newest
        seen = .max
    }

    /// Whether a number is new. Ask before the tag is checked, take it only after.
    package func isNew(_ sequence: UInt64) -> Bool {
        if sequence > newest { return true }
        let age = newest - sequence
        return age < Self.width && seen >> UInt128(age) & 1 == 0
    }

    /// - Returns: whether it was new.
    package mutating func take(_ sequence: UInt64) -> Bool {
        guard isNew(sequence) else { return false }
        if sequence > newest {
            let step = sequence - newest
            seen = step < Self.width ? seen << UInt128(step) | 1 : 1
            newest = sequence
        } else {
            seen |= 1 << UInt128(newest - sequence)
        }
        return true
    }
}
