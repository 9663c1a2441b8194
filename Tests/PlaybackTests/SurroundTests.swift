import Testing
import TuttiPlayout
import TuttiTiming

@testable import TuttiPlayback

/// Items with more than two channels on outputs with more than two.
@Suite(.timeLimit(.minutes(1))) struct SurroundTests {
    /// Each of the output's channels has a level of its own; stereo, where nobody asks for a pair, has
    /// another.
    private static func level(_ channel: Int?) -> Float {
        channel.map { Float($0 + 1) / 16 } ?? 0.75
    }

    private final class Source: MediaSource {
        let format = MediaFormat(sampleRate: 8_000, channelCount: 6, frameCount: 40_000)
        private let pair: ChannelPair?
        private var next: Int64 = 0

        init(_ pair: ChannelPair?) { self.pair = pair }

        func seek(toFrame frame: Int64) throws(MediaError) { next = frame }

        func read(into buffer: UnsafeMutableBufferPointer<Float>) throws(MediaError) -> Int {
            let count = Int(max(0, min(Int64(buffer.count / 2), 40_000 - next)))
            for i in 0..<count {
                buffer[2 * i] = SurroundTests.level(pair.map { 2 * $0.index })
                buffer[2 * i + 1] = SurroundTests.level(pair.map { 2 * $0.index + 1 })
            }
            next += Int64(count)
            return count
        }
    }

    private static func item() -> PlayerItem {
        PlayerItem(
            asset: Asset(
                location: "5.1",
                opener: MediaOpener(choosing: { _, choice throws(MediaError) in
                    Source(choice.channels)
                })))
    }

    private func expect(
        _ room: VirtualRoom, _ levels: [Float], sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        await room.step(seconds: 0.3)
        let heard = room.lastFrame
        #expect(heard.count == levels.count, sourceLocation: sourceLocation)
        for (level, due) in zip(heard, levels) {
            #expect(abs(level - due) < 1e-3, "\(heard)", sourceLocation: sourceLocation)
        }
    }

    @Test func `each channel of the output has its own, through seeks, pauses, volume and rates`()
        async throws
    {
        let room = VirtualRoom(channelCount: 6)
        let item = Self.item()
        item.audioTimePitchAlgorithm = .varispeed
        let player = try await room.makeReadyPlayer(item)
        let all = (0..<6).map { Self.level($0) }
        player.play()
        await expect(room, all)
        _ = try await room.during { await player.seek(to: MediaTime(seconds: 2)) }
        await expect(room, all)
        player.pause()
        await expect(room, all.map { _ in 0 })
        player.play()
        player.volume = 0.5
        await expect(room, all.map { $0 / 2 })
        player.volume = 1
        try player.setRate(-1)
        await expect(room, all)
        try player.setRate(1.5)
        await expect(room, all)
        #expect(player.voices.count <= 6)
        await room.step { player.rate == 0 }
        #expect(player.currentTime().seconds == 5)
        await room.step(seconds: 1)
        #expect(room.freeVoices == OutputPort.voiceLimit)
    }

    @Test func `what needs stereo gets it, and so does a stereo output`() async throws {
        let room = VirtualRoom(channelCount: 6)
        let item = Self.item()
        let player = try await room.makeReadyPlayer(item)
        player.play()
        await room.step(seconds: 0.3)
        let mixed = [Self.level(nil), Self.level(nil), 0, 0, 0, 0]
        // The pitch is kept of the channels as they are mixed.
        try player.setRate(1.25)
        await expect(room, mixed)
        try player.setRate(1)
        await expect(room, (0..<6).map { Self.level($0) })

        let stereo = VirtualRoom()
        let other = try await stereo.makeReadyPlayer(Self.item())
        other.play()
        await expect(stereo, [Self.level(nil), Self.level(nil)])
    }
}
