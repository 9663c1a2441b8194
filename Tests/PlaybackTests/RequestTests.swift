import Glibc
import Synchronization
import Testing
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

@testable import TuttiPlayback

/// What was asked for is what happens: seeks through pauses, ends, errors, lost cards, volumes.
struct RequestTests {
    static func seconds(_ n: Double) -> MediaTime { MediaTime(seconds: n) }

    /// What a seek came to that was held up.
    private struct Sought {
        var player: Player
        var room: VirtualRoom
        var arrived: Bool
        /// When its medium was no longer held up: it cannot have arrived before.
        var freed: LocalInstant
    }

    /// Begins a seek that cannot finish, does something, and lets it finish.
    private func seek(
        to time: MediaTime, meanwhile: (Player) throws -> Void
    ) async throws -> Sought {
        let room = VirtualRoom()
        let library = Library()
        let player = try await room.makeReadyPlayer(library.item(seconds: 40))
        player.play()
        await room.step(seconds: 1)
        library.state.withLock { $0.isBlocked = true }
        room.waitsForFeeds = false
        let seek = Task { await player.seek(to: time) }
        await isReading(library)
        try meanwhile(player)
        await room.step(seconds: 0.2)
        let freed = room.now
        library.state.withLock { $0.isBlocked = false }
        room.waitsForFeeds = true
        let arrived = try await room.during { await seek.value }
        return Sought(player: player, room: room, arrived: arrived, freed: freed)
    }

    /// Somebody waits for the medium. Time stands still meanwhile, however busy the machine is.
    private func isReading(_ library: Library) async {
        while library.state.withLock({ $0.readsWaiting == 0 }) { await Task.yield() }
    }

    @Test func `a seek under way survives a pause`() async throws {
        let sought = try await seek(to: Self.seconds(30)) { $0.pause() }
        let (player, room) = (sought.player, sought.room)
        #expect(sought.arrived)
        #expect(player.rate == 0 && player.currentTime() == Self.seconds(30))
        let begin = room.now
        player.play()
        await room.step(seconds: 1)
        let heard = room.frames(from: begin, to: room.now).filter { $0.value > 0.1 }
        #expect(abs(try #require(heard.dropFirst(60).first).frame - 240_000) < 100)
    }

    @Test func `a seek under way survives another rate`() async throws {
        let sought = try await seek(to: Self.seconds(30)) { try $0.setRate(1.5) }
        let (player, room) = (sought.player, sought.room)
        #expect(sought.arrived)
        #expect(player.rate == 1.5)
        let time = player.currentTime().seconds
        // The task is told when it has arrived; time goes on until the task runs.
        #expect(time > 30 - 1e-6 && time < 30 + 1.5 * (room.now - sought.freed).seconds)
        await room.step(seconds: 1)
        #expect(abs(player.currentTime().seconds - time - 1.5) < 0.001)
    }

    @Test func `after a seek while playing the time is the target`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item())
        player.play()
        await room.step(seconds: 1)
        for target in [5.0, 2, 7, 0.5] {
            let begin = room.now
            #expect(try await room.during { await player.seek(to: Self.seconds(target)) })
            let ahead = player.currentTime().seconds - target
            // It is told when it has arrived, and time goes on until the task runs. A seek takes a
            // while itself, so it is less than has passed since it was asked for.
            #expect(ahead > -1e-6 && ahead < (room.now - begin).seconds)
            // And that is what is heard, once the fade between the two places is over.
            await room.step(seconds: 0.1)
            let heard = try #require(room.frames(from: begin, to: room.now).last)
            let due = heard.frame + (room.now - heard.instant).seconds * 8_000
            #expect(abs(player.currentTime().seconds * 8_000 - due) < 8)
        }
    }

    @Test func `a seek ends with its task and what plays goes on`() async throws {
        let room = VirtualRoom()
        let library = Library()
        let player = try await room.makeReadyPlayer(library.item(seconds: 40))
        player.play()
        await room.step(seconds: 1)
        library.state.withLock { $0.isBlocked = true }
        room.waitsForFeeds = false
        let seek = Task { await player.seek(to: Self.seconds(30)) }
        await isReading(library)
        seek.cancel()
        #expect(await seek.value == false)
        library.state.withLock { $0.isBlocked = false }
        room.waitsForFeeds = true
        await room.step(seconds: 1)
        #expect(player.rate == 1 && player.currentTime().seconds < 4)
    }

    @Test func `loading ends with its task and may be asked for again`() async throws {
        let isBlocked = Flag()
        let gate = Mutex(true)
        let library = Library()
        let inner = library.opener(sampleRate: 8_000, frameCount: 8_000)
        let asset = Asset(
            location: "slow.wav",
            opener: MediaOpener { location throws(MediaError) in
                isBlocked.set()
                while gate.withLock({ $0 }) { sched_yield() }
                return try inner.open(location)
            })
        let load = Task { try await asset.load(.duration) }
        while !isBlocked.isSet { await Task.yield() }
        load.cancel()
        do {
            _ = try await load.value
            Issue.record("nothing can have been loaded")
        } catch { #expect((error as? PlaybackError)?.code == .cancelled) }
        gate.withLock { $0 = false }
        #expect(try await asset.load(.duration) == MediaTime(value: 1, timescale: 1))
        #expect(library.state.withLock { $0.opened } == 1)
    }

    @Test func `play at the end does nothing`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 1))
        player.play()
        await room.step { player.rate == 0 }
        await room.step(seconds: 0.2)
        let notices = Notices(player)
        player.play()
        try player.setRate(1.5)
        await room.step(seconds: 0.3)
        #expect(player.rate == 0 && player.currentTime() == Self.seconds(1))
        #expect(await notices.drain().isEmpty)
    }

    @Test func `what is decoded before an error is heard, and all say the same`() async throws {
        let room = VirtualRoom()
        let library = Library()
        library.state.withLock { $0.failsAt = 14_000 }
        let player = try await room.makeReadyPlayer(library.item())
        let notices = Notices(player)
        player.play()
        await room.step(seconds: 1)
        // Long decoded up to the error, and not yet there.
        #expect(player.rate == 1 && player.error == nil && player.status == .readyToPlay)
        await room.step { player.rate == 0 }
        #expect(player.status == .failed && player.currentItem?.status == .failed)
        #expect(player.error?.code == .mediaFailed)
        #expect(abs(player.currentTime().seconds * 8_000 - 14_000) < 2)
        // As many frames as were read, the last 5 ms of them faded out, and each in its place.
        let heard = room.heard.filter { $0.value > TestSource.base / 2 }
        #expect(heard.count > 14_000 - 40 - 5 && heard.count < 14_000 + 5)
        let late = try #require(heard.dropFirst(13_800).first)
        #expect(abs(TestSource.frame(ofValue: late.value) - 13_800) < 5)
        let said = await notices.drain()
        #expect(said.contains("status failed") && said.contains("failed mediaFailed"))
    }

    @Test func `a card that is lost is a notice and a state, and so is its return`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item())
        player.actionAtOutputLoss = .wait
        let notices = Notices(player)
        player.play()
        await room.step { player.timeControlStatus == .playing }
        room.engine.port.setHasCard(false)
        #expect(player.timeControlStatus == .waitingToPlayAtSpecifiedRate)
        #expect(player.reasonForWaitingToPlay == .outputUnavailable)
        #expect(player.rate == 1 && !player.isOutputAvailable)
        // It is told on another thread than the output's.
        func untilTold(_ hasCard: Bool) async {
            while player.state.withLock({ $0.observed?.hasCard }) != hasCard { await Task.yield() }
        }
        await untilTold(false)
        room.engine.port.setHasCard(true)
        #expect(player.timeControlStatus == .playing)
        await untilTold(true)
        let said = await notices.drain()
        #expect(said.filter { $0.hasPrefix("card") } == ["card false", "card true"])
    }

    @Test func `a card that is lost pauses where the sound ended, and playing goes on there`()
        async throws
    {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item())
        let notices = Notices(player)
        player.play()
        await room.step { player.currentTime().seconds > 1 }
        room.engine.port.setHasCard(false)
        while player.rate != 0 { await Task.yield() }
        let stopped = player.currentTime()
        await room.loseCard(seconds: 1)
        // The new card is probed, which takes a tenth of a second.
        await room.step(seconds: 1)
        #expect(player.currentTime() == stopped && player.timeControlStatus == .paused)
        let before = room.heard.count
        player.play()
        await room.step { player.currentTime().seconds > stopped.seconds + 1 }
        // The first 15 ms fade in.
        let next = room.heard[before...].drop { $0.value < TestSource.base / 10 }.dropFirst(160)
        let frame = TestSource.frame(ofValue: try #require(next.first).value)
        #expect(abs(frame - 160 - stopped.seconds * 8_000) < 8_000 / 50)
        #expect(await notices.drain().contains("rate 0.0 audioSessionInterrupted"))
    }

    @Test func `playing immediately with nothing buffered waits for the first frames`() async throws
    {
        let room = VirtualRoom()
        let library = Library()
        let player = try await room.makeReadyPlayer(library.item(), shared: true)
        library.state.withLock { $0.isBlocked = true }
        room.waitsForFeeds = false
        try player.playImmediately(atRate: 1)
        await room.step(seconds: 1)
        #expect(player.timeControlStatus == .waitingToPlayAtSpecifiedRate)
        #expect(player.currentTime() == .zero)
        library.state.withLock { $0.isBlocked = false }
        room.waitsForFeeds = true
        let begin = room.now
        await room.step(seconds: 0.5)
        let heard = room.frames(from: begin, to: room.now).filter { $0.value > TestSource.base / 2 }
        // From the very beginning: behind the ringing of the edge, as many frames on as were heard.
        #expect(abs(try #require(heard.dropFirst(100).first).frame - 100) < 5)
    }

    @Test func `eight players on one output sound at once, each as loud as it is set`() async throws
    {
        let room = VirtualRoom()
        var players: [Player] = []
        for n in 0..<8 {
            let player = try await room.makeReadyPlayer(Library().item(), shared: true)
            player.volume = n == 3 ? 0.5 : 1
            player.isMuted = n == 5
            #expect(try await room.during { try await player.preroll(atRate: 1) })
            players.append(player)
        }
        let host = room.groupNow + .milliseconds(200)
        for player in players { try player.setRate(1, time: .zero, atHostTime: host) }
        await room.step(seconds: 1)
        func loudness() -> Double {
            guard let last = room.heard.last else { return 0 }
            let frame = (room.clock.load().map(last.instant) - host).seconds * 8_000
            let one = Double(TestSource.base) + frame * Double(TestSource.step)
            return Double(last.value) / one
        }
        // Six in full, one by half, one muted.
        #expect(abs(loudness() - 6.5) < 0.01)
        players[0].isMuted = true
        players[1].volume = 0.25
        await room.step(seconds: 0.3)
        #expect(abs(loudness() - 4.75) < 0.01)
        // The output has a volume of its own.
        room.engine.port.setGain(0.5)
        await room.step(seconds: 0.3)
        #expect(abs(loudness() - 2.375) < 0.01)
    }

    @Test func `an item is opened once, however it is played`() async throws {
        let room = VirtualRoom()
        let library = Library()
        let player = try await room.makeReadyPlayer(library.item())
        player.play()
        await room.step(seconds: 0.5)
        for target in [5.0, 1, 6] {
            #expect(try await room.during { await player.seek(to: Self.seconds(target)) })
            await room.step(seconds: 0.2)
        }
        try player.setRate(1.5)
        await room.step(seconds: 0.5)
        player.pause()
        #expect(try await room.during { await player.seek(to: .zero) })
        #expect(library.state.withLock { $0.opened } == 1)
        // What was played holds nothing open.
        let item = player.currentItem
        try player.replaceCurrentItem(with: nil)
        await room.step { library.state.withLock { $0.living } == 0 }
        withExtendedLifetime(item) {}
    }

    @Test func `an item whose player is gone holds nothing open`() async throws {
        let room = VirtualRoom()
        let library = Library()
        let item = library.item()
        var player: Player? = try await room.makeReadyPlayer(item)
        player?.play()
        await room.step(seconds: 0.5)
        #expect(library.state.withLock { $0.living } == 1)
        player = nil
        await room.step { library.state.withLock { $0.living } == 0 }
        withExtendedLifetime(item) {}
    }

    @Test func `scrubbing a slow medium takes no voices and ends at the last place`() async throws {
        let room = VirtualRoom()
        let library = Library()
        let player = try await room.makeReadyPlayer(library.item(seconds: 40))
        player.play()
        await room.step(seconds: 1)
        library.state.withLock { $0.isBlocked = true }
        room.waitsForFeeds = false
        for n in 1...30 {
            let before = player.state.withLock { $0.machine.seek?.id }
            Task { await player.seek(to: Self.seconds(Double(n))) }
            // In their order, whenever their tasks run.
            while player.state.withLock({ $0.machine.seek?.id == before }) { await Task.yield() }
            await room.step(seconds: 0.1)
        }
        #expect(room.freeVoices >= OutputPort.voiceLimit - 2)
        library.state.withLock { $0.isBlocked = false }
        room.waitsForFeeds = true
        #expect(try await room.during { await player.seek(to: Self.seconds(35)) })
        #expect(player.error == nil && player.rate == 1)
        #expect(library.state.withLock { $0.opened } <= SourcePool.most)
    }

    /// Two threads that give and take: whoever has an item as its current one has claimed it.
    @Test func `one item never has two players`() async throws {
        let room = VirtualRoom()
        let item = Library().item()
        for _ in 0..<200 {
            let players = [Player(output: room.output), Player(output: room.output)]
            await withTaskGroup(of: Void.self) { group in
                for n in 0..<6 {
                    group.addTask {
                        for round in 0..<10 {
                            let player = players[n % 2]
                            try? player.replaceCurrentItem(with: (n + round) % 3 == 0 ? nil : item)
                        }
                    }
                }
            }
            #expect(players.filter { $0.currentItem === item }.count <= 1)
        }
    }
}
