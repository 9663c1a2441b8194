import Synchronization
import Testing
import TuttiPlayout
import TuttiTiming

@testable import TuttiPlayback

/// Items one after the other, where each follows by a line that somebody else decides too.
extension QueueTests {
    /// A queue by lines whose items are all ready and decoded ahead; the first begins 0.3 s from now.
    private func linedQueue(
        _ seconds: [Double], rate: Double = 1
    ) async throws -> (VirtualRoom, QueuePlayer, [PlayerItem]) {
        let room = VirtualRoom()
        let items = parts(seconds)
        let player = try room.makeQueue(items, shared: true)
        player.joinsByLines = true
        for item in items { try await item.ready() }
        await room.step(seconds: 1)
        for item in items.dropFirst() {
            #expect(
                try await room.during { try await player.preroll(next: item, atRate: rate) })
        }
        try player.setRate(rate, time: .zero, atHostTime: room.groupNow + .milliseconds(300))
        return (room, player, items)
    }

    private func joinAll(_ items: [PlayerItem], in player: QueuePlayer) throws {
        for item in items {
            let line = try #require(player.plannedJoin(of: item))
            #expect(player.join(item, by: line))
        }
    }

    /// What left the card up to now is nothing but silence after `instant`, the fade apart.
    private func isSilent(after instant: GroupInstant, in room: VirtualRoom) -> Bool {
        let sound = room.frames(from: room.local(instant + .milliseconds(15)), to: room.now)
        return !sound.isEmpty && sound.allSatisfy { abs($0.value) < 1e-3 }
    }

    @Test(arguments: [1, 1.25])
    func `items that follow by the lines at their ends are heard as the whole`(
        rate: Double
    ) async throws {
        let (room, player, items) = try await linedQueue([1.5, 0.7, 0.05, 2.1], rate: rate)
        try joinAll(Array(items.dropFirst()), in: player)
        await room.step { player.rate == 0 }
        await room.step(seconds: 0.5)
        #expect(player.currentItem === items[3], "the last stays, and nothing follows")
        expectWhole(4.35, rate: rate, in: room)
    }

    @Test func `an item without a line is not gone on to`() async throws {
        let (room, player, items) = try await linedQueue([0.8, 1])
        await room.step { player.rate == 0 }
        await room.step(seconds: 1.5)
        #expect(player.currentItem === items[0] && player.items().count == 2)
        expectWhole(0.8, rate: 1, in: room)
    }

    @Test func `a line that is not where the item before ends changes nothing`() async throws {
        let (room, player, items) = try await linedQueue([0.8, 1, 1])
        let planned = try #require(player.plannedJoin(of: items[1]))
        func line(_ change: (inout Line) -> Void) -> Line {
            var line = planned
            change(&line)
            return line
        }
        #expect(!player.join(items[1], by: line { $0.instant += .microseconds(2) }))
        #expect(!player.join(items[1], by: line { $0.instant = GroupInstant(nanoseconds: .min) }))
        #expect(!player.join(items[1], by: line { $0.itemFrame = 1 }))
        #expect(!player.join(items[1], by: line { $0.rate = 1.25 }))
        #expect(!player.join(items[2], by: planned))
        #expect(!player.join(parts([1])[0], by: planned))
        #expect(player.plannedJoin(of: items[1]) == planned)
        // By rounding it may be a little beside; then it begins exactly there, and so does the next.
        let beside = line { $0.instant += Nanoseconds(100) }
        #expect(player.join(items[1], by: beside))
        let next = try #require(player.plannedJoin(of: items[2]))
        #expect(next.instant == beside.instant + .seconds(1))
        await room.step { player.rate == 0 }
        await room.step(seconds: 0.5)
        #expect(player.currentItem === items[1])
        expectWhole(1.8, rate: 1, in: room)
    }

    /// The card holds the beginning of the second item already.
    @Test func `what is taken away behind the next item does not disturb that`() async throws {
        let (room, player, items) = try await linedQueue([0.8, 1, 1])
        try joinAll(Array(items.dropFirst()), in: player)
        await room.step { player.currentTime().seconds > 0.775 }
        #expect(player.currentItem === items[0])
        player.remove(items[2])
        await room.step { player.rate == 0 }
        await room.step(seconds: 1.5)
        expectWhole(1.8, rate: 1, in: room)
    }

    @Test func `a line that moves the end of the item keeps the next from beginning`() async throws
    {
        let (room, player, items) = try await linedQueue([1, 1])
        try joinAll([items[1]], in: player)
        await room.step { player.currentTime().seconds > 0.3 }
        let instant = room.groupNow + .milliseconds(200)
        try player.setRate(
            1, time: MediaTime(value: 7, timescale: 10), atHostTime: instant)
        await room.step(seconds: 2)
        #expect(player.currentItem === items[0] && player.rate == 0)
        #expect(isSilent(after: instant + .milliseconds(300), in: room))
    }

    @Test(arguments: [0.3, 0.5, 1.15])
    func `all ends at an instant, whichever item plays by then`(after: Double) async throws {
        let (room, player, items) = try await linedQueue([0.8, 0.4, 0.2, 0.5])
        try joinAll(Array(items.dropFirst()), in: player)
        await room.step { player.currentTime().seconds > 0.2 }
        let place = player.currentTime().seconds
        let begin = room.groupNow
        player.end(atHostTime: begin + Nanoseconds(seconds: after))
        await room.step(seconds: 3)
        #expect(player.rate == 0)
        #expect(isSilent(after: begin + Nanoseconds(seconds: after), in: room))
        // Up to the fade, and by the lines that there were.
        let end = room.local(begin + Nanoseconds(seconds: after))
        let last = room.frames(from: end - .milliseconds(50), to: end - .milliseconds(25))
        #expect(last.count > 150)
        for sound in last {
            let expected = place + after - (end - sound.instant).seconds
            #expect(abs(sound.frame / Double(Self.rate) - expected) < 0.01)
        }
        // It plays again, from where it is to.
        let current = try #require(player.currentItem)
        try player.setRate(1, time: .zero, atHostTime: room.groupNow + .milliseconds(200))
        await room.step { player.rate == 0 }
        #expect(player.currentItem === current)
    }

    @Test func `an end that comes before a line has begun lets it begin`() async throws {
        let (room, player, _) = try await linedQueue([2, 1])
        // The line begins 0.3 s later.
        let end = room.groupNow + .milliseconds(800)
        player.end(atHostTime: end)
        await room.step(seconds: 2)
        #expect(player.rate == 0 && isSilent(after: end, in: room))
        let last = room.frames(
            from: room.local(end - .milliseconds(50)), to: room.local(end - .milliseconds(25)))
        #expect(!last.isEmpty)
        for sound in last {
            let expected = 0.5 - (room.local(end) - sound.instant).seconds
            #expect(abs(sound.frame / Double(Self.rate) - expected) < 0.01)
        }
    }

    @Test func `who watches an item hears of that alone, and that it failed before its turn`()
        async throws
    {
        let room = VirtualRoom()
        let scratched = Library()
        let items = parts([1, 1]) + [scratched.item(seconds: 8)]
        let player = try room.makeQueue(items, shared: true)
        player.joinsByLines = true
        let names = ["first", "second", "third"]
        let said = Said()
        let watching = zip(names, items).map { said.watch($0, player.notices(of: $1)) }
        for item in items { try await item.ready() }
        await room.step(seconds: 1)
        scratched.state.withLock { $0.failsAt = 0 }
        let failing = items[2]
        do {
            _ = try await room.during { try await player.preroll(next: failing, atRate: 1) }
            Issue.record("what cannot be read is not decoded ahead")
        } catch {
            #expect((error as? PlaybackError)?.code == .mediaFailed)
        }
        try player.setRate(1, time: .zero, atHostTime: room.groupNow + .milliseconds(300))
        try joinAll([items[1]], in: player)
        await room.step { player.rate == 0 }
        player.removeAllItems()
        for task in watching { await task.value }
        for (name, words) in zip(
            names, [["ends", "leaves"], ["ends", "leaves"], ["fails", "leaves"]])
        {
            #expect(said.words.filter { $0.hasPrefix(name) } == words.map { "\(name) \($0)" })
        }
    }

    @Test func `each voice is of one item`() async throws {
        let (room, player, items) = try await linedQueue([1, 1, 1])
        try joinAll([items[1]], in: player)
        await room.step { player.currentTime().seconds > 0.5 }
        let voices = items.map { Set(player.voices(of: $0).keys) }
        #expect(voices.allSatisfy { $0.count == 1 })
        #expect(Set(voices.joined()).count == 3 && Set(voices.joined()) == Set(player.voices))
        await room.step { player.currentItem === items[1] && player.currentTime().seconds > 0.5 }
        #expect(Set(player.voices(of: items[1]).keys) == voices[1])
        #expect(player.voices(of: items[0]).isEmpty)
    }

    @Test func `an item that does not follow cannot be decoded ahead`() async throws {
        let (_, player, items) = try await linedQueue([1, 1])
        func code(_ item: PlayerItem, _ rate: Double) async -> PlaybackError.Code? {
            do throws(PlaybackError) {
                _ = try await player.preroll(next: item, atRate: rate)
            } catch {
                return error.code
            }
            return nil
        }
        #expect(await code(items[0], 1) == .noItem)
        #expect(await code(parts([1])[0], 1) == .noItem)
        #expect(await code(items[1], .nan) == .rateNotSupported)
        let unread = parts([1])[0]
        try player.insert(unread, after: nil)
        #expect(await code(unread, 1) == .itemNotReady)
    }
}

/// What those who watch an item are told.
private final class Said: Sendable {
    private let texts = Mutex<[String]>([])

    var words: [String] { texts.withLock { $0 } }

    private func note(_ text: String) { texts.withLock { $0.append(text) } }

    func watch(_ name: String, _ notices: AsyncStream<PlayerNotice>) -> Task<Void, Never> {
        Task {
            for await notice in notices {
                switch notice {
                case .didPlayToEnd: note("\(name) ends")
                case .failedToPlayToEnd: note("\(name) fails")
                default: break
                }
            }
            note("\(name) leaves")
        }
    }
}
