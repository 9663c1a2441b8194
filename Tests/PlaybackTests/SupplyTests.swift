import Observation
import Synchronization
import Testing
import TuttiTiming

@testable import TuttiPlayback

/// Whether to wait, by how fast frames come.
@Suite(.timeLimit(.minutes(1))) struct SupplyTests {
    private static func meter(_ framesPerSecond: Int64) -> SupplyMeter {
        var meter = SupplyMeter()
        for _ in 0..<4 { meter.count(framesPerSecond / 4, in: .milliseconds(250)) }
        return meter
    }

    @Test func `what comes faster than it is played keeps up, with or without an end`() {
        for speed in [0.5, 1, 1.5] {
            let meter = Self.meter(16_000)
            #expect(meter.keepsUp(buffered: 1, rest: nil, speed: speed * 8_000))
            #expect(meter.keepsUp(buffered: 1, rest: 1 << 40, speed: speed * 8_000))
        }
        #expect(!Self.meter(8_000).keepsUp(buffered: 4_000, rest: nil, speed: 8_000))
        #expect(!SupplyMeter().keepsUp(buffered: 4_000, rest: nil, speed: 8_000))
        #expect(SupplyMeter().keepsUp(buffered: 0, rest: 0, speed: 8_000))
    }

    /// Plays what the meter lets begin, frame by frame, against what comes.
    @Test func `what is let begin by half the speed comes to the end without a stall`() {
        let meter = Self.meter(5_000)
        let speed = 8_000.0
        let throughput = meter.throughput / SupplyMeter.margin
        var begun: Int64?
        for buffered in stride(from: Int64(0), through: 80_000, by: 500) {
            let rest = 80_000 - buffered
            if meter.keepsUp(buffered: buffered, rest: rest, speed: speed) {
                begun = buffered
                break
            }
        }
        let buffered = begun ?? 80_000
        #expect(buffered > 0 && buffered < 80_000)
        for second in stride(from: 0.0, through: 10, by: 0.25) {
            let played = min(80_000, second * speed)
            let there = min(80_000, Double(buffered) + second * throughput)
            #expect(there >= played - 1)
        }
    }

    @Test func `a medium that becomes slow is found to be slow, and one that is fast again`() {
        var meter = Self.meter(100_000)
        // An hour, in a tenth of the time.
        for _ in 0..<360 { meter.count(80_000, in: .seconds(1)) }
        #expect(meter.keepsUp(buffered: 4_000, rest: nil, speed: 8_000))
        for _ in 0..<120 { meter.count(4_000, in: .seconds(1)) }
        #expect(!meter.keepsUp(buffered: 4_000, rest: nil, speed: 8_000))
        for _ in 0..<20 { meter.count(80_000, in: .seconds(1)) }
        #expect(meter.keepsUp(buffered: 4_000, rest: nil, speed: 8_000))
    }

    /// Half a second comes in a second, with more than ten of them in hand.
    @Test func `what comes too slowly while it plays is told before it runs dry`() async throws {
        let room = VirtualRoom()
        let library = Library()
        let item = library.item(seconds: 400)
        let player = try await room.makeReadyPlayer(item)
        player.play()
        await room.step { player.timeControlStatus == .playing }
        await room.step(seconds: 1)
        #expect(item.isPlaybackLikelyToKeepUp && item.isPlaybackBufferFull)
        let toldSlow = Flag()
        withObservationTracking {
            _ = item.isPlaybackLikelyToKeepUp
        } onChange: {
            toldSlow.set()
        }
        room.waitsForFeeds = false
        var limit = item.decodedTimeRanges[0].end.frame(atSampleRate: 8_000) ?? 0
        await room.step {
            limit += 40
            library.state.withLock { $0.blocksAt = limit }
            return !item.isPlaybackLikelyToKeepUp || player.timeControlStatus != .playing
        }
        #expect(player.timeControlStatus == .playing)
        #expect(!item.isPlaybackLikelyToKeepUp && !item.isPlaybackBufferFull)
        #expect(toldSlow.isSet)
        library.state.withLock { $0.blocksAt = nil }
        room.waitsForFeeds = true
        await room.step { item.isPlaybackLikelyToKeepUp && item.isPlaybackBufferFull }
    }

    @Test func `the item says how it is supplied, and tells when that changes`() async throws {
        let room = VirtualRoom()
        let library = Library()
        let item = library.item(seconds: 40)
        #expect(!item.isPlaybackLikelyToKeepUp && item.isPlaybackBufferEmpty)
        let player = try await room.makeReadyPlayer(item)
        player.play()
        await room.step { player.timeControlStatus == .playing }
        #expect(item.isPlaybackLikelyToKeepUp && !item.isPlaybackBufferEmpty)
        await room.step(seconds: 0.2)
        #expect(item.isPlaybackBufferFull)
        library.state.withLock { $0.isBlocked = true }
        room.waitsForFeeds = false
        await room.step { player.timeControlStatus == .waitingToPlayAtSpecifiedRate }
        #expect(!item.isPlaybackLikelyToKeepUp)
        library.state.withLock { $0.isBlocked = false }
        room.waitsForFeeds = true
        await room.step { item.isPlaybackLikelyToKeepUp }
    }
}
