import class Foundation.Thread
import Glibc
import Observation
import Synchronization
import Testing
import TuttiChance
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

@testable import TuttiPlayback

/// Tasks of their own that are counted until they end.
private final class Asked: Sendable {
    private let unanswered = Atomic(0)
    var areAllAnswered: Bool { unanswered.load(ordering: .acquiring) == 0 }

    func ask(_ operation: @escaping @Sendable () async -> Void) {
        unanswered.add(1, ordering: .relaxed)
        Task {
            await operation()
            unanswered.subtract(1, ordering: .releasing)
        }
    }
}

/// What nobody should do and everybody does.
@Suite(.timeLimit(.minutes(2))) struct AbuseTests {
    private static func seconds(_ value: Double) -> MediaTime { MediaTime(seconds: value) }

    /// Real threads, and no order among them; in the end the player still plays.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `threads that hammer one player leave it as it was`(seed: UInt64) async throws {
        let room = VirtualRoom()
        let library = Library()
        let player = try room.makeQueue([library.item(seconds: 3), library.item(seconds: 3)])
        let stop = Flag()
        let asked = Asked()
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<4 {
                group.addTask {
                    var random = SplitMix64(seed: seed << 8 | UInt64(thread))
                    for _ in 0..<400 {
                        Self.doSomething(to: player, library, &random, asked)
                        if random.below(20) == 0 { await Task.yield() }
                    }
                }
            }
            group.addTask { while !stop.isSet { await room.step() } }
            for _ in 0..<4 { await group.next() }
            stop.set()
        }
        player.removeAllItems()
        // A task that has not had its turn yet would seek in the item below.
        await room.step { asked.areAllAnswered }
        player.actionAtItemEnd = .advance
        player.volume = 1
        player.automaticallyWaitsToMinimizeStalling = true
        let last = Library().item(seconds: 2)
        try player.insert(last, after: nil)
        try player.setRate(1)
        await room.step { player.currentItem === last && player.currentTime().seconds > 1 }
        #expect((room.heard.last?.value ?? 0) > 0.2)
        await room.step { player.currentItem == nil }
        await room.step { library.state.withLock { $0.living } == 0 }
        await room.step { room.freeVoices == OutputPort.voiceLimit }
    }

    /// Who is cancelled while it is told something: each of the two threads had what the other
    /// waited for.
    @Test func `who stops listening while it is told something holds up nobody`() async throws {
        let room = VirtualRoom()
        let player = try room.makeQueue([Library().item(seconds: 60)])
        let stop = Flag()
        await withTaskGroup(of: Void.self) { group in
            for rate in [1.0, 2] {
                group.addTask {
                    while !stop.isSet {
                        try? player.setRate(rate)
                        player.pause()
                        await Task.yield()
                    }
                }
            }
            for round in 0..<3_000 {
                let listeners = [
                    Task { for await _ in player.notices() {} },
                    Task { for await _ in player.periodicTimes(every: Self.seconds(0.1)) {} },
                    Task { for await _ in player.timedText() {} },
                ]
                for _ in 0..<round % 4 { await Task.yield() }
                for listener in listeners { listener.cancel() }
            }
            stop.set()
        }
        // What has left is forgotten.
        await room.step {
            player.state.withLock { $0.observers.isEmpty && $0.timeObservers.isEmpty }
        }
    }

    private static func doSomething(
        to player: QueuePlayer, _ library: Library, _ random: inout SplitMix64,
        _ asked: Asked
    ) {
        let item = player.currentItem
        switch random.below(16) {
        case 0: player.play()
        case 1: player.pause()
        case 2: try? player.setRate([-2, -1, 0.5, 1, 2, 16, 99][Int(random.below(7))])
        case 3:
            let time = seconds(Double(random.below(35)) / 10)
            asked.ask { [weak player] in await player?.seek(to: time) }
        case 4: player.advanceToNextItem()
        case 5: try? player.insert(library.item(seconds: 1), after: player.items().last)
        case 6: if let item { player.remove(item) }
        case 7: try? player.replaceCurrentItem(with: library.item(seconds: 2))
        case 8: player.volume = Float(random.below(3)) / 2
        case 9: player.cancelPendingSeeks()
        case 10:
            item?.audioTimePitchAlgorithm =
                [.varispeed, .timeDomain, .spectral][
                    Int(random.below(3))]
        case 11: item?.forwardPlaybackEndTime = random.below(2) == 0 ? .invalid : seconds(1)
        case 12:
            player.automaticallyWaitsToMinimizeStalling = random.below(2) == 0
            try? player.setRate(1, time: .zero, atHostTime: player.hostTime())
        case 13: asked.ask { [weak player] in _ = try? await player?.preroll(atRate: 1) }
        case 14: player.actionAtItemEnd = [.advance, .pause, .none][Int(random.below(3))]
        default:
            _ = (player.currentTime(), player.status, player.items(), item?.loadedTimeRanges)
        }
    }

    @Test(arguments: ["item", "player", "both"])
    func `what is dropped while it is opened is closed when that is over`(what: String)
        async throws
    {
        let room = VirtualRoom()
        let library = Library()
        let (isOpening, gate) = (Flag(), Flag())
        let inner = library.opener(sampleRate: 8_000, frameCount: 80_000)
        let opener = MediaOpener { location throws(MediaError) in
            isOpening.set()
            while !gate.isSet { sched_yield() }
            return try inner.open(location)
        }
        weak var gone: PlayerItem?
        var kept: Player?
        do {
            let item = PlayerItem(asset: Asset(location: "slow", opener: opener))
            gone = item
            let player = room.makePlayer()
            try player.replaceCurrentItem(with: item)
            player.play()
            let seek = Task { [weak player] in await player?.seek(to: Self.seconds(3)) }
            while !isOpening.isSet { await Task.yield() }
            if what == "item" { try player.replaceCurrentItem(with: nil) }
            if what != "both" { kept = player }
            seek.cancel()
            _ = await seek.value
        }
        if what == "player" { kept = nil }
        gate.set()
        room.waitsForFeeds = false
        await room.step { gone == nil && library.state.withLock { $0.living } == 0 }
        #expect(room.freeVoices == OutputPort.voiceLimit)
        #expect(kept?.currentTime() ?? .zero == .zero)
    }

    @Test func `streams that nobody reads cost playing nothing`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 30))
        let notices = (0..<50).map { _ in player.notices() }
        let times = (0..<50).map { _ in player.periodicTimes(every: Self.seconds(0.01)) }
        let places = player.boundaryTimes((0..<1_000).map { Self.seconds(Double($0) / 100) })
        player.play()
        let begin = room.now
        await room.step { player.timeControlStatus == .playing }
        await room.step(seconds: 3)
        let changes = room.now
        for n in 0..<40 {
            try player.setRate(n % 2 == 0 ? 1.5 : 1)
            await room.step()
        }
        #expect(player.rate == 1 && player.error == nil)
        // Steady at first, then with a dip for each rate.
        let steady = room.frames(from: begin + .milliseconds(300), to: changes)
        let changing = room.frames(from: changes, to: room.now)
        #expect(steady.count > 20_000 && steady.allSatisfy { $0.value > 0.2 })
        #expect(changing.contains { $0.value > 0.2 })
        // The places keep the newest that there is room for.
        var iterator = places.makeAsyncIterator()
        #expect(try #require(await iterator.next()).seconds > 2)
        withExtendedLifetime((notices, times)) {}
    }

    /// Item time is asked for at every frame of a display, whatever else is watched.
    @Test func `item time is as cheap with many places to be told`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 40))
        player.play()
        await room.step(seconds: 0.5)
        func cost() async -> Duration {
            var least = Duration.seconds(1)
            for _ in 0..<20 {
                await room.step()
                least = min(least, ContinuousClock().measure { _ = player.currentTime() })
            }
            return least
        }
        let alone = await cost()
        let places = player.boundaryTimes(
            (0..<10_000).map { Self.seconds(30 + Double($0) / 1_000) })
        let watched = await cost()
        #expect(watched < alone * 20, "\(watched) instead of \(alone)")
        withExtendedLifetime(places) {}
    }

    @Test(arguments: ["seek", "preroll", "ready", "load", "step"])
    func `what is cancelled before it begins ends, and may be asked for again`(what: String)
        async throws
    {
        let room = VirtualRoom()
        let item = SelectionTests.item()
        let player = try await room.makeReadyPlayer(item)
        let fresh = SelectionTests.item()
        let operation: @Sendable () async throws -> Bool = {
            switch what {
            case "seek": return await player.seek(to: Self.seconds(3))
            case "preroll": return try await player.preroll(atRate: 1)
            case "ready":
                try await fresh.ready()
                return true
            case "load": return try await fresh.asset.load(.duration) > .zero
            default: return try await item.step(byCount: 1)
            }
        }
        for _ in 0..<50 {
            let task = Task {
                while !Task.isCancelled { await Task.yield() }
                return try await operation()
            }
            task.cancel()
            let result = await task.result
            switch result {
            case .success(let value): #expect(!value || ["ready", "load"].contains(what))
            case .failure(let error): #expect((error as? PlaybackError)?.code == .cancelled)
            }
        }
        #expect(player.currentTime() == .zero && player.error == nil)
        #expect(try await room.during(operation))
        player.play()
        await room.step(seconds: 0.5)
        #expect(player.timeControlStatus == .playing)
    }

    @Test func `eight players on one output keep to their own rates and ways`() async throws {
        let room = VirtualRoom()
        let rates = [1, 1.5, 0.5, -1, 2, -2, 0.25, 4]
        let algorithms: [TimePitchAlgorithm] = [.varispeed, .timeDomain, .spectral]
        var players: [Player] = []
        for n in rates.indices {
            let item = Library().item(seconds: 30)
            item.audioTimePitchAlgorithm = algorithms[n % 3]
            let player = try await room.makeReadyPlayer(item, shared: true)
            player.volume = 0.1
            let rate = rates[n]
            #expect(
                try await room.during {
                    try await player.preroll(atRate: rate, time: Self.seconds(15))
                })
            players.append(player)
        }
        let host = room.groupNow + .milliseconds(300)
        for (player, rate) in zip(players, rates) {
            try player.setRate(rate, time: Self.seconds(15), atHostTime: host)
        }
        await room.step(seconds: 1.5)
        for (player, rate) in zip(players, rates) {
            let due = 15 + (room.groupNow - host).seconds * rate
            #expect(abs(player.currentTime().seconds - due) < 1e-3)
        }
        #expect(room.engine.port.report.starvedFrames == 0)
        // Eight ramps about their middles, a tenth each: the sum is where the sum of the lines is.
        let last = try #require(room.heard.last)
        let at = (room.clock.load().map(last.instant) - host).seconds
        let due = rates.reduce(0.0) { sum, rate in
            sum + 0.1 * (0.25 + (15 + at * rate) * 8_000 * Double(TestSource.step))
        }
        #expect(abs(Double(last.value) - due) < 0.02 * due, "\(last.value) of \(due)")
    }

    /// Item time is the sum of what was asked for, and what is heard is item time.
    @Test(arguments: [TimePitchAlgorithm.varispeed, .timeDomain])
    func `fifty rates a second neither lose item time nor the sound`(
        algorithm: TimePitchAlgorithm
    ) async throws {
        let room = VirtualRoom()
        let item = Library().item(seconds: 40)
        item.audioTimePitchAlgorithm = algorithm
        let player = try await room.makeReadyPlayer(item)
        player.play()
        await room.step { player.currentTime().seconds > 0.5 }
        let said = NoticeLog(player)
        var (last, begin) = (player.currentTime().seconds, room.now)
        let rates = [1.0, 2, 0.5, 1.25, 4]
        for n in 0..<50 {
            try player.setRate(rates[n % 5])
            for _ in 0..<2 {
                await room.step()
                let time = player.currentTime().seconds
                #expect(time >= last - 1e-6 && time - last < 0.05, "\(last) to \(time)")
                last = time
            }
        }
        try player.setRate(1)
        await room.step(seconds: 0.5)
        #expect(player.timeControlStatus == .playing && said.count("stalled") == 0, "\(said.all)")
        #expect(said.count("jumped") == 0, "\(said.all.filter { $0 == "jumped" }.count) jumps")
        // Item time has not stood still for longer than it takes a rate to be in force.
        let gone = last - 0.5
        #expect(gone > 0.5, "\(gone) s of item time in \((room.now - begin).seconds) s")
        begin = room.now
        await room.step(seconds: 0.3)
        if algorithm == .varispeed {
            let heard = try #require(room.frames(from: begin, to: room.now).last)
            let due = heard.frame / 8_000 + (room.now - heard.instant).seconds
            #expect(abs(player.currentTime().seconds - due) < 1e-3)
        }
        let silent = room.frames(from: begin - .milliseconds(1_800), to: room.now).count {
            $0.value < 0.1
        }
        // Each takes over through two fades of 5 ms, of which half is hardly heard.
        #expect(silent < 50 * 40, "\(silent) silent frames of 14 400")
    }

    /// The player's last reference goes in the loop that reads what it says.
    @Test func `a player may end in its own stream`() async throws {
        let room = VirtualRoom()
        weak var gone: Player?
        let isOver = Flag()
        do {
            let player = try await room.makeReadyPlayer(Library().item(seconds: 1))
            gone = player
            let held = Kept<Player?>(player)
            let notices = player.notices()
            Task {
                for await notice in notices {
                    if case .didPlayToEnd = notice { held.change { $0 = nil } }
                }
                isOver.set()
            }
            player.play()
        }
        await room.step { gone == nil }
        while !isOver.isSet { await Task.yield() }
        await room.step { room.freeVoices == OutputPort.voiceLimit }
    }

    @Test func `three hundred players, one after the other, leave nothing behind`() async throws {
        let room = VirtualRoom()
        let library = Library()
        for round in 0..<300 {
            let player = room.makePlayer()
            try player.replaceCurrentItem(with: library.item(seconds: 1))
            player.play()
            if round % 3 == 0 { await room.step() }
            if round % 5 == 0 { player.pause() }
        }
        await room.step { library.state.withLock { $0.living } == 0 }
        await room.step { room.freeVoices == OutputPort.voiceLimit }
    }

    /// Whoever is told of a change and takes its time holds up who made it, and nobody else.
    @Test func `an observer that blocks does not hold up what plays`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 30))
        let (isCalled, gate, isOver) = (Flag(), Flag(), Flag())
        withObservationTracking {
            _ = player.rate
        } onChange: {
            isCalled.set()
            while !gate.isSet { sched_yield() }
        }
        // A thread of its own: one of the pool's must not be blocked.
        Thread.detachNewThread {
            player.play()
            isOver.set()
        }
        while !isCalled.isSet { await Task.yield() }
        try player.setRate(1)
        await room.step { player.currentTime().seconds > 2 }
        _ = try await room.during { await player.seek(to: Self.seconds(10)) }
        await room.step(seconds: 0.5)
        #expect(player.currentTime().seconds > 10.2 && !isOver.isSet)
        gate.set()
        while !isOver.isSet { await Task.yield() }
        #expect(player.rate == 1)
    }
}
