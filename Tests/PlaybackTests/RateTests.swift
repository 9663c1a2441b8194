import Dispatch
import Synchronization
import Testing
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

@testable import TuttiPlayback

/// Rates at which the voice does not play the item's own frames: backwards, fast, slow, and with the
/// pitch kept.
@Suite(.timeLimit(.minutes(1))) struct RateTests {
    private static func expectOnLine(
        _ room: VirtualRoom, _ line: Line, from start: GroupInstant, to end: GroupInstant,
        within tolerance: Double, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let frames = room.frames(from: room.local(start), to: room.local(end))
        #expect(frames.count > 100, sourceLocation: sourceLocation)
        let worst =
            frames.map { heard in
                let at = room.clock.load().map(heard.instant)
                return abs(
                    heard.frame - line.itemFrame - (at - line.instant).seconds * line.rate * 8_000)
            }.max() ?? 0
        #expect(worst <= tolerance, "\(worst)", sourceLocation: sourceLocation)
    }

    @Test(arguments: [-1.0, -0.5, -1.5, 4, 0.25, -8])
    func `a line is met at any rate, in either direction`(rate: Double) async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(
            Library().item(seconds: 30), shared: true)
        let begin = MediaTime(seconds: rate < 0 ? 29 : 1)
        #expect(
            try await room.during { try await player.preroll(atRate: rate, time: begin) })
        let host = room.groupNow + .milliseconds(200)
        try player.setRate(rate, time: begin, atHostTime: host)
        await room.step(seconds: 2.5)
        let line = Line(itemFrame: begin.seconds * 8_000, instant: host, rate: rate)
        // Backwards a frame is mirrored at its edges: it is one beside where its number is.
        Self.expectOnLine(
            room, line, from: host + .milliseconds(20), to: host + .milliseconds(2_300),
            within: rate < 0 ? 1 - rate : max(1, rate))
        let time = player.currentTime().seconds
        let due = begin.seconds + (room.groupNow - host).seconds * rate
        #expect(abs(time - due) < 1e-3)
    }

    private static let broken: [(Double, TimePitchAlgorithm)] =
        [0.5, 1, 1.25, 2, 4].flatMap { rate in
            [TimePitchAlgorithm.varispeed, .timeDomain, .spectral].map { (rate, $0) }
        }

    @Test(arguments: broken)
    func `what is decoded before an error is heard at any rate, then comes the error`(
        rate: Double, algorithm: TimePitchAlgorithm
    ) async throws {
        let room = VirtualRoom()
        let library = Library()
        library.state.withLock { $0.failsAt = 16_000 }
        let item = library.item(seconds: 4)
        item.audioTimePitchAlgorithm = algorithm
        let player = try await room.makeReadyPlayer(item, shared: true)
        let said = NoticeLog(player)
        let host = room.groupNow + .milliseconds(200)
        try player.setRate(rate, time: .zero, atHostTime: host)
        await room.step { player.rate == 0 }
        await room.step(seconds: 0.1)
        let last = try #require(room.heard.last { $0.value > 0.1 }).instant
        let heard = (room.clock.load().map(last) - host).seconds * rate
        // Grains and frames of a spectrum fade into what is silent behind it.
        #expect(abs(heard - 2) < 0.02 * max(1, rate), "\(heard)")
        #expect(abs(player.currentTime().seconds - 2) < 0.01 * max(1, rate))
        #expect(said.count("failed mediaFailed") == 1, "\(said.all)")
    }

    @Test(arguments: [-1.0, -0.5, -2], [TimePitchAlgorithm.varispeed, .timeDomain, .spectral])
    func `backwards, what lies behind where it began may be broken`(
        rate: Double, algorithm: TimePitchAlgorithm
    ) async throws {
        let room = VirtualRoom()
        let library = Library()
        library.state.withLock { $0.failsAt = 16_000 }
        let item = library.item(seconds: 4)
        item.audioTimePitchAlgorithm = algorithm
        let player = try await room.makeReadyPlayer(item, shared: true)
        let said = NoticeLog(player)
        let host = room.groupNow + .milliseconds(200)
        try player.setRate(rate, time: MediaTime(seconds: 1.9), atHostTime: host)
        await room.step { player.rate == 0 }
        await room.step { said.count("end") == 1 }
        #expect(player.currentTime() == .zero, "\(said.all)")
        let sound = room.heard.filter { $0.value > 0.1 }.count
        #expect(abs(Double(sound) / 8_000 - 1.9 / -rate) < 0.05 / -rate)
    }

    @Test func `backwards ends at the beginning, and there is nothing to play from there`()
        async throws
    {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item())
        let notices = Notices(player)
        _ = try await room.during { await player.seek(to: MediaTime(seconds: 1)) }
        try player.setRate(-1)
        await room.step { player.currentTime() == .zero }
        await room.step { player.rate == 0 }
        // All of it was heard, but for the ringing of the resampler's filter at the end.
        let sound = room.heard.filter { $0.value > TestSource.base * 0.9 }
        #expect(sound.map { TestSource.frame(ofValue: $0.value) }.min() ?? 100 < 40)
        try player.setRate(-1)
        #expect(player.rate == 0)
        player.play()
        #expect(player.rate == 1)
        #expect(await notices.drain().filter { $0 == "end" }.count == 1)
    }

    @Test func `playing backwards ends at its own end time`() async throws {
        let room = VirtualRoom()
        let item = Library().item()
        let player = try await room.makeReadyPlayer(item)
        item.reversePlaybackEndTime = MediaTime(seconds: 0.75)
        _ = try await room.during { await player.seek(to: MediaTime(seconds: 1)) }
        try player.setRate(-1)
        await room.step { player.rate == 0 }
        #expect(player.currentTime() == MediaTime(seconds: 0.75))
    }

    @Test func `an end time may be set while the item plays`() async throws {
        let room = VirtualRoom()
        let item = Library().item()
        let player = try await room.makeReadyPlayer(item)
        player.play()
        await room.step { player.currentTime().seconds > 0.5 }
        item.forwardPlaybackEndTime = MediaTime(value: 3, timescale: 2)
        await room.step { player.rate == 0 }
        #expect(player.currentTime() == MediaTime(value: 3, timescale: 2))
        let beyond = room.heard.filter { TestSource.frame(ofValue: $0.value) > 12_010 }
        // Nothing but the ringing of the resampler's filter at the cut.
        #expect(beyond.count <= 16)
    }

    @Test func `a stream without an end is not played backwards, and says so`() async throws {
        let room = VirtualRoom()
        let asset = Asset(
            location: "live",
            opener: MediaOpener { _ throws(MediaError) in LiveSource() })
        let player = try await room.makeReadyPlayer(PlayerItem(asset: asset))
        let refusal = #expect(throws: PlaybackError.self) { try player.setRate(-1) }
        #expect(refusal?.code == .rateNotSupported && player.rate == 0)
        let item = try #require(player.currentItem)
        #expect(item.canPlayFastForward && !item.canPlayReverse && !item.canStepBackward)

        // Asked for before anybody knows: it is not opened until then.
        let early = room.makePlayer()
        let isAsked = DispatchSemaphore(value: 0)
        let opener = MediaOpener { _ throws(MediaError) in
            isAsked.wait()
            return LiveSource()
        }
        try early.replaceCurrentItem(
            with: PlayerItem(asset: Asset(location: "live", opener: opener)))
        defer { isAsked.signal() }
        try early.setRate(-1)
        isAsked.signal()
        await room.step { early.rate == 0 }
        #expect(early.error?.code == .rateNotSupported)
        early.play()
        await room.step { early.timeControlStatus == .playing }
    }

    @Test(arguments: TimePitchAlgorithm.allCases)
    func `the algorithm may change while it plays, and item time goes on`(
        algorithm: TimePitchAlgorithm
    ) async throws {
        let room = VirtualRoom()
        let item = Library().item(seconds: 20)
        let player = try await room.makeReadyPlayer(item, shared: true)
        let host = room.groupNow + .milliseconds(200)
        try player.setRate(1.5, time: .zero, atHostTime: host)
        await room.step(seconds: 1)
        item.audioTimePitchAlgorithm = algorithm
        await room.step(seconds: 1)
        let due = (room.groupNow - host).seconds * 1.5
        #expect(abs(player.currentTime().seconds - due) < 1e-3)
        item.audioTimePitchAlgorithm = .varispeed
        await room.step(seconds: 1)
        Self.expectOnLine(
            room, Line(itemFrame: 0, instant: host, rate: 1.5),
            from: room.groupNow - .milliseconds(500), to: room.groupNow, within: 1.5)
        #expect(room.freeVoices >= OutputPort.voiceLimit - 2)
    }

    /// A room that came to a place by a seek plays what one plays that went there, to the sample.
    @Test(arguments: [TimePitchAlgorithm.timeDomain, .spectral], [1.25, -1.25])
    func `rooms that come to a place by different ways play the same`(
        algorithm: TimePitchAlgorithm, rate: Double
    ) async throws {
        func record(joiningAfter delay: Double) async throws -> (VirtualRoom, GroupInstant) {
            let room = VirtualRoom()
            let item = PlayerItem(
                asset: NoiseLibrary().asset("a", sampleRate: 8_000, frames: 96_000))
            item.audioTimePitchAlgorithm = algorithm
            let player = try await room.makeReadyPlayer(item, shared: true)
            let host = room.groupNow + .milliseconds(200)
            await room.step(seconds: delay)
            try player.setRate(
                rate, time: MediaTime(seconds: rate > 0 ? 1 : 11), atHostTime: host)
            await room.step(seconds: 4 - delay)
            return (room, host)
        }
        let (early, host) = try await record(joiningAfter: 0)
        let (late, otherHost) = try await record(joiningAfter: 1.7)
        #expect(host == otherHost)
        let span = host + .milliseconds(2_500)..<host + .milliseconds(3_500)
        func samples(_ room: VirtualRoom) -> [Float] {
            room.frames(from: room.local(span.lowerBound), to: room.local(span.upperBound))
                .map(\.value)
        }
        let (one, other) = (samples(early), samples(late))
        #expect(one.count == other.count && one.count > 7_000)
        let loudest = one.map(abs).max() ?? 0
        let apart = zip(one, other).map { abs($0 - $1) }.max() ?? 1
        // Two lines that were begun at other instants differ by fractions of a nanosecond.
        #expect(loudest > 0.1 && apart < loudest / 1_000, "\(apart) of \(loudest)")
    }

    @Test func `times are told backwards too`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item())
        _ = try await room.during { await player.seek(to: MediaTime(seconds: 2.1)) }
        let boundaries = player.boundaryTimes([0.5, 1.5, 3].map { MediaTime(seconds: $0) })
        let periods = player.periodicTimes(every: MediaTime(seconds: 0.5))
        async let passed = boundaries.prefix(2).reduce(into: []) { $0.append($1.seconds) }
        let told = Task { await periods.reduce(into: []) { $0.append($1.seconds) } }
        try player.setRate(-1)
        await room.step { player.rate == 0 }
        #expect(await passed == [1.5, 0.5])
        told.cancel()
        let all = await told.value
        for multiple in [2.0, 1.5, 1, 0.5] {
            #expect(all.contains { abs($0 - multiple) < 0.03 }, "\(multiple) in \(all)")
        }
    }
}

/// A ramp without an end.
private final class LiveSource: MediaSource {
    let format = MediaFormat(sampleRate: 8_000, channelCount: 2, frameCount: nil)

    func seek(toFrame frame: Int64) throws(MediaError) {}

    func read(into buffer: UnsafeMutableBufferPointer<Float>) throws(MediaError) -> Int {
        buffer.update(repeating: 0.25)
        return buffer.count / 2
    }
}
