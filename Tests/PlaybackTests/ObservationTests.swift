import Observation
import Synchronization
import Testing
import TuttiPlayout
import TuttiTiming

@testable import TuttiPlayback

/// Properties as Swift's own observation sees them.
@Suite(.timeLimit(.minutes(1))) struct ObservationTests {
    private final class Values<Value: Sendable & Equatable>: Sendable {
        private let values = Mutex<[Value]>([])

        init(_ property: @escaping @Sendable () -> Value) {
            Task { [values = Observations(property)] in
                for await value in values { self.values.withLock { $0.append(value) } }
            }
        }

        var all: [Value] { values.withLock { $0 } }
    }

    @Test func `the present value comes first, then each that follows`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 2))
        let control = Values { player.timeControlStatus }
        let reason = Values { player.reasonForWaitingToPlay }
        let rate = Values { player.rate }
        await room.step { control.all == [.paused] && reason.all == [nil] && rate.all == [0] }
        player.play()
        await room.step { control.all.last == .playing }
        // Who reads slowly gets the newest: not all that was in between.
        #expect(control.all.first == .paused)
        await room.step { control.all.last == .paused }
        await room.step { rate.all.last == 0 && reason.all.last == .some(nil) }
        #expect(rate.all.first == 0 && rate.all.allSatisfy { $0 == 0 || $0 == 1 })
    }

    @Test func `an item and its player say when it is ready, and when it has failed`() async throws
    {
        let room = VirtualRoom()
        let library = Library()
        let player = Player(output: room.output)
        let item = library.item()
        let status = Values { player.status }
        let itemStatus = Values { item.status }
        let duration = Values { item.duration }
        let current = Values { player.currentItem?.status }
        await room.step { status.all == [.unknown] && current.all == [nil] }
        try player.replaceCurrentItem(with: item)
        await room.step { status.all.last == .readyToPlay && itemStatus.all.last == .readyToPlay }
        await room.step { current.all.last == .readyToPlay }
        #expect(duration.all.first?.isNumeric == false)
        await room.step { duration.all.last?.isNumeric == true }
        // An item that cannot be opened.
        library.state.withLock {
            $0.refuses = MediaError(
                .notFound, operation: "open", subject: "x", reason: "is not there")
        }
        let broken = library.item()
        try player.replaceCurrentItem(with: broken)
        await room.step { status.all.last == .failed }
        #expect(player.error != nil && broken.error != nil)
    }

    /// A change is told where nothing is locked.
    @Test func `who hears of a change may ask the player`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item())
        let heard = Mutex<[Double]>([])
        withObservationTracking {
            _ = player.rate
        } onChange: {
            heard.withLock { $0.append(player.rate + Double(player.volume)) }
            player.isMuted = true
        }
        player.play()
        await room.step { player.timeControlStatus == .playing }
        #expect(heard.withLock { $0 } == [2])
        #expect(player.isMuted)
    }

    /// Tells whether a value changes from now on, to one for which that is so.
    private func changes<Value: Sendable>(
        _ room: VirtualRoom, _ value: @escaping @Sendable () -> Value,
        to isThere: (Value) -> Bool, by change: () async throws -> Void
    ) async throws -> Bool {
        let hasChanged = Flag()
        withObservationTracking {
            _ = value()
        } onChange: {
            hasChanged.set()
        }
        try await change()
        for _ in 0..<500 where !(hasChanged.isSet && isThere(value())) { await room.step() }
        return hasChanged.isSet && isThere(value())
    }

    @Test func `what an item has at hand is observed, and that there is room for no more`()
        async throws
    {
        let room = VirtualRoom()
        let item = Library().item(seconds: 60, at: "http://server/test.wav")
        let player = try await room.makeReadyPlayer(item)
        #expect(
            try await changes(room, { item.isPlaybackBufferFull }, to: { $0 }) { player.play() })
        #expect(
            try await changes(room, { item.loadedTimeRanges }, to: { $0.first?.start != .zero }) {
                await room.step(seconds: 5)
            })
        // Read once, it is heard of: nobody decodes.
        let full = Values { item.isPlaybackBufferFull }
        await room.step { full.all == [true] }
        #expect(
            try await changes(room, { item.loadedTimeRanges }, to: \.isEmpty) {
                try player.replaceCurrentItem(with: nil)
            })
        await room.step { full.all == [true, false] }
    }

    @Test func `an item's tap, its timebase and its file are observed`() async throws {
        final class Nothing: AudioTap {
            func prepare(sampleRate: Int, channelCount: Int) {}
            func process(
                _ samples: UnsafeMutableBufferPointer<Float>, itemFrame: Int64, sampleRate: Int,
                isContinuous: Bool
            ) {}
            func unprepare() {}
        }
        let room = VirtualRoom()
        let player = room.makePlayer(shared: true)
        let item = Library().item(seconds: 60)
        #expect(
            try await changes(room, { item.loadedTimeRanges }, to: { $0.count == 1 }) {
                try player.replaceCurrentItem(with: item)
            })
        #expect(
            try await changes(room, { item.audioTap != nil }, to: { $0 }) {
                item.audioTap = Nothing()
            })
        #expect(
            try await changes(room, { item.timebase.rate }, to: { $0 == 1 }) {
                try player.setRate(
                    1, time: .zero, atHostTime: room.groupNow + .milliseconds(400))
            })
        #expect(
            try await changes(room, { item.timebase.rate }, to: { $0 == 0 }) { player.pause() })
        let other = Library().item()
        #expect(
            try await changes(room, { item.timebase.anchorTime }, to: { $0 == .zero }) {
                try player.replaceCurrentItem(with: other)
            })
    }

    @Test func `a queue and what it prefers are observed`() async throws {
        let room = VirtualRoom()
        let player = try room.makeQueue([Library().item(seconds: 1), Library().item(seconds: 1)])
        let more = Library().item()
        #expect(
            try await changes(room, { player.items().count }, to: { $0 == 3 }) {
                try player.insert(more, after: nil)
            })
        #expect(
            try await changes(room, { player.items().count }, to: { $0 == 2 }) { player.play() })
        let german = MediaSelectionCriteria(preferredLanguages: ["de"])
        #expect(
            try await changes(
                room, { player.mediaSelectionCriteria(for: .audible) }, to: { $0 == german }
            ) { player.setMediaSelectionCriteria(german, for: .audible) })
        #expect(
            try await changes(
                room, { player.appliesMediaSelectionCriteriaAutomatically }, to: { !$0 }
            ) { player.appliesMediaSelectionCriteriaAutomatically = false })
    }

    @Test func `settings are observed too`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item())
        let volume = Values { player.volume }
        let muted = Values { player.isMuted }
        let ending = Values { player.actionAtItemEnd }
        await room.step { volume.all == [1] && muted.all == [false] && ending.all == [.pause] }
        player.volume = 0.25
        player.isMuted = true
        player.actionAtItemEnd = .none
        await room.step {
            volume.all.last == 0.25 && muted.all.last == true
                && ending.all.last == Player.ActionAtItemEnd.none
        }
    }
}
