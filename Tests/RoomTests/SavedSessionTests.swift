import Testing
import TuttiChance
import TuttiGroupControl
import TuttiTiming

@testable import TuttiRoom

/// What is kept of a session over a loss of power.
@Suite struct SavedSessionTests {
    private func session(seed: UInt64) throws -> SavedSession {
        var random = SplitMix64(seed: seed)
        let names = [
            "a b.flac", "-", "100%.mp3", "http://nas.local/x?y=1", "z\u{301}\n.ogg", "%2D",
        ]
        var session = SavedSession(session: random.next(), term: random.next(), items: [])
        for id in 0..<UInt64.random(in: 0...5, using: &random) {
            var location: String?
            if Bool.random(using: &random) {
                location = "/" + (names.randomElement(using: &random) ?? "")
            }
            let hash = ContentHash(
                words: (random.next(), random.next(), random.next(), random.next()))
            var span: CueSpan?
            if Bool.random(using: &random) {
                span = CueSpan(first: 75, end: Bool.random(using: &random) ? 750 : nil)
            }
            session.items.append(
                SavedSession.Item(
                    id: id * 3, location: location,
                    title: Bool.random(using: &random) ? names.randomElement(using: &random) : nil,
                    span: span, hash: Bool.random(using: &random) ? hash : nil))
        }
        session.repeats = RepeatMode.allCases.randomElement(using: &random) ?? .off
        session.rate = 1.25
        session.rooms = Int.random(in: 0...9, using: &random)
        session.commonSettings = try RoomSettings(volume: 30, muted: false, groupVolume: 40)
        session.settings[try RoomID("living room")] = try RoomSettings(
            volume: 70, muted: true, role: .left)
        if !session.items.isEmpty {
            session.place = SavedSession.Place(
                index: Int.random(in: session.items.indices, using: &random),
                seconds: 12.5, phase: Bool.random(using: &random) ? .playing : .paused)
        }
        return session
    }

    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func `what was kept is read as it was`(seed: UInt64) throws {
        let session = try session(seed: seed)
        let read = SavedSession(queueText: session.queueText, placeText: session.placeText)
        #expect(read == session)
        // A place of another session says nothing of this one.
        var other = session
        other.session &+= 1
        let elsewhere = SavedSession(queueText: session.queueText, placeText: other.placeText)
        #expect(elsewhere?.place == SavedSession.Place())
        #expect(elsewhere?.items == session.items)
    }

    /// The power fails also while it is written, and disks forget: whatever is left is read as nothing,
    /// or as a whole.
    @Test func `what is cut off or damaged is no session, and nothing else goes wrong`() throws {
        let session = try session(seed: 5)
        let text = session.queueText
        for count in 0..<text.utf8.count - 1 {
            let part = String(decoding: text.utf8.prefix(count), as: UTF8.self)
            #expect(SavedSession(queueText: part, placeText: nil) == nil, "\(count)")
        }
        var random = SplitMix64(seed: 9)
        for _ in 0..<2_000 {
            var bytes = Array(text.utf8)
            bytes[Int.random(in: bytes.indices, using: &random)] = random.next()
            _ = SavedSession(
                queueText: String(decoding: bytes, as: UTF8.self),
                placeText: session.placeText)
        }
        let other = text.replacing("session 1", with: "session 2")
        #expect(SavedSession(queueText: other, placeText: nil) == nil)
    }

    /// Each write wears a memory card: only what nobody could compute is news.
    @Test func `that time goes by is no news, and everything else is`() throws {
        var before = SavedSession(
            session: 1, items: [.init(id: 1, location: "/a"), .init(id: 2, location: "/b")])
        before.place = SavedSession.Place(index: 1, seconds: 40, phase: .playing)
        before.rate = 1.25
        var later = before
        later.place.seconds = 50
        #expect(before.movesOn(to: later, after: 8))
        #expect(!before.movesOn(to: later, after: 4), "a seek")
        later.repeats = .all
        #expect(!before.movesOn(to: later, after: 8))
        later = before
        later.place.phase = .paused
        #expect(!before.movesOn(to: later, after: 0))
        before.place.phase = .paused
        #expect(before.movesOn(to: later, after: 100))
    }

    @Test func `a place is written without the queue, and a removed session is none`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let sessions = SessionFolder(folder: StateFolder(path: folder.path("state")))
        #expect(try sessions.read() == nil)
        var session = try session(seed: 3)
        session.items = [
            SavedSession.Item(id: 1, location: "/a.flac"), .init(id: 7, location: "/b.flac"),
        ]
        session.place = SavedSession.Place(index: 1, seconds: 3, phase: .playing)
        try sessions.write(session, after: nil)
        #expect(try sessions.read() == session)
        let stamp = sessions.folder.stamp(SavedSession.queueFile)
        let before = session
        session.place.seconds = 18
        try sessions.write(session, after: before)
        #expect(try sessions.read() == session)
        #expect(sessions.folder.stamp(SavedSession.queueFile) == stamp)
        // A session that went on elsewhere, and ended there, says nothing of what was led since.
        #expect(!sessions.remove(session.session &+ 1))
        #expect(try sessions.read() == session)
        #expect(sessions.remove(session.session))
        #expect(try sessions.read() == nil)
        try sessions.folder.write(SavedSession.queueFile, "tutti session 9\nend\n")
        #expect(throws: RoomError.self) { try sessions.read() }
        sessions.remove()
        #expect(try sessions.read() == nil)
    }

    /// After a power cut, as before it.
    @Test(.timeLimit(.minutes(1)))
    func `the place of a session that was stopped is found again, and nothing plays`() async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let paths = try (0..<3).map {
            try folder.writeNoise(seconds: 2, seed: UInt64($0), as: "\($0).wav")
        }
        var saved = SavedSession(
            session: 5, term: 6,
            items: paths.enumerated().map { SavedSession.Item(id: UInt64($0 + 1), location: $1) })
        saved.place = SavedSession.Place(index: 1, seconds: 0, phase: .stopped)
        let before = await AssetReaderTests.reader([], in: folder).restore(saved, plays: true)
        let leader = LeaderMachine(
            LeaderConfiguration(
                name: "attic", queue: [], term: 7, groupClockEpoch: 1, timePort: 1, mediaPort: 1),
            resuming: before.session, before.handover, at: GroupInstant(nanoseconds: 0))
        let listing = leader.listing(from: 0, count: 9)
        #expect(listing.current == 1 && listing.phase == .stopped && listing.count == 3)
        #expect(leader.status(at: GroupInstant(nanoseconds: 0)).title == "1")
    }
}
