import Glibc
import Synchronization
import Testing
import TuttiPlayback
import TuttiPlayout
import TuttiTiming

/// How far each property of an asset has come, by itself.
struct AssetStatusTests {
    /// Opens once the gate is; counts how often.
    private final class Slow: Sendable {
        let gate = Mutex(true)
        let opening = Flag()
        let library = Library()

        func asset() -> Asset {
            let inner = library.opener(sampleRate: 8_000, frameCount: 8_000)
            return Asset(
                location: "slow.wav",
                opener: MediaOpener { [self] location throws(MediaError) in
                    opening.set()
                    while gate.withLock({ $0 }) { sched_yield() }
                    return try inner.open(location)
                })
        }

        func opens() { gate.withLock { $0 = false } }
    }

    private func until(_ condition: () -> Bool) async {
        while !condition() { await Task.yield() }
    }

    @Test func `what nobody asked for is not loaded, whatever else is`() async throws {
        let asset = Library().asset()
        _ = try await asset.load(.duration, .tracks)
        #expect(asset.status(of: .duration) == .loaded && asset.status(of: .tracks) == .loaded)
        #expect(asset.status(of: .metadata) == .notLoaded)
        #expect(asset.status(of: .chapters) == .notLoaded)
        #expect(asset.status(of: .isPlayable) == .notLoaded)
        #expect(try await asset.load(.chapters).isEmpty)
        #expect(asset.status(of: .chapters) == .loaded)
        #expect(asset.status(of: .metadata) == .notLoaded)
    }

    @Test func `an item that is ready has loaded all of its asset`() async throws {
        let asset = Library().asset()
        try await PlayerItem(asset: asset).ready()
        #expect(asset.status(of: .metadata) == .loaded && asset.status(of: .duration) == .loaded)
    }

    @Test func `a property that fails leaves another of its batch loaded`() async throws {
        let library = Library()
        let refusal = MediaError(
            .notMedia, operation: "open", subject: "test.wav", reason: "this is a letter")
        library.state.withLock { $0.refuses = refusal }
        let asset = library.asset()
        let error = await #expect(throws: PlaybackError.self) {
            try await asset.load(.isPlayable, .duration)
        }
        #expect(asset.status(of: .isPlayable) == .loaded)
        #expect(try await asset.load(.isPlayable) == false)
        guard case .failed(let why) = asset.status(of: .duration) else {
            Issue.record("its length is not known")
            return
        }
        #expect(why.code == error?.code && why.underlying as? MediaError == refusal)
        #expect(asset.status(of: .tracks) == .notLoaded)
        // It is another file now.
        library.state.withLock { $0.refuses = nil }
        _ = try await asset.load(.duration)
        #expect(asset.status(of: .duration) == .loaded)
    }

    @Test func `who gives one property up leaves another's waiting, and it answers`() async throws {
        let slow = Slow()
        let asset = slow.asset()
        let duration = Task { try await asset.load(.duration) }
        let tracks = Task { try await asset.load(.tracks) }
        await until {
            slow.opening.isSet && asset.status(of: .duration) == .loading
                && asset.status(of: .tracks) == .loading
        }
        #expect(asset.status(of: .format) == .notLoaded)
        duration.cancel()
        await #expect(throws: PlaybackError.self) { try await duration.value }
        #expect(asset.status(of: .duration) == .cancelled)
        #expect(asset.status(of: .tracks) == .loading)
        slow.opens()
        _ = try await tracks.value
        #expect(asset.status(of: .tracks) == .loaded)
        #expect(asset.status(of: .duration) == .cancelled)
        #expect(try await asset.load(.duration) == MediaTime(value: 1, timescale: 1))
        #expect(asset.status(of: .duration) == .loaded)
        #expect(slow.library.state.withLock { $0.opened } == 1)
    }

    @Test func `while one waits for a property, another who gives it up changes nothing`()
        async throws
    {
        let slow = Slow()
        let asset = slow.asset()
        let tasks = (0..<2).map { _ in Task { try await asset.load(.duration, .format) } }
        await until { slow.opening.isSet && asset.status(of: .format) == .loading }
        tasks[0].cancel()
        _ = await tasks[0].result
        // The other one may not have asked yet, but will.
        if asset.status(of: .format) == .cancelled {
            await until { asset.status(of: .format) == .loading }
        }
        slow.opens()
        _ = try await tasks[1].value
        #expect(asset.status(of: .format) == .loaded && asset.status(of: .duration) == .loaded)
    }
}
