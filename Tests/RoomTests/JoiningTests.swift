import Testing
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiRoom

extension IntegrationTests {
    /// Rooms and leaders that come and go.
    @Suite struct Joining {
        @Test(.timeLimit(.minutes(1)))
        func `a late room joins the running line, leaves, and joins again`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 11, as: "a.wav")
                try await group.lead([asset])
                try await group.untilPlaying(["leader"])
                let attic = group.follow("attic")
                try await group.untilPlaying(["attic", "leader"])
                _ = await attic.stop()
                let alone = try await group.untilPlaying(["leader"])
                group.follow("attic")
                let again = try await group.untilPlaying(["attic", "leader"])
                #expect(again.positionSeconds > alone.positionSeconds)
                #expect(again.rooms.last?.dropouts == 0, "the others play on undisturbed")
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a room says once how long joining took, and nothing when all begin together`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 13, as: "a.wav")
                try await group.lead([asset], roomsToWaitFor: 1, output: .none)
                let (first, late) = (LogBook(), LogBook())
                group.follow("attic") { $0.logger = first.logger }
                try await group.untilPlaying(["attic"])
                let start = ContinuousClock.now
                group.follow("bath") { $0.logger = late.logger }
                try await group.untilPlaying(["attic", "bath"])
                // What is said lies ahead by what the card queues.
                let elapsed = ContinuousClock.now - start + .seconds(1)
                try await group.perform(.pause)
                try await group.untilStatus("paused") { $0.phase == .paused }
                try await group.perform(.play)
                try await group.untilPlaying(["attic", "bath"])
                #expect(first.entries("plays along").isEmpty)
                let said = late.entries("plays along")
                #expect(said.count == 1)
                let milliseconds = try #require(said.first?["msSinceFound"].flatMap(Int.init))
                #expect(milliseconds > 0 && .milliseconds(milliseconds) <= elapsed)
                // What it waited for comes before.
                for step in ["msToWelcome", "msToClock", "msToItem"] {
                    let reached = try #require(said.first?[step].flatMap(Int.init))
                    #expect(reached >= 0 && reached <= milliseconds, "\(step)")
                }
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `an item is fetched when the clock is known, which is measured on the same path`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 14, as: "a.wav")
                try await group.lead([asset], roomsToWaitFor: 1, output: .none)
                let book = LogBook()
                group.follow("attic") { $0.logger = book.logger }
                try await group.untilPlaying(["attic"])
                #expect(book.entries("fetching").map { $0["clock"] } == ["locked"])
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a leader that comes back on its port is found again`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 12, as: "a.wav")
                let first = try await group.lead([asset], output: .none)
                group.follow("attic")
                try await group.untilPlaying(["attic"])
                _ = await first.stop()
                try await group.lead([asset], port: group.address.port, output: .none)
                try await group.untilPlaying(["attic"])
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a room that was there first waits for its leader`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 13, as: "a.wav")
                // Learns a free port, and gives it back.
                _ = try await group.lead([asset], output: .none).stop()
                group.follow("attic")
                try await group.lead([asset], port: group.address.port, output: .none)
                try await group.untilPlaying(["attic"])
            }
        }

        @Test(.timeLimit(.minutes(2)))
        func `two rooms of one name both play, keep their names, and both ends are told once`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 14, as: "a.wav")
                let books = (leader: LogBook(), room: LogBook())
                try await group.lead([asset], output: .none) { $0.logger = books.leader.logger }
                group.follow("attic")
                try await group.untilPlaying(["attic"])
                // Another machine: what it remembers is elsewhere.
                let elsewhere = group.folder.path("elsewhere")
                let second = group.follow("attic") {
                    $0.stateFolder = elsewhere
                    $0.logger = books.room.logger
                }
                try await group.untilPlaying(["attic", "attic (2)"])
                #expect(books.room.all.count { $0.metadata["called"] == "attic (2)" } == 1)
                #expect(
                    books.leader.all.count { $0.metadata["the second is called"] == "attic (2)" }
                        == 1)
                // It is the same room when it comes back, whoever else is there.
                _ = await second.stop()
                try await group.untilPlaying(["attic"])
                group.follow("attic") {
                    $0.stateFolder = elsewhere
                    $0.logger = books.room.logger
                }
                try await group.untilPlaying(["attic", "attic (2)"])
                #expect(books.room.all.count { $0.metadata["called"] == "attic (2)" } == 1)
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a room without an output takes part, and is not waited for`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 15, as: "a.wav")
                try await group.lead([asset])
                group.follow("desk", output: .none)
                try await group.untilStatus("the leader plays, desk looks on") {
                    $0.rooms.map(\.name) == ["desk", "leader"]
                        && $0.rooms.map(\.state) == [.noOutput, .playing]
                }
            }
        }
    }
}
