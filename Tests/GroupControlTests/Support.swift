import TuttiTiming

@testable import TuttiGroupControl

/// An item of so many seconds at 44.1 kHz, told apart by its number.
func asset(
    _ number: UInt64, seconds: Double = 60, sampleRate: Int = 44_100
) -> AssetDescriptor {
    try! AssetDescriptor(
        hash: ContentHash(words: (number, 0, 0, 0)), byteCount: 1_000, sampleRate: sampleRate,
        frameCount: Int64(saturating: seconds * Double(sampleRate)), title: "item \(number)",
        fileExtension: "flac")
}

func configuration(
    queue: [AssetDescriptor] = [asset(1)], rooms: Int = 1, loops: Bool = false, term: UInt64 = 7
) -> LeaderConfiguration {
    LeaderConfiguration(
        name: "attic", queue: queue, roomsToWaitFor: rooms, loops: loops, term: term,
        groupClockEpoch: term, timePort: 7_430, mediaPort: 7_431)
}

func room(_ name: String) -> RoomID { try! RoomID(name) }

/// A leader with a hand on its clock and on every room's answers.
struct Stage {
    var leader: LeaderMachine
    var now = GroupInstant(nanoseconds: 1_000_000_000)
    /// Everything sent so far, oldest first.
    var sent: [(message: LeaderToRoom, link: LinkID)] = []
    var effects: [LeaderEffect] = []

    init(_ configuration: LeaderConfiguration) {
        leader = LeaderMachine(configuration)
        note(leader.advance(to: now))
    }

    private mutating func note(_ new: [LeaderEffect]) {
        effects += new
        for case .send(let message, let link) in new { sent.append((message, link)) }
    }

    mutating func receive(_ message: RoomToLeader, from link: LinkID) {
        note(leader.receive(.received(message, from: link), at: now))
    }

    mutating func close(_ link: LinkID) { note(leader.receive(.closed(link), at: now)) }

    mutating func hello(
        _ link: LinkID, _ name: String, latency: Nanoseconds = .milliseconds(20),
        instance: UInt64? = nil, hasOutput: Bool = true, noticePort: UInt16 = 0,
        doorPort: UInt16 = 0
    ) {
        receive(
            .hello(
                Hello(
                    room: room(name), instance: instance ?? UInt64(link), outputLatency: latency,
                    hasOutput: hasOutput, noticePort: noticePort, doorPort: doorPort,
                    mayLead: doorPort != 0)),
            from: link)
    }

    /// Answers the last preparation this room was asked for.
    mutating func ready(_ link: LinkID, latency: Nanoseconds = .milliseconds(20)) {
        guard let id = preparations(link).last?.id else { return }
        receive(.ready(preparation: id, latency: latency), from: link)
    }

    @discardableResult
    mutating func command(_ command: GroupCommand) -> CommandOutcome {
        let (outcome, new) = leader.perform(command, at: now)
        note(new)
        return outcome
    }

    /// Lets time pass, waking the leader at each of its deadlines; rooms in `heard` report often
    /// enough not to be lost.
    mutating func advance(by span: Nanoseconds, heard: [LinkID] = []) {
        let end = now + span
        while let deadline = leader.nextDeadline, deadline <= end {
            now = max(now, deadline)
            note(leader.advance(to: now))
            precondition(
                leader.nextDeadline.map { $0 > now } ?? true, "a deadline must not stay due")
            for link in heard { receive(.report(report), from: link) }
        }
        now = end
        note(leader.advance(to: now))
    }

    mutating func describe(_ assets: [AssetDescriptor], coming: Int) {
        note(leader.receive(.described(assets, coming: coming), at: now))
    }

    mutating func take(_ input: LeaderInput) { note(leader.receive(input, at: now)) }

    mutating func change(_ hash: ContentHash, to asset: AssetDescriptor?) {
        note(
            leader.receive(
                .changed(hash, to: asset.map { .other($0) } ?? .unplayable(reason: "gone")), at: now
            ))
    }

    var skipped: [AssetDescriptor] {
        effects.compactMap { if case .skipped(let asset, _) = $0 { asset } else { nil } }
    }

    let report = RoomReport(roundTrip: .milliseconds(2))

    func preparations(_ link: LinkID) -> [Preparation] {
        sent.compactMap {
            if case .prepare(let order) = $0.message, $0.link == link { order } else { nil }
        }
    }

    func commits(_ link: LinkID) -> [Commit] {
        sent.compactMap {
            if case .commit(let commit) = $0.message, $0.link == link { commit } else { nil }
        }
    }

    func withdrawn(_ link: LinkID) -> [UInt64] {
        sent.compactMap {
            if case .withdraw(let id) = $0.message, $0.link == link { id } else { nil }
        }
    }

    /// One room joined and playing the first item.
    static func playing(
        _ configuration: LeaderConfiguration = GroupControlTests.configuration(),
        links: [LinkID] = [1]
    ) -> Stage {
        var stage = Stage(configuration)
        for link in links { stage.hello(link, "room \(link)") }
        for link in links { stage.receive(.report(stage.report), from: link) }
        for link in links { stage.ready(link) }
        return stage
    }
}
