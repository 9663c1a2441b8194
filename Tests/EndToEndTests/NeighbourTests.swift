import Foundation
import Testing
import TuttiDeviceOutput

@testable import TuttiSimulation
@testable import tutti

extension EndToEndTests {
    /// Two households are next door to each other on one network. What the second one says in
    /// datagrams, each with a good tag of its own, comes to the first one too: from the addresses
    /// and to the ports that its own datagrams have, and also with their numbers and term. The
    /// second household is told to jump, to pause and to go on: nothing of it is done by the first.
    /// What that is told itself is done once, by both rooms at one instant.
    @Test(.enabled(if: canEmulate, noNetwork))
    func `what another household says, as if members said it, moves nothing`() async throws {
        let asset = NoiseAsset(seconds: 60)
        let recordings = try await onOwnThread {
            try Self.record(
                asset, hosts: 4, rooms: 0...1, path: ClockPath.named("wired"),
                households: [0...1, 2...3]
            ) { house, file in
                try Self.meet(house, file)
            }
        }
        let hearing = try #require(
            Hearing(recordings, names: Array(Self.names[..<2])), "a room never sounded")
        #expect(hearing.ranDry().isEmpty)
        checkOnePause(hearing, asset)
    }

    private static func meet(_ house: House, _ file: String) throws {
        let other = "\(house.folder.path)/other.wav"
        try NoiseAsset(seconds: 60, seed: 5).write(to: other)
        let leaders = [0, 2].map { "\(house.hosts[$0].address):7430" }
        // First: the numbers of its datagrams are ahead, so that none of them is too old.
        try house.start(
            ["follow", "--leader", leaders[1], "--name", "attic", "--output", "virtual"], on: 3)
        try house.start(
            ["lead", other, "--wait-for", "2", "--name", "study", "--output", "virtual"], on: 2)
        try playing(house, leaders[1], rooms: 2, by: 2)
        try house.start(["follow", "--leader", leaders[0]] + room(1), on: 1)
        try house.start(["lead", file, "--wait-for", "2"] + room(0), on: 0)
        try playing(house, leaders[0], rooms: 2)
        sleep(2)

        try house.begin(.neighbours)
        for words in [["seek", "20"], ["pause"], ["play"], ["seek", "5"], ["volume", "30"]] {
            try command(house, words, leaders[1], by: 3)
        }
        try command(house, ["pause"], leaders[0])
        try command(house, ["seek", "30"], leaders[1], by: 3)
        sleep(1)
        try command(house, ["play"], leaders[0])
        try playing(house, leaders[0], rooms: 2)
        try command(house, ["seek", "40"], leaders[1], by: 3)
        sleep(3)
        for drops in try untagged(house, leaders[0]) where drops == 0 {
            throw CommandError("what the neighbours said was not dropped")
        }
        let status = try house.tutti(["status", "--sync", "--leader", leaders[0]], on: 1)
        guard status.output.contains("without a good tag") else {
            throw CommandError("nobody is told what was dropped: \(status.output)")
        }
        try house.begin(.none)
        sleep(1)
        try house.end()
    }

    /// How many datagrams without a good tag have come: to the leader, and to each other room.
    private static func untagged(_ house: House, _ leader: String) throws -> [Int] {
        struct Status: Decodable {
            struct Drops: Decodable { var untagged: Int }
            struct Room: Decodable {
                struct Sync: Decodable { var dropped: Drops? }
                var name: String
                var sync: Sync?
            }
            var leader: String
            var dropped: Drops?
            var rooms: [Room]
        }
        let status: Status = try house.syncStatus(by: leader)
        let rooms = status.rooms.filter { $0.name != status.leader }.map(\.sync?.dropped)
        return ([status.dropped] + rooms).map { $0?.untagged ?? 0 }
    }

    /// Both rooms play the asset from its beginning, pause once, and go on where they were.
    private func checkOnePause(_ hearing: Hearing, _ asset: NoiseAsset) {
        #expect(hearing.gaps.map(\.count) == [1, 1], "silences: \(hearing.gaps)")
        guard let pause = hearing.gaps[0].first, let other = hearing.gaps[1].first else { return }
        #expect(abs(pause.lowerBound - other.lowerBound) / 1e3 < Self.period / 10)
        #expect(abs(pause.upperBound - other.upperBound) / 1e3 < Self.period / 10)
        let start = hearing.audible[0].lowerBound
        let begin = (hearing.audible.map(\.lowerBound).max() ?? 0) + Self.settled
        let end = (hearing.audible.map(\.upperBound).min() ?? 0) - Self.settled
        let parts = [
            (from: begin, to: pause.lowerBound - Self.settled, begins: start),
            (
                from: pause.upperBound + Self.settled, to: end,
                begins: start + (pause.upperBound - pause.lowerBound)
            ),
        ]
        for part in parts {
            let times = Array(stride(from: part.from, to: part.to, by: 0.2e9))
            #expect(times.count >= 10)
            let skews = times.map { hearing.skew(0, 1, at: $0).map(abs) ?? .infinity }
            #expect((skews.max() ?? .infinity) < Self.period / 20, "\(skews) µs")
            #expect(skews.sorted()[skews.count / 2] < Self.frame, "\(skews) µs")
            // By the place in the item, too: rooms that jump together are in step.
            let lags = times.map {
                hearing.skew(0, against: asset, from: part.begins, at: $0).map(abs) ?? .infinity
            }
            #expect((lags.max() ?? .infinity) < Self.period / 10, "\(lags) µs")
        }
    }
}
