import TuttiGroupControl
import TuttiTiming

// Messages between a room and its leader.

extension PBRoomToLeader {
    init(_ message: RoomToLeader) {
        self.init()
        switch message {
        case .hello(let hello): self.hello = PBHello(hello)
        case .ready(let preparation, let latency):
            ready.preparation = preparation
            ready.latency = latency.count
        case .notReady(let preparation, let reason):
            notReady.preparation = preparation
            notReady.reason = reason
        case .report(let report): self.report = PBReport(report)
        case .goodbye: goodbye = PBNothing()
        case .lead(.leads(let port)): lead.port = UInt32(port)
        case .lead(.cannot(let reason)): lead.reason = reason
        }
    }

    func checked() throws(WireError) -> RoomToLeader {
        switch content {
        case .hello(let hello): .hello(try hello.checked())
        case .ready(let ready):
            .ready(
                preparation: ready.preparation, latency: try span(ready.latency, "ready.latency"))
        case .notReady(let answer):
            .notReady(
                preparation: answer.preparation,
                reason: try text(answer.reason, "not ready.reason"))
        case .report(let report): .report(try report.checked("report"))
        case .goodbye: .goodbye
        case .lead(let answer): .lead(try answer.checked())
        case nil: throw WireError(.missing, "room to leader", "the message is empty")
        }
    }
}

extension PBHello {
    init(_ hello: Hello) {
        self.init()
        version = hello.version
        room = hello.room.name
        instance = hello.instance
        outputLatency = hello.outputLatency.count
        hasOutput_p = hello.hasOutput
        noticePort = UInt32(hello.noticePort)
        doorPort = UInt32(hello.doorPort)
        mayLead = hello.mayLead
        if let settings = hello.settings { self.settings = PBRoomSettings(settings) }
    }

    func checked() throws(WireError) -> Hello {
        Hello(
            version: version,
            room: try valid("hello.room") { () throws(InvalidValue) in try RoomID(room) },
            instance: instance, outputLatency: try span(outputLatency, "hello.output latency"),
            hasOutput: hasOutput_p, noticePort: try port(noticePort, "hello.notice port"),
            doorPort: try port(doorPort, "hello.door port"), mayLead: mayLead,
            settings: hasSettings ? try settings.checked("hello.settings") : nil)
    }
}

extension PBLeaderToRoom {
    init(_ message: LeaderToRoom) {
        self.init()
        switch message {
        case .welcome(let welcome): self.welcome = PBWelcome(welcome)
        case .refused(let reason): refused.reason = reason
        case .prepare(let preparation): prepare = PBPreparation(preparation)
        case .commit(let commit): self.commit = PBCommit(commit)
        case .withdraw(let preparation):
            var raw = PBWithdraw()
            raw.preparation = preparation
            withdraw = raw
        case .settings(let settings): self.settings = PBRoomSettings(settings)
        case .state(let state): self.state = PBSessionState(state)
        case .progress(let progress): self.progress = PBSessionProgress(progress)
        case .queue(let change): queue = PBQueueChange(change)
        case .latencyOffset(let offset):
            var raw = PBLatencyOffset()
            raw.offset = offset.delay.count
            if let uncertainty = offset.uncertainty { raw.uncertainty = uncertainty.count }
            latencyOffset = raw
        case .stop: stop = PBNothing()
        case .alive: alive = PBNothing()
        case .goodbye: goodbye = PBNothing()
        case .lead(let handover): lead = PBHandover(handover)
        case .follow(let next): follow = PBNextLeader(next)
        case .datagramKey(let key): datagramKey = PBDatagramKey(key)
        case .succession(let next): succession = PBSuccession(next)
        case .separate: separate = PBNothing()
        }
    }

    func checked() throws(WireError) -> LeaderToRoom {
        switch content {
        case .welcome(let welcome): .welcome(try welcome.checked())
        case .refused(let refused):
            .refused(reason: try text(refused.reason, "refused.reason", limit: longestReason))
        case .prepare(let preparation): .prepare(try preparation.checked())
        case .commit(let commit): .commit(try commit.checked())
        case .withdraw(let withdraw): .withdraw(preparation: withdraw.preparation)
        case .settings(let settings): .settings(try settings.checked("settings"))
        case .state(let state): .state(try state.checked("state"))
        case .progress(let progress): .progress(try progress.checked("progress"))
        case .queue(let change): .queue(try change.checked("queue"))
        case .latencyOffset(let offset):
            .latencyOffset(
                try latency(
                    offset.offset, offset.hasUncertainty ? offset.uncertainty : nil,
                    "latency offset"))
        case .stop: .stop
        case .alive: .alive
        case .goodbye: .goodbye
        case .lead(let handover): .lead(try handover.checked())
        case .follow(let next): .follow(try next.checked())
        case .datagramKey(let key): .datagramKey(try key.checked("datagram key"))
        case .succession(let next): .succession(try next.checked())
        case .separate: .separate
        case nil: throw WireError(.missing, "leader to room", "the message is empty")
        }
    }
}

/// Longest reason of a refusal, bytes: twenty room names fit.
let longestReason = 8_192

extension PBWelcome {
    init(_ welcome: Welcome) {
        self.init()
        version = welcome.version
        leaderName = welcome.leaderName
        timePort = UInt32(welcome.timePort)
        mediaPort = UInt32(welcome.mediaPort)
        term = welcome.term
        groupClockEpoch = welcome.groupClockEpoch
        groupClockOrigin = welcome.groupClockOrigin
        crystalNode = welcome.crystal.node
        crystalBoot = welcome.crystal.boot
        room = welcome.room?.name ?? ""
        if let key = welcome.datagramKey { datagramKey = PBDatagramKey(key) }
    }

    func checked() throws(WireError) -> Welcome {
        Welcome(
            version: version,
            leaderName: try text(leaderName, "welcome.leader", limit: RoomID.longestBytes),
            timePort: try port(timePort, "welcome.time port"),
            mediaPort: try port(mediaPort, "welcome.media port"), term: term,
            groupClockEpoch: groupClockEpoch,
            groupClockOrigin: groupClockOrigin == 0 ? nil : groupClockOrigin,
            crystal: CrystalID(node: crystalNode, boot: crystalBoot),
            room: room.isEmpty
                ? nil : try valid("welcome.room") { () throws(InvalidValue) in try RoomID(room) },
            datagramKey: hasDatagramKey ? try datagramKey.checked("welcome.datagram key") : nil)
    }
}

extension PBDatagramKey {
    init(_ key: DatagramKey) {
        self.init()
        term = key.term
        let words = key.secret.words
        (secretA, secretB, secretC, secretD) = (words[0], words[1], words[2], words[3])
        sender = UInt32(key.sender)
        clockSequence = key.clockSequence
        beaconSequence = key.beaconSequence
        commitSequence = key.commitSequence
    }

    func checked(_ subject: String) throws(WireError) -> DatagramKey {
        // 0 is the leader, the highest is everybody.
        guard let sender = UInt16(exactly: sender), (1 ..< .max).contains(sender) else {
            throw WireError(.outOfRange, "\(subject).sender", "\(sender) is nobody's number")
        }
        return DatagramKey(
            term: term, secret: [UInt8](words: [secretA, secretB, secretC, secretD]),
            sender: sender, clockSequence: clockSequence, beaconSequence: beaconSequence,
            commitSequence: commitSequence)
    }
}

extension [UInt8] {
    /// Of eight bytes each, big-endian; bytes that are missing are 0.
    fileprivate var words: [UInt64] {
        stride(from: 0, to: DatagramKey.secretByteCount, by: 8).map { place in
            (place..<place + 8).reduce(0) { $0 << 8 | UInt64(indices.contains($1) ? self[$1] : 0) }
        }
    }

    fileprivate init(words: [UInt64]) {
        self = words.flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * $0)) }
        }
    }
}

extension PBPreparation {
    init(_ preparation: Preparation) {
        self.init()
        id = preparation.id
        asset = PBAsset(preparation.asset)
        itemFrame = preparation.itemFrame
        rate = preparation.rate
        if let change = preparation.change { self.change = PBRateChange(change) }
    }

    func checked() throws(WireError) -> Preparation {
        let asset = try present(hasAsset ? self.asset : nil, "prepare.asset")
            .checked("prepare.asset")
        guard itemFrame >= 0, itemFrame <= asset.frameCount else {
            throw WireError(
                .outOfRange, "prepare.item frame", "\(itemFrame) of \(asset.frameCount)")
        }
        guard TuttiGroupControl.RateChange.rates.contains(rate) else {
            throw WireError(.outOfRange, "prepare.rate", "\(rate)")
        }
        return Preparation(
            id: id, asset: asset, itemFrame: itemFrame, rate: rate,
            change: hasChange ? try change.checked("prepare.change") : nil)
    }
}

extension PBCommit {
    init(_ commit: Commit) {
        self.init()
        id = commit.id
        index = Int32(clamping: commit.index)
        hash = PBHash(commit.hash)
        change = PBRateChange(commit.change)
        following = commit.following
    }

    func checked() throws(WireError) -> Commit {
        Commit(
            id: id, index: try TuttiWire.index(index, "commit.index"),
            hash: try present(hasHash ? hash : nil, "commit.hash").checked,
            change: try present(hasChange ? change : nil, "commit.change")
                .checked("commit.change"), following: following)
    }
}

extension PBCommitDatagram {
    init(_ notice: CommitDatagram) {
        self.init()
        format = MessageCodec.format
        instance = notice.instance
        term = notice.term
        commit = PBCommit(notice.commit)
    }

    func checked() throws(WireError) -> CommitDatagram {
        guard format == MessageCodec.format else {
            throw WireError(.otherVersion, "notice.format", "\(format)")
        }
        return CommitDatagram(
            instance: instance, term: term,
            commit: try present(hasCommit ? commit : nil, "notice.commit").checked())
    }
}
