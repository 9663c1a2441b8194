import Logging
import Testing
import TuttiFFmpegMedia
import TuttiGroupControl

@testable import TuttiRoom

/// A leader that stands still while it hands over, and goes on later: whoever was asked to lead
/// gives the lead up to it, or keeps it, and never both.
@Suite(.timeLimit(.minutes(1))) struct FrozenLeaderTests {
    private func withLeading(_ body: (Leading) throws -> Void) async throws {
        let group = try TestGroup(isHousehold: false)
        defer { group.folder.remove() }
        let (configuration, media) = (
            group.configuration("attic"), MediaService(logger: group.quiet)
        )
        let door = try await NodeServer.open(0)
        defer { door.close() }
        let services = try await Leading.Services.open(
            configuration, media, door, term: 7, takesAnyPort: true)
        let library = SessionAssets(
            cache: MediaCache(folder: group.folder.path("cache"), limit: 1 << 20),
            pieces: media.pieces, logger: group.quiet)
        let leading = Leading(
            services, LeaderClock(epoch: 1),
            AssetReader([], library, media, logger: group.quiet), name: try RoomID("attic"),
            session: nil, configuration,
            LeaderConfiguration(
                name: "attic", queue: [], term: 7, groupClockEpoch: 1,
                timePort: services.timePort, mediaPort: services.port),
            events: Leading.Events(ended: {}, handedOver: { _ in }, ask: { _, _ in [] }))
        defer { leading.close() }
        try body(leading)
    }

    /// Commands would go to a leader that is none.
    @Test func `who gives up a lead that nobody has followed is announced as a leader no more`()
        async throws
    {
        try await withLeading { leading in
            #expect(leading.isAnnounced)
            leading.close()
            #expect(!leading.isAnnounced && leading.isRetired)
        }
    }

    @Test func `who has handed over is announced as a leader no more`() async throws {
        try await withLeading { leading in
            leading.retire()
            #expect(!leading.isAnnounced)
        }
    }

    @Test func `a leader before that stands still has not ended, however long it does`() throws {
        let sight = SightAnswer.sight(
            LeadSight(room: try RoomID("attic"), origin: 1, lead: .none))
        var answers = PredecessorAnswers()
        for _ in 0..<100 { answers.take(.stalled) }
        #expect(!answers.haveEnded)
        for _ in 1..<PredecessorAnswers.mostSilences { answers.take(.refused) }
        #expect(!answers.haveEnded)
        // It goes on.
        answers.take(sight)
        for answer in [SightAnswer.refused, .stalled, .silent, .refused, .refused] {
            answers.take(answer)
        }
        #expect(!answers.haveEnded)
        answers.take(.silent)
        #expect(answers.haveEnded)
    }
}
