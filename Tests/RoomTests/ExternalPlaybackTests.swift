import Testing
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayback
import TuttiPlayout
import TuttiTiming

@testable import TuttiRoom

extension IntegrationTests {
    /// A player hands what it plays over to rooms, and takes it back.
    @Suite struct ExternalPlayback {
        /// As long as the file; what is heard here does not matter.
        private final class Silence: MediaSource {
            let format: MediaFormat
            private var next: Int64 = 0

            init(seconds: Int64) {
                let rate = TemporaryFolder.sampleRate
                format = MediaFormat(
                    sampleRate: rate, channelCount: 1, frameCount: seconds * Int64(rate))
            }

            func seek(toFrame frame: Int64) throws(MediaError) { next = frame }

            func read(into buffer: UnsafeMutableBufferPointer<Float>) throws(MediaError) -> Int {
                let count = Int(max(0, min(Int64(buffer.count / 2), format.frameCount! - next)))
                for i in 0..<2 * count { buffer[i] = 0 }
                next += Int64(count)
                return count
            }
        }

        @Test(.timeLimit(.minutes(1)), arguments: [true, false])
        func `an item goes over to rooms and comes back, at its place`(plays: Bool) async throws {
            try await withGroup { group in
                let other = try group.folder.writeNoise(seconds: 30, seed: 1, as: "other.wav")
                let mine = try group.folder.writeNoise(seconds: 30, seed: 2, as: "mine.wav")
                try await group.lead([other])
                try await group.untilStatus("something plays") { $0.phase == .playing }
                let client = try await group.client()

                let thread = try OutputThread.open(.virtual(VirtualCardOptions()))
                defer { thread.stop() }
                let player = try Player(
                    playerItem: PlayerItem(
                        asset: Asset(
                            location: mine,
                            opener: MediaOpener { _ throws(MediaError) in Silence(seconds: 30) })),
                    output: PlayerOutput(port: thread.port, now: { HostClock.now() }))
                _ = await player.seek(to: MediaTime(seconds: 10))
                if plays { try player.setRate(1.25) }

                try await player.handOver(to: client)
                #expect(player.rate == 0 && player.isExternalPlaybackActive)
                let place = player.currentTime().seconds
                let there = try await group.untilStatus("the rooms have it") {
                    $0.title == "mine" && $0.phase == (plays ? .playing : .paused)
                }
                #expect(there.positionSeconds >= place - 0.001)
                #expect(there.rate == (plays ? 1.25 : 0))
                if !plays { #expect(abs(there.positionSeconds - place) < 0.5) }

                try await player.takeBack(from: client)
                #expect(!player.isExternalPlaybackActive && player.rate == (plays ? 1.25 : 0))
                let paused = try await client.status()
                #expect(paused.phase == .paused)
                let back = player.currentTime().seconds - paused.positionSeconds
                #expect(plays ? back > -0.001 : abs(back) < 0.001)
            }
        }

        @Test func `what cannot be handed over is refused, and the player goes on`() async throws {
            try await withGroup { group in
                let file = try group.folder.writeNoise(seconds: 30, seed: 1, as: "other.wav")
                try await group.lead([file])
                let client = try await group.client()
                let thread = try OutputThread.open(.virtual(VirtualCardOptions()))
                defer { thread.stop() }
                let output = PlayerOutput(port: thread.port, now: { HostClock.now() })
                let empty = Player(output: output)
                await #expect(throws: RoomError.self) { try await empty.handOver(to: client) }
                let player = try Player(
                    playerItem: PlayerItem(
                        asset: Asset(
                            location: group.folder.path("missing.wav"),
                            opener: MediaOpener { _ throws(MediaError) in Silence(seconds: 30) })),
                    output: output)
                player.play()
                await #expect(throws: RoomError.self) { try await player.handOver(to: client) }
                #expect(player.rate == 1 && !player.isExternalPlaybackActive)
                player.allowsExternalPlayback = false
                await #expect(throws: RoomError.self) { try await player.handOver(to: client) }
            }
        }
    }
}
