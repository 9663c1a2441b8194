import Foundation
import Testing

@testable import tutti

@Suite struct DemoTests {
    @Test func `the built-in piece is long enough, never silent and never clips`() {
        var piece = DemoPiece()
        let samples = piece.samples(seconds: 3)
        #expect(samples.count == 3 * 48_000 * 2)
        #expect(samples.allSatisfy { abs($0) <= 1 })
        #expect((samples.map(abs).max() ?? 0) > 0.5)
        // Zeros in a row would count as a dropout of the room.
        var run = 0
        var longest = 0
        for frame in 0..<(samples.count / 2) {
            run = abs(samples[2 * frame]) < 1 / 65_536 ? run + 1 : 0
            longest = max(longest, run)
        }
        #expect(longest < 24)
    }

    @Test func `no second of the built-in piece looks like another`() {
        var piece = DemoPiece()
        let samples = piece.samples(seconds: 4)
        let mono = stride(from: 0, to: samples.count, by: 2).map { samples[$0] }
        // A room that is late by one bar must not be taken for one that is in time: against a
        // window a second later no lag may match.
        let late = Array(mono[48_000...])
        func take(_ samples: [Float]) -> Take {
            Take(
                name: "x", sampleRate: 48_000,
                segments: [
                    .init(
                        samples: samples, anchorFrames: [0, Double(samples.count)],
                        anchorTimes: [0, Double(samples.count) / 48_000 * 1e9])
                ])
        }
        let grid = TimeGrid(start: 0, sampleRate: 48_000, count: 3 * 48_000)
        let meter = SkewMeter(.init(take(mono), grid: grid), .init(take(late), grid: grid))
        #expect(meter.window(from: 24_000, count: 48_000) == .unmatched)
        #expect(meter.window(from: 72_000, count: 48_000) == .unmatched)
    }

    @Test func `rooms of a demo have names and crystals of their own`() {
        let rooms = DemoRoom.all(16, tag: "7")
        #expect(Set(rooms.map(\.fullName)).count == 16)
        #expect(rooms.prefix(3).map(\.partsPerMillion) == [80, -120, 20])
    }

    @Test func `a WAV file says what is in it`() throws {
        let bytes = WaveFile.bytes([0, 1, -1, 2], sampleRate: 44_100)
        #expect(bytes.count == 44 + 8)
        #expect(Array(bytes[44...]) == [0, 0, 0xFF, 0x7F, 0x01, 0x80, 0xFF, 0x7F])
        #expect(Array(bytes[24..<28]) == [0x44, 0xAC, 0, 0])
        let float = WaveFile.floatBytes([1], channels: 1, sampleRate: 48_000)
        #expect(float[20] == 3)
        #expect(Array(float[44...]) == [0, 0, 0x80, 0x3F])
    }

    @Test func `the JSON holds what is promised, and NaN never gets into it`() throws {
        var lockstep = Lockstep(
            rooms: ["a", "b"], pairs: [(0, 1)], points: [], startSkewMicroseconds: .nan,
            dropouts: [], programmeSeconds: 2)
        let rooms = DemoRoom.all(2, tag: "7")
        func object() throws -> [String: Any] {
            let report = DemoReport(
                DemoResult(
                    rooms: rooms, lockstep: lockstep, discovery: .direct, title: "t", folder: nil,
                    costs: [RoomCost(processorPercent: 1.254, residentMegabytes: 22), nil]))
            let text = jsonText(report, pretty: false)
            #expect(!text.contains("\n"))
            return try #require(
                try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        }
        #expect(try object()["inLockstep"] as? Bool == false)
        lockstep.points = [.init(pair: 0, seconds: 1, skewMicroseconds: -3.25)]
        lockstep.startSkewMicroseconds = 4
        let json = try object()
        let skew = try #require(json["skewMicroseconds"] as? [String: Any])
        #expect(skew["p50"] as? Double == 3.25)
        #expect(skew["p99"] as? Double == 3.25)
        #expect(skew["max"] as? Double == 3.25)
        #expect(json["startSkewMicroseconds"] as? Double == 4)
        #expect(json["dropouts"] as? Int == 0)
        let reported = try #require(json["rooms"] as? [[String: Any]])
        #expect(reported.count == 2)
        #expect((reported[0]["cost"] as? [String: Any])?["processorPercent"] as? Double == 1.25)
        #expect(reported[1]["cost"] == nil)
        #expect(json["inLockstep"] as? Bool == true)
    }

    @Test func `a run too short for a cost says so, and how the rooms met is said in words`() {
        func text(_ costs: [RoomCost?], _ discovery: DiscoveryMode) -> String {
            let lockstep = Lockstep(
                rooms: ["a", "b"], pairs: [(0, 1)], points: [], startSkewMicroseconds: 1,
                dropouts: [], programmeSeconds: 5)
            return DemoReport(
                DemoResult(
                    rooms: DemoRoom.all(2, tag: "7"), lockstep: lockstep, discovery: discovery,
                    title: "t", folder: nil, costs: costs)
            ).text(colour: false)
        }
        #expect(text([], .direct).contains("cost        not measured: that takes 9 s"))
        let one = text([nil, RoomCost(processorPercent: 1.25, residentMegabytes: 22)], .avahi)
        #expect(one.contains("cost        1.25 % of a core and 22.0 MB"))
        #expect(text([], .direct).contains("t, 5.0 s, rooms told the leader's address\n"))
        #expect(one.contains("t, 5.0 s, rooms found by Avahi\n"))
    }

    @Test(.timeLimit(.minutes(5)))
    func `a child ends when its parent lets go of it, and is reaped`() async throws {
        let log = FileManager.default.temporaryDirectory.appending(path: "tutti-child-\(getpid())")
            .path
        defer { try? FileManager.default.removeItem(atPath: log) }
        let child = try ChildProcess(["sh", "-c", "echo ready; cat; exit 7"], log: log)
        #expect(child.isRunning)
        child.release()
        await ChildProcess.reap([child], limit: .seconds(20))
        #expect(child.ending == "exit status 7")
        #expect(lastLine(ofFile: log) == "ready")
        // Reaped: the process is gone, not a zombie.
        #expect(kill(child.pid, 0) == -1)
    }

    @Test(.timeLimit(.minutes(5)))
    func `a child that does not listen is ended by force, with what it started`() async throws {
        let child = try ChildProcess(
            ["sh", "-c", "trap '' TERM; sleep 600 & sleep 600"], log: "/dev/null")
        child.terminate()
        await ChildProcess.reap([child], limit: .milliseconds(50))
        #expect(!child.isRunning)
        #expect(child.ending == "signal 9")
    }

    @Test func `a program that is not there is a sentence`() {
        let error = #expect(throws: CommandError.self) {
            _ = try ChildProcess(["tutti-nonexistent"], log: "/dev/null")
        }
        #expect(error?.description.contains("does not start") == true)
    }
}
