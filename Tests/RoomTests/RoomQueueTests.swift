import Foundation
import Logging
import Testing
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayback
import TuttiPlayout
import TuttiTiming

@testable import TuttiRoom

extension IntegrationTests {
    /// What the players of a room make of a leader's orders, by the recording of its card.
    @Suite(.timeLimit(.minutes(1))) struct RoomQueues {
        @Test func `items that follow play in one queue, and are heard as the whole`() async throws
        {
            // Long enough to be looked at in time on a busy machine.
            try await withStage([1.5, 1.2, 1.3]) { stage in
                let lines = try await stage.begin()
                for number in 1...2 { try await stage.prepare(number, lines[number]) }
                #expect(await stage.playerCount == 1)
                for number in 1...2 { try await stage.commit(number, lines[number]) }
                #expect(await stage.playerCount == 1)
                for number in 0...2 {
                    try await stage.until(lines[number].instant + .milliseconds(200))
                    #expect(await stage.soundingIDs == [await stage.id(number)])
                }
                try await stage.untilEnded(0, 1, 2)
                #expect(await stage.ends == [0, 1, 2])
                let heard = try await stage.record()
                heard.expectSteady([(0, 0, 1.5), (1, 0, 1.2), (2, 0, 1.3)], from: lines)
                heard.expectWhole()
            }
        }

        @Test func `a commit that is not at the end of the item before is obeyed alone`()
            async throws
        {
            try await withStage([0.6, 0.4, 0.4]) { stage in
                var lines = try await stage.begin()
                for number in 1...2 { try await stage.prepare(number, lines[number]) }
                for number in 1...2 { lines[number].instant += .milliseconds(150) }
                for number in 1...2 { try await stage.commit(number, lines[number]) }
                #expect(await stage.playerCount == 3)
                try await stage.untilEnded(0, 1, 2)
                let heard = try await stage.record()
                heard.expectSteady([(0, 0, 0.6), (1, 0, 0.4), (2, 0, 0.4)], from: lines)
            }
        }

        @Test func `what follows keeps its line when the item before it is withdrawn`()
            async throws
        {
            try await withStage([1.2, 0.4, 0.4]) { stage in
                let lines = try await stage.begin()
                for number in 1...2 { try await stage.prepare(number, lines[number]) }
                try await stage.commit(1, lines[1])
                try await stage.until(lines[0].instant + .milliseconds(500))
                await stage.withdraw(0)
                // One that was only prepared is as good as before.
                try await stage.commit(2, lines[2])
                try await stage.untilEnded(1, 2)
                let heard = try await stage.record()
                heard.expectSteady([(0, 0, 0.45), (1, 0, 0.4), (2, 0, 0.4)], from: lines)
                heard.expectSilence(
                    from: lines[0].instant + .milliseconds(900), to: lines[1].instant)
            }
        }

        @Test func `a following item that is withdrawn leaves what plays, and what follows it`()
            async throws
        {
            try await withStage([0.6, 0.4, 0.4]) { stage in
                let lines = try await stage.begin()
                for number in 1...2 { try await stage.prepare(number, lines[number]) }
                for number in 1...2 { try await stage.commit(number, lines[number]) }
                await stage.withdraw(1)
                #expect(await stage.playerCount == 2)
                try await stage.untilEnded(0, 2)
                let heard = try await stage.record()
                heard.expectSteady([(0, 0, 0.6), (2, 0, 0.4)], from: lines)
                heard.expectSilence(
                    from: lines[1].instant + .milliseconds(20), to: lines[2].instant)
            }
        }

        @Test func `a pause of what follows holds though the item before it still plays`()
            async throws
        {
            try await withStage([0.6, 0.7]) { stage in
                let lines = try await stage.begin()
                try await stage.prepare(1, lines[1])
                try await stage.commit(1, lines[1])
                let end = lines[1].instant + .milliseconds(300)
                try await stage.pause(1, at: end)
                try await stage.untilEnded(0)
                try await stage.until(end + .milliseconds(300))
                #expect(await stage.isSilent)
                let heard = try await stage.record()
                heard.expectSteady([(0, 0, 0.6), (1, 0, 0.3)], from: lines)
                heard.expectSilence(from: end + .milliseconds(20), to: end + .milliseconds(250))
            }
        }

        @Test func `a start ends what plays by then, also an item that followed`() async throws {
            try await withStage([0.6, 0.7, 0.4]) { stage in
                var lines = try await stage.begin()
                try await stage.prepare(1, lines[1])
                try await stage.commit(1, lines[1])
                try await stage.prepare(2, nil)
                lines[2].instant = lines[1].instant + .milliseconds(300)
                try await stage.commit(2, lines[2], following: false)
                try await stage.untilEnded(2)
                let heard = try await stage.record()
                heard.expectSteady([(0, 0, 0.6), (1, 0, 0.3), (2, 0, 0.4)], from: lines)
            }
        }

        @Test
        func `what follows and is committed after the item before it has ended is joined late`()
            async throws
        {
            try await withStage([0.5, 1]) { stage in
                let lines = try await stage.begin()
                try await stage.prepare(1, lines[1])
                try await stage.untilEnded(0)
                try await stage.until(lines[1].instant + .milliseconds(200))
                try await stage.commit(1, lines[1], following: false)
                try await stage.untilEnded(1)
                let heard = try await stage.record()
                heard.expectSteady([(0, 0, 0.5), (1, 0.7, 1)], from: lines)
            }
        }

        private func withStage(
            _ seconds: [Double], _ body: (RoomStage) async throws -> Void
        ) async throws {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let stage = try RoomStage(seconds, folder)
            do { try await body(stage) } catch {
                await stage.stop()
                throw error
            }
        }
    }
}
