import Foundation
import Testing
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiRoom
import TuttiTiming

extension IntegrationTests {
    /// What the status says of lockstep, and what a room remembers.
    @Suite struct Truth {
        @Test(.timeLimit(.minutes(1)))
        func `the status promises, says what the promise is made of, and keeps a history`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 21, as: "a.wav")
                try await group.lead([asset], roomsToWaitFor: 2)
                group.follow("attic")
                let status = try await group.untilStatus("both promise and have a history") {
                    $0.rooms.count == 2
                        && $0.rooms.allSatisfy {
                            $0.sync?.boundMicroseconds != nil && $0.sync?.clock == .locked
                                && $0.sync?.history.seconds ?? 0 >= 2
                        }
                }
                for room in status.rooms {
                    let sync = try #require(room.sync)
                    let parts = sync.parts
                    let known = [
                        parts.errorMicroseconds, parts.clockMicroseconds, parts.pathMicroseconds,
                        parts.cardMicroseconds,
                    ]
                    let sum = known.reduce(0) { $0 + ($1 ?? .nan) }
                    #expect(abs(sum - (sync.boundMicroseconds ?? .nan)) < 0.01)
                    #expect(sync.expectedMicroseconds ?? .infinity <= sum)
                    #expect(sync.history.errors.isEmpty)
                    #expect(sync.cardClass == .fine)
                }
                let (attic, leader) = (status.rooms[0].sync, status.rooms[1].sync)
                #expect(attic?.packetsSent ?? 0 >= attic?.packetsAnswered ?? 0)
                #expect(attic?.packetsAnswered ?? 0 > 0)
                #expect([.program, .kernelReceive, .kernel].contains(attic?.ownStamps))
                // The leader's own room has the group's clock.
                #expect(leader?.parts.clockMicroseconds == 0)
                #expect(leader?.parts.pathMicroseconds == 0)
                let full = try await group.client().status(hasPoints: true)
                #expect(full.rooms[0].sync?.history.errors.count ?? 0 >= 2)
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a room whose owner wants the impossible is in alarm, the others are not`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 22, as: "a.wav")
                try await group.lead([asset], output: .none)
                group.follow("strict") { $0.syncTarget = .microseconds(1) }
                group.follow("mild") { $0.syncTarget = .seconds(1) }
                let status = try await group.untilStatus("strict is in alarm") {
                    $0.rooms.count == 2 && $0.rooms.last?.sync?.alarm == true
                        && $0.rooms.first?.sync?.boundMicroseconds != nil
                }
                #expect(status.rooms.map { $0.sync?.alarm } == [false, true])
                #expect(status.rooms.last?.sync?.targetMicroseconds == 1)
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `an offset is applied at once and remembered, unless the settings give it`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 23, as: "a.wav")
                try await group.lead([asset], output: .none)
                let bath = group.follow("bath")
                let fixed = try LatencyOffset(microseconds: 250)
                let measured = try LatencyOffset(
                    microseconds: -1_500, uncertaintyMicroseconds: 20)
                group.follow("fixed") { $0.latencyOffset = fixed }
                try await group.untilPlaying(["bath", "fixed"])
                try await group.perform(.latencyOffset(room: RoomID("bath"), measured))
                let status = try await group.untilStatus("the offset is in force") {
                    $0.rooms.first?.sync?.latencyOffsetMicroseconds == -1_500
                }
                #expect(status.rooms.last?.sync?.latencyOffsetMicroseconds == 250)
                let parts = status.rooms.map { $0.sync?.parts.calibrationMicroseconds }
                #expect(parts == [20, nil])
                let error = await #expect(throws: RoomError.self) {
                    try await group.perform(.latencyOffset(room: RoomID("fixed"), .zero))
                }
                #expect(error?.description.contains("latency-offset-us") == true)

                _ = await bath.stop()
                group.follow("bath")
                try await group.untilStatus("bath is back with its offset") {
                    let sync = $0.rooms.first { $0.name == "bath" }?.sync
                    return sync?.latencyOffsetMicroseconds == -1_500
                        && sync?.parts.calibrationMicroseconds == 20
                }
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a room remembers its leader's rate when it leaves`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 24, as: "a.wav")
                try await group.lead([asset], output: .none)
                let attic = group.follow("attic")
                // A ppm has to be known before it is worth keeping.
                try await group.untilStatus("the rate is known") {
                    guard let sync = $0.rooms.first?.sync else { return false }
                    return sync.skewDeviationPartsPerMillion > 0
                        && sync.skewDeviationPartsPerMillion < 0.9 && sync.clock == .locked
                }
                _ = await attic.stop()
                let folder = group.folder.path("state-attic")
                let file = try #require(
                    try FileManager.default.contentsOfDirectory(atPath: folder)
                        .first { $0.hasPrefix("room-attic-") })
                let text = try String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8)
                // Both are this machine: one crystal.
                let skew = try #require(text.split(separator: "\n").last { $0.hasPrefix("skew ") })
                let rate = try #require(Double(skew.split(separator: " ")[4]))
                #expect(abs(rate) < 3)
                #expect(skew.hasSuffix(" leader"))
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a room is idle after a stop, and an unplayable item is complained about`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 25, as: "a.wav")
                try await group.lead([asset])
                try await group.untilPlaying(["leader"])
                try await group.perform(.stop)
                let status = try await group.untilStatus("the room is idle") {
                    $0.rooms.allSatisfy { $0.state == .idle }
                }
                #expect(status.detail == nil)
            }
        }
    }
}
