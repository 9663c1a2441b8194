import TuttiGroupControl
import TuttiLinuxHost
import TuttiTiming
import TuttiTrust

// The tags of datagrams, between what nodes say to one another and what Trust knows of them.

extension DatagramKey {
    init(_ grant: DatagramGrant) {
        self.init(
            term: grant.key.term, secret: grant.key.secretBytes, sender: grant.number.value,
            clockSequence: grant.sequences.clock, beaconSequence: grant.sequences.beacon,
            commitSequence: grant.sequences.commit)
    }

    /// Bytes that nobody can guess: from the kernel's generator.
    static func drawSecret() -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<secretByteCount).map { _ in .random(in: .min ... .max, using: &generator) }
    }
}

extension DatagramGrant {
    init(_ key: DatagramKey) throws(TrustError) {
        self.init(
            key: try GroupKey(term: key.term, secret: key.secret),
            number: SenderNumber(key.sender),
            sequences: Sequences(
                clock: key.clockSequence, beacon: key.beaconSequence, commit: key.commitSequence))
    }
}

extension DatagramDrops {
    init(_ dropped: [DatagramGate.Reason: Int]) {
        let (replayed, other) = (dropped[.replay] ?? 0, dropped[.term] ?? 0)
        let all = dropped.values.reduce(0, +)
        self.init(untagged: all - replayed - other, replayed: replayed, ofOtherTerm: other)
    }
}

extension SharedLeaderTags where Tags == LeaderTags {
    /// The tags of a leader that begins with this session, and a key of its own.
    convenience init(session term: UInt64) {
        do {
            let key = try GroupKey(
                term: LeaderTags.firstTerm(of: term), secret: DatagramKey.drawSecret())
            self.init(LeaderTags(key))
        } catch {
            preconditionFailure("a secret of our own is none: \(error)")
        }
    }

    var drops: DatagramDrops { DatagramDrops(self { $0.dropped }) }

    /// What the room at the other end of this link is told. Where no number is left there is another key
    /// first.
    ///
    /// - Returns: also what to tell others.
    func grant(
        to link: LinkID, at now: LocalInstant
    ) -> (key: DatagramKey?, others: [(link: LinkID, key: DatagramKey)]) {
        if let grant = self({ $0.grant(to: link) }) { return (DatagramKey(grant), []) }
        let others = beginTerm(at: now)
        return (self { $0.grant(to: link) }.map(DatagramKey.init), others)
    }

    /// Another key from now on.
    ///
    /// - Returns: what to tell, by link.
    func beginTerm(at now: LocalInstant) -> [(link: LinkID, key: DatagramKey)] {
        let secret = DatagramKey.drawSecret()
        // Terms go up by one, and a secret of ours is one.
        let grants = try? self { tags throws(TrustError) in try tags.begin(secret, at: now) }
        return (grants ?? []).map { ($0.link, DatagramKey($0.grant)) }
    }
}

/// The keys of a room's datagrams, as its leaders hand them out.
struct RoomKeys: Sendable {
    /// `nil`: they carry no tags.
    private(set) var tags: SharedRoomTags?
    /// Before these tags.
    private var before: [DatagramGate.Reason: Int] = [:]

    var drops: DatagramDrops { DatagramDrops(tags.map { $0 { $0.dropped } } ?? before) }

    /// A leader's welcome says this. Of the leader that the tags are of already they go on, or what is
    /// under way would be lost.
    mutating func begin(_ key: DatagramKey?, at now: LocalInstant) throws(TrustError) {
        guard let key else {
            before = tags.map { $0 { $0.dropped } } ?? before
            tags = nil
            return
        }
        let grant = try DatagramGrant(key)
        if let tags {
            let isTaken = tags { room in (try? room.take(grant, at: now)) != nil }
            if isTaken { return }
        }
        before = tags.map { $0 { $0.dropped } } ?? before
        tags = SharedRoomTags(try RoomTags(grant, after: before))
    }

    /// The leader has another key.
    func change(to key: DatagramKey, at now: LocalInstant) throws(TrustError) {
        let grant = try DatagramGrant(key)
        try tags? { room throws(TrustError) in try room.take(grant, at: now) }
    }
}
