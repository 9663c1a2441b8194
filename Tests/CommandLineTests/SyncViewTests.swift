import ArgumentParser
import Foundation
import Testing
import TuttiGroupControl
import TuttiTiming

@testable import tutti

@Suite struct SyncViewTests {
    static func room(
        _ name: String, alarm: Bool = false, points: Int = 60,
        offset: LatencyOffset = (try? LatencyOffset(microseconds: -1_500)) ?? .zero
    ) -> RoomStatus {
        var history = SyncHistory()
        for second in 0..<points {
            history.note(
                error: .microseconds(Int64(second % 7)), bound: .microseconds(50),
                at: GroupInstant(nanoseconds: 0) + .seconds(Int64(second)))
        }
        let report = RoomReport(
            activity: .playing, clockBound: .microseconds(40), roundTrip: .microseconds(61),
            stamps: .kernel, cardPartsPerMillion: -119.87, ratioPartsPerMillion: 120.01,
            error: .microseconds(-2), dropouts: 3, xruns: 4,
            sync: SyncReport(
                quality: .locked, path: .microseconds(30), card: .microseconds(11),
                expectedClock: .microseconds(3), expectedCard: .microseconds(4),
                target: .microseconds(500), isAlarming: alarm, skewPartsPerMillion: 35.125,
                skewDeviationPartsPerMillion: 0.05, ownStamps: .kernel,
                leaderStamps: .kernelReceive, cardClass: .fine, packetsSent: 812,
                packetsAnswered: 810, packetsRejected: 2, clockRestarts: 1,
                clockAge: .milliseconds(120), latencyOffset: offset,
                broadcasts: BroadcastReport(
                    state: .inUse, rooms: 3, spread: Nanoseconds(21_300),
                    correction: Nanoseconds(-17_200), noise: Nanoseconds(2_100))))
        let last = GroupInstant(nanoseconds: 0) + .seconds(Int64(points))
        return RoomStatus(
            name: name, report: report, settings: .standard, reportedAt: last, history: history,
            at: last + .milliseconds(200), hasPoints: true)
    }

    static func status(_ rooms: [RoomStatus]) -> GroupStatus {
        GroupStatus(
            leader: "kitchen", phase: .playing, title: "Song", index: 0, count: 1,
            positionSeconds: 30, durationSeconds: 120, rate: 1, rooms: rooms)
    }

    @Test func `what hangs behind a card is a part where it was measured`() throws {
        let offset = try LatencyOffset(microseconds: 700, uncertaintyMicroseconds: 25)
        let room = Self.room("bath", offset: offset)
        let text = SyncView(status: Self.status([room]), width: 200).lines.joined(separator: "\n")
        for part in ["± 78.0 µs", "card 11.0 + calibration 25.0 µs", "+700 ± 25 µs"] {
            #expect(text.contains(part), "\(part) is missing in:\n\(text)")
        }
        #expect(!text.contains("not measured"))
        // A promise for a loudspeaker and one for a card are not about the same sound.
        func group(_ rooms: [RoomStatus]) -> String {
            SyncView(status: Self.status(rooms), width: 200).lines.joined(separator: "\n")
        }
        #expect(group([room, room]).contains("within 156.0 µs (promised)"))
        #expect(group([room, Self.room("bath")]).contains("no promise about all rooms together"))
    }

    @Test func `what was not let in is a line where there was any, of the leader and of a room`() {
        func text(_ status: GroupStatus) -> String {
            SyncView(status: status, width: 200).lines.joined(separator: "\n")
        }
        var status = Self.status([Self.room("bath")])
        #expect(!text(status).contains("dropped"))
        status.dropped = DatagramDrops(untagged: 12, replayed: 3)
        status.rooms[0].sync?.dropped = DatagramDrops(ofOtherTerm: 1)
        let lines = text(status).split(separator: "\n")
        #expect(lines.contains("datagrams dropped: 12 without a good tag, 3 replayed"))
        let isToldOfRoom = lines.contains { $0.contains("datagrams dropped: 1 of another term") }
        #expect(isToldOfRoom)
    }

    @Test func `everything the room says of its lockstep is shown`() {
        let text = SyncView(status: Self.status([Self.room("bath")]), width: 200).lines
            .joined(separator: "\n")
        for part in [
            "bath · playing · clock locked · target 500 µs", "−2.0 µs at the DAC",
            "± 53.0 µs", "error 2.0 + clock 10.0 + path 30.0 + card 11.0", "not measured",
            "± 5.4 µs", "+120.01 ppm", "−119.87 ppm", "+35.125 ± 0.050 ppm",
            "stamps here kernel, at the leader kernel receive",
            "812 sent, 810 answered, 2 rejected",
            "1 restarts; 0.3 s old", "fine; 4 xruns, 3 dropouts", "−1500 µs", "last 61 s",
            "max 6.0",
            "in use with 3 rooms, spread 21.3 µs; corrected by −17.2 µs, noise 2.1 µs",
        ] {
            #expect(text.contains(part), "\(part) is missing in:\n\(text)")
        }
        #expect(!text.contains("ALARM"))
    }

    @Test(arguments: [
        (BroadcastState.off, "off"), (.notHeard, "not heard"), (.alone, "no other room"),
        (.gathering, "too few"), (.standingOffset, "an offset that stays"),
        (
            .scattered,
            "converted to unicast, rooms hang on different access points, or the others are on wires"
        ),
        (.noMulticast, "no multicast"),
    ])
    func `why reference broadcasts are not in use is said`(
        state: BroadcastState, words: String
    ) throws {
        var room = Self.room("bath")
        room.sync?.broadcasts.state = state
        let lines = SyncView(status: Self.status([room]), width: 200).lines
        let line = try #require(lines.first { $0.contains("multicast ") })
        #expect(line.contains("not used") && line.contains(words))
    }

    /// The interval of two rooms is the sum of theirs.
    @Test func `nothing that a room says of itself reaches a terminal as it is`() throws {
        let evil = "x\u{1B}]0;t\u{7}\r\nforged\u{202E}\u{9B}\u{2028}"
        var room = Self.room("a", alarm: true)
        room.name = evil
        room.detail = evil
        room.sync?.line = evil
        room.sync?.lineAlarm = true
        room.sync?.boundMicroseconds = nil
        room.sync?.cardFormat = evil
        var status = Self.status([room, room])
        (status.leader, status.title, status.detail) = (evil, evil, evil)
        let lines =
            SyncView(status: status, width: 200).lines
            + StatusView(status: status, width: 200).lines
        let shown = lines.joined(separator: "\n").unicodeScalars
        for scalar in evil.unicodeScalars where scalar.value < 0x20 || scalar.value > 0x7E {
            #expect(scalar == "\n" || !shown.contains(scalar), "\(scalar.value)")
        }
        #expect(!lines.contains { $0.hasPrefix("forged") })
    }

    @Test func `two rooms are promised within the sum of the two widest bounds`() {
        let two = SyncView(status: Self.status([Self.room("a"), Self.room("b")]), width: 200)
        #expect(two.lines.contains { $0.contains("within 106.0 µs (promised)") })
        var blind = Self.room("b")
        blind.sync?.boundMicroseconds = nil
        let none = SyncView(status: Self.status([Self.room("a"), blind]), width: 200)
        #expect(none.lines.contains { $0.contains("no promise about all rooms") })
        #expect(none.lines.contains { $0.contains("promised  nothing") })
    }

    @Test func `a room that is not heard is shown as old, with why nothing is promised`() {
        var silent = Self.room("b")
        silent.sync?.reportAgeSeconds = SyncStatus.staleSeconds + 1
        silent.sync?.boundMicroseconds = nil
        silent.errorMicroseconds = nil
        let text = SyncView(status: Self.status([Self.room("a"), silent]), width: 200).lines
            .joined(separator: "\n")
        for part in [
            "no promise about all rooms together: b: not heard for 4 s", "b · 4 s ago: playing",
            "promised  nothing: not heard for 4 s", "error     not known",
        ] {
            #expect(text.contains(part), "\(part) is missing in:\n\(text)")
        }
    }

    @Test func `a room that is paused has no error, and still a promise`() throws {
        var paused = Self.room("b")
        (paused.state, paused.errorMicroseconds) = (.paused, nil)
        paused.sync?.parts.errorMicroseconds = nil
        let lines = SyncView(status: Self.status([paused]), width: 200).lines
        #expect(lines.contains { $0.contains("error     none: nothing sounds; last 61 s") })
        #expect(lines.contains { $0.contains("made of   error – + clock 10.0") })
        #expect(lines.contains { $0.contains("promised  ± 53.0 µs") })
    }

    @Test func `an alarm is seen in every view`() {
        let status = Self.status([Self.room("bath", alarm: true)])
        #expect(
            SyncView(status: status, width: 200).lines
                .contains { $0.contains("ALARM: bound above target 500 µs") })
        #expect(SyncView.plainLine(status).hasSuffix("ALARM: bound above target 500 µs"))
        #expect(Status.plainLine(status).hasSuffix("ALARM: bound above target 500 µs"))
        #expect(
            StatusView(status: status, width: 200).lines.last?.contains("ALARM") == true)
    }

    @Test(arguments: [1, 8, 20, 40, 80, 200])
    func `no line is wider than the terminal`(width: Int) {
        var status = Self.status([Self.room("a"), Self.room("b", alarm: true)])
        status.detail = String(repeating: "nothing is heard ", count: 30)
        for colour in [true, false] {
            let view = SyncView(status: status, width: width, showsColour: colour)
            #expect(view.lines.allSatisfy { $0.columns <= width })
        }
    }

    @Test func `what is wrong with the group stands under its headline`() {
        var status = Self.status([])
        status.detail = "nothing is heard\u{1B}[2J"
        #expect(StatusView(status: status, width: 80).lines[2] == "nothing is heard[2J")
        #expect(SyncView(status: status, width: 80).lines.contains("nothing is heard[2J"))
    }

    @Test func `a room that has not reported yet is shown all the same`() {
        let fresh = RoomStatus(name: "bath", report: RoomReport(), settings: .standard)
        let lines = SyncView(status: Self.status([fresh]), width: 80).lines
        #expect(lines.last?.contains("no report yet") == true)
    }

    @Test func `JSON is what the leader tells, and says why nothing is promised`() throws {
        let bath = Self.room("bath")
        let silent = RoomStatus(name: "attic", report: RoomReport(), settings: .standard)
        func json(_ rooms: [RoomStatus]) throws -> (GroupStatus, [String: Any], [[String: Any]]) {
            let status = Self.status(rooms)
            let data = Data(jsonText(StatusDocument(status: status), pretty: false).utf8)
            let object = try JSONSerialization.jsonObject(with: data) as? [String: Any]
            #expect(try JSONDecoder().decode(GroupStatus.self, from: data) == status)
            return (status, object ?? [:], object?["rooms"] as? [[String: Any]] ?? [])
        }
        let (status, both, rooms) = try json([bath, bath])
        guard case .within(let promised, let expected) = status.promise else {
            Issue.record("two rooms promise \(status.promise)")
            return
        }
        #expect(both["promisedMicroseconds"] as? Double == promised)
        #expect(both["expectedMicroseconds"] as? Double == expected)
        #expect(both["promiseObstacle"] == nil)
        #expect(rooms.count == 2 && rooms.allSatisfy { $0["promiseObstacle"] == nil })
        let (_, one, named) = try json([silent, bath])
        #expect(one["promiseObstacle"] as? String == "attic: no report yet")
        #expect(one["promisedMicroseconds"] == nil)
        #expect(named.map { $0["promiseObstacle"] as? String } == ["no report yet", nil])
    }

    @Test func `a sparkline shows the largest of what falls to a column, and where nothing does`() {
        func text(_ values: [Float], _ ages: [Float], width: Int, top: Float = 8) -> String {
            Sparkline.text(values, ages: ages, span: ages.first ?? 1, width: width, top: top)
        }
        #expect(text([0, 1, 2, 4, 8], [4.5, 3.5, 2.5, 1.5, 0.5], width: 9) == "▁▁▂▄█")
        #expect(text([0, 0, 0, -8], [4, 3, 2, 1], width: 2) == "▁█")
        #expect(text([8, 4], [8, 0], width: 4) == "█··▄")
        #expect(text([99], [1], width: 5) == "█")
        #expect(text([], [], width: 5).isEmpty)
        #expect(text([1], [1], width: 0).isEmpty)
        let many = (0..<300).map { Float(300 - $0) }
        #expect(text(many, many, width: 30, top: 1) == String(repeating: "█", count: 30))
    }

    @Test(arguments: [
        (["bedroom", "1500"], 1_500), (["bedroom", "-300"], -300), (["bedroom", "+7"], 7),
        (["bedroom", "−8"], -8), (["bedroom", "-500000"], -500_000),
        (["bedroom", "-1500±20"], -1_500), (["bedroom", "-1500+-20"], -1_500),
    ])
    func `an offset is a room and signed microseconds`(words: [String], microseconds: Int) throws {
        let command = try Offset.parse(words + ["--leader", "10.0.0.1"])
        #expect(try command.parsed().offset.delay == .microseconds(Int64(microseconds)))
        #expect(try command.parsed().room.name == "bedroom")
        #expect(command.options.leader.leader == "10.0.0.1")
    }

    @Test(arguments: [
        [], ["bedroom"], ["1500"], ["bedroom", "1.5"], ["bedroom", "500001"],
        ["bedroom", "-500001"], ["bedroom", "1500±x"], ["-300", "bedroom"], ["a", "b", "1"],
        ["bedroom", "--verbos"],
    ])
    func `what is no offset is refused`(words: [String]) {
        #expect(throws: (any Error).self) { try Offset.parse(words) }
    }
}
