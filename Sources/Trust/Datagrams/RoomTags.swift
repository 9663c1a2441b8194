package import TuttiTiming

/// A room's side of all tags: what it believes of its leader, and how it seals its time requests.
package struct RoomTags: Sendable {
    private var key: GroupKey
    private var number: SenderNumber
    private var requests: DatagramSealer
    private var replies: DatagramGate
    private var beacons: DatagramGate
    private var commits: DatagramGate
    /// By the gates of leaders before.
    private let droppedBefore: [DatagramGate.Reason: Int]

    private static let ask = DatagramChannel(.clock, .toLeader)

    /// - Parameter dropped: what the tags before these have dropped, to be counted on.
    package init(
        _ grant: DatagramGrant, after dropped: [DatagramGate.Reason: Int] = [:]
    ) throws(TrustError) {
        key = grant.key
        number = grant.number
        droppedBefore = dropped
        func gate(
            _ purpose: DatagramChannel.Purpose, _ sequence: UInt64
        ) throws(TrustError) -> DatagramGate {
            var gate = DatagramGate(
                grant.key, DatagramChannel(purpose, .fromLeader), as: grant.number)
            try gate.allow(.leader, after: sequence)
            return gate
        }
        requests = DatagramSealer(key, Self.ask, as: number)
        replies = try gate(.clock, grant.sequences.clock)
        beacons = try gate(.beacon, grant.sequences.beacon)
        commits = try gate(.commit, grant.sequences.commit)
    }

    /// The leader of this key says it again on another link, or another one of its keys: what is under way
    /// is still taken, and what was seen stays seen.
    ///
    /// - Throws: for a key of another leader, and an old one. Nothing changes then; such a key begins
    ///   with tags of its own.
    package mutating func take(_ grant: DatagramGrant, at now: LocalInstant) throws(TrustError) {
        guard grant.key.term >> 32 == key.term >> 32 else {
            throw TrustError(.refused, "group key", "is of another leader")
        }
        if grant.key.isSame(as: key) {
            guard grant.number != number else { return }
            replies.renumber(to: grant.number, at: now)
            beacons.renumber(to: grant.number, at: now)
            commits.renumber(to: grant.number, at: now)
        } else {
            // All three are of one term: what the first does not refuse, the others do not either.
            let sequences = grant.sequences
            try Self.begin(&replies, grant, after: sequences.clock, at: now)
            try Self.begin(&beacons, grant, after: sequences.beacon, at: now)
            try Self.begin(&commits, grant, after: sequences.commit, at: now)
        }
        (key, number) = (grant.key, grant.number)
        requests = DatagramSealer(key, Self.ask, as: number)
    }

    private static func begin(
        _ gate: inout DatagramGate, _ grant: DatagramGrant, after sequence: UInt64,
        at now: LocalInstant
    ) throws(TrustError) {
        try gate.begin(grant.key, as: grant.number, at: now)
        try gate.allow(.leader, after: sequence)
    }

    package var term: UInt64 { key.term }

    /// - Returns: `nil` when there are no numbers left.
    package mutating func seal(request payload: [UInt8]) -> [UInt8]? {
        requests.seal(payload, to: .leader)
    }

    /// - Returns: what the leader answers this room; `nil` for anything else, which is counted.
    package mutating func open(reply bytes: [UInt8], at now: LocalInstant) -> ArraySlice<UInt8>? {
        Self.payload(replies.receive(bytes, at: now))
    }

    /// The same for a reference broadcast.
    package mutating func open(beacon bytes: [UInt8], at now: LocalInstant) -> ArraySlice<UInt8>? {
        Self.payload(beacons.receive(bytes, at: now))
    }

    /// The same for a commit.
    package mutating func open(commit bytes: [UInt8], at now: LocalInstant) -> ArraySlice<UInt8>? {
        Self.payload(commits.receive(bytes, at: now))
    }

    private static func payload(_ verdict: DatagramGate.Verdict) -> ArraySlice<UInt8>? {
        if case .payload(let payload, _, _) = verdict { payload } else { nil }
    }

    /// Datagrams that were dropped, by reason; those of leaders before included.
    package var dropped: [DatagramGate.Reason: Int] {
        [replies, beacons, commits].reduce(droppedBefore) {
            $0.merging($1.dropped, uniquingKeysWith: +)
        }
    }
}
