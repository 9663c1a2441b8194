import Foundation
import Testing
import TuttiDeviceOutput

@testable import TuttiSimulation
@testable import tutti

// What a house keeps: its groups over a loss of power, and scenes.

extension EndToEndTests {
    private struct Group: Decodable {
        struct Room: Decodable {
            var name: String
            var state: String
            var volume: Int
        }
        var leader: String
        var phase: String
        var count: Int
        var index: Int
        var positionSeconds: Double
        var volume: Int
        var rooms: [Room]

        func has(_ names: [String]) -> Bool { Set(rooms.map(\.name)) == Set(names) }
        func volume(of room: String) -> Int? { rooms.first { $0.name == room }?.volume }
        var plays: Bool { !rooms.isEmpty && rooms.allSatisfy { $0.state == "playing" } }
    }

    private static func group(
        _ house: House, by host: Int, of room: String? = nil
    ) throws -> Group? {
        let words = ["status", "--json"] + (room.map { ["--group", $0] } ?? [])
        let result = try house.tutti(words, on: host)
        guard result.status == 0 else { return nil }
        return try JSONDecoder().decode(Group.self, from: Data(result.output.utf8))
    }

    private static func run(_ house: House, _ words: [String], on host: Int) throws {
        let result = try house.tutti(words, on: host)
        guard result.status == 0 else { throw CommandError("\(words): \(result.output)") }
    }

    private static func startNodes(_ house: House, virtual: Bool) throws {
        for host in 0...2 {
            try house.start(
                [
                    "node", "--name", names[host], "--output",
                    virtual ? "virtual" : "alsa:card\(host)",
                ],
                on: host)
        }
        try until("one group", seconds: 60) {
            try (0...2).allSatisfy { try group(house, by: $0)?.has(names) == true }
        }
    }

    /// The others are up first, and have begun a group of their own by the time that the node is back
    /// which led.
    @Test(.enabled(if: canHouse, obstacle))
    func `after a power cut the group stands where it was, and plays on in step`() async throws {
        let recordings = try await onOwnThread {
            try Self.record(NoiseAsset(seconds: 90), hosts: 3) { house, file in
                for host in 0...2 { try house.startAvahi(on: host) }
                try Self.startNodes(house, virtual: true)
                for words in [
                    ["add", file], ["play"], ["volume", "60"], ["volume", "bedroom", "40"],
                    ["seek", "20"],
                ] { try Self.run(house, words, on: 1) }
                try until("three playing rooms", seconds: 30) {
                    try Self.group(house, by: 1)?.plays == true
                }
                // What is kept has stood for a second.
                sleep(4)
                let before = try Self.group(house, by: 1)
                guard let leader = Self.names.firstIndex(of: before?.leader ?? "") else {
                    throw CommandError("nobody leads")
                }
                for room in 0...2 { try house.kill(room: room) }
                let order = (0...2).filter { $0 != leader } + [leader]
                for host in order {
                    if host == leader { sleep(8) }
                    try house.start(["node"] + Self.room(host), on: host)
                }
                var after: Group?
                try until("the group of before", seconds: 60) {
                    after = try Self.group(house, by: leader)
                    return try after?.has(Self.names) == true
                        && Self.group(house, by: order[0])?.leader == after?.leader
                }
                #expect(after?.phase == "paused" && after?.count == 1)
                #expect(after?.leader == before?.leader)
                #expect(after?.volume == 60 && after?.volume(of: "bedroom") == 40)
                // No further than it was, and not before the last command.
                let place = after?.positionSeconds ?? 0
                #expect(place >= 20 && place <= (before?.positionSeconds ?? 0) + 5)
                try Self.run(house, ["play"], on: order[0])
                try until("three playing rooms", seconds: 30) {
                    try Self.group(house, by: order[0])?.plays == true
                }
                sleep(6)
                try house.end()
            }
        }
        let hearing = try #require(Hearing(recordings, names: Self.names), "a room never sounded")
        checkTogether(hearing, rooms: [0, 1, 2])
    }

    /// Items that only one machine has, and more than are read ahead: it is killed, and started anew while
    /// another leads.
    @Test(.enabled(if: canHouse, obstacle))
    func `who comes back hands out what it put into the queue, and reads on`() async throws {
        try await onOwnThread {
            let house = try House(hosts: 3) { _ in "" }
            do {
                try Self.comeBack(house)
            } catch {
                throw CommandError("\(error)\n\(house.logs)")
            }
        }
    }

    private static func comeBack(_ house: House) throws {
        let count = 40
        for host in 0...2 { try house.startAvahi(on: host) }
        let songs = "\(house.folder.path)/songs"
        try FileManager.default.createDirectory(
            atPath: songs, withIntermediateDirectories: true)
        for number in 1...count {
            try NoiseAsset(seconds: 3, sampleRate: 8_000, seed: UInt64(number))
                .write(to: "\(songs)/\(number).wav")
        }
        try startNodes(house, virtual: true)
        guard let owner = names.firstIndex(of: try group(house, by: 1)?.leader ?? "") else {
            throw CommandError("nobody leads")
        }
        let other = (owner + 1) % 3
        try run(house, ["queue", "repeat", "one"], on: owner)
        try run(house, ["add", songs], on: owner)
        try until("all is listed, and one plays", seconds: 30) {
            let group = try group(house, by: other)
            return group?.count == count && group?.plays == true
        }
        // What is kept has stood for a second, and the heirs have heard of the queue.
        sleep(3)
        try house.kill(room: owner)
        try until("another leads", seconds: 20) {
            try group(house, by: other).map { $0.leader != names[owner] && $0.plays } ?? false
        }
        #expect(try group(house, by: other)?.count == count)
        try house.start(
            ["node", "--name", names[owner], "--output", "virtual"], on: owner)
        try until("it is back", seconds: 30) {
            try group(house, by: other)?.has(names) == true
        }
        // Nobody had read the last one, and of the one before many nobody has the bytes.
        for place in [count, 20] {
            try run(house, ["queue", "play", "\(place)"], on: other)
            try until("item \(place) plays", seconds: 30) {
                let group = try group(house, by: other)
                return group?.index == place - 1 && group?.plays == true
                    && group?.phase == "playing"
            }
        }
        try house.endOthers()
        try house.end()
    }

    /// Items of a server that stays: more than a leader reads ahead of an address, and then it is killed.
    @Test(.enabled(if: canHouse, obstacle))
    func `items of an address are read by whoever leads next`() async throws {
        try await onOwnThread {
            let house = try House(hosts: 3) { _ in "" }
            do {
                try Self.goOnReading(house)
            } catch {
                throw CommandError("\(error)\n\(house.logs)")
            }
        }
    }

    private static func goOnReading(_ house: House) throws {
        let count = 6
        for host in 0...2 { try house.startAvahi(on: host) }
        let songs = "\(house.folder.path)/served"
        try FileManager.default.createDirectory(
            atPath: songs, withIntermediateDirectories: true)
        for number in 1...count {
            try NoiseAsset(seconds: 3, sampleRate: 8_000, seed: UInt64(number))
                .write(to: "\(songs)/\(number).wav")
        }
        try startNodes(house, virtual: true)
        guard let first = names.firstIndex(of: try group(house, by: 1)?.leader ?? "") else {
            throw CommandError("nobody leads")
        }
        let (other, third) = ((first + 1) % 3, (first + 2) % 3)
        try house.start(program: ["perl", "-e", server, songs, "8000"], on: third)
        try run(house, ["queue", "repeat", "one"], on: first)
        let addresses = (1...count).map {
            "http://\(house.hosts[third].address):8000/\($0).wav"
        }
        try run(house, ["add"] + addresses, on: first)
        try until("all is listed, and one plays", seconds: 30) {
            let group = try group(house, by: other)
            return group?.count == count && group?.plays == true
        }
        sleep(3)
        try house.kill(room: first)
        try until("another leads", seconds: 20) {
            try group(house, by: other).map { $0.leader != names[first] && $0.plays } ?? false
        }
        for place in [count, 3] {
            try run(house, ["queue", "play", "\(place)"], on: other)
            try until("item \(place) plays", seconds: 30) {
                let group = try group(house, by: other)
                return group?.index == place - 1 && group?.phase == "playing"
            }
        }
        try house.endOthers()
        try house.end()
    }

    /// Files of a folder by HTTP, each as a whole.
    private static let server = """
        use Socket; my ($folder, $port) = @ARGV; $SIG{PIPE} = 'IGNORE';
        socket(my $s, PF_INET, SOCK_STREAM, 0);
        setsockopt($s, SOL_SOCKET, SO_REUSEADDR, 1);
        bind($s, sockaddr_in($port, INADDR_ANY)) or die; listen($s, 9) or die;
        while (accept(my $c, $s)) {
          my $line = <$c>;
          while (my $head = <$c>) { last if $head =~ /^\\r?$/ }
          if ($line =~ m{^GET /(\\w+\\.wav) } && open(my $f, '<', "$folder/$1")) {
            binmode $f; local $/; my $data = <$f>;
            print $c "HTTP/1.0 200 OK\\r\\nContent-Type: audio/wav\\r\\n",
              "Content-Length: ", length($data), "\\r\\n\\r\\n", $data;
          } else { print $c "HTTP/1.0 404 Not Found\\r\\n\\r\\n" }
          close $c;
        }
        """

    private func checkTogether(_ hearing: Hearing, rooms: [Int]) {
        let begin = (rooms.map { hearing.audible[$0].lowerBound }.max() ?? 0) + Self.settled
        let end = (rooms.map { hearing.audible[$0].upperBound }.min() ?? 0) - Self.settled
        let times = Array(stride(from: begin, to: end, by: 0.2e9))
        #expect(times.count >= 15)
        for room in rooms.dropFirst() {
            let skews = times.map { hearing.skew(rooms[0], room, at: $0).map(abs) ?? .infinity }
            #expect((skews.max() ?? .infinity) < Self.period / 20, "\(room): \(skews) µs")
        }
    }

    /// One process, one key, two cards with crystals of their own; the second card that a process opens
    /// has a number behind its recording.
    @Test(.enabled(if: canHouse, obstacle))
    func `a machine with two cards is two rooms, in step like any others`() async throws {
        let recordings = try await onOwnThread {
            try Self.record(NoiseAsset(seconds: 40), hosts: 2, further: ["card2-2"]) {
                house, file in
                for host in 0...1 { try house.startAvahi(on: host) }
                try house.start(
                    ["node"] + Self.room(0) + ["--also", "shelf=alsa:card2"], on: 0)
                try house.start(["node"] + Self.room(1), on: 1)
                let all = [Self.names[0], Self.names[1], "shelf"]
                try until("one group", seconds: 60) {
                    try (0...1).allSatisfy { try Self.group(house, by: $0)?.has(all) == true }
                }
                for words in [["add", file], ["play"]] { try Self.run(house, words, on: 1) }
                try until("three playing rooms", seconds: 30) {
                    try Self.group(house, by: 1)?.plays == true
                }
                sleep(6)
                try house.end()
            }
        }
        let hearing = try #require(
            Hearing(recordings, names: [Self.names[0], Self.names[1], "shelf"]),
            "a room never sounded")
        checkTogether(hearing, rooms: [0, 1, 2])
    }

    /// A screen that swallows what comes after a pause, in a room that is not to be loud.
    @Test(.enabled(if: canHouse, obstacle))
    func `an output is awake before all begin together, and no louder than it may be`()
        async throws
    {
        let recordings = try await onOwnThread {
            try Self.record(NoiseAsset(seconds: 20), hosts: 2) { house, file in
                let leader = "\(house.hosts[0].address):7430"
                let quiet = ["--lead-in-ms", "2500", "--volume-limit", "50"]
                try house.start(["follow", "--leader", leader] + Self.room(1) + quiet, on: 1)
                try house.start(["lead", file, "--wait-for", "2"] + Self.room(0), on: 0)
                try Self.playing(house, leader, rooms: 2)
                sleep(4)
                try house.end()
            }
        }
        let hearing = try #require(
            Hearing(recordings, names: Array(Self.names[..<2])), "a room never sounded")
        checkTogether(hearing, rooms: [0, 1])
        let begins = hearing.audible.map(\.lowerBound)
        #expect(abs(begins[0] - begins[1]) < Self.period * 1e3)
        let quiet = recordings[1]
        let first = quiet.samples.firstIndex { $0 != 0 } ?? 0
        let awake = Double(first / quiet.channelCount) / Double(quiet.sampleRate)
        // Some periods are on their way to the card when it is asked.
        #expect(awake > 2.4, "\(awake) s")
        func power(_ recording: CardRecording) -> Double {
            let sound = recording.samples.drop { $0 == 0 }.prefix(recording.sampleRate * 4)
            return sound.reduce(0) { $0 + Double($1 * $1) } / Double(max(1, sound.count))
        }
        // Half of the way of the slider is an eighth of the amplitude.
        let ratio = (power(quiet) / power(recordings[0])).squareRoot()
        #expect(abs(ratio - 0.125) < 0.01, "\(ratio)")
    }

    /// Rooms that were apart come together as they were kept, and a queue goes from one group to
    /// another.
    @Test(.enabled(if: canHouse, obstacle))
    func `a scene brings rooms together as they were, and a queue goes to another group`()
        async throws
    {
        let (recordings, last) = try await onOwnThread {
            var last = ""
            let recordings = try Self.record(NoiseAsset(seconds: 120), hosts: 3) { house, file in
                for host in 0...2 { try house.startAvahi(on: host) }
                try Self.startNodes(house, virtual: false)
                for words in [["add", file], ["play"], ["volume", "bedroom", "40"]] {
                    try Self.run(house, words, on: 1)
                }
                try until("three playing rooms", seconds: 30) {
                    try Self.group(house, by: 1)?.plays == true
                }
                try Self.run(house, ["scene", "save", "evening"], on: 0)
                // The one that leads: it hands its group over first.
                let first = try Self.group(house, by: 1)?.leader ?? ""
                try Self.run(house, ["ungroup", first], on: 0)
                try until("two groups", seconds: 20) {
                    try Self.group(house, by: 0, of: first)?.has([first]) == true
                }
                try Self.run(house, ["volume", "bedroom", "80"], on: 0)
                try Self.run(house, ["scene", "recall", "evening"], on: 0)
                try until("one group", seconds: 20) {
                    let group = try Self.group(house, by: 2)
                    return group?.has(Self.names) == true && group?.plays == true
                }
                #expect(try Self.group(house, by: 2)?.volume(of: "bedroom") == 40)

                let leader = try Self.group(house, by: 1)?.leader ?? ""
                let others = Self.names.filter { $0 != leader }
                try Self.run(house, ["ungroup", others[0]], on: 0)
                try until("two groups", seconds: 20) {
                    try Self.group(house, by: 0, of: others[0])?.has([others[0]]) == true
                }
                try Self.run(house, ["move-queue", leader, "to", others[0]], on: 0)
                try until("the queue is there", seconds: 20) {
                    let there = try Self.group(house, by: 0, of: others[0])
                    let here = try Self.group(house, by: 0, of: leader)
                    return there?.has([others[0]]) == true && there?.plays == true
                        && here?.has(Self.names.filter { $0 != others[0] }) == true
                        && here?.count == 0
                }
                // Longer than a hand-over is in doubt.
                sleep(8)
                let there = try Self.group(house, by: 0, of: others[0])
                #expect(there?.has([others[0]]) == true && there?.plays == true)
                try house.end()
                last = others[0]
            }
            return (recordings, last)
        }
        let hearing = try #require(Hearing(recordings, names: Self.names), "a room never sounded")
        let ends = hearing.audible.map(\.upperBound)
        let there = try #require(Self.names.firstIndex(of: last))
        // Only the rooms that the queue went to sound at the end.
        for room in 0...2 where room != there { #expect(ends[there] > ends[room] + 2e9, "\(ends)") }
    }
}
