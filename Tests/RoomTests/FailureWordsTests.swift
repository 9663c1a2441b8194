import Testing
import TuttiGroupControl
import TuttiPlayback
import TuttiPlayout

@testable import TuttiRoom

/// What people read of an item that cannot be fetched or played.
@Suite struct FailureWordsTests {
    private static let place = "http://10.0.0.1:7430/asset/" + String(repeating: "ab", count: 32)

    private static func asset() throws -> AssetDescriptor {
        try AssetDescriptor(
            hash: ContentHash(words: (1, 2, 3, 4)), byteCount: 1, sampleRate: 48_000,
            frameCount: 1, title: "Arabesque", fileExtension: "flac")
    }

    private static let gone = MediaError(
        .notFound, operation: "http", subject: place,
        reason: "the leader does not have it any more")

    @Test(arguments: [
        gone as any Error,
        PlaybackError(.mediaFailed, "\(place) cannot be read", underlying: gone),
        PlaybackError(
            .mediaFailed, "the item failed",
            underlying: PlaybackError(.mediaFailed, place, underlying: gone)),
    ])
    func `the title is first, then the reason, and no place of ours`(error: any Error) throws {
        #expect(
            try Self.asset().words(for: error)
                == "Arabesque: the leader does not have it any more")
    }

    @Test func `what is about the room is said as it is`() throws {
        let error = RoomError(.noLeader, "the leader is gone")
        #expect(try Self.asset().words(for: error) == "the leader is gone")
        let busy = PlaybackError(.outputBusy, "all voices are in use")
        #expect(try Self.asset().words(for: busy) == "Arabesque: all voices are in use")
    }
}
