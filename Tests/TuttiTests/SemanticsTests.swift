import Foundation
import Testing
import Tutti

/// What an application hears: files through FFmpeg, on a device that writes what it plays.
///
/// What has to be exact in time is in PlaybackTests, where time is virtual; which row of the contract is
/// held where says the page Semantics of TuttiPlayback.
@Suite(.serialized, .timeLimit(.minutes(2))) struct SemanticsTests {
    private let sounds = Sounds()

    /// The left side of what a device wrote while `body` used it, from its first sound to its last.
    private func recording(
        _ body: (AudioDevice) async throws -> Void
    ) async throws -> (samples: ArraySlice<Float>, rate: Double) {
        let (all, rate) = try await sounds.recording(body)
        let samples = stride(from: 0, to: all.count, by: 2).map { all[$0] }
        let first = samples.firstIndex { abs($0) > 1e-3 } ?? 0
        let last = samples.lastIndex { abs($0) > 1e-3 } ?? 0
        return (samples[first...last], rate)
    }

    /// Times a sine crosses zero upwards, in one second.
    private func pitch(_ samples: ArraySlice<Float>, _ rate: Double) -> Double {
        let crossings = zip(samples, samples.dropFirst()).count { $0 < 0 && $1 >= 0 }
        return Double(crossings) * rate / Double(max(1, samples.count))
    }

    /// When the frames of a device are heard is known a while after it was opened; see the known issue
    /// about that in PlayerSemanticsTests.
    private func settle(_ player: Player) async throws {
        try await player.currentItem?.ready()
        try await Task.sleep(for: .milliseconds(600))
    }

    private func toTheEnd(_ player: Player, _ notices: AsyncStream<PlayerNotice>) async throws {
        for await notice in notices {
            if case .didPlayToEnd = notice { return }
            if case .failedToPlayToEnd(let error) = notice { throw error }
        }
    }

    @Test(arguments: [
        (TimePitchAlgorithm.varispeed, 2.0, 2.0), (.timeDomain, 2, 1), (.spectral, 2, 1),
        (.varispeed, 0.5, 0.5), (.timeDomain, 0.5, 1), (.timeDomain, -1, 1),
    ])
    func `the pitch is kept or goes with the rate, as the item says`(
        algorithm: TimePitchAlgorithm, rate: Double, factor: Double
    ) async throws {
        let path = try sounds.tone(400, seconds: 0.8, as: "a.wav")
        let (samples, deviceRate) = try await recording { device in
            let player = Player(url: path, device: device)
            let item = try #require(player.currentItem)
            item.audioTimePitchAlgorithm = algorithm
            try await settle(player)
            if rate < 0 { await player.seek(to: item.duration) }
            let notices = player.notices()
            try player.setRate(rate)
            try await toTheEnd(player, notices)
        }
        let length = Double(samples.count) / deviceRate
        // A busy machine loses of the beginning, and never adds.
        let due = 0.8 / abs(rate)
        #expect(length < due * 1.05 && length > due * 0.4, "\(length) s")
        let middle = samples.dropFirst(samples.count / 4).dropLast(samples.count / 4)
        let heard = pitch(middle, deviceRate) / 400
        #expect(abs(heard / factor - 1) < 0.03, "\(heard) of the pitch")
    }

    /// Two files that are one tone cut in two: the phase goes on over the join.
    @Test func `files of a queue follow without a gap`() async throws {
        func part(_ from: Int, _ count: Int, _ name: String) throws -> String {
            try sounds.file(as: name, frames: count) { frame in
                0.25 * sin(2 * .pi * 437 * Double(from + frame) / 8_000)
            }
        }
        let paths = [
            try part(0, 3_001, "a.wav"), try part(3_001, 777, "b.wav"),
            try part(3_778, 3_111, "c.wav"),
        ]
        let (samples, rate) = try await recording { device in
            let player = try QueuePlayer(
                items: paths.map { PlayerItem(url: $0) }, output: device.output)
            try await settle(player)
            let notices = player.notices()
            player.play()
            for await notice in notices {
                if case .currentItemDidChange(nil) = notice { break }
                if case .failedToPlayToEnd(let error) = notice { throw error }
            }
        }
        let length = Double(samples.count) / rate * 8_000 / 6_889
        #expect(length < 1.02 && length > 0.7, "\(length) of the whole")
        // A sine satisfies x[n+1] + x[n−1] = 2 cos w · x[n]; a step or a gap does not.
        let all = Array(samples.dropFirst(500).dropLast(500))
        let twoCos = Float(2 * cos(2 * .pi * 437 / rate))
        let worst = (1..<all.count - 1).map { abs(all[$0 + 1] + all[$0 - 1] - twoCos * all[$0]) }
            .max()
        #expect(try #require(worst) < 1e-3, "\(worst ?? 0)")
    }

    /// A zero tolerance is exact: what is heard first is the sample that was asked for.
    @Test(arguments: [1_000, 12_345, 15_999])
    func `a seek is heard at its sample`(frame: Int) async throws {
        // A ramp: each sample says where it is.
        let path = try sounds.file(as: "a.wav", frames: 16_000) { 0.1 + 0.8 * Double($0) / 16_000 }
        let (samples, rate) = try await recording { device in
            let player = Player(url: path, device: device)
            let item = try #require(player.currentItem)
            try await settle(player)
            let target = MediaTime(frame: Int64(frame), sampleRate: 8_000)
            #expect(
                await player.seek(to: target, toleranceBefore: .zero, toleranceAfter: .zero))
            #expect(player.currentTime() == target)
            item.forwardPlaybackEndTime = MediaTime(
                frame: min(16_000, Int64(frame) + 2_000), sampleRate: 8_000)
            let notices = player.notices()
            player.play()
            try await toTheEnd(player, notices)
        }
        let frames = Array(samples.map { (Double($0) - 0.1) / 0.8 * 16_000 })
        guard frames.count > 2_000 else { return }
        // Nothing of what lies before it is heard, but in the fade of its first 5 ms; nothing behind the
        // end; and between one pace, whatever of the beginning a busy machine may have lost.
        let sound = frames.dropFirst(Int(0.006 * rate)).dropLast(500)
        #expect(sound.allSatisfy { $0 > Double(frame) && $0 < Double(frame) + 2_001 })
        let first = try #require(sound.first)
        let off = sound.enumerated().map { abs($1 - first - Double($0) * 8_000 / rate) }.max()
        #expect(try #require(off) < 2, "\(off ?? 0) frames out of place")
    }

    @Test func `a mute and a volume are heard without a click`() async throws {
        let path = try sounds.tone(200, seconds: 1.2, as: "a.wav")
        let (samples, rate) = try await recording { device in
            let player = Player(url: path, device: device)
            try await settle(player)
            let notices = player.notices()
            player.play()
            for await time in player.boundaryTimes(
                [0.2, 0.4, 0.6, 0.8].map { MediaTime(seconds: $0) })
            {
                switch time.seconds {
                case 0.2: player.isMuted = true
                case 0.4: player.isMuted = false
                case 0.6: player.volume = 0.25
                default: player.volume = 1
                }
                if time.seconds > 0.7 { break }
            }
            try await toTheEnd(player, notices)
        }
        #expect(samples.count { abs($0) < 1e-5 } > Int(0.1 * rate), "it was muted")
        // The steepest a tone of a quarter of full scale goes, and some for the ramp.
        let steepest = zip(samples, samples.dropFirst()).map { abs($1 - $0) }.max()
        let due = Float(0.25 * 2 * .pi * 200 / rate)
        #expect(try #require(steepest) < 1.5 * due, "\(steepest ?? 0) of \(due)")
    }

    @Test func `two assets on one file are independent, and one asset has many items`()
        async throws
    {
        let path = try sounds.tone(440, seconds: 0.4, as: "a.wav")
        let (one, other) = (Asset(url: path), Asset(url: path))
        _ = try await one.load(.duration)
        #expect(one.status(of: .duration) == .loaded && other.status(of: .duration) != .loaded)
        let device = AudioDevice.virtual()
        let players = try (0..<3).map { _ in
            try Player(playerItem: PlayerItem(asset: one), device: device)
        }
        try players[0].setRate(0.5)
        try players[1].setRate(2)
        for player in players.dropLast() {
            for await rate in Observations({ player.rate }) where rate == 0 { break }
            #expect(player.currentTime().seconds == 0.4)
        }
        #expect(players[2].currentTime() == .zero && players[2].rate == 0)
    }
}
