import Observation
import Synchronization
import Testing
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

@testable import TuttiPlayback

/// Section 4 of what players promise, and what users of other players reported; see Semantics.md.
@Suite(.timeLimit(.minutes(2))) struct QueueSemanticsTests {
    private static func seconds(_ value: Double) -> MediaTime { MediaTime(seconds: value) }

    private func queue(
        of lengths: [Double], in room: VirtualRoom
    ) async throws -> (QueuePlayer, [PlayerItem], NoticeLog) {
        let items = QueueTests().parts(lengths)
        let player = try room.makeQueue(items)
        let said = NoticeLog(player, items: items)
        try await items[0].ready()
        await room.step(seconds: 1)
        return (player, items, said)
    }

    @Test func `what is refused leaves the queue as it was`() async throws {
        let room = VirtualRoom()
        let (player, items, _) = try await queue(of: [3, 3], in: room)
        let (stranger, other) = (Library().item(), Library().item())
        func expect(_ code: PlaybackError.Code, _ body: () throws -> Void) {
            let refusal = #expect(throws: PlaybackError.self) { try body() }
            #expect(refusal?.code == code)
        }
        expect(.itemInUse) { try player.insert(items[1], after: items[0]) }
        expect(.itemInUse) { try player.insert(items[0], after: items[0]) }
        expect(.noItem) { try player.insert(stranger, after: other) }
        #expect(!player.canInsert(stranger, after: other))
        expect(.itemInUse) { _ = try QueuePlayer(items: [other, items[1]], output: room.output) }
        expect(.itemInUse) { _ = try QueuePlayer(items: [other, other], output: room.output) }
        player.remove(stranger)
        #expect(player.items().elementsEqual(items, by: ===))
        // What another queue did not get is free, and plays here.
        #expect(player.canInsert(other, after: nil) && player.canInsert(stranger, after: items[0]))
        try player.insert(other, after: nil)
        #expect(player.items().count == 3)
    }

    @Test(arguments: [false, true])
    func `right after an advance nothing is of the item before`(isPlaying: Bool) async throws {
        let room = VirtualRoom()
        let (player, items, said) = try await queue(of: [8, 5, 3], in: room)
        _ = try await room.during { await player.seek(to: Self.seconds(6)) }
        if isPlaying { player.play() }
        await room.step(seconds: 0.5)
        player.advanceToNextItem()
        #expect(player.currentItem === items[1])
        #expect(player.currentTime().seconds < 0.1, "\(player.currentTime())")
        for _ in 0..<50 {
            await room.step()
            #expect(player.currentItem === items[1] && player.currentTime().seconds < 0.6)
            let duration = items[1].duration
            #expect(duration == .indefinite || duration == Self.seconds(5))
        }
        #expect((player.currentTime() > .zero) == isPlaying)
        player.advanceToNextItem()
        player.advanceToNextItem()
        #expect(player.currentItem == nil && player.currentTime() == .zero)
        await room.step(seconds: 0.2)
        #expect(said.count("item 1") == 1 && said.count("item none") == 1, "\(said.all)")
        #expect(said.count("end") == 0, "what is left is not played to its end")
    }

    @Test func `the queue ends once, after its last item, and each item before it`() async throws {
        let room = VirtualRoom()
        let (player, _, said) = try await queue(of: [1, 0.5, 1.5], in: room)
        player.play()
        await room.step { player.currentItem == nil }
        await room.step(seconds: 0.5)
        let order = said.all.filter { $0.hasPrefix("end") || $0.hasPrefix("item") }
        #expect(
            order.filter { $0 != "item 0" } == [
                "end 0", "item 1", "end 1", "item 2", "end 2", "item none",
            ])
        #expect(said.count("rate 0") == 1 && said.count("failed") == 0, "\(said.all)")
    }

    @Test(arguments: [3.0, 2.9999, 2.9])
    func `a seek to the end of each item goes on to the next, in order`(place: Double) async throws
    {
        let room = VirtualRoom()
        let (player, items, said) = try await queue(of: [3, 3, 3], in: room)
        player.play()
        for number in 0..<3 {
            await room.step {
                player.currentItem === items[number] && player.currentTime().seconds > 0.3
            }
            _ = try await room.during { await player.seek(to: Self.seconds(place)) }
            await room.step {
                number == 2 ? player.currentItem == nil : player.currentItem !== items[number]
            }
        }
        await room.step(seconds: 0.3)
        let order = said.all.filter { $0.hasPrefix("end") || $0.hasPrefix("item") }
        #expect(
            order.filter { $0 != "item 0" } == [
                "end 0", "item 1", "end 1", "item 2", "end 2", "item none",
            ])
    }

    @Test func `a seek right after an item was exchanged is of the new item`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 20))
        player.play()
        await room.step(seconds: 0.5)
        for _ in 0..<5 {
            let next = Library().item(seconds: 20)
            let said = NoticeLog(player, items: [next])
            try player.replaceCurrentItem(with: next)
            #expect(try await room.during { await player.seek(to: Self.seconds(10)) })
            await room.step(seconds: 0.5)
            #expect(player.currentItem === next)
            let time = player.currentTime().seconds
            #expect(time > 10.2 && time < 11, "\(time)")
            #expect(said.count("item 0") == 1 && said.count("status ready") == 1, "\(said.all)")
            // Nothing of the new item is heard but what was sought.
            let heard = TestSource.frame(ofValue: try #require(room.heard.last).value)
            #expect(heard > 80_000, "\(heard)")
        }
    }

    @Test func `an item exchanged in a queue keeps those behind it`() async throws {
        let room = VirtualRoom()
        let (player, items, said) = try await queue(of: [5, 2], in: room)
        let watched = Observed { [weak player] in player?.currentItem?.status }
        player.play()
        await room.step(seconds: 0.5)
        let next = Library().item(seconds: 1)
        try player.replaceCurrentItem(with: next)
        #expect(player.items().elementsEqual([next, items[1]], by: ===))
        await room.step { player.currentItem === items[1] }
        await room.step { player.currentItem == nil }
        await room.step { said.count("end 1") == 1 }
        #expect(said.count("end 0") == 0 && said.count("end ?") == 1)
        await room.step { watched.last == .some(nil) }
    }

    /// A mute, and a volume, are the player's: not the item's that was there when they were set.
    @Test func `a mute just before a join holds, and so does its end`() async throws {
        let room = VirtualRoom()
        let (player, items, _) = try await queue(of: [2, 2, 2], in: room)
        player.play()
        await room.step { player.currentTime().seconds > 1.8 }
        player.isMuted = true
        await room.step { player.currentItem === items[1] && player.currentTime().seconds > 0.3 }
        var begin = room.now - .milliseconds(200)
        #expect(room.frames(from: begin, to: room.now).allSatisfy { $0.value == 0 })
        await room.step { player.currentTime().seconds > 1.9 }
        player.isMuted = false
        await room.step { player.currentItem === items[2] && player.currentTime().seconds > 0.5 }
        begin = room.now - .milliseconds(200)
        #expect(room.frames(from: begin, to: room.now).allSatisfy { $0.value > 0.2 })
    }

    @Test func `items of other sample rates follow at their own pitch, without a hole`()
        async throws
    {
        let room = VirtualRoom(sampleRate: 48_000)
        let rates = [44_100, 48_000, 96_000, 44_100]
        let items = rates.map { Library().item(sampleRate: $0, seconds: 0.7) }
        let player = try room.makeQueue(items)
        try await items[0].ready()
        await room.step(seconds: 1)
        player.play()
        await room.step { player.currentItem == nil }
        await room.step(seconds: 0.2)
        let heard = room.heard.map(\.value)
        let first = try #require(heard.firstIndex { $0 > 0.2 })
        let last = try #require(heard.lastIndex { $0 > 0.2 })
        #expect(abs(Double(last - first) - 4 * 0.7 * 48_000) < 60, "\(last - first)")
        // No silence between: where a ramp falls to its base it rings, by less than half of that. And
        // each is as steep as its rate says.
        #expect(heard[(first + 50)...(last - 50)].allSatisfy { $0 > 0.1 })
        for (number, rate) in rates.enumerated() {
            let middle = first + Int((Double(number) + 0.5) * 0.7 * 48_000)
            let (from, to) = (middle - 4_000, middle + 4_000)
            let slope =
                (TestSource.frame(ofValue: heard[to]) - TestSource.frame(ofValue: heard[from]))
                / 8_000
            #expect(abs(slope / (Double(rate) / 48_000) - 1) < 1e-3, "\(rate): \(slope)")
        }
    }

    /// Each item has a selection and an algorithm of its own, which others do not disturb.
    @Test func `items with other tracks, algorithms and rates keep them`() async throws {
        let room = VirtualRoom()
        let items = (0..<3).map { _ in SelectionTests.item() }
        for item in items { item.forwardPlaybackEndTime = Self.seconds(2) }
        items[0].audioTimePitchAlgorithm = .timeDomain
        items[1].audioTimePitchAlgorithm = .varispeed
        items[2].audioTimePitchAlgorithm = .spectral
        let player = try room.makeQueue(items)
        for (number, item) in items.enumerated() {
            let group = try #require(try await item.asset.loadMediaSelectionGroup(for: .audible))
            try item.select(group.options[number % 2], in: group)
        }
        try await items[0].ready()
        await room.step(seconds: 1)
        for (number, rate) in [1.5, 0.75, 2].enumerated() {
            try player.setRate(rate)
            await room.step {
                player.currentItem === items[number] && player.currentTime().seconds > 1.2
            }
            let due = SelectionTests.level([1, 2, 1][number])
            #expect(abs((room.heard.last?.value ?? 0) - due) < 0.1 * due, "item \(number)")
            let group = try #require(items[number].mediaSelectionGroup(for: .audible))
            #expect(items[number].selectedMediaOption(in: group) == group.options[number % 2])
            await room.step { player.currentItem !== items[number] }
        }
        await room.step { player.currentItem == nil }
        #expect(player.error == nil)
    }

    @Test func `an item is repeated a hundred times by seeking back when it ends`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 0.05))
        let said = NoticeLog(player)
        let notices = player.notices()
        let again = Task { [weak player] in
            for await notice in notices {
                guard case .didPlayToEnd = notice else { continue }
                // Whether or not it arrived: who does not ask must not be called ever deeper.
                await player?.seek(to: .zero)
                player?.play()
            }
        }
        player.play()
        await room.step { said.count("end") >= 100 }
        again.cancel()
        #expect(player.error == nil && said.count("failed") == 0)
        #expect(room.freeVoices >= OutputPort.voiceLimit - 2)
    }

    @Test func `each notice is of its item, also where the queue has gone on`() async throws {
        let room = VirtualRoom()
        let (scratched, broken) = (Library(), Library())
        scratched.state.withLock { $0.failsAt = 8_000 }
        broken.state.withLock {
            $0.refuses = MediaError(
                .notFound, operation: "open", subject: "x", reason: "is not there")
        }
        let items = [
            scratched.item(seconds: 4), broken.item(), Library().item(seconds: 1),
        ]
        // An item is loaded as soon as it is in the queue, and may be ready at once.
        let player = try room.makeQueue([])
        let said = Mutex<[String]>([])
        let all = player.itemNotices()
        for item in items { try player.insert(item, after: nil) }
        let last = player.notices(of: items[2])
        let reading = Task {
            for await notice in all {
                let number = items.firstIndex { $0 === notice.item }.map { "\($0)" } ?? "-"
                let text: String? =
                    switch notice.notice {
                    case .failedToPlayToEnd: "fails"
                    case .didPlayToEnd: "ends"
                    case .itemStatusDidChange(.readyToPlay): "is ready"
                    case .itemStatusDidChange(.failed): "has failed"
                    case .currentItemDidChange: "another"
                    default: nil
                    }
                if let text { said.withLock { $0.append("\(number) \(text)") } }
            }
        }
        player.play()
        await room.step { player.items().isEmpty }
        await room.step { said.withLock { $0.contains("2 ends") } }
        reading.cancel()
        let words = said.withLock { $0 }
        for (number, expected) in [
            ["is ready", "has failed", "fails"], ["fails"], ["is ready", "ends"],
        ].enumerated() {
            let own = words.filter { $0.hasPrefix("\(number)") }
            #expect(own.filter { $0 != "1 has failed" } == expected.map { "\(number) \($0)" })
        }
        // Ends with the item.
        var lastEnds = 0
        for await notice in last { if case .didPlayToEnd = notice { lastEnds += 1 } }
        #expect(lastEnds == 1)
    }

    @Test func `a failure in the middle of an item is said, and the queue goes on`() async throws {
        let room = VirtualRoom()
        let broken = Library()
        broken.state.withLock { $0.failsAt = 12_288 }
        let items = [broken.item(seconds: 5), Library().item(seconds: 1)]
        let player = try room.makeQueue(items)
        let said = NoticeLog(player, items: items)
        try await items[0].ready()
        await room.step(seconds: 1)
        player.play()
        await room.step { player.currentItem === items[1] }
        // What was decoded before it has been heard: all of it.
        #expect(abs(room.heard.count { $0.value > 0.2 } - 12_288) < 10)
        await room.step { player.currentItem == nil }
        await room.step(seconds: 0.2)
        #expect(said.count("failed") == 1 && said.count("end 0") == 0 && said.count("end 1") == 1)
    }
}

/// The values of a property, as observation tells them.
final class Observed<Value: Sendable>: Sendable {
    private let values = Kept<[Value]>([])
    private let task: Task<Void, Never>

    init(_ value: @escaping @Sendable () -> Value) {
        task = Task { [values] in
            for await value in Observations(value) { values.change { $0.append(value) } }
        }
    }

    deinit { task.cancel() }
    var last: Value? { values.value.last }
}
