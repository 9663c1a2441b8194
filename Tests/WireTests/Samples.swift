import TuttiChance
import TuttiGroupControl
import TuttiTiming

@testable import TuttiWire

/// Any message, of every kind, with values over their whole range.
extension SplitMix64 {
    mutating func envelope() -> Envelope {
        switch Int.random(in: 0..<4, using: &self) {
        case 0: .toLeader(roomToLeader())
        case 1: .toRoom(leaderToRoom())
        case 2:
            .request(request())
        default: .reply(reply())
        }
    }

    mutating func text(_ most: Int = 30) -> String {
        let letters = Array("abcXYZ 019 äßéж音🎵\n")
        let count = Int.random(in: 0...most, using: &self)
        return String((0..<count).map { _ in letters.randomElement(using: &self) ?? "a" })
    }

    mutating func room() -> RoomID {
        (try? RoomID("room \(UInt16.random(in: 0...999, using: &self)) ü")) ?? (try! RoomID("x"))
    }

    mutating func hash() -> ContentHash { ContentHash(words: (next(), next(), next(), next())) }

    mutating func asset() -> AssetDescriptor {
        let count = Int64.random(in: 1...AssetDescriptor.mostFrames, using: &self)
        return try! AssetDescriptor(
            hash: hash(), byteCount: Int64.random(in: 0 ... .max, using: &self),
            sampleRate: Int.random(in: 1...768_000, using: &self),
            frameCount: count,
            title: text(), fileExtension: "flac",
            piecesRoot: Bool.random(using: &self) ? hash() : nil,
            excerpt: Bool.random(using: &self)
                ? AssetDescriptor.Excerpt(
                    firstFrame: AssetDescriptor.mostFrames - count,
                    fileFrameCount: AssetDescriptor.mostFrames) : nil)
    }

    mutating func change() -> RateChange {
        RateChange(
            itemFrame: Int64.random(in: 0...AssetDescriptor.mostFrames, using: &self),
            instant: GroupInstant(nanoseconds: Int64.random(in: .min ... .max, using: &self)),
            rate: Bool.random(using: &self) ? 0 : Double.random(in: 0.25...4, using: &self))
    }

    mutating func span() -> Nanoseconds {
        Nanoseconds(Int64.random(in: -3_600_000_000_000...3_600_000_000_000, using: &self))
    }

    mutating func latencyOffset() -> LatencyOffset {
        let uncertainty =
            Bool.random(using: &self) ? Int.random(in: 0...500_000, using: &self) : nil
        let delay = Int.random(in: -500_000...500_000, using: &self)
        return
            (try? LatencyOffset(
                microseconds: delay, uncertaintyMicroseconds: uncertainty)) ?? .zero
    }

    mutating func number() -> Double { Double.random(in: -1e6...1e6, using: &self) }

    /// What may be of crystals.
    mutating func partsPerMillion() -> Double { Double.random(in: -1e5...1e5, using: &self) }

    mutating func count() -> Int { Int.random(in: 0...Int(Figures.count), using: &self) }

    mutating func age() -> Nanoseconds {
        Nanoseconds(Int64.random(in: 0...Figures.longestSpan.count, using: &self))
    }

    mutating func report() -> RoomReport {
        RoomReport(
            activity: RoomActivity.allCases.randomElement(using: &self) ?? .ready,
            bufferSeconds: Double.random(in: 0...3_600, using: &self), clockDeviation: span(),
            clockBound: span(),
            roundTrip: Bool.random(using: &self) ? span() : nil, stamps: state(),
            cardPartsPerMillion: partsPerMillion(), ratioPartsPerMillion: partsPerMillion(),
            error: span(),
            dropouts: count(),
            xruns: count(), detail: text(), line: line(), sync: sync())
    }

    mutating func state<State: ReportedState>() -> State {
        State.allCases.randomElement(using: &self) ?? .unknown
    }

    mutating func line() -> LineFinding {
        [.nothing, .onLine, .off(by: span()), .otherItem, .silent, .starved, .stray]
            .randomElement(using: &self) ?? .nothing
    }

    mutating func sync() -> SyncReport {
        SyncReport(
            quality: [.none, .holdover, .acquiring, .locked].randomElement(using: &self) ?? .none,
            path: span(), card: Bool.random(using: &self) ? span() : nil, expectedClock: span(),
            expectedCard: span(), target: span(), isAlarming: Bool.random(using: &self),
            skewPartsPerMillion: partsPerMillion(), skewDeviationPartsPerMillion: partsPerMillion(),
            ownStamps: state(), leaderStamps: state(), cardClass: state(), cardFormat: text(),
            packetsSent: count(),
            packetsAnswered: count(),
            packetsRejected: count(),
            clockRestarts: count(), clockAge: age(),
            latencyOffset: latencyOffset(), isLatencyOffsetFixed: Bool.random(using: &self),
            broadcasts: BroadcastReport(
                state: state(), rooms: Int.random(in: 0...255, using: &self), spread: span(),
                correction: span(), noise: span()),
            dropped: drops())
    }

    mutating func drops() -> DatagramDrops {
        Bool.random(using: &self)
            ? .zero : DatagramDrops(untagged: count(), replayed: count(), ofOtherTerm: count())
    }

    mutating func datagramKey() -> DatagramKey {
        DatagramKey(
            term: next(),
            secret: (0..<DatagramKey.secretByteCount).map { _ in
                UInt8(truncatingIfNeeded: next())
            },
            sender: UInt16.random(in: 1 ..< .max, using: &self), clockSequence: next(),
            beaconSequence: next(), commitSequence: next())
    }

    mutating func history(_ count: Int) -> SyncHistory {
        var history = SyncHistory()
        for second in 0..<count {
            history.note(
                error: span(), bound: span(),
                at: GroupInstant(nanoseconds: 0) + .seconds(Int64(second)))
        }
        return history
    }

    mutating func roomStatus() -> RoomStatus {
        let name = room().name
        if Bool.random(using: &self) {
            return RoomStatus(name: name, report: report(), settings: settings())
        }
        var status = RoomStatus(
            name: name, report: report(), settings: settings(),
            reportedAt: GroupInstant(nanoseconds: 0),
            history: history(Int.random(in: 0...9, using: &self)),
            at: GroupInstant(nanoseconds: 0)
                + .milliseconds(Int64.random(in: 0...9_000, using: &self)),
            hasPoints: Bool.random(using: &self))
        if Bool.random(using: &self) { status.sync?.parts.calibrationMicroseconds = number() }
        return status
    }

    mutating func settings() -> RoomSettings {
        try! RoomSettings(
            volume: Int.random(in: 0...100, using: &self), muted: Bool.random(using: &self),
            groupVolume: Int.random(in: 0...100, using: &self), role: role())
    }

    mutating func role() -> RoomRole? {
        Bool.random(using: &self) ? RoomRole.allCases.randomElement(using: &self) : nil
    }

    mutating func phase() -> SessionPhase {
        SessionPhase.allCases.randomElement(using: &self) ?? .playing
    }

    mutating func roomToLeader() -> RoomToLeader {
        switch Int.random(in: 0..<7, using: &self) {
        case 0:
            .hello(
                Hello(
                    version: UInt32.random(in: 0...9, using: &self), room: room(),
                    instance: next(), outputLatency: span(),
                    hasOutput: Bool.random(using: &self),
                    noticePort: UInt16.random(in: 0 ... .max, using: &self),
                    doorPort: UInt16.random(in: 0 ... .max, using: &self),
                    mayLead: Bool.random(using: &self),
                    settings: Bool.random(using: &self) ? settings() : nil))
        case 1: .ready(preparation: next(), latency: span())
        case 2: .notReady(preparation: next(), reason: text())
        case 3: .report(report())
        case 4: .lead(.leads(port: UInt16.random(in: 1 ... .max, using: &self)))
        case 5: .lead(.cannot(reason: text()))
        default: .goodbye
        }
    }

    mutating func leaderToRoom() -> LeaderToRoom {
        switch Int.random(in: 0..<18, using: &self) {
        case 16: .separate
        case 17:
            .succession(
                Succession(
                    heirs: [
                        Heir(room: room(), host: text(), port: 7),
                        Heir(room: room(), host: "", port: 8),
                    ],
                    missed: [nextLeader()],
                    precedence: Precedence(reign: next(), term: next()), handover: handover()))
        case 0:
            .welcome(
                Welcome(
                    leaderName: text(),
                    timePort: UInt16.random(in: 0 ... .max, using: &self),
                    mediaPort: UInt16.random(in: 0 ... .max, using: &self), term: next(),
                    groupClockEpoch: next(), groupClockOrigin: next() | 1,
                    crystal: CrystalID(node: next(), boot: next()),
                    room: Bool.random(using: &self) ? room() : nil,
                    datagramKey: Bool.random(using: &self) ? datagramKey() : nil))
        case 14: .datagramKey(datagramKey())
        case 1: .refused(reason: text())
        case 2: preparation()
        case 3:
            .commit(
                Commit(
                    id: next(), index: Int.random(in: 0...9, using: &self), hash: hash(),
                    change: change(), following: Bool.random(using: &self)))
        case 4: .withdraw(preparation: next())
        case 5: .settings(settings())
        case 6: .state(state())
        case 7: .stop
        case 8: .alive
        case 9: .progress(state().progress)
        case 10: .latencyOffset(latencyOffset())
        case 11: .queue(queueChange())
        case 12: .lead(handover())
        case 13: .follow(nextLeader())
        default: .goodbye
        }
    }

    mutating func handover() -> Handover {
        Handover(
            settings: [room(): settings()],
            commonSettings: settings(), repeats: Bool.random(using: &self) ? .all : .one,
            rooms: Int.random(in: 0...9, using: &self), items: listing().items,
            rate: Double.random(in: 0.25...4, using: &self), session: next(),
            addresses: Bool.random(using: &self) ? [next(): text(), 3: "http://nas/a.mp3"] : [:])
    }

    mutating func nextLeader() -> NextLeader {
        NextLeader(
            name: room(), host: text(), port: UInt16.random(in: 1 ... .max, using: &self))
    }

    mutating func sight() -> LeadSight {
        let lead: LeadSight.Lead =
            switch Int.random(in: 0..<3, using: &self) {
            case 0: .own(Precedence(reign: next(), term: next()))
            case 1: .heard(nextLeader())
            default: .none
            }
        return LeadSight(room: room(), origin: next(), lead: lead)
    }

    mutating func queueChange() -> QueueChange {
        QueueChange(
            term: next(), sequence: next(), first: Int.random(in: 0...9_999, using: &self),
            removed: Int.random(in: 0...9_999, using: &self),
            items: (0..<Int.random(in: 0...3, using: &self)).map { _ in asset() },
            index: Int.random(in: 0...9_999, using: &self))
    }

    mutating func preparation() -> LeaderToRoom {
        let asset = asset()
        return .prepare(
            Preparation(
                id: next(), asset: asset,
                itemFrame: Int64.random(in: 0...asset.frameCount, using: &self), rate: 1,
                change: Bool.random(using: &self) ? change() : nil))
    }

    mutating func state() -> SessionState {
        let count = Int.random(in: 0...5, using: &self)
        return SessionState(
            term: next(), sequence: next(), queue: (0..<count).map { _ in asset() },
            index: count == 0 ? 0 : Int.random(in: 0..<count, using: &self),
            change: Bool.random(using: &self) ? change() : nil, phase: phase())
    }

    mutating func command() -> GroupCommand {
        switch Int.random(in: 0..<17, using: &self) {
        case 15: .move(room: room(), to: nextLeader())
        case 16: .separate(room: room())
        case 14: .rate(number())
        case 13: .handOver(to: room())
        case 12: .queue(queueEdit())
        case 8: .seekBy(seconds: number())
        case 9: .seekTo(share: number())
        case 10:
            .volumeBy(
                room: Bool.random(using: &self) ? room() : nil,
                percent: Int.random(in: -200...200, using: &self))
        case 11: .previous
        case 0: .play
        case 1: .pause
        case 2: .seek(seconds: number())
        case 3:
            .volume(
                room: Bool.random(using: &self) ? room() : nil,
                percent: Int.random(in: -5...200, using: &self))
        case 4:
            .mute(
                room: Bool.random(using: &self) ? room() : nil, muted: Bool.random(using: &self))
        case 5: .next
        case 6:
            .latencyOffset(room: room(), latencyOffset())
        default: .stop
        }
    }

    mutating func queueEdit() -> QueueEdit {
        switch Int.random(in: 0..<6, using: &self) {
        case 0: .remove((0..<Int.random(in: 0...5, using: &self)).map { _ in next() })
        case 1: .move(next(), to: Int.random(in: 0...9_999, using: &self))
        case 2: .clear
        case 3: .reorder(seed: next())
        case 4: .repeating(RepeatMode.allCases.randomElement(using: &self) ?? .off)
        default: .play(next())
        }
    }

    mutating func listing() -> QueueListing {
        QueueListing(
            revision: next(), count: 12, coming: 3,
            current: Bool.random(using: &self) ? 4 : nil, phase: phase(), repeats: .one, first: 2,
            items: [
                QueueListing.Item(
                    id: next(), title: text(), state: .known,
                    durationSeconds: number().magnitude),
                QueueListing.Item(
                    id: next(), title: text(), state: .known,
                    durationSeconds: number().magnitude, reason: "away"),
                QueueListing.Item(id: next(), title: text(), state: .unread),
                QueueListing.Item(id: next(), title: text(), state: .unread, reason: "away"),
                QueueListing.Item(
                    id: next(), title: text(), state: .unplayable, reason: text()),
            ], leftOut: [text(), text()], leftOutCount: next())
    }

    mutating func request() -> ControlRequest {
        switch Int.random(in: 0..<10, using: &self) {
        case 9:
            .lead(claim: Bool.random(using: &self) ? LeadClaim(sight: sight(), port: 7) : nil)
        case 8: .datagramKey
        case 5: .wanted(ahead: Int.random(in: 0...24, using: &self), most: 24)
        case 6:
            .read([
                ReadItem(id: next(), outcome: .known(asset())),
                ReadItem(id: next(), outcome: .unplayable(reason: text())),
            ])
        case 0: .status
        case 1: .syncStatus
        case 2: .queue(first: Int.random(in: 0...9_999, using: &self), count: 500)
        case 3:
            .add(
                QueueAddition(
                    locations: ["/music/a b.flac", "http://nas.local/x"],
                    place: [.end, .next, .position(7)].randomElement(using: &self) ?? .end))
        case 4: .watch
        default: .command(command())
        }
    }

    mutating func reply() -> ControlReply {
        switch Int.random(in: 0..<8, using: &self) {
        case 7: .lead(sight())
        case 6: .datagramKey(Bool.random(using: &self) ? datagramKey() : nil)
        case 3: .queue(listing())
        case 5: .wanted([next(), next()])
        case 4:
            .event(
                GroupEvent(
                    sequence: next(),
                    status: GroupStatus(
                        leader: text(), phase: phase(), title: text(), index: 3, count: 7,
                        positionSeconds: 1, durationSeconds: 2, rate: 1, repeats: .all,
                        queueRevision: next(), rooms: [])))
        case 0:
            .done(
                CommandEffect(
                    phase: .playing, title: text(), instant: GroupInstant(nanoseconds: 5),
                    delay: .milliseconds(-3), positionSeconds: 1.5,
                    rooms: [CommandEffect.Loudness(room: "attic", volume: 40, isMuted: true)],
                    groupVolume: Bool.random(using: &self) ? 40 : nil))
        case 1: .refused(reason: text())
        default:
            .status(
                GroupStatus(
                    leader: text(), phase: phase(), title: text(), index: 3, count: 7,
                    positionSeconds: number().magnitude, durationSeconds: number().magnitude,
                    rate: 1,
                    sampleRate: 44_100,
                    detail: Bool.random(using: &self) ? text() : nil,
                    dropped: Bool.random(using: &self) ? drops() : nil, volume: 37, session: "1f",
                    sessionTerm: next(),
                    rooms: (0..<3).map { _ in roomStatus() }))
        }
    }
}
