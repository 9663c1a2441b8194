/// What a room needs for the datagrams of its leader: the key, its own number in it, and how far the
/// leader has come on each channel, so that nothing captured is new to a room that begins now.
package struct DatagramGrant: Sendable {
    /// Used last by the leader, by channel.
    package struct Sequences: Equatable, Sendable {
        package var clock: UInt64
        package var beacon: UInt64
        package var commit: UInt64

        package init(clock: UInt64 = 0, beacon: UInt64 = 0, commit: UInt64 = 0) {
            self.clock = clock
            self.beacon = beacon
            self.commit = commit
        }
    }

    package var key: GroupKey
    package var number: SenderNumber
    package var sequences: Sequences

    package init(key: GroupKey, number: SenderNumber, sequences: Sequences) {
        self.key = key
        self.number = number
        self.sequences = sequences
    }
}
