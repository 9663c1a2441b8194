import Testing
import TuttiPlayout
import TuttiTiming

@testable import TuttiPlayback

/// With no action at its end, item time runs on behind it: whatever is asked for there goes on from that
/// time, and the end is told once.
@Suite(.timeLimit(.minutes(1))) struct RunOnTests {
    private static func seconds(_ value: Double) -> MediaTime { MediaTime(seconds: value) }

    private static let orders = [
        "play", "play play", "faster", "faster play", "immediately", "pause", "pause play",
        "pause faster pause", "line", "later", "stop later", "clock", "volume",
        "pause preroll play",
    ]

    /// A moment behind the end, when that has not been told yet, and long after.
    @Test(arguments: orders, [0.01, 0.6])
    func `what is asked for behind the end goes on from there, and the end is told once`(
        orders: String, span: Double
    ) async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 1), shared: true)
        player.actionAtItemEnd = .none
        let said = NoticeLog(player)
        player.play()
        await room.step { player.currentTime() > Self.seconds(1 + span) }
        for order in orders.split(separator: " ") {
            let host = room.groupNow + .milliseconds(150)
            switch order {
            case "play": player.play()
            case "faster": try player.setRate(2)
            case "immediately": try player.playImmediately(atRate: 1)
            case "pause": player.pause()
            case "line": try player.setRate(1.25, atHostTime: nil)
            case "later": try player.setRate(1.25, atHostTime: host)
            case "stop": try player.setRate(0, atHostTime: host)
            case "clock": player.sourceClock = nil
            case "preroll":
                _ = try await room.during { try await player.preroll(atRate: 1) }
            default: player.volume = 0.5
            }
            await room.step(seconds: 0.3)
            #expect(player.currentTime() > Self.seconds(1 + span), "after \(order)")
        }
        let place = player.currentTime()
        await room.step(seconds: 1)
        await room.step { said.count("end") >= 1 }
        #expect(said.count("end") == 1, "\(said.all)")
        #expect(said.count("jumped") == 0 && player.error == nil, "\(said.all)")
        if player.rate == 0 {
            #expect(player.currentTime() == place)
        } else {
            let gone = (player.currentTime() - place).seconds
            #expect(abs(gone - player.rate) < 0.1, "\(gone)")
        }
        // And it plays from anywhere.
        #expect(try await room.during { await player.seek(to: Self.seconds(0.5)) })
        player.play()
        await room.step(seconds: 1)
        await room.step { said.count("end") >= 2 }
        #expect(said.count("end") == 2, "\(said.all)")
    }

    @Test(arguments: [0.01, 0.6], ["", "pause"])
    func `backwards from behind the end, time comes back to it and the item is heard`(
        span: Double, first: String
    ) async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 1))
        player.actionAtItemEnd = .none
        let said = NoticeLog(player)
        player.play()
        await room.step { player.currentTime() > Self.seconds(1 + span) }
        if first == "pause" {
            player.pause()
            await room.step(seconds: 0.3)
        }
        let begin = player.currentTime()
        try player.setRate(-1)
        await room.step(seconds: 0.05)
        #expect(player.currentTime() > begin - Self.seconds(0.1))
        let turned = room.now
        await room.step { player.currentTime() < Self.seconds(0.5) }
        let heard = room.frames(from: turned, to: room.now).filter { $0.value > 0.2 }
        #expect(try #require(heard.map(\.frame).max()) > 7_900)
        #expect(try #require(heard.map(\.frame).min()) < 4_800)
        #expect(said.count("jumped") == 0, "\(said.all)")
        // Before its beginning the same.
        await room.step {
            player.currentTime() < Self.seconds(-0.5) && said.count("end") == 2
        }
        player.pause()
        await room.step(seconds: 0.3)
        #expect(player.currentTime() < Self.seconds(-0.5))
        player.play()
        await room.step(seconds: 0.2)
        #expect(player.currentTime() < Self.seconds(-0.2))
        let again = room.now
        await room.step { player.currentTime() > Self.seconds(0.5) }
        let sound = room.frames(from: again, to: room.now).filter { $0.value > 0.2 }
        #expect(try #require(sound.map(\.frame).min()) < 100)
        await room.step { said.count("end") >= 2 }
        #expect(said.count("end") == 2 && said.count("jumped") == 0, "\(said.all)")
    }
}
