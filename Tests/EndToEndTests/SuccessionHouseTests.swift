import Foundation
import Testing
import TuttiChance
import TuttiDeviceOutput
import TuttiTiming

@testable import TuttiSimulation
@testable import tutti

// A leader that is lost: the house plays on, and somebody else leads. Judged by what left the cards.

extension EndToEndTests {
    private static func leader(_ house: House, _ host: Int) -> String {
        "\(house.hosts[host].address):7430"
    }

    private static let fourNames = names + ["study"]

    /// Some rooms play, the first of them leads.
    private static func begin(_ house: House, _ file: String, rooms: Int = 3) throws {
        let first = leader(house, 0)
        try house.start(["lead", file, "--wait-for", "\(rooms)"] + room(0), on: 0)
        for number in 1..<rooms {
            let own = ["--name", fourNames[number], "--output", "alsa:card\(number)"]
            try house.start(["follow", "--leader", first] + own, on: number)
        }
        try playing(house, first, rooms: rooms)
        // By then every room has all of the item.
        sleep(9)
    }

    private struct Group: Decodable {
        struct Room: Decodable { var state: String }
        var leader: String
        var rooms: [Room]
    }

    /// Who leads so many rooms that all play, other than this one; waits until somebody does. Whichever
    /// host is asked, its node knows.
    private static func successor(
        of before: Int, _ house: House, asking host: Int, rooms: Int
    ) throws -> Int {
        var found: Int?
        try until("another leader of \(rooms) rooms, by host \(host)", seconds: 20) {
            let words = ["status", "--json", "--leader", leader(house, host)]
            let result = try house.tutti(words, on: host)
            guard result.status == 0 else { return false }
            let group = try JSONDecoder().decode(Group.self, from: Data(result.output.utf8))
            guard group.rooms.map(\.state) == Array(repeating: "playing", count: rooms) else {
                return false
            }
            found = fourNames.firstIndex(of: group.leader)
            return found != nil && found != before
        }
        guard let found else { throw CommandError("nobody leads") }
        return found
    }

    /// Rooms that never stood still sound without a hole, and stay together.
    func expectTogether(_ hearing: Hearing, rooms: [Int]) {
        let begin = (rooms.map { hearing.audible[$0].lowerBound }.max() ?? 0) + Self.settled
        let end = (rooms.map { hearing.audible[$0].upperBound }.min() ?? 0) - Self.settled
        let times = Array(stride(from: begin, to: end, by: 0.2e9))
        #expect(times.count >= 20)
        for room in rooms.dropFirst() {
            let skews = times.map { hearing.skew(rooms[0], room, at: $0).map(abs) ?? .infinity }
            #expect((skews.max() ?? .infinity) < Self.period / 20, "\(room): \(skews) µs")
            #expect(skews.sorted()[skews.count / 2] < Self.frame, "\(room): \(skews) µs")
        }
        for room in rooms { #expect(hearing.gaps[room].isEmpty, "\(room): \(hearing.gaps[room])") }
    }

    /// One after the other; each new leader is steered, by whichever node is asked.
    @Test(.enabled(if: canHouse, obstacle))
    func `leaders are killed one after the other, and nobody hears it`() async throws {
        let (recordings, left) = try await onOwnThread {
            var killed = [0]
            let recordings = try Self.record(
                NoiseAsset(seconds: 60), hosts: 4, besides: { killed }
            ) { house, file in
                killed = [0]
                try Self.begin(house, file, rooms: 4)
                try house.kill(room: 0)
                let second = try Self.successor(of: 0, house, asking: 3, rooms: 3)
                for host in 1...3 {
                    try Self.command(house, ["volume", "100"], Self.leader(house, host))
                }
                sleep(3)
                try house.kill(room: second)
                killed.append(second)
                let left = (1...3).filter { $0 != second }
                let third = try Self.successor(of: second, house, asking: left[0], rooms: 2)
                #expect(left.contains(third))
                try Self.command(house, ["volume", "100"], Self.leader(house, left[1]))
                sleep(3)
                try house.end()
            }
            return (recordings, (1...3).filter { !killed.contains($0) })
        }
        let hearing = try #require(
            Hearing(recordings, names: left.map { "room \($0)" }), "a room never sounded")
        expectTogether(hearing, rooms: [0, 1])
    }

    /// It is a follower when it wakes, and plays what the others play by then.
    @Test(.enabled(if: canHouse, obstacle))
    func `a leader that stood still for ten seconds follows when it wakes`() async throws {
        let recordings = try await onOwnThread {
            try Self.record(NoiseAsset(seconds: 90), hosts: 3) { house, file in
                try Self.begin(house, file)
                house.freeze(room: 0, milliseconds: 10_000)
                let second = try Self.successor(of: 0, house, asking: 1, rooms: 3)
                // By the name of another host: it sends on.
                try Self.command(house, ["volume", "100"], Self.leader(house, 0))
                sleep(5)
                #expect(second != 0)
                try house.end()
            }
        }
        let hearing = try #require(Hearing(recordings, names: Self.names), "a room never sounded")
        expectTogether(hearing, rooms: [1, 2])
        let end = (hearing.audible.map(\.upperBound).min() ?? 0) - Self.settled
        let skews = stride(from: end - 3e9, to: end, by: 0.2e9).map {
            hearing.skew(1, 0, at: $0).map(abs) ?? .infinity
        }
        #expect((skews.max() ?? .infinity) < Self.period / 20, "\(skews) µs")
    }

    /// A cable is pulled and put back: both sides play on, and one leads afterwards.
    @Test(.enabled(if: canHouse, obstacle))
    func `a leader whose cable is pulled is followed, and follows when it is back`() async throws {
        let recordings = try await onOwnThread {
            try Self.record(NoiseAsset(seconds: 90), hosts: 3) { house, file in
                try Self.begin(house, file)
                try house.unplug(host: 0)
                let second = try Self.successor(of: 0, house, asking: 1, rooms: 2)
                try Self.command(house, ["volume", "100"], Self.leader(house, 3 - second))
                sleep(6)
                try house.plug(host: 0)
                _ = try Self.successor(of: 0, house, asking: 2, rooms: 3)
                sleep(4)
                try house.end()
            }
        }
        let hearing = try #require(Hearing(recordings, names: Self.names), "a room never sounded")
        // Apart, the first one ran by its own crystal, which the others kept to as they knew it.
        expectTogether(hearing, rooms: [0, 1, 2])
    }

    /// Nobody says who leads: the nodes of a house are one group, and music comes from any of them.
    @Test(.enabled(if: canHouse, obstacle))
    func `nodes that are started together are one group, and one that ends hands over`()
        async throws
    {
        let (recordings, left) = try await onOwnThread {
            var lost = 0
            let recordings = try Self.record(
                NoiseAsset(seconds: 60), hosts: 3, besides: { [lost] }
            ) { house, file in
                for host in 0...2 { try house.startAvahi(on: host) }
                for host in 0...2 { try house.start(["node"] + Self.room(host), on: host) }
                func group(by host: Int) throws -> Group? {
                    let result = try house.tutti(["status", "--json"], on: host)
                    guard result.status == 0 else { return nil }
                    return try JSONDecoder().decode(Group.self, from: Data(result.output.utf8))
                }
                try until("one group", seconds: 60) {
                    let groups = try (0...2).map(group)
                    return groups.allSatisfy { $0?.rooms.count == 3 }
                        && Set(groups.map { $0?.leader }).count == 1
                }
                for words in [["add", file], ["play"]] {
                    let result = try house.tutti(words, on: 1)
                    guard result.status == 0 else { throw CommandError(result.output) }
                }
                try until("three playing rooms", seconds: 30) {
                    try group(by: 2)?.rooms.map(\.state) == Array(repeating: "playing", count: 3)
                }
                sleep(9)
                lost = Self.names.firstIndex(of: try group(by: 2)?.leader ?? "") ?? 0
                // As its owner ends it, for an update.
                try house.stop(room: lost)
                let next = try Self.successor(of: lost, house, asking: (lost + 1) % 3, rooms: 2)
                sleep(4)
                try house.start(
                    ["node", "--name", Self.names[lost], "--output", "virtual"], on: lost)
                try until("it plays again", seconds: 30) {
                    try group(by: next)?.rooms.map(\.state) == Array(repeating: "playing", count: 3)
                }
                sleep(2)
                try house.end()
            }
            return (recordings, (0...2).filter { $0 != lost })
        }
        let hearing = try #require(
            Hearing(recordings, names: left.map { Self.names[$0] }), "a room never sounded")
        expectTogether(hearing, rooms: [0, 1])
    }

    /// Two nodes lead in turn: whoever does is killed at a random moment and started again. What two
    /// others play all the while is judged. `KILLS=100 ./deploy/test --filter 'at any moment'` does it
    /// as often.
    @Test(.enabled(if: canHouse, obstacle))
    func `leaders that are killed at any moment are not heard by the others`() async throws {
        let kills = ProcessInfo.processInfo.environment["KILLS"].flatMap(Int.init) ?? 4
        var random = SplitMix64(seed: UInt64(kills))
        let pauses = (0..<kills).map { _ in UInt32.random(in: 300_000...5_000_000, using: &random) }
        let recordings = try await onOwnThread {
            try Self.record(NoiseAsset(seconds: 40), hosts: 4, rooms: 2...3) { house, file in
                for host in 0...3 { try house.startAvahi(on: host) }
                var rooms: [Int: Int] = [:]
                func start(_ host: Int) throws {
                    let own =
                        host < 2
                        ? ["--output", "virtual:ppm=\(40 - 90 * host)"]
                        : ["--output", "alsa:card\(host)", "--no-succession"]
                    rooms[host] = house.roomCount
                    try house.start(["node", "--name", Self.fourNames[host]] + own, on: host)
                }
                for host in 0...3 { try start(host) }
                func group() throws -> Group? {
                    let result = try house.tutti(["status", "--json"], on: 2)
                    guard result.status == 0 else { return nil }
                    return try JSONDecoder().decode(Group.self, from: Data(result.output.utf8))
                }
                try until("one group", seconds: 60) { try group()?.rooms.count == 4 }
                for words in [["add", file], ["queue", "repeat", "all"], ["play"]] {
                    let result = try house.tutti(words, on: 3)
                    guard result.status == 0 else { throw CommandError(result.output) }
                }
                // By then every node has all of the item.
                sleep(12)
                for pause in pauses {
                    try until("four playing rooms", seconds: 30) {
                        try group()?.rooms.map(\.state) == Array(repeating: "playing", count: 4)
                    }
                    usleep(pause)
                    guard let leader = Self.fourNames.firstIndex(of: try group()?.leader ?? ""),
                        let room = rooms[leader]
                    else { throw CommandError("nobody leads") }
                    #expect(leader < 2)
                    try house.kill(room: room)
                    try start(leader)
                }
                try until("four playing rooms", seconds: 30) {
                    try group()?.rooms.map(\.state) == Array(repeating: "playing", count: 4)
                }
                sleep(2)
                try house.end()
            }
        }
        let hearing = try #require(
            Hearing(recordings, names: Array(Self.fourNames[2...])), "a room never sounded")
        #expect(hearing.ranDry().isEmpty)
        expectTogether(hearing, rooms: [0, 1])
    }
}
