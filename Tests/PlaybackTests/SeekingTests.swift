import Synchronization
import Testing
import TuttiPlayout
import TuttiTiming

@testable import TuttiPlayback

/// Seeks and prerolls, and how they end each other.
struct SeekingTests {
    static func seconds(_ n: Double) -> MediaTime { MediaTime(seconds: n) }

    @Test func `a seek while paused is exact and playing begins there`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item())
        let target = MediaTime(frame: 12_345, sampleRate: 8_000)
        #expect(try await room.during { await player.seek(to: target) })
        #expect(player.currentTime() == target)
        player.play()
        let begin = room.now
        await room.step(seconds: 0.5)
        let heard = room.frames(from: begin, to: room.now)
        let onset = try #require(heard.firstIndex { $0.value > 1e-3 })
        // The fade from nothing takes 40 frames; its first is within two of the target.
        #expect(abs(heard[onset + 60].frame - 60 - 12_345) < 3)
    }

    @Test func `a seek beyond the item is clamped into it`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 2))
        #expect(try await room.during { await player.seek(to: .positiveInfinity) })
        #expect(player.currentTime() == Self.seconds(2))
        #expect(try await room.during { await player.seek(to: Self.seconds(-5)) })
        #expect(player.currentTime() == .zero)
        #expect(await player.seek(to: .invalid) == false)
        #expect(await player.seek(to: .indefinite) == false)
    }

    @Test func `a seek while playing sounds the old place until the new one takes over`()
        async throws
    {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item())
        player.play()
        await room.step(seconds: 1)
        let begin = room.now
        #expect(try await room.during { await player.seek(to: Self.seconds(5)) })
        await room.step(seconds: 0.5)
        let heard = room.frames(from: begin, to: room.now)
        let old = heard.filter { $0.frame > 7_000 && $0.frame < 10_000 }
        let new = heard.filter { $0.frame >= 40_000 }
        // All but the two fades of 5 ms (and their edges) is one place or the other.
        #expect(heard.count - old.count - new.count < 100)
        #expect(try #require(old.last).instant < (try #require(new.first)).instant)
        #expect(try #require(new.first).frame < 40_060)
        // The seek has returned once the new place is heard, or some steps of the test later.
        let gone = player.currentTime().seconds - 5.5
        #expect(gone > -0.01 && gone < 0.25)
    }

    /// Orders that follow a seek at once, with a period between them, or while its first frames are read.
    @Test(
        arguments: [
            "pause play", "pause pause", "pause faster", "pause immediately", "pause play pause",
            "line pause", "faster pause", "stand play",
        ], ["at once", "apart", "blocked"])
    func `a seek while playing is not undone by orders in a row`(
        orders: String, pace: String
    ) async throws {
        let room = VirtualRoom()
        let library = Library()
        let player = try await room.makeReadyPlayer(library.item(seconds: 30))
        player.automaticallyWaitsToMinimizeStalling = false
        player.play()
        await room.step(seconds: 0.5)
        if pace == "blocked" {
            library.state.withLock { $0.blocksAt = 100_000 }
            room.waitsForFeeds = false
        }
        let arrived = Kept<Double?>(nil)
        let seek = Task {
            let isThere = await player.seek(to: Self.seconds(20))
            arrived.change { $0 = player.currentTime().seconds }
            return isThere
        }
        while player.state.withLock({ $0.machine.seek == nil }) { await Task.yield() }
        for order in orders.split(separator: " ") {
            switch order {
            case "play": player.play()
            case "pause": player.pause()
            case "faster": try player.setRate(2)
            case "immediately": try player.playImmediately(atRate: 1)
            case "line": try player.setRate(1.25, atHostTime: nil)
            default: try player.setRate(0, time: .invalid, atHostTime: nil)
            }
            if pace == "apart" { await room.step() }
        }
        await room.step(seconds: 0.1)
        library.state.withLock { $0.blocksAt = nil }
        room.waitsForFeeds = true
        await room.step(seconds: 1)
        #expect(await seek.value)
        let places = [try #require(arrived.value), player.currentTime().seconds]
        for place in places { #expect(place >= 20 && place < 23.5, "\(places)") }
        if orders.hasSuffix("pause") { #expect(places[1] == 20 && player.rate == 0) }
        let begin = room.now
        await room.step(seconds: 0.2)
        let heard = room.frames(from: begin, to: room.now)
        #expect(heard.allSatisfy { player.rate == 0 ? $0.value == 0 : $0.frame > 160_000 })
    }

    /// What drives item time may change while a seek's place is about to be heard.
    @Test(arguments: 0..<14, [true, false])
    func `after a seek the time is there or later, though the clock changes meanwhile`(
        periods: Int, toShared: Bool
    ) async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 30))
        if !toShared { player.sourceClock = room.groupClock }
        player.play()
        await room.step(seconds: 0.5)
        let arrived = Kept<Double?>(nil)
        let seek = Task {
            let isThere = await player.seek(to: Self.seconds(20))
            arrived.change { $0 = player.currentTime().seconds }
            return isThere
        }
        while player.state.withLock({ $0.machine.seek == nil }) { await Task.yield() }
        for _ in 0..<periods { await room.step() }
        player.sourceClock = toShared ? room.groupClock : nil
        await room.step(seconds: 0.5)
        #expect(await seek.value)
        let place = try #require(arrived.value)
        #expect(place >= 20 && place < 20.6)
    }

    @Test func `a newer seek ends the older with false`() async throws {
        let room = VirtualRoom()
        let library = Library()
        let player = try await room.makeReadyPlayer(library.item())
        library.state.withLock { $0.isBlocked = true }
        room.waitsForFeeds = false
        async let first = player.seek(to: Self.seconds(1))
        await room.step { library.state.withLock { $0.seeks.contains(8_000 - 256) } }
        async let second = player.seek(to: Self.seconds(2))
        await room.step { library.state.withLock { $0.seeks.contains(16_000 - 256) } }
        #expect(await first == false)
        library.state.withLock { $0.isBlocked = false }
        room.waitsForFeeds = true
        #expect(await second == true)
        #expect(player.currentTime() == Self.seconds(2))
    }

    @Test(arguments: 0..<12)
    func `of seeks at once exactly the last finishes`(round: Int) async throws {
        let room = VirtualRoom()
        let library = Library()
        let player = try await room.makeReadyPlayer(library.item())
        if round % 2 == 1 {
            player.play()
            await room.step(seconds: 0.3)
        }
        // None arrives before all have been asked for, however slowly their tasks begin.
        library.state.withLock { $0.isBlocked = true }
        room.waitsForFeeds = false
        let results = try await room.during {
            await withTaskGroup(of: (Int, Bool).self) { group in
                for n in 1...5 {
                    group.addTask {
                        (n, await player.seek(to: MediaTime(value: Int64(n), timescale: 1)))
                    }
                }
                var (finished, lost): ([Int], Int) = ([], 0)
                for await (n, isFinished) in group {
                    if isFinished { finished.append(n) } else { lost += 1 }
                    if lost == 4 { library.state.withLock { $0.isBlocked = false } }
                }
                return finished
            }
        }
        room.waitsForFeeds = true
        #expect(results.count == 1)
        if round % 2 == 0 {
            #expect(player.currentTime() == Self.seconds(Double(try #require(results.first))))
        }
        player.pause()
        await room.step(seconds: 1.5)
        // What the lost seeks had taken has been given back.
        #expect(room.freeVoices >= OutputPort.voiceLimit - 1)
    }

    @Test func `a preroll fills without starting`() async throws {
        let room = VirtualRoom()
        let item = Library().item(at: "http://server/test.wav")
        let player = try await room.makeReadyPlayer(item, shared: true)
        #expect(item.loadedTimeRanges.isEmpty)
        #expect(try await room.during { try await player.preroll(atRate: 1) })
        await room.step(seconds: 0.5)
        #expect(player.rate == 0)
        #expect(player.currentTime() == .zero)
        #expect(room.heard.allSatisfy { $0.value == 0 })
        let loaded = try #require(item.loadedTimeRanges.first)
        #expect(loaded.start == .zero && loaded.duration >= Self.seconds(0.5))
        #expect(item.seekableTimeRanges == [TimeRange(start: .zero, duration: Self.seconds(8))])
    }

    /// What a preroll that cannot finish returns when `interrupt` happens.
    func interrupted(
        _ interrupt: @escaping @Sendable (Player) async throws -> Void
    ) async throws -> Bool {
        let room = VirtualRoom()
        let library = Library()
        let player = try await room.makeReadyPlayer(library.item(), shared: true)
        library.state.withLock { $0.isBlocked = true }
        room.waitsForFeeds = false
        async let filled = player.preroll(atRate: 1)
        await room.step { library.state.withLock { $0.readsWaiting > 0 } }
        async let interruption: Void = interrupt(player)
        let result = try await filled
        library.state.withLock { $0.isBlocked = false }
        room.waitsForFeeds = true
        try await interruption
        return result
    }

    @Test func `a preroll is ended by its cancellation`() async throws {
        #expect(try await interrupted { $0.cancelPendingPrerolls() } == false)
    }

    @Test func `a preroll is ended by a seek`() async throws {
        #expect(try await interrupted { await $0.seek(to: .zero) } == false)
    }

    @Test func `a preroll is ended by a newer one`() async throws {
        #expect(try await interrupted { _ = try await $0.preroll(atRate: 1) } == false)
    }

    @Test func `a preroll is ended by a rate change`() async throws {
        #expect(try await interrupted { try $0.setRate(1, time: .zero) } == false)
    }

    @Test func `a preroll is ended by another item`() async throws {
        #expect(try await interrupted { try $0.replaceCurrentItem(with: nil) } == false)
    }

    @Test func `a preroll is refused without item, before readiness and while playing`()
        async throws
    {
        let room = VirtualRoom()
        let player = room.makePlayer(shared: true)
        func code(_ rate: Double, _ time: MediaTime = .invalid) async -> PlaybackError.Code? {
            do throws(PlaybackError) {
                _ = try await player.preroll(atRate: rate, time: time)
                return nil
            } catch { return error.code }
        }
        #expect(await code(1) == .noItem)
        let library = Library()
        try player.replaceCurrentItem(with: library.item())
        await room.step { player.status == .readyToPlay }
        #expect(await code(0) == .rateNotSupported)
        #expect(await code(33) == .rateNotSupported)
        #expect(await code(1, .indefinite) == .timeNotNumeric)
        try player.playImmediately(atRate: 1)
        #expect(await code(1) == .alreadyPlaying)
        await room.step(seconds: 0.5)
        library.state.withLock { $0.failsAt = 15_000 }
        #expect(await code(1, Self.seconds(2)) == .mediaFailed)
        // What plays is not disturbed by a preroll that failed.
        #expect(player.rate == 1 && player.error == nil)
    }
}
