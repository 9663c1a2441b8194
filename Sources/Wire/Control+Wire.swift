import TuttiGroupControl
import TuttiTiming

// Messages between a control client and a leader.

extension PBControlRequest {
    init(_ request: ControlRequest) {
        self.init()
        switch request {
        case .command(let command): self.command = PBCommand(command)
        case .status: status = PBNothing()
        case .syncStatus: syncStatus = PBNothing()
        case .queue(let first, let count):
            var part = PBQueuePart()
            part.first = Int32(clamping: first)
            part.count = Int32(clamping: count)
            queue = part
        case .add(let addition): add = PBQueueAddition(addition)
        case .wanted(let ahead, let most):
            wanted.ahead = Int32(clamping: ahead)
            wanted.most = Int32(clamping: most)
        case .read(let items): read.items = items.map(PBReadItems.Item.init)
        case .watch: watch = PBNothing()
        case .datagramKey: datagramKey = PBNothing()
        case .lead(let claim):
            lead = PBLeadQuestion()
            if let claim {
                lead.claim = PBLeadSight(claim.sight)
                lead.port = UInt32(claim.port)
            }
        }
    }

    func checked() throws(WireError) -> ControlRequest {
        switch content {
        case .command(let command): .command(try command.checked())
        case .status: .status
        case .syncStatus: .syncStatus
        case .queue(let part):
            .queue(
                first: try TuttiWire.index(part.first, "queue.first"),
                count: try TuttiWire.index(part.count, "queue.count"))
        case .add(let addition): .add(try addition.checked())
        case .wanted(let wanted):
            .wanted(
                ahead: try TuttiWire.index(wanted.ahead, "wanted.ahead"),
                most: try TuttiWire.index(wanted.most, "wanted.most"))
        case .read(let read): .read(try read.checked())
        case .watch: .watch
        case .datagramKey: .datagramKey
        case .lead(let question): .lead(claim: try question.checked())
        case nil: throw WireError(.missing, "request", "the message is empty")
        }
    }
}

extension PBCommand {
    init(_ command: GroupCommand) {
        self.init()
        switch command {
        case .play: play = PBNothing()
        case .pause: pause = PBNothing()
        case .seek(let seconds): seekSeconds = seconds
        case .seekBy(let seconds): seekBySeconds = seconds
        case .seekTo(let share): seekToShare = share
        case .rate(let rate): self.rate = rate
        case .volume(let room, let percent): volume = PBVolume(room, percent)
        case .volumeBy(let room, let percent): volumeBy = PBVolume(room, percent)
        case .mute(let room, let muted):
            var raw = PBMute()
            raw.room = room?.name ?? ""
            raw.muted = muted
            mute = raw
        case .role(let room, let role):
            var raw = PBRoleChange()
            raw.room = room.name
            raw.role = PBRoomRole(role)
            self.role = raw
        case .latencyOffset(let room, let offset):
            var raw = PBRoomOffset()
            raw.room = room.name
            raw.microseconds = offset.delay.count / 1_000
            if let uncertainty = offset.uncertainty {
                raw.uncertaintyMicroseconds = uncertainty.count / 1_000
            }
            latencyOffset = raw
        case .next: next = PBNothing()
        case .previous: previous = PBNothing()
        case .stop: stop = PBNothing()
        case .handOver(let room): handOver = room.name
        case .move(let room, let next):
            var raw = PBMoveRoom()
            raw.room = room.name
            raw.to = PBNextLeader(next)
            move = raw
        case .separate(let room): separate = room.name
        case .queue(let edit): queue = PBQueueEdit(edit)
        }
    }

    func checked() throws(WireError) -> GroupCommand {
        switch content {
        case .play: .play
        case .pause: .pause
        case .seekSeconds(let seconds): .seek(seconds: try finite(seconds, "seek.seconds"))
        case .seekBySeconds(let seconds): .seekBy(seconds: try finite(seconds, "seek.seconds"))
        case .seekToShare(let share): .seekTo(share: try finite(share, "seek.share"))
        // What no group plays at is the leader's to refuse, in words.
        case .rate(let rate): .rate(try finite(rate, "rate"))
        case .volumeBy(let volume):
            .volumeBy(room: try named(volume.room, "volume.room"), percent: Int(volume.percent))
        case .volume(let volume):
            // Out of 0 to 100 is the leader's to refuse, in words.
            .volume(room: try named(volume.room, "volume.room"), percent: Int(volume.percent))
        case .mute(let mute):
            .mute(room: try named(mute.room, "mute.room"), muted: mute.muted)
        case .role(let change):
            .role(
                room: try valid("role.room") { () throws(InvalidValue) in
                    try RoomID(change.room)
                }, change.role.value)
        case .latencyOffset(let offset):
            .latencyOffset(
                room: try valid("offset.room") { () throws(InvalidValue) in
                    try RoomID(offset.room)
                },
                try valid("offset") { () throws(InvalidValue) in
                    try LatencyOffset(
                        microseconds: Int(clamping: offset.microseconds),
                        uncertaintyMicroseconds: offset.hasUncertaintyMicroseconds
                            ? Int(clamping: offset.uncertaintyMicroseconds) : nil)
                })
        case .next: .next
        case .previous: .previous
        case .stop: .stop
        case .move(let move):
            .move(
                room: try valid("move.room") { () throws(InvalidValue) in
                    try RoomID(move.room)
                }, to: try move.to.checked())
        case .separate(let room):
            .separate(
                room: try valid("separate.room") { () throws(InvalidValue) in
                    try RoomID(room)
                })
        case .handOver(let room):
            .handOver(
                to: try valid("hand over.room") { () throws(InvalidValue) in
                    try RoomID(room)
                })
        case .queue(let edit): .queue(try edit.checked())
        case nil: throw WireError(.missing, "command", "the message is empty")
        }
    }

    private func named(_ name: String, _ subject: String) throws(WireError) -> RoomID? {
        if name.isEmpty { return nil }
        return try valid(subject) { () throws(InvalidValue) in try RoomID(name) }
    }
}

extension PBVolume {
    init(_ room: RoomID?, _ percent: Int) {
        self.init()
        self.room = room?.name ?? ""
        self.percent = Int32(clamping: percent)
    }
}

extension PBControlReply {
    init(_ reply: ControlReply) {
        self.init()
        switch reply {
        case .done(let effect): done = PBCommandEffect(effect)
        case .refused(let reason): refused.reason = reason
        case .status(let status): self.status = PBGroupStatus(status)
        case .queue(let listing): queue = PBQueueListing(listing)
        case .wanted(let ids): wanted.ids = ids
        case .event(let event):
            var raw = PBEvent()
            raw.sequence = event.sequence
            raw.status = PBGroupStatus(event.status)
            self.event = raw
        case .datagramKey(let key): datagramKey = key.map(PBDatagramKey.init) ?? PBDatagramKey()
        case .lead(let sight): lead = PBLeadSight(sight)
        }
    }

    func checked() throws(WireError) -> ControlReply {
        switch content {
        case .done(let effect): .done(try effect.checked())
        case .refused(let refused):
            .refused(reason: try text(refused.reason, "refused.reason", limit: longestReason))
        case .status(let status): .status(try status.checked())
        case .queue(let listing): .queue(try listing.checked())
        case .wanted(let wanted):
            .wanted(Array(wanted.ids.prefix(SessionState.longestQueue)))
        case .event(let event):
            .event(GroupEvent(sequence: event.sequence, status: try event.status.checked()))
        case .datagramKey(let key):
            .datagramKey(key.sender == 0 ? nil : try key.checked("datagram key"))
        case .lead(let sight): .lead(try sight.checked())
        case nil: throw WireError(.missing, "reply", "the message is empty")
        }
    }
}

extension PBReadItems {
    func checked() throws(WireError) -> [ReadItem] {
        guard items.count <= ReadItem.mostTogether else {
            throw WireError(.tooLong, "read.items", "\(items.count) items")
        }
        var read: [ReadItem] = []
        for (place, item) in items.enumerated() {
            let subject = "read.items[\(place)]"
            let outcome: ReadItem.Outcome
            switch item.outcome {
            case .known(let asset): outcome = .known(try asset.checked(subject))
            case .unplayable(let reason):
                outcome = .unplayable(
                    reason: try text(reason, "\(subject).reason", limit: longestReason))
            case nil: throw WireError(.missing, subject, "what became of it is not said")
            }
            read.append(ReadItem(id: item.id, outcome: outcome))
        }
        return read
    }
}

extension PBReadItems.Item {
    init(_ item: ReadItem) {
        self.init()
        id = item.id
        switch item.outcome {
        case .known(let asset): known = PBAsset(asset)
        case .unplayable(let reason): unplayable = reason
        }
    }
}

extension PBCommandEffect {
    init(_ effect: CommandEffect) {
        self.init()
        phase = PBPhase(effect.phase)
        title = effect.title
        if let instant = effect.instant { self.instant = instant.nanoseconds }
        if let delay = effect.delay { self.delay = delay.count }
        if let position = effect.positionSeconds { positionSeconds = position }
        if let volume = effect.groupVolume { groupVolume = Int32(clamping: volume) }
        rooms = effect.rooms.map {
            var room = PBLoudness()
            room.room = $0.room
            room.volume = Int32(clamping: $0.volume)
            room.muted = $0.isMuted
            return room
        }
    }

    func checked() throws(WireError) -> CommandEffect {
        guard rooms.count <= LeaderMachine.mostMembers else {
            throw WireError(.tooLong, "effect.rooms", "\(rooms.count) rooms")
        }
        var effect = CommandEffect(
            phase: try phase.checked("effect.phase"),
            title: try text(title, "effect.title", limit: AssetDescriptor.longestTitle))
        if hasInstant { effect.instant = GroupInstant(nanoseconds: instant) }
        if hasDelay { effect.delay = figure(delay) }
        effect.positionSeconds = try figure(
            positionSeconds, Figures.position, if: hasPositionSeconds, "effect.position")
        if hasGroupVolume { effect.groupVolume = min(max(0, Int(groupVolume)), 100) }
        for room in rooms {
            effect.rooms.append(
                CommandEffect.Loudness(
                    room: try text(room.room, "effect.room", limit: RoomID.longestBytes),
                    volume: min(max(0, Int(room.volume)), 100), isMuted: room.muted))
        }
        return effect
    }
}

extension PBGroupStatus {
    init(_ status: GroupStatus) {
        self.init()
        leader = status.leader
        phase = PBPhase(status.phase)
        title = status.title
        index = Int32(clamping: status.index)
        count = Int32(clamping: status.count)
        positionSeconds = status.positionSeconds
        durationSeconds = status.durationSeconds
        rate = status.rate
        if let sampleRate = status.sampleRate { self.sampleRate = Int32(clamping: sampleRate) }
        if let detail = status.detail { self.detail = detail }
        if let dropped = status.dropped { self.dropped = PBDatagramDrops(dropped) }
        repeats = PBRepeatMode(status.repeats)
        queueRevision = status.queueRevision
        volume = Int32(clamping: status.volume)
        session = status.session
        sessionTerm = status.sessionTerm
        rooms = status.rooms.map(PBRoomStatus.init)
    }

    func checked() throws(WireError) -> GroupStatus {
        guard rooms.count <= LeaderMachine.mostMembers else {
            throw WireError(.tooLong, "status.rooms", "\(rooms.count) rooms")
        }
        var checkedRooms: [RoomStatus] = []
        for (place, room) in rooms.enumerated() {
            checkedRooms.append(try room.checked("status.rooms[\(place)]"))
        }
        return GroupStatus(
            leader: try text(leader, "status.leader", limit: RoomID.longestBytes),
            phase: try phase.checked("status.phase"),
            title: try text(title, "status.title", limit: AssetDescriptor.longestTitle),
            index: try TuttiWire.index(index, "status.index"),
            count: try TuttiWire.index(count, "status.count"),
            positionSeconds: try figure(positionSeconds, Figures.position, "status.position"),
            durationSeconds: try figure(durationSeconds, Figures.position, "status.duration"),
            rate: try figure(rate, Figures.rate, "status.rate"),
            sampleRate: hasSampleRate
                ? min(
                    try TuttiWire.index(sampleRate, "status.sample rate"),
                    AssetDescriptor.highestSampleRate)
                : nil,
            repeats: try repeats.checked("status.repeats"), queueRevision: queueRevision,
            detail: hasDetail
                ? try text(detail, "status.detail", limit: LeaderMachine.longestDetail) : nil,
            dropped: hasDropped ? try dropped.checked("status.dropped") : nil,
            volume: min(max(0, Int(volume)), 100),
            session: try text(session, "status.session", limit: GroupStatus.longestSession),
            sessionTerm: sessionTerm, rooms: checkedRooms)
    }
}

extension PBRoomStatus {
    init(_ room: RoomStatus) {
        self.init()
        name = room.name
        state = PBActivity(room.state)
        bufferSeconds = room.bufferSeconds
        if let offset = room.clockOffsetMicroseconds { clockOffsetMicroseconds = offset }
        if let bound = room.clockBoundMicroseconds { clockBoundMicroseconds = bound }
        if let roundTrip = room.roundTripMicroseconds { roundTripMicroseconds = roundTrip }
        stamps = PBStamps(room.stamps)
        cardPartsPerMillion = room.cardPartsPerMillion
        ratioPartsPerMillion = room.ratioPartsPerMillion
        if let error = room.errorMicroseconds { errorMicroseconds = error }
        volume = Int32(clamping: room.volume)
        role = PBRoomRole(room.role)
        muted = room.muted
        dropouts = Int64(room.dropouts)
        xruns = Int64(room.xruns)
        detail = room.detail
        if let sync = room.sync { self.sync = PBSyncStatus(sync) }
    }

    func checked(_ subject: String) throws(WireError) -> RoomStatus {
        let name = try valid("\(subject).name") { () throws(InvalidValue) in try RoomID(self.name) }
        let report = RoomReport(
            activity: try state.checked("\(subject).state"),
            bufferSeconds: try figure(bufferSeconds, Figures.buffer, "\(subject).buffer"),
            stamps: stamps.kind,
            cardPartsPerMillion: try figure(
                cardPartsPerMillion, Figures.partsPerMillion, "\(subject).card ppm"),
            ratioPartsPerMillion: try figure(
                ratioPartsPerMillion, Figures.partsPerMillion, "\(subject).ratio ppm"),
            dropouts: try TuttiWire.count(dropouts, "\(subject).dropouts"),
            xruns: try TuttiWire.count(xruns, "\(subject).xruns"),
            detail: try text(detail, "\(subject).detail"))
        let settings = try valid(subject) { () throws(InvalidValue) in
            try RoomSettings(volume: Int(volume), muted: muted, role: role.value)
        }
        var room = RoomStatus(name: name.name, report: report, settings: settings)
        room.clockOffsetMicroseconds = try figure(
            clockOffsetMicroseconds, Figures.microseconds, if: hasClockOffsetMicroseconds,
            "\(subject).offset")
        room.clockBoundMicroseconds = try figure(
            clockBoundMicroseconds, Figures.microseconds, if: hasClockBoundMicroseconds,
            "\(subject).bound")
        room.roundTripMicroseconds = try figure(
            roundTripMicroseconds, Figures.microseconds, if: hasRoundTripMicroseconds,
            "\(subject).round trip")
        room.errorMicroseconds = try figure(
            errorMicroseconds, Figures.microseconds, if: hasErrorMicroseconds, "\(subject).error")
        if hasSync { room.sync = try sync.checked("\(subject).sync") }
        return room
    }
}

extension PBRoomRole {
    init(_ role: RoomRole?) {
        self =
            switch role {
            case nil: .unspecified
            case .stereo?: .stereo
            case .left?: .left
            case .right?: .right
            case .mono?: .mono
            }
    }

    /// One that a newer version has is as if nothing was said.
    var value: RoomRole? {
        switch self {
        case .unspecified, .UNRECOGNIZED: nil
        case .stereo: .stereo
        case .left: .left
        case .right: .right
        case .mono: .mono
        }
    }
}
