import Foundation
import Glibc
import Testing
import TuttiDeviceOutput
import TuttiLinuxHost
import TuttiTiming

@testable import TuttiSimulation
@testable import tutti

/// The program as users start it: processes on hosts of their own, playing on cards of their own.
///
/// Bounds are ratios of what would be wrong, not figures of a good day: the machine is shared. The
/// time limit is long because the other tests' simulations come first.
@Suite(.timeLimit(.minutes(10))) struct EndToEndTests {
    /// ALSA's configuration: a card of each rate error, named so. Their crystals breathe, by half a
    /// ppm and more, and the pointer of every third moves by 8 frames, as those of many boards do.
    /// What leaves their rings is heard `heldBack` later, milliseconds.
    static func cards(_ partsPerMillion: [Double], heldBack: [Int] = []) -> (String) -> String {
        { folder in
            var text = "pcm_type.tutti_card { lib \"\(House.cardLibrary)\" }\n"
            for (number, ppm) in partsPerMillion.enumerated() {
                let (wander, step) = (0.5 + 0.3 * Double(number), number % 3 == 2 ? 8 : 1)
                text += "pcm.card\(number) { type tutti_card ppm \(ppm) wander \(wander) "
                if heldBack.indices.contains(number) {
                    text += "extra_delay_ms \(heldBack[number]) "
                }
                text += "step \(step) record \"\(folder)/card\(number)\" "
                for state in CardBreak.allCases {
                    text += "\(state)_while \"\(folder)/card\(number).\(state)\" "
                }
                text += "}\n"
            }
            return text
        }
    }

    static let canHouse = House.obstacle == nil
    static let obstacle = Comment(rawValue: House.obstacle ?? "")

    static let canEmulate = EmulatedNetwork.obstacle == nil
    static let noNetwork = Comment(rawValue: EmulatedNetwork.obstacle ?? "")

    // MARK: - Doctor

    struct Report: Decodable {
        struct Finding: Decodable, Sendable {
            var area: String
            var level: String
            var found: String
            var advice: String?
        }
        var problems: Int
        var findings: [Finding]

        subscript(area: String) -> Finding? { findings.first { $0.area == area } }
    }

    @Test(.enabled(if: canHouse, obstacle), arguments: [80.0, -300])
    func `doctor sees a card as it is, and that nobody leads`(ppm: Double) async throws {
        let result = try await onOwnThread {
            let house = try House(hosts: 1, cards: Self.cards([ppm]))
            return try house.tutti(
                [
                    "doctor", "--json", "--output", "alsa:card0", "--leader",
                    house.hosts[0].address,
                ], on: 0)
        }
        let report = try JSONDecoder().decode(Report.self, from: Data(result.output.utf8))
        #expect((result.status == 1) == (report.problems > 0))
        // Nobody leads there, and that is a problem for who names a leader.
        #expect(report["leader"]?.level == "problem")
        #expect(report["card's stamps"]?.found.contains("CLOCK_MONOTONIC_RAW") == true)
        #expect(report["card's pointer"]?.found.contains("class fine") == true)
        let found = report["card's crystal"]?.found ?? ""
        let match = try #require(found.firstMatch(of: /at ([+−])(\d+) ppm/), "\(found)")
        let size = try #require(Double(String(match.output.2)))
        // Half a frame at either end of a second is 20 ppm.
        #expect(abs((match.output.1 == "+" ? size : -size) - ppm) < 20)
        #expect(report["interface eth0"]?.level == "ok")
        #expect(report["stamps eth0"]?.level == "ok")
        #expect(
            report.findings.allSatisfy {
                $0.level == "ok" || $0.level == "note" || $0.advice != nil
            })
    }

    @Test(.enabled(if: canHouse, obstacle))
    func `doctor hears reference broadcasts, unless a program keeps their port`() async throws {
        let findings = try await onOwnThread {
            let house = try House(hosts: 1, cards: Self.cards([0]))
            let asset = "\(house.folder.path)/noise.wav"
            try NoiseAsset(seconds: 1).write(to: asset)
            func look() throws -> Report.Finding? {
                let result = try house.tutti(["doctor", "--json", "--output", "alsa:card0"], on: 0)
                let report = try JSONDecoder().decode(Report.self, from: Data(result.output.utf8))
                return report["broadcasts eth0"]
            }
            let free = try look()
            let port = "\(MulticastFacts.beaconPort)"
            try house.start(
                ["lead", asset, "--port", port, "--output", "none", "--wait-for", "2"], on: 0)
            var taken = try look()
            // The leader may need a while to take it.
            try until("a taken port", seconds: 30) {
                if taken?.level == "ok" { taken = try look() }
                return taken?.level != "ok"
            }
            try house.end()
            return [free, taken]
        }
        #expect(findings[0]?.level == "ok", "\(findings[0]?.found ?? "nothing")")
        #expect(findings[1]?.level == "note")
        #expect(findings[1]?.advice?.contains("ss -ulpn") == true, "\(findings)")
    }

    // MARK: - A terminal

    @Test(.enabled(if: canHouse, obstacle))
    func `a watched status outlives its leader, and q gives the terminal back`() async throws {
        let (status, text) = try await onOwnThread {
            let house = try House(hosts: 1, cards: Self.cards([0]))
            let asset = "\(house.folder.path)/noise.wav"
            try NoiseAsset(seconds: 60).write(to: asset)
            let leader = "127.0.0.1:7430"
            let lead = ["lead", asset, "--wait-for", "2", "--output", "none"]
            func isThere() throws -> Bool {
                try house.tutti(["status", "--leader", leader], on: 0).status == 0
            }
            try house.start(lead, on: 0)
            try until("a leader", seconds: 30, isThere)
            let log = "\(house.folder.path)/watch.log"
            func says(_ text: String) -> Bool { ((try? readFile(log)) ?? "").contains(text) }
            let typed = "\(house.folder.path)/typed"
            let watch = try house.type(
                "while [ ! -e \(typed) ]; do sleep 0.1; done; printf q; sleep 5",
                into: ["status", "--watch", "--leader", leader], on: 0, log: log)
            try until("a status", seconds: 30) { says("waits for rooms") }
            try house.kill(room: 0)
            try until("the leader is missed", seconds: 30) { says("waiting for the leader") }
            try house.start(lead, on: 0)
            try until("a leader", seconds: 30, isThere)
            sleep(4)
            let before = ((try? readFile(log)) ?? "").count
            try writeFile([], to: typed)
            try until("the end of the watch", seconds: 30) { !watch.isRunning }
            try house.end()
            let text = (try? readFile(log)) ?? ""
            guard text.count >= before else { throw CommandError("the log has shrunk") }
            return (watch.ending, text)
        }
        #expect(status == "exit status 0")
        let ends = text.ranges(of: LiveScreen.showCursor)
        #expect(text.ranges(of: LiveScreen.hideCursor).count == 1 && ends.count == 1)
        // It came back: the last frame is of a leader that is there.
        let last = text.split(separator: "waiting for the leader").last ?? ""
        #expect(last.contains("waits for rooms"), "\(last.suffix(300))")
    }

    // MARK: - Rooms

    @Test(.enabled(if: canHouse, obstacle))
    func `three hosts play, pause and are joined in lockstep`() async throws {
        let asset = NoiseAsset(seconds: 60)
        let recordings = try await onOwnThread {
            try Self.record(asset, hosts: 3) { try Self.perform($0, asset: $1) }
        }
        let hearing = try #require(
            Hearing(recordings, names: Self.names), "a room never sounded")
        #expect(hearing.ranDry().isEmpty)
        check(hearing, asset: asset)
    }

    /// Bluetooth, a receiver with a picture to wait for: longer than the queue of the card, which
    /// holds 200 ms here.
    @Test(.enabled(if: canHouse, obstacle))
    func `rooms whose sound is held back by up to two seconds are in lockstep`() async throws {
        let asset = NoiseAsset(seconds: 60)
        let recordings = try await onOwnThread {
            try Self.record(asset, hosts: 3, heldBack: [0, 300, 2_000]) { house, path in
                let leader = try Self.begin(house, asset: path)
                try house.start(["follow", "--leader", leader] + Self.room(2), on: 2)
                try Self.playing(house, leader, rooms: 3)
                sleep(8)
                try house.end()
            }
        }
        let hearing = try #require(
            Hearing(recordings, names: Self.names), "a room never sounded")
        #expect(hearing.ranDry().isEmpty)
        let starts = hearing.audible.map(\.lowerBound)
        #expect(abs(starts[1] - starts[0]) / 1e3 < Self.period / 10)
        let end = hearing.audible.map(\.upperBound).min() ?? 0
        for other in [1, 2] {
            // A rate that is known to a ppm is off by two microseconds in two seconds.
            let times = stride(from: starts[other] + 1.5e9, to: end - Self.settled, by: 0.4e9)
            let skews = times.map { hearing.skew(0, other, at: $0).map(abs) ?? .infinity }
            #expect(skews.count >= 6)
            #expect((skews.max() ?? .infinity) < Self.period / 20, "\(skews) µs")
            #expect(skews.sorted()[skews.count / 2] < Self.frame, "\(skews) µs")
        }
    }

    @Test(.enabled(if: canHouse, obstacle))
    func `a room that stood still is on the line again, and the other heard nothing of it`()
        async throws
    {
        let asset = NoiseAsset(seconds: 60)
        let recordings = try await onOwnThread {
            try Self.record(asset, hosts: 2) { house, path in
                let leader = try Self.begin(house, asset: path)
                sleep(4)
                // Longer than its card's queue; less than what makes the leader close the link.
                house.freeze(room: 0, milliseconds: 700)
                sleep(5)
                try Self.playing(house, leader, rooms: 2)
                try house.end()
            }
        }
        #expect(recordings[1].underruns >= 1, "its card ran dry")
        let hearing = try #require(Hearing(recordings, names: Self.names), "a room never sounded")
        #expect(!hearing.ranDry().contains { $0.hasPrefix(Self.names[0]) })
        #expect(hearing.gaps[0].isEmpty, "\(hearing.gaps[0])")
        let silence = try #require(hearing.gaps[1].last, "it was silent for a moment")
        checkReturn(of: 1, at: silence.upperBound, hearing)
    }

    /// What can happen to a card besides running dry.
    enum CardBreak: CaseIterable {
        /// Its machine or its bus slept.
        case asleep
        /// It was pulled out, and plugged in again.
        case gone
    }

    @Test(.enabled(if: canHouse, obstacle), arguments: CardBreak.allCases)
    func `a card that was away plays on the line again, and the other room heard nothing of it`(
        state: CardBreak
    ) async throws {
        // A card that was plugged in again is another recording.
        let further = state == .gone ? ["card1-2"] : []
        let recordings = try await onOwnThread {
            try Self.record(NoiseAsset(seconds: 60), hosts: 2, further: further) { house, file in
                let away = "\(house.folder.path)/card1.\(state)"
                let leader = try Self.begin(house, asset: file)
                sleep(4)
                try writeFile([], to: away)
                usleep(900_000)
                try FileManager.default.removeItem(atPath: away)
                // It is looked for once a second.
                sleep(2)
                try Self.playing(house, leader, rooms: 2)
                sleep(4)
                try house.end()
            }
        }
        let hearing = try #require(
            Hearing(recordings, names: Array(Self.names[..<recordings.count])),
            "a room never sounded")
        #expect(hearing.ranDry().isEmpty)
        #expect(hearing.gaps[0].isEmpty, "\(hearing.gaps[0])")
        let back = state == .gone ? hearing.audible[2].lowerBound : hearing.gaps[1].last?.upperBound
        let first = try #require(back, "it was silent for a moment")
        let room = recordings.count - 1
        #expect(hearing.gaps[room].count == (state == .gone ? 0 : 1), "\(hearing.gaps[room])")
        checkReturn(of: room, at: first, hearing)
    }

    /// The leader's own comes first, then that of the other room, which has missed more by then than
    /// is decoded ahead.
    @Test(.enabled(if: canHouse, obstacle))
    func `cards that were not there at the start play on the line when they come`() async throws {
        let recordings = try await onOwnThread {
            try Self.record(NoiseAsset(seconds: 60), hosts: 2) { house, file in
                let away = [0, 1].map { "\(house.folder.path)/card\($0).gone" }
                for file in away { try writeFile([], to: file) }
                let leader = "\(house.hosts[0].address):7430"
                try house.start(["follow", "--leader", leader] + Self.room(1), on: 1)
                try house.start(["lead", file, "--wait-for", "2"] + Self.room(0), on: 0)
                try until("two rooms that wait for their cards", seconds: 30) {
                    try Self.states(house, leader) == ["cardLost", "cardLost"]
                }
                sleep(2)
                try FileManager.default.removeItem(atPath: away[0])
                try until("a card", seconds: 5) {
                    try Self.states(house, leader).sorted() == ["cardLost", "playing"]
                }
                sleep(4)
                try FileManager.default.removeItem(atPath: away[1])
                try Self.playing(house, leader, rooms: 2)
                sleep(5)
                try house.end()
            }
        }
        let hearing = try #require(Hearing(recordings, names: Self.names), "a room never sounded")
        #expect(hearing.gaps.map(\.count) == [0, 0], "\(hearing.gaps)")
        let starts = hearing.audible.map(\.lowerBound)
        #expect(starts[1] - starts[0] > 3e9)
        checkReturn(of: 1, at: starts[1], hearing)
    }

    /// Rooms play on from what they hold, by the line as it ran; neither the break nor the packets
    /// that a queue held up may be heard. On wires the rooms are where they were a second after it;
    /// on the air a clock that is 15 s old may not know its skew to 15 ppm, and runs 5 s by that.
    @Test(.enabled(if: canEmulate, noNetwork), arguments: ["wired", "wifi"])
    func `an outage and a queue are not heard`(path: String) async throws {
        let path = try #require(ClockPath.named(path))
        let recordings = try await onOwnThread {
            try Self.record(NoiseAsset(seconds: 60), hosts: 2, path: path) { house, file in
                let leader = try Self.begin(house, asset: file)
                sleep(6)
                try house.endure(.outage, milliseconds: 5_000)
                sleep(3)
                try house.endure(.queue(.milliseconds(150)), milliseconds: 3_000)
                sleep(4)
                try Self.playing(house, leader, rooms: 2)
                try house.end()
            }
        }
        let hearing = try #require(Hearing(recordings, names: Self.names), "a room never sounded")
        #expect(hearing.ranDry().isEmpty)
        #expect(hearing.gaps.map(\.count) == [0, 0], "\(hearing.gaps)")
        let begin = hearing.audible.map(\.lowerBound).max() ?? 0
        let end = hearing.audible.map(\.upperBound).min() ?? 0
        let times = stride(from: begin + Self.settled, to: end - Self.settled, by: 0.4e9)
        let skews = times.map { hearing.skew(0, 1, at: $0).map(abs) ?? .infinity }
        // Six seconds, five, three, three and four.
        #expect(skews.count >= 45)
        #expect((skews.max() ?? .infinity) < Self.period / 20, "\(skews) µs")
        guard path.name == "wired" else { return }
        let after = skews.suffix(7).sorted()
        #expect(after[3] < Self.frame, "\(after) µs")
    }

    /// Its packets wait for an address that nobody tells it, until the leader asks for its own.
    @Test(.enabled(if: canEmulate, noNetwork))
    func `a room whose questions for an address are lost is found by its leader`() async throws {
        let path = try #require(ClockPath.named("wired"))
        let recordings = try await onOwnThread {
            try Self.record(NoiseAsset(seconds: 60), hosts: 2, path: path) { house, file in
                try house.begin(.lostQuestions)
                let leader = "\(house.hosts[0].address):7430"
                try house.start(["lead", file, "--wait-for", "2"] + Self.room(0), on: 0)
                try until("a leader", seconds: 30) {
                    try house.tutti(["status", "--leader", leader], on: 0).status == 0
                }
                try house.start(["follow", "--leader", leader] + Self.room(1), on: 1)
                try Self.playing(house, leader, rooms: 2)
                sleep(2)
                try house.end()
            }
        }
        let hearing = try #require(Hearing(recordings, names: Self.names), "a room never sounded")
        let begin = (hearing.audible.map(\.lowerBound).max() ?? 0) + Self.settled
        let end = (hearing.audible.map(\.upperBound).min() ?? 0) - Self.settled
        let skews = stride(from: begin, to: end, by: 0.2e9).map {
            hearing.skew(0, 1, at: $0).map(abs) ?? .infinity
        }
        #expect(skews.count >= 5)
        #expect((skews.max() ?? .infinity) < Self.period / 20, "\(skews) µs")
    }

    /// Nobody tells the other end of a connection that an address has gone: Avahi tells the room where
    /// the leader is now, and that the leader answers there. A second item proves that clock, link
    /// and assets have followed.
    @Test(.enabled(if: canHouse, obstacle))
    func `a room follows its leader to another address, and nothing of it is heard`()
        async throws
    {
        let recordings = try await onOwnThread {
            try Self.record(NoiseAsset(seconds: 60), hosts: 2) { house, file in
                for host in 0...1 { try house.startAvahi(on: host) }
                try house.start(["lead", file, "--wait-for", "2"] + Self.room(0), on: 0)
                try house.start(["follow"] + Self.room(1), on: 1)
                try Self.playing(house, "127.0.0.1:7430", rooms: 2)
                sleep(3)
                for number in [50, 60] {
                    try house.move(host: 0, to: number)
                    sleep(4)
                    try Self.playing(house, "\(house.hosts[0].address):7430", rooms: 2)
                }
                try Self.command(house, ["seek", "10"], "\(house.hosts[0].address):7430")
                sleep(4)
                try Self.playing(house, "\(house.hosts[0].address):7430", rooms: 2)
                try house.end()
            }
        }
        let hearing = try #require(Hearing(recordings, names: Self.names), "a room never sounded")
        #expect(hearing.ranDry().isEmpty)
        checkTogether(hearing)
    }

    /// Whichever of them the room uses, and whichever goes: within three seconds it is reached at the
    /// other one, which a seek proves.
    @Test(.enabled(if: canHouse, obstacle), arguments: [false, true])
    func `a leader with two addresses is followed at the one that is left`(isIPv6: Bool)
        async throws
    {
        let recordings = try await onOwnThread {
            try Self.record(NoiseAsset(seconds: 60), hosts: 2, isIPv6: isIPv6) { house, file in
                try house.add(address: 50, to: 0)
                for host in 0...1 { try house.startAvahi(on: host) }
                try house.start(["lead", file, "--wait-for", "2"] + Self.room(0), on: 0)
                try house.start(["follow"] + Self.room(1), on: 1)
                let own = "127.0.0.1:7430"
                try Self.playing(house, own, rooms: 2)
                sleep(3)
                for (gone, left) in [(10, 50), (50, 10)] {
                    try house.remove(address: gone, from: 0)
                    sleep(3)
                    let address = house.address(left)
                    let leader = isIPv6 ? "[\(address)]:7430" : "\(address):7430"
                    try Self.command(house, ["seek", left == 50 ? "20" : "5"], leader)
                    sleep(2)
                    try Self.playing(house, own, rooms: 2)
                    try house.add(address: gone, to: 0)
                    sleep(3)
                }
                if isIPv6 {
                    // What is left is good for this wire alone, and needs its name with it.
                    for number in [10, 50] { try house.remove(address: number, from: 0) }
                    sleep(3)
                    let sought = try house.tutti(["seek", "15", "--leader", own], on: 0)
                    guard sought.status == 0 else { throw CommandError(sought.output) }
                    sleep(2)
                    try Self.playing(house, own, rooms: 2)
                }
                try house.end()
            }
        }
        let hearing = try #require(Hearing(recordings, names: Self.names), "a room never sounded")
        #expect(hearing.ranDry().isEmpty)
        checkTogether(hearing)
    }

    /// Rooms hold what was committed to its end, and clocks that were good run on for as long. At
    /// 44.1 kHz on cards of 48, so that each room converts.
    @Test(.enabled(if: canHouse, obstacle))
    func `two rooms seek at one instant, and play on together when their leader is gone`()
        async throws
    {
        let asset = NoiseAsset(seconds: 60, sampleRate: 44_100)
        let (recordings, sought, killed) = try await onOwnThread {
            var (sought, killed) = (HostClock.now(), HostClock.now())
            let recordings = try Self.record(asset, hosts: 3, rooms: 1...2) { house, file in
                let leader = "\(house.hosts[0].address):7430"
                try house.start(["lead", file, "--wait-for", "2", "--output", "none"], on: 0)
                for number in 1...2 {
                    let words = ["follow", "--leader", leader] + Self.room(number)
                    try house.start(words, on: number)
                }
                try Self.playing(house, leader, rooms: 2)
                sleep(4)
                sought = HostClock.now()
                try Self.command(house, ["seek", "\(Self.goal)"], leader)
                try Self.playing(house, leader, rooms: 2)
                sleep(4)
                try house.kill(room: 0)
                killed = HostClock.now()
                sleep(6)
                try house.end()
            }
            return (recordings, sought, killed)
        }
        let hearing = try #require(
            Hearing(recordings, names: Array(Self.names[1...])), "a room never sounded")
        #expect(hearing.ranDry().isEmpty)
        let starts = hearing.audible.map(\.lowerBound)
        #expect(abs(starts[1] - starts[0]) / 1e3 < Self.period / 10)
        let end = hearing.audible.map(\.upperBound).min() ?? 0
        let (seek, death) = (
            Double((sought - hearing.base).count), Double((killed - hearing.base).count)
        )
        // When the rooms jump is found in what they play, twice: until then what was played before
        // goes on, and what follows was at the goal then.
        let moments = Array(stride(from: seek, to: seek + 2e9, by: 0.08e9))
        let last = moments.last { hearing.skew(0, against: asset, from: starts[0], at: $0) != nil }
        let jump = try #require(
            moments.first {
                hearing.skew(0, against: asset, from: $0 - Self.goal * 1e9, at: death) != nil
            }, "what is heard is not what was sought")
        #expect(abs(jump - (last ?? .infinity)) < 0.3e9, "\(jump) and \(last ?? .nan)")
        for (from, to) in [(starts[0], seek), (jump + 0.3e9, death), (death, end)] {
            let times = stride(from: from + Self.settled, to: to - Self.settled, by: 0.4e9)
            let skews = times.map { hearing.skew(0, 1, at: $0).map(abs) ?? .infinity }
            #expect(skews.count >= 7)
            #expect((skews.max() ?? .infinity) < Self.period / 20, "\(skews) µs")
            #expect(skews.sorted()[skews.count / 2] < Self.frame, "\(skews) µs")
        }
        #expect(end - death > 5e9, "the rooms fell silent with their leader")
        #expect(hearing.gaps.allSatisfy { $0.allSatisfy { $0.lowerBound < jump + 0.3e9 } })
    }

    /// Seconds, of the item.
    private static let goal = 30.0

    // MARK: - Promises

    /// 2 ms of the asymmetric path can be seen by nobody; these rooms are that far apart, and say
    /// that they may be.
    @Test(.enabled(if: canEmulate, noNetwork), arguments: ["wired", "wifi", "asymmetric"])
    func `what two rooms promise contains what is heard`(path: String) async throws {
        let path = try #require(ClockPath.named(path))
        let (recordings, promises) = try await onOwnThread {
            var promises: [Promise] = []
            let recordings = try Self.record(NoiseAsset(seconds: 60), hosts: 2, path: path) {
                let leader = try Self.begin($0, asset: $1)
                let house = $0
                promises = []
                try until("sixteen promises", seconds: 60) {
                    usleep(500_000)
                    if let promise = try Self.promise(house, leader) { promises.append(promise) }
                    return promises.count == 16
                }
                try house.end()
            }
            return (recordings, promises)
        }
        let hearing = try #require(Hearing(recordings, names: Self.names), "a room never sounded")
        #expect(hearing.ranDry().isEmpty)
        // The first may be of a moment before the sound.
        let begin = (hearing.audible.map(\.lowerBound).max() ?? 0) + Self.settled
        let times = promises.map { Double(($0.instant - hearing.base).count) }
        #expect(times.count { $0 > begin } > promises.count / 2)
        for (promise, time) in zip(promises, times) where time > begin {
            let skew = try #require(hearing.skew(0, 1, at: time))
            #expect(skew.magnitude <= promise.bound, "\(skew) µs against \(promise)")
            // Not lazily wide: what two ends cannot measure is most of it, or it is little.
            #expect(
                promise.path > promise.bound / 2 || promise.bound < Self.period / 20,
                "\(promise)")
            if path.name == "asymmetric" {
                #expect((1_500...2_500).contains(skew.magnitude), "\(skew) µs")
            } else {
                #expect(skew.magnitude < Self.period / 20, "\(skew) µs")
            }
        }
    }

    /// One frame that all hear tells rooms where they are to each other; a packet for each tells
    /// nothing, and must be found out: no access point says which it does.
    @Test(
        .enabled(if: canEmulate, noNetwork),
        arguments: [
            (EmulatedNetwork.Multicast.together, ["in use"]),
            (.apart, ["scattered", "standing offset"]),
        ])
    func `rooms on the air use reference broadcasts where all hear one frame, and only there`(
        multicast: EmulatedNetwork.Multicast, verdicts: [String]
    ) async throws {
        let path = try #require(ClockPath.named("em-wifi"))
        let recordings = try await onOwnThread {
            try Self.record(
                NoiseAsset(seconds: 90), hosts: 3, path: path, multicast: multicast
            ) { house, file in
                let leader = "\(house.hosts[0].address):7430"
                try house.start(["lead", file, "--wait-for", "3"] + Self.room(0), on: 0)
                for number in 1...2 {
                    try house.start(
                        ["follow", "--leader", leader] + Self.room(number), on: number)
                }
                try Self.playing(house, leader, rooms: 3)
                // An offset that has not been compared for long counts as one that stays.
                if multicast == .apart { try Self.neverInUse(house, leader, seconds: 20) }
                try until("a verdict of both rooms", seconds: 40) {
                    let states = try Self.broadcasts(house, leader)
                    return states.count == 2 && states.allSatisfy(verdicts.contains)
                }
                let found = try Self.conversion(house, leader)
                let isFound =
                    multicast == .together
                    ? found.contains("one frame")
                    : found.contains("packet for each") && !found.contains("one frame")
                guard isFound else { throw CommandError("doctor: \(found)") }
                sleep(5)
                try Self.playing(house, leader, rooms: 3)
                try house.end()
            }
        }
        let hearing = try #require(Hearing(recordings, names: Self.names), "a room never sounded")
        #expect(hearing.ranDry().isEmpty)
        #expect(hearing.gaps.map(\.count) == [0, 0, 0], "\(hearing.gaps)")
        let end = (hearing.audible.map(\.upperBound).min() ?? 0) - Self.settled
        let skews = stride(from: end - 4e9, to: end, by: 0.4e9).map {
            hearing.skew(1, 2, at: $0).map(abs) ?? .infinity
        }
        #expect((skews.max() ?? .infinity) < Self.period / 20, "\(skews) µs")
    }

    private static func neverInUse(_ house: House, _ leader: String, seconds: Double) throws {
        let end = ContinuousClock.now + .seconds(seconds)
        while ContinuousClock.now < end {
            let states = try broadcasts(house, leader)
            guard !states.contains("in use") else {
                throw CommandError("a packet for each is taken for one frame: \(states)")
            }
            usleep(500_000)
        }
    }

    /// What `tutti doctor` finds of that.
    private static func conversion(_ house: House, _ leader: String) throws -> String {
        let words = ["doctor", "--json", "--output", "none", "--leader", leader]
        let result = try house.tutti(words, on: 1)
        let report = try JSONDecoder().decode(Report.self, from: Data(result.output.utf8))
        return report.findings.filter { $0.area == "multicast conversion" }.map(\.found)
            .joined(separator: "; ")
    }

    /// What the followers make of broadcasts.
    private static func broadcasts(_ house: House, _ leader: String) throws -> [String] {
        struct Status: Decodable {
            struct Room: Decodable {
                struct Sync: Decodable {
                    struct Broadcasts: Decodable { var state: String }
                    var broadcasts: Broadcasts
                }
                var sync: Sync?
            }
            var rooms: [Room]
        }
        let status: Status = try house.syncStatus(by: leader)
        return status.rooms
            .compactMap(\.sync?.broadcasts.state).filter { !$0.isEmpty }
    }

    /// What two rooms say at an instant, in µs.
    struct Promise: Sendable {
        var instant: LocalInstant
        /// How far apart they may be.
        var bound: Double
        /// Of it, half of the shortest round trip.
        var path: Double
    }

    /// - Returns: `nil` before both rooms promise something, and where their reports are of
    ///   moments too far apart to be taken for one.
    private static func promise(_ house: House, _ leader: String) throws -> Promise? {
        struct Status: Decodable {
            struct Room: Decodable {
                struct Sync: Decodable {
                    struct Parts: Decodable { var pathMicroseconds: Double }
                    var boundMicroseconds: Double?
                    var reportAgeSeconds: Double
                    var parts: Parts
                }
                var sync: Sync?
            }
            var rooms: [Room]
        }
        let before = HostClock.now()
        let result = try house.tutti(["status", "--sync", "--json", "--leader", leader], on: 0)
        let middle = before + (HostClock.now() - before) / 2
        guard result.status == 0 else { throw CommandError("status: \(result.output)") }
        let rooms = try JSONDecoder().decode(Status.self, from: Data(result.output.utf8)).rooms
            .compactMap(\.sync)
        let bounds = rooms.compactMap(\.boundMicroseconds)
        let ages = rooms.map(\.reportAgeSeconds).sorted()
        guard bounds.count == 2, ages[1] - ages[0] < 0.5 else { return nil }
        return Promise(
            instant: middle - Nanoseconds(seconds: (ages[0] + ages[1]) / 2),
            bound: bounds.reduce(0, +), path: rooms.map(\.parts.pathMicroseconds).reduce(0, +))
    }

    static let names = ["kitchen", "bedroom", "bath"]

    /// Plays in a house and gives back what left the cards, of all hosts or of some, and what else is
    /// named.
    static func record(
        _ asset: NoiseAsset, hosts: Int, rooms: ClosedRange<Int>? = nil, further: [String] = [],
        path: ClockPath? = nil,
        multicast: EmulatedNetwork.Multicast = .together, heldBack: [Int] = [],
        isIPv6: Bool = false, households: [ClosedRange<Int>]? = nil,
        besides killed: () -> [Int] = { [] },
        _ perform: (House, String) throws -> Void
    ) throws -> [CardRecording] {
        try undisturbed {
            let house = try House(
                hosts: hosts, path: path, multicast: multicast, isIPv6: isIPv6,
                households: households,
                cards: cards([80, -120, 20, 50], heldBack: heldBack))
            let file = "\(house.folder.path)/noise.wav"
            try asset.write(to: file)
            do {
                try perform(house, file)
            } catch {
                throw CommandError("\(error)\n\(house.logs)")
            }
            // A card that is killed with its process leaves no recording.
            let rooms = (rooms ?? 0...hosts - 1).filter { !killed().contains($0) }
            return try (rooms.map { "card\($0)" } + further).map {
                try CardRecording.load(path: "\(house.folder.path)/\($0)")
            }
        }
    }

    static func room(_ number: Int) -> [String] {
        ["--name", names[number], "--output", "alsa:card\(number)"]
    }

    /// Two rooms start.
    ///
    /// - Returns: where the leader is.
    private static func begin(_ house: House, asset: String) throws -> String {
        let leader = "\(house.hosts[0].address):7430"
        try house.start(["follow", "--leader", leader] + room(1), on: 1)
        try house.start(["lead", asset, "--wait-for", "2"] + room(0), on: 0)
        try playing(house, leader, rooms: 2)
        return leader
    }

    /// Two rooms start, a third joins, all pause and go on, all end.
    private static func perform(_ house: House, asset: String) throws {
        let leader = try begin(house, asset: asset)
        sleep(4)
        try house.start(["follow", "--leader", leader] + room(2), on: 2)
        try playing(house, leader, rooms: 3)
        sleep(4)
        try command(house, ["pause"], leader)
        sleep(2)
        try command(house, ["play"], leader)
        try playing(house, leader, rooms: 3)
        sleep(4)
        try house.end()
    }

    static func command(
        _ house: House, _ words: [String], _ leader: String, by host: Int = 1
    ) throws {
        let result = try house.tutti(words + ["--leader", leader], on: host)
        guard result.status == 0 else { throw CommandError("\(words): \(result.output)") }
    }

    /// Waits until so many rooms say that they play.
    static func playing(
        _ house: House, _ leader: String, rooms: Int, by host: Int = 0
    ) throws {
        try until("\(rooms) playing rooms", seconds: 30) {
            try states(house, leader, by: host) == Array(repeating: "playing", count: rooms)
        }
    }

    /// What the rooms do; none while nobody leads.
    static func states(_ house: House, _ leader: String, by host: Int = 0) throws -> [String] {
        struct Status: Decodable {
            struct Room: Decodable { var state: String }
            var rooms: [Room]
        }
        let result = try house.tutti(["status", "--json", "--leader", leader], on: host)
        guard result.status == 0 else { return [] }
        let status = try JSONDecoder().decode(Status.self, from: Data(result.output.utf8))
        return status.rooms.map(\.state)
    }

    // MARK: - Judgement

    /// One frame of the cards, in µs.
    static let frame = 1e6 / 48_000
    /// A player that starts, pauses or joins at the edges of periods is off by up to one of these.
    static let period = 10_000.0
    /// Nanoseconds after a start or join, from which on windows of sound are full.
    static let settled = 0.2e9

    /// Two rooms sounded without a hole and in step, from the first common sound to the last.
    private func checkTogether(_ hearing: Hearing) {
        #expect(hearing.gaps.map(\.count) == [0, 0], "\(hearing.gaps)")
        let begin = (hearing.audible.map(\.lowerBound).max() ?? 0) + Self.settled
        let end = (hearing.audible.map(\.upperBound).min() ?? 0) - Self.settled
        let skews = stride(from: begin, to: end, by: 0.4e9).map {
            hearing.skew(0, 1, at: $0).map(abs) ?? .infinity
        }
        #expect(skews.count >= 30)
        #expect((skews.max() ?? .infinity) < Self.period / 20, "\(skews) µs")
    }

    /// From half a second after the first sound on a room is where the first one is, as before.
    private func checkReturn(of room: Int, at first: Double, _ hearing: Hearing) {
        let end = min(hearing.audible[0].upperBound, hearing.audible[room].upperBound)
        let times = stride(from: first + 0.5e9, to: end - Self.settled, by: 0.4e9)
        let skews = times.map { hearing.skew(0, room, at: $0).map(abs) ?? .infinity }
        #expect(skews.count >= 6)
        #expect((skews.max() ?? .infinity) < Self.period / 20, "\(skews) µs")
        #expect(skews.sorted()[skews.count / 2] < Self.frame, "\(skews) µs")
    }

    private func check(_ hearing: Hearing, asset: NoiseAsset) {
        // The pause is the only silence: whatever else is missing would be another.
        #expect(hearing.gaps.map(\.count) == [1, 1, 1], "silences: \(hearing.gaps)")
        guard hearing.gaps.allSatisfy({ $0.count == 1 }) else { return }
        let pauses = hearing.gaps.map { $0[0] }
        for pause in pauses {
            #expect(abs(pause.lowerBound - pauses[0].lowerBound) / 1e3 < Self.period / 10)
            #expect(abs(pause.upperBound - pauses[0].upperBound) / 1e3 < Self.period / 10)
        }
        // The leader started the two that were there at one instant; the third came seconds later.
        let starts = hearing.audible.map(\.lowerBound)
        #expect(abs(starts[1] - starts[0]) / 1e3 < Self.period / 10)
        #expect(starts[2] - starts[0] > 2e9)

        let end = hearing.audible.map(\.upperBound).min() ?? 0
        let pause = pauses[0]
        var skews: [Double] = []
        for (first, second) in [(0, 1), (0, 2), (1, 2)] {
            var values: [Double] = []
            let begin = max(starts[first], starts[second])
            for (from, to) in [(begin, pause.lowerBound), (pause.upperBound, end)] {
                for time in stride(from: from + Self.settled, to: to - Self.settled, by: 0.8e9) {
                    // Nothing is left out: a window that does not match is a failure.
                    let skew = hearing.skew(first, second, at: time)
                    #expect(
                        skew != nil, "\(first)→\(second) differ at \((time - starts[0]) / 1e9) s")
                    values.append(skew ?? .infinity)
                }
            }
            #expect(values.count >= 5)
            let sizes = values.map(abs).sorted()
            // Crystals that nobody corrects part by a frame in a third of a second to two seconds.
            #expect(sizes[sizes.count / 2] < Self.frame, "\(first)→\(second): \(values) µs")
            skews += sizes
        }
        #expect((skews.max() ?? 0) < Self.period / 20, "worst of \(skews) µs")
        // Rooms that are wrong together are wrong too: the item runs at the pace of true time,
        // though no card does, and goes on after the pause where it stopped.
        let lags = stride(
            from: starts[0] + Self.settled, to: pause.lowerBound - Self.settled, by: 2e9
        )
        .map { hearing.skew(0, against: asset, from: starts[0], at: $0) ?? .infinity }
        #expect(lags.count >= 3)
        #expect((lags.map { abs($0 - lags[0]) }.max() ?? 0) < Self.frame, "\(lags) µs")
        let shift = pause.upperBound - pause.lowerBound
        let later = hearing.skew(
            0, against: asset, from: starts[0] + shift, at: pause.upperBound + Self.settled)
        #expect(abs((later ?? .infinity) - lags[0]) < Self.period / 10, "\(later ?? .nan) µs")
    }
}
