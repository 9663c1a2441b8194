import Foundation
import Logging
import Synchronization
import Testing
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiRoom
import TuttiTiming

extension IntegrationTests {
    /// What is not there: a card before it is plugged in, a file after its disk went.
    @Suite struct Absent {
        /// The last number that ALSA gives to a card; or, with the configuration that the tests of
        /// outputs leave to this process, what is defined there.
        private static var noCard: OutputSpecification {
            let isOurs = ProcessInfo.processInfo.environment["ALSA_CONFIG_PATH"] != nil
            return .alsa(pcm: isOurs ? "no_card" : "hw:31")
        }

        @Test(.timeLimit(.minutes(1)))
        func `without its card a leader leads, and a room is in the group and says so`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 51, as: "a.wav")
                let book = LogBook()
                let noCard = Self.noCard
                try await group.lead([asset], roomsToWaitFor: 3, output: noCard) {
                    $0.logger = book.logger
                }
                group.follow("attic")
                group.follow("bath", output: noCard)
                let status = try await group.untilStatus("attic plays, two wait for their cards") {
                    $0.phase == .playing
                        && $0.rooms.map(\.state) == [.playing, .cardLost, .cardLost]
                }
                #expect(status.rooms.map(\.name) == ["attic", "bath", "leader"])
                for room in status.rooms.dropFirst() {
                    #expect(room.detail.hasPrefix("\(noCard): "), "\(room.detail)")
                }
                let said = book.all.filter { $0.message.contains("is not there yet") }
                #expect(said.count == 1)
                #expect(said.first?.metadata["error"]?.hasPrefix("\(noCard): ") == true)
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a leader alone without its card plays to nobody, and says what it waits for`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 1, seed: 56, as: "a.wav")
                try await group.lead([asset], output: Self.noCard)
                try await group.untilStatus("it waits for its card") {
                    $0.rooms.map(\.state) == [.cardLost]
                        && $0.detail?.contains("sound card of leader") == true
                }
                // Longer than the item.
                try await Task.sleep(for: .seconds(2))
                let status = try await group.client().status()
                #expect(status.phase != .playing && status.phase != .ended)
            }
        }

        @Test(
            .timeLimit(.minutes(1)), arguments: ["hw:77", "hw:1,2,3,4", "no_such_name", "hw:FOO=2"])
        func `what no card can be called is an error at once`(pcm: String) async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 1, seed: 52, as: "a.wav")
                let leader = LeaderNode(
                    group.configuration("leader", .alsa(pcm: pcm)), assets: [asset],
                    roomsToWaitFor: 1, loops: false)
                let error = await #expect(throws: RoomError.self) { try await leader.run() }
                #expect(error?.code == .noOutput)
                #expect(error?.description.contains("alsa:\(pcm)") == true)
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a seek into a file that is gone is refused, and all rooms play on`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 53, as: "a.wav")
                let aside = group.folder.path("aside.wav")
                try await group.lead([asset], roomsToWaitFor: 2)
                group.follow("attic")
                try await group.untilPlaying(["attic", "leader"])
                try FileManager.default.moveItem(atPath: asset, toPath: aside)
                for command in [GroupCommand.seek(seconds: 40), .seekBy(seconds: 10), .previous] {
                    let error = await #expect(throws: RoomError.self) {
                        try await group.perform(command)
                    }
                    #expect(error?.description.contains("is not there any more") == true)
                    #expect(error?.description.contains(asset) == true)
                }
                let status = try await group.client().status()
                #expect(status.rooms.map(\.state) == [.playing, .playing])
                // What needs no bytes is done.
                try await group.perform(.volume(room: nil, percent: 50))
                try FileManager.default.moveItem(atPath: aside, toPath: asset)
                try await group.perform(.seek(seconds: 40))
                try await group.untilStatus("both play on from there") {
                    $0.positionSeconds >= 40 && $0.rooms.map(\.state) == [.playing, .playing]
                }
            }
        }

        /// The leader has it open: it plays in all rooms to its end, whoever removed its name.
        @Test(.timeLimit(.minutes(1)))
        func `a file whose name is gone plays on, also in a room that comes late`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 54, as: "a.wav")
                let (leaders, rooms) = (Lines(), Lines())
                try await group.lead([asset], output: .none) { $0.logger = leaders.logger }
                group.follow("attic")
                try await group.untilPlaying(["attic"])
                // The leader looks after its files four times a second.
                try await Task.sleep(for: .seconds(1))
                try FileManager.default.removeItem(atPath: asset)
                group.follow("late") { $0.logger = rooms.logger }
                try await group.untilPlaying(["attic", "late"])
                let before = (leaders.all.count, rooms.all.count)
                try await Task.sleep(for: .seconds(2))
                #expect(leaders.all.count - before.0 <= 4, "\(leaders.all)")
                #expect(rooms.all.count - before.1 <= 4, "\(rooms.all)")
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `who is asked for nothing is in no alarm, and nobody is while nobody leads`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 55, as: "a.wav")
                let book = LogBook()
                let alarm = "this room may be further off than it should"
                let leader = try await group.lead([asset], output: .none)
                group.follow("strict") {
                    $0.syncTarget = .microseconds(1)
                    $0.logger = book.logger
                }
                func untilAlarm(_ isRaised: Bool) async throws {
                    try await group.untilStatus("the alarm is \(isRaised)") {
                        $0.rooms.first?.sync?.alarm == isRaised
                            && $0.rooms.first?.sync?.boundMicroseconds != nil
                    }
                }
                try await untilAlarm(true)
                try await group.perform(.stop)
                try await untilAlarm(false)
                try await group.perform(.play)
                try await untilAlarm(true)
                try await group.perform(.stop)
                try await untilAlarm(false)
                #expect(book.entries(alarm).count == 2, "once each time")
                _ = await leader.stop()
                try await Task.sleep(for: .seconds(2))
                #expect(book.entries(alarm).count == 2)
            }
        }
    }
}

/// The lines of a node's log as they are written.
private final class Lines: Sendable {
    private let written = Mutex<[String]>([])
    var all: [String] { written.withLock { $0 } }

    var logger: Logger {
        Logger(
            label: "lines",
            factory: { _ in
                NodeLog { line in
                    self.written.withLock { $0.append(line) }
                    return true
                }
            })
    }
}
