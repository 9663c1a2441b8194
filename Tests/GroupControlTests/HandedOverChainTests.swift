import Testing
import TuttiChance
import TuttiTiming

@testable import TuttiGroupControl

/// The lead goes from room to room at any moment of a chain of short items. What the rooms were told
/// to play under one leader is what they play under the next.
@Suite struct `A chain of items handed from leader to leader` {
    static let seeds: Range<UInt64> = 1..<21
    /// Rooms are on no link for so long: a message there, a connection, and the state.
    static let away = Nanoseconds.milliseconds(60)

    /// What a room's voices sound, from the effects of its machine.
    struct Sound {
        struct Span: Equatable, CustomStringConvertible {
            var voice: UInt64
            var hash: ContentHash
            var change: RateChange
            var from: GroupInstant
            var until: GroupInstant
            var description: String {
                "\(hash.words.0): \(from.nanoseconds / 1_000_000)...\(until.nanoseconds / 1_000_000)"
            }
        }
        var spans: [Span] = []

        mutating func note(_ effect: RoomEffect, _ assets: [AssetDescriptor], at now: GroupInstant)
        {
            switch effect {
            case .apply(let commit) where commit.isPause:
                end(at: commit.change.instant) { $0.voice == commit.id }
            case .apply(let commit):
                if !commit.following { end(at: commit.change.instant) { _ in true } }
                guard let asset = assets.first(where: { $0.hash == commit.hash }),
                    let end = commit.change.instant(
                        ofFrame: asset.frameCount, sampleRate: asset.sampleRate)
                else { return }
                spans.append(
                    Span(
                        voice: commit.id, hash: commit.hash, change: commit.change,
                        from: max(now, commit.change.instant), until: end))
            case .withdraw(let id): end(at: now) { $0.voice == id }
            case .stop: end(at: now) { _ in true }
            default: break
            }
        }

        private mutating func end(at instant: GroupInstant, _ isMeant: (Span) -> Bool) {
            for place in spans.indices where isMeant(spans[place]) {
                spans[place].until = min(spans[place].until, instant)
            }
            spans.removeAll { $0.until <= $0.from }
        }
    }

    final class Ears {
        var rooms: [Sound]
        init(_ count: Int) { rooms = Array(repeating: Sound(), count: count) }
    }

    static func world(
        _ seed: UInt64, _ items: [AssetDescriptor], loops: Bool = false
    ) -> (World, Ears) {
        let world = World(seed: seed, rooms: 3, queue: items, loops: loops)
        world.isUnreliable = false
        // Short items are small files.
        world.fetching = 5...40
        let ears = Ears(3)
        world.heard = { [unowned world] in ears.rooms[$1].note($0, items, at: world.group) }
        return (world, ears)
    }

    static func items(_ count: Int, _ seconds: ClosedRange<Double>, _ seed: UInt64)
        -> [AssetDescriptor]
    {
        var random = SplitMix64(seed: seed)
        return (1...count).map {
            asset(UInt64($0), seconds: Double.random(in: seconds, using: &random))
        }
    }

    @Test(arguments: seeds)
    func `every room plays every item once, from its instant to its end`(seed: UInt64) throws {
        for seconds in [0.3...1.8, 0.06...0.4, 1.5...4] {
            let items = Self.items(seconds.upperBound < 1 ? 120 : 40, seconds, seed)
            let (world, ears) = Self.world(seed, items)
            while world.leader.session.change == nil { world.run(for: .milliseconds(1)) }
            var change = try #require(world.leader.session.change)
            var expected: [(hash: ContentHash, from: GroupInstant, until: GroupInstant)] = []
            for item in items {
                let end = try #require(
                    change.instant(ofFrame: item.frameCount, sampleRate: item.sampleRate))
                expected.append((item.hash, change.instant, end))
                change = RateChange(itemFrame: 0, instant: end, rate: 1)
            }
            var handovers = 0
            while world.group < change.instant {
                world.run(for: world.some(100...2_500))
                let next = Int.random(in: 0..<3, using: &world.random)
                let before = world.leader.session.term
                world.command(.handOver(to: room("room \(next)")))
                world.run(for: world.some(0...500))
                handovers += world.leader.session.term > before ? 1 : 0
            }
            world.run(for: .seconds(2))
            #expect(handovers > 3)
            #expect(world.leader.session.phase == .ended)
            for (number, room) in ears.rooms.enumerated() {
                let heard = room.spans.sorted { $0.from < $1.from }
                #expect(
                    heard.count == expected.count,
                    "seed \(seed), \(seconds): room \(number) plays \(heard.count) items")
                let wrong = zip(heard, expected).first {
                    $0.hash != $1.hash || $0.from != $1.from || $0.until != $1.until
                }.map { "\($0), not \($1)" }
                #expect(wrong == nil, "seed \(seed), \(seconds): room \(number)")
            }
        }
    }

    /// People go on giving commands.
    @Test(arguments: seeds)
    func `rooms part neither by commands right behind a hand-over nor by two of these`(
        seed: UInt64
    ) throws {
        let items = Self.items(30, 0.3...1.8, seed)
        let (world, ears) = Self.world(seed, items, loops: true)
        world.run(for: .seconds(2))
        for _ in 0..<12 {
            for _ in 0...Int.random(in: 0...1, using: &world.random) {
                world.command(
                    .handOver(to: room("room \(Int.random(in: 0..<3, using: &world.random))")))
                world.run(for: world.some(0...600))
            }
            let entry = world.leader.entries[Int.random(in: 0..<30, using: &world.random)]
            let commands: [GroupCommand] = [
                .queue(.play(entry.id)), .next, .previous, .seekBy(seconds: 0.2), .pause,
                .queue(.move(entry.id, to: 3)), .queue(.reorder(seed: seed)), .play,
            ]
            world.command(
                commands[Int.random(in: 0..<commands.count, using: &world.random)])
            world.run(for: world.some(0...3_000))
            if world.leader.session.phase == .paused { world.command(.play) }
            world.run(for: .seconds(4))
            #expect(world.leader.session.phase == .playing)
            for (number, room) in world.rooms.enumerated() {
                #expect(
                    room.lines.contains { $0.change == world.leader.session.change },
                    "seed \(seed): room \(number) does not play along")
            }
        }
        let rooms = ears.rooms.map { $0.spans.sorted { $0.from < $1.from } }
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            for span in rooms[one] {
                for second in rooms[other]
                where second.change != span.change || second.hash != span.hash {
                    let both = min(span.until, second.until) - max(span.from, second.from)
                    #expect(
                        both <= Self.away,
                        "seed \(seed): room \(one) \(span), room \(other) \(second)")
                }
            }
        }
    }
}
