package import TuttiTiming

/// A leader's side of all tags: whose time requests it takes, and how its replies, reference broadcasts
/// and commits are sealed.
///
/// One value, so that what a room is told with the key (``grant(to:at:)``) is true of one moment.
package struct LeaderTags: Sendable {
    /// Who is to be answered, and with which key.
    package struct Asker: Equatable, Sendable {
        package var number: SenderNumber
        package var term: UInt64

        package init(number: SenderNumber, term: UInt64) {
            self.number = number
            self.term = term
        }
    }

    private var key: GroupKey
    private var numbers = SenderNumbers()
    /// The term in which a link got its first key.
    private var knownSince: [Int: UInt64] = [:]
    private var requests: DatagramGate
    private var replies: TermSealer
    private var beacons: TermSealer
    private var commits: TermSealer

    /// - Parameter key: of the term that ``firstTerm(of:)`` gives.
    package init(_ key: GroupKey) {
        self.key = key
        requests = DatagramGate(key, DatagramChannel(.clock, .toLeader), as: .leader)
        replies = TermSealer(key, DatagramChannel(.clock, .fromLeader), as: .leader)
        beacons = TermSealer(key, DatagramChannel(.beacon, .fromLeader), as: .leader)
        commits = TermSealer(key, DatagramChannel(.commit, .fromLeader), as: .leader)
    }

    /// The term of a leader's first key: the session's in the upper half, so that it rises from leader to
    /// leader, and a count below, which goes up by one with every other key. The count begins where that
    /// of the leader before has not been: datagrams name 16 bits of the term, and old ones are told
    /// apart by them.
    package static func firstTerm(of session: UInt64) -> UInt64 {
        session << 32 | (session & 0xFF) << 8
    }

    package var term: UInt64 { key.term }

    // MARK: Links

    /// What the room at the other end of this link is told.
    ///
    /// - Returns: `nil` when there is no number left: begin another term.
    package mutating func grant(to link: Int) -> DatagramGrant? {
        guard let entry = numbers.enter(link) else { return nil }
        if let forgotten = entry.forgotten { forbid(forgotten) }
        do {
            try requests.allow(entry.number)
        } catch {
            return nil
        }
        if knownSince[link] == nil { knownSince[link] = term }
        return DatagramGrant(
            key: key, number: entry.number,
            sequences: DatagramGrant.Sequences(
                clock: replies.sequence, beacon: beacons.sequence, commit: commits.sequence))
    }

    /// A link has ended. Its room may still ask for the time, until it has another one or the term
    /// ends; with the key of the term before, which is all that somebody who was removed has, it
    /// may not.
    package mutating func end(_ link: Int) {
        knownSince[link] = nil
        if let number = numbers[link] { requests.forbid(number, in: term &- 1) }
        if let forgotten = numbers.end(link) { forbid(forgotten) }
    }

    /// Another key: every link that there is has to be told, and nobody else can.
    ///
    /// - Parameter secret: 32 bytes that nobody can guess.
    /// - Returns: what to tell, by link.
    package mutating func begin(
        _ secret: [UInt8], at now: LocalInstant
    ) throws(TrustError) -> [(link: Int, grant: DatagramGrant)] {
        let next = try GroupKey(term: term + 1, secret: secret)
        try requests.begin(next, as: .leader, at: now)
        replies.begin(next, as: .leader, at: now)
        beacons.begin(next, as: .leader, at: now)
        commits.begin(next, as: .leader, at: now)
        for number in numbers.beginTerm() { requests.forbid(number, in: term) }
        key = next
        return numbers.links.compactMap { link in grant(to: link).map { (link, $0) } }
    }

    private mutating func forbid(_ number: SenderNumber) {
        for term in [term &- 1, term] { requests.forbid(number, in: term) }
    }

    // MARK: Datagrams

    /// - Returns: what a member asks; `nil` for anything else, which is counted.
    package mutating func open(
        request bytes: [UInt8], at now: LocalInstant
    ) -> (payload: ArraySlice<UInt8>, asker: Asker)? {
        guard case .payload(let payload, let number, let term) = requests.receive(bytes, at: now)
        else { return nil }
        return (payload, Asker(number: number, term: term))
    }

    /// - Returns: `nil` where the asker's term is over.
    package mutating func seal(
        reply payload: [UInt8], to asker: Asker, at now: LocalInstant
    ) -> [UInt8]? {
        replies.seal(payload, to: asker.number, in: asker.term, at: now)
    }

    package mutating func seal(beacon payload: [UInt8], at now: LocalInstant) -> [UInt8]? {
        beacons.seal(payload, to: .everybody, at: now)
    }

    /// - Returns: `nil` for a link that has no key.
    package mutating func seal(
        commit payload: [UInt8], to link: Int, at now: LocalInstant
    ) -> [UInt8]? {
        guard let number = numbers[link], let since = knownSince[link] else { return nil }
        return commits.seal(payload, to: number, knowing: since, at: now)
    }

    /// Requests that were dropped, by reason.
    package var dropped: [DatagramGate.Reason: Int] { requests.dropped }
}
