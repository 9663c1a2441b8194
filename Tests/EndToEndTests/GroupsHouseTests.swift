import Foundation
import Testing
import TuttiDeviceOutput
import TuttiTiming

@testable import TuttiSimulation
@testable import tutti

extension EndToEndTests {
    /// Two groups of one house play different things; a room goes from one to the other and is on its
    /// line there, and neither group hears of it.
    @Test(.enabled(if: canHouse, obstacle))
    func `a room that is moved plays with the others there, and nobody else notices`() async throws
    {
        let other = NoiseAsset(seconds: 60, seed: 5)
        let recordings = try await onOwnThread {
            try Self.record(NoiseAsset(seconds: 60), hosts: 4) { house, file in
                let second = "\(house.folder.path)/second.wav"
                try other.write(to: second)
                let leaders = [0, 3].map { "\(house.hosts[$0].address):7430" }
                try house.start(["lead", file, "--wait-for", "3"] + Self.room(0), on: 0)
                for host in 1...2 {
                    try house.start(
                        ["follow", "--leader", leaders[0]] + Self.room(host), on: host)
                }
                try house.start(
                    ["lead", second, "--name", "study", "--output", "alsa:card3"], on: 3)
                try Self.playing(house, leaders[0], rooms: 3)
                try Self.playing(house, leaders[1], rooms: 1)
                sleep(4)
                try Self.command(house, ["move", "bedroom", "to", leaders[1]], leaders[0])
                try Self.playing(house, leaders[0], rooms: 2)
                try Self.playing(house, leaders[1], rooms: 2)
                sleep(5)
                // Its own group has nothing in its queue, and is not the one that it was in.
                try Self.command(house, ["ungroup", "bath"], leaders[0])
                let own = "\(house.hosts[2].address):7430"
                try until("a group of its own", seconds: 20) {
                    try Self.states(house, own) == ["idle"]
                        && Self.states(house, leaders[0]) == ["playing"]
                }
                sleep(2)
                #expect(try Self.states(house, own) == ["idle"])
                try house.end()
            }
        }
        let hearing = try #require(
            Hearing(recordings, names: Self.names + ["study"]), "a room never sounded")
        #expect(hearing.ranDry().isEmpty)
        // Only the room that was moved has a break: from one sound to the other.
        #expect(hearing.gaps[0].isEmpty && hearing.gaps[2].isEmpty && hearing.gaps[3].isEmpty)
        #expect(hearing.gaps[1].count <= 1, "\(hearing.gaps[1])")
        let begin = (hearing.audible.map(\.lowerBound).max() ?? 0) + Self.settled
        let end = (hearing.audible.map(\.upperBound).min() ?? 0) - Self.settled
        func skews(_ one: Int, _ two: Int, from: Double, to: Double) -> [Double] {
            stride(from: from, to: to, by: 0.2e9).map {
                hearing.skew(one, two, at: $0).map(abs) ?? .infinity
            }
        }
        for (one, two, from, to) in [
            (0, 2, begin, end), (0, 1, begin, begin + 2e9), (3, 1, end - 3e9, end),
        ] {
            let skews = skews(one, two, from: from, to: to)
            #expect(skews.count >= 10)
            #expect((skews.max() ?? .infinity) < Self.period / 20, "\(one), \(two): \(skews)")
        }
    }
}
