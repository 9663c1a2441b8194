import Synchronization
import Testing
import TuttiPlayout
import TuttiTiming

@testable import TuttiPlayback

/// Item time as others watch it.
@Suite(.timeLimit(.minutes(1))) struct TimeObserverTests {
    /// What was told, and where item time was when it was read.
    private final class Seen: Sendable {
        private let told = Mutex<[(told: MediaTime, read: Double)]>([])
        private let task = Mutex<Task<Void, Never>?>(nil)

        init(_ times: AsyncStream<MediaTime>, _ player: Player) {
            let task = Task { [weak player] in
                for await time in times {
                    let read = player?.currentTime().seconds ?? -1
                    told.withLock { $0.append((time, read)) }
                }
            }
            self.task.withLock { $0 = task }
        }

        var all: [(told: MediaTime, read: Double)] { told.withLock { $0 } }
        var times: [Double] { all.map(\.told.seconds) }
        func end() { task.withLock { $0 }?.cancel() }
    }

    private static func seconds(_ value: Double) -> MediaTime { MediaTime(seconds: value) }

    @Test func `periodic times are now, each interval, starts, stops and jumps`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item())
        let seen = Seen(player.periodicTimes(every: Self.seconds(0.25)), player)
        await room.step(seconds: 1)
        #expect(seen.times == [0], "at rest there is nothing to tell")
        player.play()
        await room.step { player.currentTime().seconds > 1.1 }
        let playing = seen.times
        for multiple in [0.25, 0.5, 0.75, 1] {
            #expect(playing.contains { abs($0 - multiple) < 0.03 }, "\(multiple) in \(playing)")
        }
        // Now, waiting, playing, and four quarters.
        #expect(playing.count == 7, "\(playing)")
        player.pause()
        await room.step(seconds: 1)
        #expect(seen.times.count == 8, "it stopped")
        // Less than an interval away.
        let there = Self.seconds(player.currentTime().seconds + 0.02)
        _ = try await room.during { await player.seek(to: there) }
        await room.step(seconds: 0.2)
        #expect(abs((seen.times.last ?? 0) - there.seconds) < 1e-3)
        #expect(seen.times.count == 9)
        seen.end()
    }

    @Test(arguments: [0.5, 1, 2])
    func `boundaries are told when played by, at any rate, and not when jumped over`(
        rate: Double
    ) async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item())
        let times = player.boundaryTimes([3.5, 0.25, 2, 0.5].map(Self.seconds))
        let seen = Seen(times, player)
        try player.setRate(1)
        await room.step { seen.all.count == 1 }
        try player.setRate(rate)
        await room.step { seen.all.count == 2 }
        _ = try await room.during { await player.seek(to: Self.seconds(3)) }
        await room.step { seen.all.count == 3 }
        await room.step(seconds: 0.5)
        #expect(seen.times == [0.25, 0.5, 3.5])
        // Never before it is there; how soon after it is read is the reader's affair.
        for (told, read) in seen.all { #expect(read >= told.seconds - 1e-6) }
        seen.end()
    }

    @Test func `a place that a pause keeps from is not told`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(), shared: true)
        let seen = Seen(player.boundaryTimes([Self.seconds(1), Self.seconds(2)]), player)
        let begin = room.groupNow + .milliseconds(300)
        try player.setRate(1, time: .zero, atHostTime: begin)
        await room.step(seconds: 0.6)
        try player.setRate(0, atHostTime: begin + .milliseconds(1_500))
        await room.step(seconds: 3)
        #expect(seen.times == [1])
        #expect(abs(player.currentTime().seconds - 1.5) < 1e-3)
        seen.end()
    }

    @Test func `who watches does not keep the player, and its stream ends with it`() async throws {
        let room = VirtualRoom()
        var player: Player? = try await room.makeReadyPlayer(Library().item())
        let times = try #require(player).periodicTimes(every: Self.seconds(0.1))
        weak let watched = player
        player = nil
        await room.step { watched == nil }
        var count = 0
        for await _ in times { count += 1 }
        #expect(count <= 1)
    }

    @Test func `who is busy gets the newest`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item())
        let times = player.periodicTimes(every: Self.seconds(0.1))
        player.play()
        await room.step { player.currentTime().seconds > 2 }
        var iterator = times.makeAsyncIterator()
        let first = await iterator.next()
        #expect(try #require(first).seconds >= 1.95)
    }
}
