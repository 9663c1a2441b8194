import Testing
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

@testable import TuttiPlayback

/// Compositions on a player.
@Suite(.timeLimit(.minutes(2))) struct ComposedPlayingTests {
    /// What leaves the card when an asset is played to its end from two places, by a clock and at
    /// instants that are the same in every room, however long it took to get ready for them.
    private func heard(_ asset: Asset, rate: Double) async throws -> [[Float]] {
        let room = VirtualRoom()
        let opening = room.now
        let player = try await room.makeReadyPlayer(PlayerItem(asset: asset), shared: true)
        var sounds: [[Float]] = []
        for (milliseconds, begin) in [(0, 5), (1_301, 15)] as [(Int64, Int64)] {
            let time = MediaTime(value: milliseconds, timescale: 1_000)
            #expect(try await room.during { try await player.preroll(atRate: rate, time: time) })
            #expect(room.now < opening + .seconds(begin))
            await room.step { room.now >= opening + .seconds(begin) }
            let instant = room.clock.load().map(opening + .seconds(begin) + .milliseconds(400))
            let count = room.heard.count
            try player.setRate(rate, time: time, atHostTime: instant)
            await room.step { player.timeControlStatus == .playing }
            await room.step { player.rate == 0 }
            await room.step(seconds: 0.2)
            let sound = room.heard[count...].map(\.value).drop { $0 == 0 }
            sounds.append(Array(sound[...(sound.lastIndex { $0 != 0 } ?? sound.startIndex)]))
        }
        return sounds
    }

    @Test(arguments: [1, 1.25])
    func `three assets in a row are heard as the one that they are parts of`(rate: Double)
        async throws
    {
        var composition = Composition()
        var offset: Int64 = 0
        for milliseconds in [1_500, 700, 2_100] as [Int64] {
            let length = MediaTime(value: milliseconds, timescale: 1_000)
            // Of a longer one each, which would be heard to go on.
            let asset = Library(offset: offset - 800).asset(seconds: 4)
            try composition.insert(
                TimeRange(start: MediaTime(value: 1, timescale: 10), duration: length),
                of: asset, at: composition.duration)
            offset += milliseconds * 8
        }
        let parts = try await heard(Asset(composition), rate: rate)
        let whole = try await heard(Library().asset(seconds: 4.3), rate: rate)
        // Bit for bit: the rooms are the same, and so is every frame.
        for (part, whole) in zip(parts, whole) {
            let isSame = part == whole
            let place = zip(part, whole).enumerated().first { $1.0 != $1.1 }?.offset
            #expect(isSame, "\(part.count) frames and \(whole.count), other from \(place ?? -1) on")
        }
        for (part, seconds) in zip(parts, [4.3, 2.999]) {
            let expected = seconds * 8_000 / rate
            #expect(abs(Double(part.count { $0 > 0.2 }) - expected) < 0.002 * expected)
        }
    }

    @Test func `an asset that is missing ends the item there with an error that names it`()
        async throws
    {
        let gone = Asset(
            location: "gone.flac",
            opener: MediaOpener { location throws(MediaError) in
                throw MediaError(
                    .notFound, operation: "open", subject: location, reason: "no such file")
            })
        var composition = Composition()
        let second = TimeRange(start: .zero, duration: MediaTime(value: 1, timescale: 1))
        try composition.insert(second, of: Library().asset(seconds: 1), at: .zero)
        try composition.insert(second, of: gone, at: composition.duration)
        let room = VirtualRoom()
        let item = PlayerItem(asset: Asset(composition, location: "the evening"))
        let player = try await room.makeReadyPlayer(item)
        player.play()
        let notices = player.notices()
        let failure = Task { () -> PlaybackError? in
            for await notice in notices {
                if case .failedToPlayToEnd(let error) = notice { return error }
            }
            return nil
        }
        await room.step { player.rate == 0 }
        #expect(room.heard.count { $0.value > 0.2 } > 7_900)
        let error = try #require(await failure.value)
        #expect((error.underlying as? MediaError)?.subject == "gone.flac")
        #expect(error.description.contains("the evening") && error.description.contains("gone"))
    }
}
