import Testing
import TuttiChance
import TuttiGroupControl
import TuttiTiming

@testable import TuttiWire

@Suite struct `Messages as bytes` {
    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `every message comes back as it was`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<400 {
            let message = random.envelope()
            #expect(try MessageCodec.decode(MessageCodec.encode(message)) == message)
        }
    }

    @Test func `a full queue with the longest titles fits one message`() {
        let title = String(repeating: "x", count: AssetDescriptor.longestTitle)
        let item = try! AssetDescriptor(
            hash: ContentHash(words: (.max, .max, .max, .max)), byteCount: .max,
            sampleRate: 768_000, frameCount: AssetDescriptor.mostFrames, title: title,
            fileExtension: "abcdefghijklmnop",
            piecesRoot: ContentHash(words: (.max, .max, .max, .max)))
        let state = SessionState(
            term: .max, sequence: .max,
            queue: Array(repeating: item, count: SessionState.longestQueue),
            index: SessionState.longestQueue - 1, change: nil, phase: .playing)
        #expect(MessageCodec.encode(.state(state)).count <= FrameDecoder.roomLimit)
    }

    @Test func `so does what rooms are told for the loss of their leader`() {
        let title = String(repeating: "x", count: AssetDescriptor.longestTitle)
        let item = QueueListing.Item(
            id: .max, title: title, state: .unplayable, durationSeconds: 1e9,
            reason: String(repeating: "y", count: LeaderMachine.longestReason))
        let handover = Handover(
            items: Array(repeating: item, count: SessionState.longestQueue))
        let succession = Succession(
            precedence: Precedence(reign: .max, term: .max), handover: handover)
        let bytes = MessageCodec.encode(.succession(succession))
        #expect(bytes.count <= FrameDecoder.roomLimit)
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `notices come back as they were, and damaged ones are refused or read`(seed: UInt64) throws
    {
        var random = SplitMix64(seed: seed)
        for _ in 0..<500 {
            let notice = CommitDatagram(
                instance: random.next(), term: random.next(),
                commit: Commit(
                    id: random.next(), index: Int.random(in: 0...9, using: &random),
                    hash: random.hash(), change: random.change(),
                    following: Bool.random(using: &random)))
            var bytes = MessageCodec.encode(notice)
            #expect(bytes.count <= MessageCodec.longestNotice)
            #expect(try MessageCodec.decodeNotice(bytes) == notice)
            for _ in 0..<3 {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(
                    in: 0...255, using: &random)
            }
            _ = try? MessageCodec.decodeNotice(bytes)
            _ = try? MessageCodec.decodeNotice(
                Array(bytes.prefix(Int.random(in: 0...40, using: &random))))
        }
        #expect(throws: WireError.self) { try MessageCodec.decodeNotice([]) }
        #expect(throws: WireError.self) {
            try MessageCodec.decodeNotice([UInt8](repeating: 0, count: 300))
        }
    }

    /// A person with 256 rooms gets their status too.
    @Test func `the longest status with every history fits into a frame of a client`() {
        let long = String(repeating: "x", count: RoomReport.longestText)
        var random = SplitMix64(seed: 1)
        var report = random.report()
        report.detail = long
        report.roundTrip = .seconds(1)
        report.sync.card = .seconds(1)
        (report.activity, report.sync.quality) = (.playing, .locked)
        let end = GroupInstant(nanoseconds: 0) + .seconds(399)
        var room = RoomStatus(
            name: String(repeating: "n", count: 64), report: report, settings: random.settings(),
            reportedAt: end, history: random.history(400), at: end, hasPoints: true)
        room.sync?.parts.calibrationMicroseconds = 1
        #expect(room.sync?.history.errors.count == SyncHistory.capacity)
        let status = GroupStatus(
            leader: long, phase: .playing, title: long, index: 1, count: 2, positionSeconds: 1,
            durationSeconds: 2, rate: 1,
            detail: String(repeating: "d", count: LeaderMachine.longestDetail),
            rooms: Array(repeating: room, count: LeaderMachine.mostMembers))
        let bytes = MessageCodec.encode(.status(status))
        #expect(bytes.count <= FrameDecoder.clientLimit)
        #expect((try? MessageCodec.decode(bytes)) == .reply(.status(status)))
    }

    /// A mad room stays in the group, and everybody's arithmetic and tables hold.
    @Test(arguments: [Int64.min, .max, -1, 0, 1 << 62])
    func `figures that cannot be are brought back to what can`(wild: Int64) throws {
        var raw = PBReport(RoomReport(activity: .playing))
        (raw.clockDeviation, raw.clockBound, raw.error) = (wild, wild, wild)
        raw.bufferSeconds = Double(wild)
        (raw.cardPartsPerMillion, raw.ratioPartsPerMillion) = (Double(wild) / 1e3, -Double(wild))
        (raw.dropouts, raw.xruns) = (.max, .max)
        (raw.sync.path, raw.sync.card, raw.sync.target) = (wild, wild, wild)
        (raw.sync.expectedClock, raw.sync.expectedCard, raw.sync.clockAge) = (wild, wild, wild)
        (raw.sync.packetsSent, raw.sync.packetsRejected) = (.max, .max)
        (raw.sync.broadcasts.spread, raw.sync.broadcasts.noise) = (wild, wild)
        raw.sync.skewPartsPerMillion = Double(wild)
        guard raw.bufferSeconds.magnitude <= 1e18 else { return }
        let report = try raw.checked("report")
        let hour = Nanoseconds.seconds(3_600)
        let spans = [
            report.clockDeviation, report.clockBound, report.error, report.sync.path,
            report.sync.card ?? .zero, report.sync.target, report.sync.expectedClock,
            report.sync.expectedCard, report.sync.broadcasts.spread, report.sync.broadcasts.noise,
        ]
        #expect(spans.allSatisfy { $0.magnitude <= hour })
        #expect((0...3_600).contains(report.bufferSeconds))
        #expect(report.cardPartsPerMillion.magnitude <= 1e5)
        #expect(report.ratioPartsPerMillion.magnitude <= 1e5)
        #expect(report.sync.skewPartsPerMillion.magnitude <= 1e5)
        #expect(report.dropouts + report.xruns < 1 << 40)
        #expect(report.sync.clockAge >= .zero)
    }

    @Test func `a status of a mad leader can be added up and shown`() throws {
        var random = SplitMix64(seed: 3)
        var raw = PBGroupStatus()
        raw.phase = .playing
        (raw.positionSeconds, raw.durationSeconds, raw.rate) = (-1e18, 1e18, 1e18)
        var room = PBRoomStatus(
            RoomStatus(name: "x", report: random.report(), settings: random.settings()))
        (room.dropouts, room.xruns, room.bufferSeconds) = (.max, .max, -1e15)
        (room.errorMicroseconds, room.clockOffsetMicroseconds) = (-1e18, 1e18)
        room.sync = PBSyncStatus(SyncStatus())
        (room.sync.targetMicroseconds, room.sync.reportAgeSeconds) = (1e18, 1e18)
        raw.rooms = [room]
        let status = try raw.checked()
        let checked = try #require(status.rooms.first)
        #expect(checked.dropouts + checked.xruns < 1 << 40)
        #expect(checked.bufferSeconds == 0)
        #expect(checked.errorMicroseconds == -3.6e9)
        #expect(status.positionSeconds == 0 && status.durationSeconds <= 1e8 && status.rate <= 4)
        #expect(checked.sync?.targetMicroseconds == 3.6e9)
    }

    @Test func `a key for datagrams has a number that is somebody's, and is not printed`() throws {
        var random = SplitMix64(seed: 8)
        let key = random.datagramKey()
        #expect(try PBDatagramKey(key).checked("key") == key)
        for sender in [0, UInt32(UInt16.max), 65_536] {
            var raw = PBDatagramKey(key)
            raw.sender = sender
            let error = #expect(throws: WireError.self) { try raw.checked("key") }
            #expect(error?.subject == "key.sender")
        }
        let secret = "\(key.secret[0]), \(key.secret[1])"
        for text in ["\(LeaderToRoom.datagramKey(key))", String(reflecting: key)] {
            #expect(!text.contains(secret))
        }
    }

    @Test func `wrong figures of lockstep are refused by their name`() {
        func expect(_ subject: String, _ spoil: (inout PBSyncReport) -> Void) {
            var raw = PBSyncReport(SyncReport())
            #expect(throws: Never.self) { try raw.checked("sync") }
            spoil(&raw)
            do throws(WireError) {
                _ = try raw.checked("sync")
                Issue.record("\(subject) was accepted")
            } catch {
                #expect(error.subject == "sync.\(subject)")
            }
        }
        expect("quality") { $0.quality = .unspecified }
        expect("quality") { $0.quality = .UNRECOGNIZED(9) }
        expect("skew") { $0.skewPartsPerMillion = .nan }
        expect("skew deviation") { $0.skewDeviationPartsPerMillion = .infinity }
        expect("sent") { $0.packetsSent = -1 }
        expect("rejected") { $0.packetsRejected = .min }
        expect("latency offset") { $0.latencyOffset = .max }
        expect("latency offset") { $0.latencyOffset = .min }
        expect("latency offset") { $0.latencyOffset = 1_500 }
        expect("latency offset") { $0.latencyOffset = -500_001_000 }
        expect("latency offset") { $0.latencyOffsetUncertainty = .min }
        expect("latency offset") { $0.latencyOffsetUncertainty = -1_000 }
        expect("latency offset") { $0.latencyOffsetUncertainty = 500_001_000 }
    }

    @Test func `an offset beyond what can be is refused by its name`() {
        let impossible: [(Int64, Int64?)] = [
            (.min, nil), (.max, nil), (500_001, nil), (0, -1), (0, .min), (0, .max), (0, 500_001),
        ]
        for (microseconds, uncertainty) in impossible {
            var order = PBCommand()
            order.latencyOffset.room = "bath"
            order.latencyOffset.microseconds = microseconds
            if let uncertainty { order.latencyOffset.uncertaintyMicroseconds = uncertainty }
            let error = #expect(throws: WireError.self) { try order.checked() }
            #expect(error?.description.contains("latency offset") == true)
            // Whole microseconds, or it would be refused for not being that.
            var message = PBLeaderToRoom()
            message.latencyOffset.offset = Self.thousandfold(microseconds)
            if let uncertainty {
                message.latencyOffset.uncertainty = Self.thousandfold(uncertainty)
            }
            let refusal = #expect(throws: WireError.self) { try message.checked() }
            #expect(refusal?.description.contains("500000") == true, "\(refusal as Any)")
        }
    }

    /// As far as there are such numbers.
    private static func thousandfold(_ number: Int64) -> Int64 {
        let limit = Int64.max / 1_000
        return max(-limit, min(limit, number)) * 1_000
    }

    @Test func `a history that is too long or not of numbers is refused`() {
        for spoil in [
            { $0.errors = Array(repeating: 0, count: SyncHistory.capacity + 1) },
            { ($0.errors, $0.bounds, $0.ages) = ([1], [.nan], [0]) },
            { $0.ages = [1] },
            { ($0.errors, $0.bounds, $0.ages) = ([1], [1], [1e30]) },
            { ($0.errors, $0.bounds, $0.ages) = ([1], [1], [-1]) },
            { ($0.errors, $0.bounds, $0.ages) = ([1, 2], [1, 2], [1]) }, { $0.seconds = -1 },
            { $0.error.max = .infinity },
        ] as [(inout PBSyncHistory) -> Void] {
            var raw = PBSyncHistory(SyncStatus.History())
            #expect(throws: Never.self) { try raw.checked("history") }
            spoil(&raw)
            #expect(throws: WireError.self) { try raw.checked("history") }
        }
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `random bytes are refused or read, never fatal`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<25_000 {
            let count = Int.random(in: 0...24, using: &random)
            var bytes: [UInt8] = [8, 1]  // often the right format, to get further
            if Bool.random(using: &random) { bytes = [] }
            for _ in 0..<count { bytes.append(UInt8.random(in: 0...255, using: &random)) }
            _ = try? MessageCodec.decode(bytes)
        }
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `damaged messages are refused or read, never fatal`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<1_000 {
            var bytes = MessageCodec.encode(random.envelope())
            if Bool.random(using: &random) {
                bytes.removeLast(Int.random(in: 0...bytes.count, using: &random))
            }
            for _ in 0..<3 where !bytes.isEmpty {
                let place = Int.random(in: bytes.indices, using: &random)
                bytes[place] = UInt8.random(in: 0...255, using: &random)
            }
            if case .toRoom(.state(let state))? = try? MessageCodec.decode(bytes) {
                _ = state.endInstant
                _ = state.itemFrame(at: GroupInstant(nanoseconds: .max))
            }
        }
    }

    /// One field at a time is made wrong in an otherwise good message.
    @Test func `each wrong value is refused by its name`() {
        var asset = PBAsset()
        asset.hash = PBHash()
        asset.sampleRate = 44_100
        asset.frameCount = 10
        var prepare = PBPreparation()
        prepare.asset = asset
        prepare.rate = 1
        expect("prepare.item frame", prepare) { $0.itemFrame = -1 }
        expect("prepare.item frame", prepare) { $0.itemFrame = 11 }
        expect("prepare.rate", prepare) { $0.rate = .nan }
        expect("prepare.rate", prepare) { $0.rate = 0 }
        expect("prepare.asset", prepare) { $0.clearAsset() }
        expect("prepare.asset.hash", prepare) { $0.asset.clearHash() }
        expect("prepare.asset", prepare) { $0.asset.sampleRate = 0 }
        expect("prepare.asset", prepare) { $0.asset.frameCount = -3 }
        expect("prepare.asset", prepare) { $0.asset.fileExtension = "../../x" }
        expect("prepare.asset.title", prepare) {
            $0.asset.title = String(repeating: "y", count: 201)
        }
        expect("prepare.change.rate", prepare) { $0.change.rate = .infinity }
        expect("prepare.change", prepare) { $0.change.rate = -1 }
    }

    private func expect(
        _ subject: String, _ message: PBPreparation, _ spoil: (inout PBPreparation) -> Void
    ) {
        var spoiled = message
        #expect(throws: Never.self) { try message.checked() }
        spoil(&spoiled)
        do {
            _ = try spoiled.checked()
            Issue.record("\(subject) was accepted")
        } catch {
            #expect(error.subject == subject)
        }
    }

    @Test func `another format and an empty envelope are refused`() {
        var raw = PBEnvelope()
        raw.format = 2
        raw.request.status = PBNothing()
        expect(.otherVersion, raw)
        raw.format = 1
        raw.content = nil
        expect(.missing, raw)
        raw.toLeader.hello.room = "a\u{7}b"
        expect(.outOfRange, raw)
        raw.toLeader.ready.latency = .min
        expect(.outOfRange, raw)
        raw.toRoom.welcome.timePort = 65_536
        expect(.outOfRange, raw)
        raw.request.command.seekSeconds = .nan
        expect(.outOfRange, raw)
    }

    private func expect(_ code: WireError.Code, _ raw: PBEnvelope) {
        do throws(WireError) {
            _ = try MessageCodec.checked(raw)
            Issue.record("\(raw) was accepted")
        } catch {
            #expect(error.code == code)
        }
    }
}
