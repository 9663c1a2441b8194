import TuttiChance
import TuttiGroupControl
import TuttiTiming
import TuttiTrust

// Datagrams carry the tags of the household's key, and strangers do what they can to them.

extension World {
    /// The first key of a leader.
    func secret(ofLeader life: Int) -> [UInt8] {
        var draw = SplitMix64(seed: seed, "group key", life)
        return (0..<DatagramKey.secretByteCount).map { _ in
            UInt8(truncatingIfNeeded: draw.next())
        }
    }

    /// What a leader says to a room; with its welcome it gives the key.
    func keyed(_ message: LeaderToRoom, by leader: SimulatedLeader, to link: Int) -> LeaderToRoom {
        guard case .welcome(var welcome) = message else { return message }
        welcome.datagramKey = leader.tags.grant(to: link).map { DatagramKey($0) }
        return .welcome(welcome)
    }

    func takeKey(_ key: DatagramKey?, _ room: SimulatedRoom) {
        guard let grant = key.flatMap({ try? DatagramGrant($0) }) else { return }
        let instant = local(room.life.room)
        if var tags = room.tags, (try? tags.take(grant, at: instant)) != nil {
            room.tags = tags
        } else {
            room.tags = try? RoomTags(grant)
        }
    }

    /// What arrives of a datagram: itself, and in a storm what strangers make of it.
    func arrivals(
        of bytes: [UInt8], at instants: [TrueInstant]
    ) -> [(bytes: [UInt8], at: TrueInstant)] {
        guard let storm = scenario.storm,
            (storm.begins..<storm.ends).contains(now.seconds)
        else { return instants.map { (bytes, $0) } }
        var all: [(bytes: [UInt8], at: TrueInstant)] = []
        for instant in instants {
            all.append((mischief.chance(storm.corruption) ? altered(bytes) : bytes, instant))
            if mischief.chance(storm.replay) {
                let wait = Nanoseconds(seconds: mischief.uniform(1e-6, 3))
                all.append((bytes, instant + wait))
            }
            if mischief.chance(storm.forgery) {
                all.append((altered(bytes), instant + .microseconds(1)))
            }
        }
        return all
    }

    /// Of those that are there.
    var droppedDatagrams: Int {
        let counts =
            rooms.compactMap { $0?.tags?.dropped }
            + [leader, retired].compactMap { $0?.tags.dropped }
        return counts.reduce(0) { $0 + $1.values.reduce(0, +) }
    }

    private func altered(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        let place = Int(mischief.next() % UInt64(bytes.count))
        bytes[place] ^= UInt8(truncatingIfNeeded: 1 + mischief.next() % 255)
        return bytes
    }
}

extension DatagramKey {
    fileprivate init(_ grant: DatagramGrant) {
        self.init(
            term: grant.key.term, secret: grant.key.secretBytes, sender: grant.number.value,
            clockSequence: grant.sequences.clock, beaconSequence: grant.sequences.beacon,
            commitSequence: grant.sequences.commit)
    }
}

extension DatagramGrant {
    fileprivate init(_ key: DatagramKey) throws(TrustError) {
        self.init(
            key: try GroupKey(term: key.term, secret: key.secret),
            number: SenderNumber(key.sender),
            sequences: Sequences(
                clock: key.clockSequence, beacon: key.beaconSequence, commit: key.commitSequence))
    }
}
