/// Datagrams that were not let in where they carry tags, since the node began.
public struct DatagramDrops: Codable, Equatable, Sendable {
    /// Without a good tag: forged, changed on the way, or of somebody who has no key.
    public var untagged: Int
    /// Let in before.
    public var replayed: Int
    /// Of a key that is over, or that has not come here yet: a moment of these after the key changed
    /// is nothing to worry about.
    public var ofOtherTerm: Int

    /// Counts; what is negative is 0.
    public init(untagged: Int = 0, replayed: Int = 0, ofOtherTerm: Int = 0) {
        self.untagged = max(0, untagged)
        self.replayed = max(0, replayed)
        self.ofOtherTerm = max(0, ofOtherTerm)
    }

    /// None.
    public static let zero = DatagramDrops()

    /// "12 without a good tag, 3 replayed"; empty where there are none.
    public var words: String {
        [
            (untagged, "without a good tag"), (replayed, "replayed"),
            (ofOtherTerm, "of another term"),
        ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
    }
}
