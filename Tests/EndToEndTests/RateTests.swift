import Foundation
import Testing
import TuttiDeviceOutput
import TuttiPlayout
import TuttiTiming

@testable import TuttiSimulation
@testable import tutti

extension EndToEndTests {
    /// A queue at another rate: one room comes late, one leaves and comes back, and what every card
    /// played is held against the others and against the items themselves, stretched here.
    ///
    /// Noise whose grains lay elsewhere would not be the same noise: where a window is found to be the
    /// same at all, its grains are.
    @Test(.enabled(if: canHouse, obstacle))
    func `rooms at another rate play the same sound, whenever they came`() async throws {
        let items = [11, 12].map {
            NoiseAsset(seconds: Self.itemSeconds, seed: $0)
        }
        let recordings = try await onOwnThread {
            try Self.record(items[0], hosts: 3, further: ["card3"]) { house, file in
                let second = "\(house.folder.path)/second.wav"
                try items[1].write(to: second)
                let leader = "\(house.hosts[0].address):7430"
                try house.start(["lead", file, second, "--wait-for", "2"] + Self.room(0), on: 0)
                try until("a leader", seconds: 30) {
                    try house.tutti(["status", "--leader", leader], on: 0).status == 0
                }
                try Self.command(house, ["rate", "\(Self.pace)"], leader)
                let bedroom = ["follow", "--leader", leader, "--name", Self.names[1], "--output"]
                try house.start(bedroom + ["alsa:card1"], on: 1)
                try Self.playing(house, leader, rooms: 2)
                sleep(1)
                try house.start(["follow", "--leader", leader] + Self.room(2), on: 2)
                try Self.playing(house, leader, rooms: 3)
                sleep(1)
                try house.stop(room: 1)
                // Another recording is another card here.
                try house.start(bedroom + ["alsa:card3"], on: 1)
                try Self.playing(house, leader, rooms: 3)
                try until("the second item", seconds: 30) {
                    let status = try house.tutti(["status", "--json", "--leader", leader], on: 0)
                    return try JSONDecoder()
                        .decode(Place.self, from: Data(status.output.utf8)).index == 1
                }
                sleep(3)
                try house.end()
            }
        }
        let hearing = try #require(
            Hearing(recordings, names: Self.names + ["bedroom again"]), "a room never sounded")
        #expect(hearing.ranDry().isEmpty)
        #expect(hearing.gaps.allSatisfy { $0.isEmpty }, "\(hearing.gaps)")
        let (starts, ends) = (hearing.audible.map(\.lowerBound), hearing.audible.map(\.upperBound))
        #expect(abs(starts[1] - starts[0]) / 1e3 < Self.period / 10)
        #expect(starts[2] > starts[0] + 1e9 && starts[3] > ends[1])
        // Everybody who stays hears where one item becomes the other.
        let seam = starts[0] + Double(Self.itemSeconds) / Self.pace * 1e9
        #expect([0, 2, 3].allSatisfy { ends[$0] > seam + 1e9 })

        var sound = NoiseAsset(seconds: 0)
        sound.samples = try items.flatMap(Self.stretched)
        for room in starts.indices {
            let times = Array(
                stride(from: starts[room] + 0.5e9, to: ends[room] - Self.settled, by: 0.4e9))
            let others = times.map { hearing.skew(0, room, at: $0).map(abs) ?? .infinity }
            #expect((others.max() ?? .infinity) < Self.period / 20, "\(room): \(others) µs")
            #expect(others.sorted()[others.count / 2] < Self.frame, "\(room): \(others) µs")
            // By how much the first sound of all lies off the first frame is the same everywhere.
            let lags = times.map {
                hearing.skew(room, against: sound, from: starts[0], at: $0) ?? .infinity
            }
            #expect(lags.allSatisfy { abs($0) < Self.period / 20 }, "\(room): \(lags) µs")
        }
    }

    private struct Place: Decodable { var index: Int }

    private static let pace = 1.25
    private static let itemSeconds = 12

    /// What players make of an item at that rate.
    private static func stretched(_ item: NoiseAsset) throws -> [Float] {
        let frames = Int64(item.samples.count)
        let transform = try #require(
            FrameTransforms.make(
                rate: pace, algorithm: .timeDomain, sampleRate: item.sampleRate,
                frameCount: frames, reader: Noise(samples: item.samples)))
        var sound: [Float] = []
        var block = [Float](repeating: 0, count: 8_192)
        while true {
            let count = try block.withUnsafeMutableBufferPointer { buffer throws(MediaError) in
                try transform.read(at: Int64(sound.count), into: buffer)
            }
            if count == 0 { return sound }
            for frame in 0..<count { sound.append(block[2 * frame]) }
        }
    }

    private final class Noise: FrameReader {
        let samples: [Float]

        init(samples: [Float]) { self.samples = samples }

        func read(
            at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>
        ) throws(MediaError) -> Int {
            let count = max(0, min(buffer.count / 2, samples.count - Int(frame)))
            for offset in 0..<count {
                buffer[2 * offset] = samples[Int(frame) + offset]
                buffer[2 * offset + 1] = samples[Int(frame) + offset]
            }
            return count
        }
    }
}
