import Synchronization
import Testing
import TuttiChance
import TuttiPlayout
import TuttiTiming

@testable import TuttiPlayback

/// Items one after the other.
@Suite(.timeLimit(.minutes(2))) struct QueueTests {
    static let rate = 8_000

    /// Parts of one ramp, each an item with a library of its own.
    func parts(_ seconds: [Double]) -> [PlayerItem] {
        var offset: Int64 = 0
        return seconds.map { length in
            defer { offset += Int64(length * Double(Self.rate)) }
            return Library(offset: offset).item(seconds: length)
        }
    }

    /// What left the card, from the first sound to the last, as frames of the whole.
    private func heard(in room: VirtualRoom) -> [(frame: Double, value: Float)] {
        let all = room.heard
        guard let first = all.firstIndex(where: { $0.value > 0.2 }),
            let last = all.lastIndex(where: { $0.value > 0.2 })
        else { return [] }
        return all[first...last].map { (TestSource.frame(ofValue: $0.value), $0.value) }
    }

    /// That the whole was heard at one pace: nothing missing, repeated, added or out of place.
    func expectWhole(
        _ seconds: Double, rate: Double, in room: VirtualRoom,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        // What the resampler leaves over at either end is not looked at.
        let sound = Array(heard(in: room).dropFirst(100).dropLast(100))
        let expected = seconds * Double(Self.rate) / rate - 200
        #expect(
            abs(Double(sound.count) - expected) < expected * 2e-4 + 3,
            "\(sound.count) of \(expected) frames", sourceLocation: sourceLocation)
        guard let first = sound.first, let last = sound.last, sound.count > 1 else { return }
        // A frame that is missing is silence, one too many is twice as loud: a quarter of full scale.
        let pace = (last.frame - first.frame) / Double(sound.count - 1)
        #expect(abs(pace - rate) < 3e-4, sourceLocation: sourceLocation)
        var worst = 0.0
        for (index, sample) in sound.enumerated() {
            worst = max(worst, abs(sample.frame - first.frame - pace * Double(index)))
        }
        // A step of half a frame; the filter's own ripple is some frames of this shallow ramp.
        #expect(worst < 40, "\(worst) frames out of place", sourceLocation: sourceLocation)
        // Away from the joins, where nothing ripples: no step from one item to the next.
        func mean(around place: Int) -> Double {
            let span = max(0, place - 150)..<min(sound.count, place + 150)
            let offsets = span.map { sound[$0].frame - first.frame - pace * Double($0) }
            return offsets.reduce(0, +) / Double(span.count)
        }
        let steps = stride(from: 300, to: sound.count - 300, by: 100).map(mean)
        let range = (steps.max() ?? 0) - (steps.min() ?? 0)
        #expect(range < 1, "\(range) frames between places", sourceLocation: sourceLocation)
    }

    @Test(arguments: [1, 1.25, 0.5], [false, true])
    func `a recording in parts is heard as the whole`(rate: Double, isShared: Bool) async throws {
        let room = VirtualRoom()
        let items = parts([1.5, 0.7, 2.1])
        let player = try room.makeQueue(items, shared: isShared)
        let ends = Mutex<[ObjectIdentifier]>([])
        let notices = player.notices()
        let task = Task {
            for await notice in notices {
                if case .didPlayToEnd(let item) = notice {
                    ends.withLock { $0.append(ObjectIdentifier(item)) }
                }
            }
        }
        try await items[0].ready()
        await room.step(seconds: 1)
        if isShared {
            try player.setRate(
                rate, time: .zero, atHostTime: room.groupNow + .milliseconds(400))
        } else {
            try player.setRate(rate)
        }
        await room.step { player.currentItem == nil }
        await room.step(seconds: 0.5)
        #expect(ends.withLock { $0 } == items.map { ObjectIdentifier($0) })
        #expect(player.items().isEmpty && player.rate == 0)
        expectWhole(4.3, rate: rate, in: room)
        task.cancel()
    }

    /// Shorter than what the output holds.
    /// A busy machine wakes nobody on time.
    @Test func `between a join and its alarm, all that is asked is of the next item`() async throws
    {
        let room = VirtualRoom()
        let items = [Library().item(seconds: 2), Library(sign: -1).item(seconds: 4)]
        let player = try room.makeQueue(items)
        player.play()
        await room.step { player.currentTime() > MediaTime(seconds: 1.5) }
        room.lead.withLock { $0 = .seconds(1) }
        #expect(player.currentItem === items[1])
        #expect(player.items().map(ObjectIdentifier.init) == [ObjectIdentifier(items[1])])
        #expect(player.currentTime() < MediaTime(seconds: 1))
        #expect(items[0].currentTime() == .zero && items[0].timebase.rate == 0)
        #expect(items[1].timebase.rate == 1)
        // The same item again.
        try player.replaceCurrentItem(with: items[1])
    }

    @Test func `items of a few hundredths of a second leave no hole`() async throws {
        let room = VirtualRoom()
        // The first is longer than what is decoded ahead: nothing happens when the others come near.
        let items = parts([15] + Array(repeating: 0.05, count: 20) + [1])
        let player = try room.makeQueue(items)
        try await items[0].ready()
        await room.step(seconds: 1)
        player.play()
        await room.step { player.currentItem == nil }
        await room.step(seconds: 0.5)
        expectWhole(17, rate: 1, in: room)
    }

    @Test func `a join survives a pause, another rate and a seek just before it`() async throws {
        let room = VirtualRoom()
        let items = parts([4, 4])
        let player = try room.makeQueue(items)
        try await items[0].ready()
        await room.step(seconds: 1)
        player.play()
        await room.step { player.currentTime().seconds > 3 }
        player.pause()
        await room.step(seconds: 1)
        try player.setRate(2)
        await room.step { player.currentTime().seconds > 3.3 }
        try player.setRate(1)
        _ = try await room.during { await player.seek(to: MediaTime(value: 35, timescale: 10)) }
        let before = room.heard.count
        await room.step { player.currentItem === items[1] && player.currentTime().seconds > 1 }
        // From the seek on the whole is heard at one pace.
        let sound = room.heard[(before + 200)...].map { TestSource.frame(ofValue: $0.value) }
        let pace = (sound[sound.count - 1] - sound[0]) / Double(sound.count - 1)
        #expect(abs(pace - 1) < 3e-4)
        let worst = sound.enumerated().map { abs($1 - sound[0] - pace * Double($0)) }.max() ?? 0
        #expect(worst < 40)
    }

    /// What follows does not begin while the item before it waits for its bytes, and begins at its
    /// beginning afterwards.
    @Test func `a stall before a join delays the join`() async throws {
        let room = VirtualRoom()
        let (first, second) = (Library(), Library(offset: 20 * 8_000))
        let items = [first.item(seconds: 20), second.item(seconds: 2)]
        let player = try room.makeQueue(items)
        try await items[0].ready()
        first.state.withLock { $0.blocksAt = 13 * 8_000 }
        await room.step(seconds: 1)
        room.waitsForFeeds = false
        player.play()
        await room.step { player.timeControlStatus == .playing }
        await room.step { player.timeControlStatus == .waitingToPlayAtSpecifiedRate }
        // Longer than the rest of the item.
        await room.step(seconds: 9)
        #expect(player.currentItem === items[0])
        let silent = room.heard.suffix(8_000 * 8).allSatisfy { abs($0.value) < 1e-3 }
        #expect(silent)
        first.state.withLock { $0.blocksAt = nil }
        room.waitsForFeeds = true
        let before = room.heard.count
        await room.step { player.currentItem === items[1] && player.currentTime().seconds > 1 }
        let sound = room.heard[before...].drop { $0.value < 0.2 }.dropFirst(100)
            .map { TestSource.frame(ofValue: $0.value) }
        try #require(sound.count > 1)
        let pace = (sound[sound.count - 1] - sound[0]) / Double(sound.count - 1)
        #expect(abs(pace - 1) < 3e-4)
        let worst = sound.enumerated().map { abs($1 - sound[0] - pace * Double($0)) }.max() ?? 0
        #expect(worst < 40)
    }

    /// Items that play by a shared clock from their beginning on, 0.3 s from now.
    func sharedQueue(
        _ seconds: [Double]
    ) async throws -> (VirtualRoom, QueuePlayer, [PlayerItem]) {
        let room = VirtualRoom()
        let items = parts(seconds)
        let player = try room.makeQueue(items, shared: true)
        try await items[0].ready()
        await room.step(seconds: 1)
        try player.setRate(1, time: .zero, atHostTime: room.groupNow + .milliseconds(300))
        return (room, player, items)
    }

    @Test func `what was prerolled of an item is not played as the next`() async throws {
        let (room, player, items) = try await sharedQueue([2, 8])
        await room.step { player.currentTime().seconds > 0.2 }
        let place = MediaTime(value: 1, timescale: 1)
        #expect(try await room.during { try await player.preroll(atRate: 1, time: place) })
        await room.step { player.currentItem === items[1] }
        let begin = room.groupNow + .milliseconds(500)
        try player.setRate(1, time: place, atHostTime: begin)
        await room.step(seconds: 2)
        let sound = room.frames(from: room.local(begin + .milliseconds(100)), to: room.now)
        #expect(!sound.isEmpty)
        #expect(
            sound.allSatisfy { $0.frame > 3 * 8_000 }, "of the second item, which is behind 2 s")
    }

    @Test func `a line behind the end of an item is refused`() async throws {
        let (room, player, items) = try await sharedQueue([2, 8])
        await room.step { player.currentTime().seconds > 1 }
        let error = #expect(throws: PlaybackError.self) {
            try player.setRate(0, atHostTime: room.groupNow + .seconds(3))
        }
        #expect(error?.code == .itemEndsBefore)
        await room.step { player.currentItem === items[1] }
        try player.setRate(0, atHostTime: room.groupNow + .seconds(1))
        await room.step(seconds: 2)
        #expect(player.rate == 0)
    }

    @Test func `what follows an item that was taken away can be advanced to`() async throws {
        let room = VirtualRoom()
        let items = parts([2, 2])
        let player = try room.makeQueue(items)
        try player.replaceCurrentItem(with: nil)
        #expect(player.currentItem == nil && player.items().count == 1)
        player.advanceToNextItem()
        #expect(player.currentItem === items[1])
    }

    @Test func `what cannot be played is passed over and said`() async throws {
        let room = VirtualRoom()
        let broken = Library()
        broken.state.withLock {
            $0.refuses = MediaError(
                .notMedia, operation: "open", subject: "b.wav", reason: "is no sound")
        }
        let whole = parts([1, 1])
        let player = try room.makeQueue(
            [whole[0], broken.item(), broken.item(), whole[1]])
        let failures = Mutex(0)
        let notices = player.notices()
        let task = Task {
            for await notice in notices {
                if case .failedToPlayToEnd = notice { failures.withLock { $0 += 1 } }
            }
        }
        try await whole[0].ready()
        await room.step(seconds: 1)
        player.play()
        await room.step { player.currentItem == nil }
        await room.step { failures.withLock { $0 } == 2 }
        task.cancel()
    }

    @Test func `the queue is what was done to it`() async throws {
        let room = VirtualRoom()
        let items = (0..<5).map { _ in Library().item(seconds: 30) }
        let player = try room.makeQueue(Array(items[..<3]))
        func places() -> [Int?] {
            player.items().map { item in items.firstIndex { $0 === item } }
        }
        #expect(places() == [0, 1, 2])
        #expect(player.currentItem === items[0])
        #expect(!player.canInsert(items[1], after: nil) && player.canInsert(items[3], after: nil))
        #expect(!player.canInsert(items[3], after: items[4]))
        try player.insert(items[3], after: items[0])
        try player.insert(items[4], after: nil)
        #expect(places() == [0, 3, 1, 2, 4])
        #expect(throws: PlaybackError.self) { try player.insert(items[2], after: nil) }
        player.remove(items[1])
        #expect(places() == [0, 3, 2, 4])
        player.remove(items[0])
        #expect(places() == [3, 2, 4])
        player.advanceToNextItem()
        #expect(places() == [2, 4])
        // What has left may come back.
        try player.insert(items[0], after: items[2])
        #expect(places() == [2, 0, 4])
        try player.replaceCurrentItem(with: items[1])
        #expect(places() == [1, 0, 4])
        player.removeAllItems()
        #expect(places() == [] && player.currentItem == nil)
        let other = try room.makeQueue([items[3]])
        #expect(throws: PlaybackError.self) { try player.insert(items[3], after: nil) }
        #expect(other.items().count == 1)
    }

    @Test func `the action at an item's end holds for a queue`() async throws {
        let room = VirtualRoom()
        let items = parts([1, 1])
        let player = try room.makeQueue(items)
        player.actionAtItemEnd = .pause
        try await items[0].ready()
        await room.step(seconds: 1)
        player.play()
        await room.step { player.rate == 0 }
        await room.step(seconds: 1)
        #expect(player.currentItem === items[0] && player.currentTime().seconds == 1)
        player.actionAtItemEnd = .advance
        player.advanceToNextItem()
        player.play()
        await room.step { player.currentItem == nil }
    }

    /// Hundreds of operations a second, at any moment; in the end nothing is left over.
    @Test(arguments: 0..<12)
    func `whatever is done to a queue while it plays`(seed: UInt64) async throws {
        var generator = SplitMix64(seed: seed)
        let room = VirtualRoom()
        let library = Library()
        var player: QueuePlayer? = try room.makeQueue([], shared: seed % 3 == 0)
        func chance(_ count: Int) -> Int { Int(generator.next() % UInt64(count)) }
        do {
            let player = try #require(player)
            for _ in 0..<300 {
                let items = player.items()
                let some = items.isEmpty ? nil : items[chance(items.count)]
                switch chance(13) {
                case 0, 1, 2:
                    try player.insert(
                        library.item(seconds: 0.1 + Double(chance(30)) / 10), after: some)
                case 3: if let some { player.remove(some) }
                case 4: player.advanceToNextItem()
                case 5: player.play()
                case 6: player.pause()
                case 7: try player.setRate([0.5, 1, 1.5, 2][chance(4)])
                case 8:
                    let time = MediaTime(seconds: Double(chance(40)) / 10)
                    Task { [weak player] in await player?.seek(to: time) }
                case 9: if chance(8) == 0 { player.removeAllItems() }
                case 10:
                    try player.replaceCurrentItem(with: chance(4) == 0 ? nil : library.item())
                case 11: player.actionAtItemEnd = [.advance, .advance, .pause, .none][chance(4)]
                default: await room.step(seconds: Double(chance(60)) / 100)
                }
            }
            // It still does what it is asked for.
            player.removeAllItems()
            player.actionAtItemEnd = .advance
            let items = parts([1, 1])
            for item in items { try player.insert(item, after: nil) }
            player.automaticallyWaitsToMinimizeStalling = true
            player.play()
            await room.step { player.currentItem === items[1] }
            await room.step { player.currentItem == nil }
        }
        weak let watched = player
        player = nil
        await room.step { watched == nil && library.state.withLock { $0.living } == 0 }
        await room.step { room.freeVoices == OutputPort.voiceLimit }
    }
}
