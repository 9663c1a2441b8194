import Testing
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiRoom
import TuttiTiming

extension IntegrationTests {
    /// What a person does with a group that is complete and well.
    @Suite struct Playing {
        @Test(.timeLimit(.minutes(1)))
        func `three rooms play, pause, seek and resume together`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 1, as: "a.wav")
                try await group.lead([asset], roomsToWaitFor: 3)
                group.follow("attic")
                group.follow("bath")
                let playing = try await group.untilPlaying(["attic", "bath", "leader"])
                #expect(playing.leader == "leader")
                #expect(playing.rate == 1)
                #expect(playing.count == 1)
                #expect(abs(playing.durationSeconds - 60) < 0.001)

                try await group.perform(.pause)
                let paused = try await group.untilStatus("all are paused") {
                    $0.phase == .paused && $0.rate == 0
                        && $0.rooms.allSatisfy { $0.state == .paused || $0.state == .ready }
                }
                let later = try await group.untilStatus("a later status") { _ in true }
                #expect(later.positionSeconds == paused.positionSeconds)

                try await group.perform(.seek(seconds: 30))
                try await group.untilStatus("paused at the place sought") {
                    $0.phase == .paused && abs($0.positionSeconds - 30) < 0.001
                }
                try await group.perform(.play)
                let resumed = try await group.untilPlaying(["attic", "bath", "leader"])
                #expect(resumed.positionSeconds >= 30)

                try await group.perform(.seek(seconds: 10))
                let sought = try await group.untilStatus("plays from the place sought") {
                    $0.positionSeconds < 30 && $0.positionSeconds > 10.2
                        && $0.rooms.allSatisfy { $0.state == .playing }
                }
                #expect(sought.rooms.map(\.dropouts) == [0, 0, 0])

                try await group.perform(.stop)
                try await group.untilStatus("stopped") {
                    $0.phase == .stopped && $0.rooms.allSatisfy { $0.state != .playing }
                }
                await #expect(throws: RoomError.self) {
                    try await group.perform(.seek(seconds: 1))
                }
                try await group.perform(.play)
                try await group.untilPlaying(["attic", "bath", "leader"])
            }
        }

        /// Far more than an output has voices: each has to come back.
        @Test(.timeLimit(.minutes(1)))
        func `after many pauses and hurried seeks the last command wins`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 9, as: "a.wav")
                try await group.lead([asset])
                try await group.untilPlaying(["leader"])
                for _ in 0..<6 {
                    try await group.perform(.pause)
                    try await group.perform(.play)
                    try await group.untilPlaying(["leader"])
                }
                try await withThrowingTaskGroup { seeks in
                    for second in 1...24 {
                        seeks.addTask {
                            try await group.perform(.seek(seconds: Double(second)))
                        }
                    }
                    try await seeks.waitForAll()
                }
                try await group.perform(.seek(seconds: 40))
                try await group.untilStatus("plays from the last place") {
                    $0.positionSeconds > 40.2 && $0.rooms.allSatisfy { $0.state == .playing }
                }
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `volume is set in one room or in all, and kept for a room that comes later`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 2, as: "a.wav")
                try await group.lead([asset], output: .none)
                let bath = group.follow("bath")
                try await group.untilPlaying(["bath"])
                try await group.perform(.volume(room: RoomID("bath"), percent: 30))
                try await group.perform(.mute(room: RoomID("bath"), muted: true))
                try await group.untilStatus("bath is muted") {
                    $0.rooms.first?.volume == 30 && $0.rooms.first?.muted == true
                }
                _ = await bath.stop()
                try await group.untilStatus("bath has left") { $0.rooms.isEmpty }
                group.follow("bath")
                let back = try await group.untilPlaying(["bath"])
                #expect(back.rooms.map(\.volume) == [30])
                #expect(back.rooms.map(\.muted) == [true])

                try await group.perform(.mute(room: nil, muted: false))
                try await group.perform(.volume(room: nil, percent: 70))
                try await group.untilStatus("all are louder") {
                    $0.volume == 70 && $0.rooms.allSatisfy { $0.volume == 30 && !$0.muted }
                }
                let error = await #expect(throws: RoomError.self) {
                    try await group.perform(.volume(room: RoomID("cellar"), percent: 1))
                }
                #expect(error?.code == .refused)
                #expect(error?.description.contains("cellar") == true)
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `the next item follows, and the leader ends with the last`() async throws {
            try await withGroup { group in
                let first = try group.folder.writeNoise(seconds: 2, seed: 3, as: "first.wav")
                let second = try group.folder.writeNoise(seconds: 2, seed: 4, as: "second.wav")
                let leader = try await group.lead(
                    [first, second], roomsToWaitFor: 2,
                    output: .virtual(VirtualCardOptions(record: group.folder.path("card"))))
                group.follow("attic")
                try await group.untilStatus("the first plays") {
                    $0.phase == .playing && $0.index == 0 && $0.title == "first"
                }
                try await group.untilStatus("the second follows, playing") {
                    $0.phase == .playing && $0.index == 1 && $0.title == "second"
                        && $0.rooms.allSatisfy { $0.state == .playing && $0.dropouts == 0 }
                }
                try await until("the leader has ended") { leader.hasEnded }
                try leader.throwIfFailed()
                RoomRecording(
                    card: try CardRecording.load(path: group.folder.path("card")),
                    noise: try [first, second].map { try RoomStage.samples(of: $0) },
                    clock: .unknown
                ).expectWhole()
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `next skips, and is refused at the last item`() async throws {
            try await withGroup { group in
                let first = try group.folder.writeNoise(seconds: 60, seed: 5, as: "first.wav")
                let second = try group.folder.writeNoise(seconds: 60, seed: 6, as: "second.wav")
                try await group.lead([first, second])
                try await group.untilPlaying(["leader"])
                try await group.perform(.next)
                try await group.untilStatus("the second plays") {
                    $0.phase == .playing && $0.index == 1
                }
                let error = await #expect(throws: RoomError.self) {
                    try await group.perform(.next)
                }
                #expect(error?.code == .refused)
            }
        }
    }
}
