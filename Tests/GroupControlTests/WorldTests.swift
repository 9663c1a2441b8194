import Testing
import TuttiChance
import TuttiTiming

@testable import TuttiGroupControl

@Suite struct `Rooms and leader together` {
    /// 40 commands and broken links at random moments, then ten quiet seconds.
    @Test(arguments: 1...60 as ClosedRange<UInt64>)
    func `whatever happened, all rooms end up with the session`(seed: UInt64) {
        let queue = [asset(1, seconds: 14), asset(2, seconds: 21), asset(3, seconds: 17)]
        let world = World(seed: seed, rooms: Int(seed % 3) + 1, queue: queue, loops: true)
        world.run(for: .seconds(3))
        for _ in 0..<40 {
            world.run(for: world.some(0...900))
            switch Int.random(in: 0..<14, using: &world.random) {
            case 0...2: world.command(.play)
            case 3, 4: world.command(.pause)
            case 5...8:
                world.command(.seek(seconds: Double.random(in: -1...25, using: &world.random)))
            case 9: world.command(.next)
            case 10: world.command(.stop)
            default: world.cut(Int.random(in: world.rooms.indices, using: &world.random))
            }
        }
        world.isUnreliable = false
        world.run(for: .seconds(1))
        world.command(seed % 4 == 0 ? .pause : .play)
        // Longer than the longest retry, back-off and preparation together.
        world.run(for: .seconds(30))
        // Not in the middle of a change of items.
        if let end = world.leader.session.endInstant, end - world.group < .milliseconds(500) {
            world.run(for: .seconds(1))
        }
        world.expectAgreement(seed)
    }

    /// The same while the queue becomes known, and its files are written anew or taken away.
    @Test(arguments: 1...60 as ClosedRange<UInt64>)
    func `rooms end up with the session while its queue changes`(seed: UInt64) {
        let all = (1...6).map { asset($0, seconds: 9 + Double($0)) }
        let world = World(
            seed: seed, rooms: Int(seed % 3) + 1, queue: [], coming: all.count, loops: true)
        var known = 0
        var version: UInt64 = 100
        for _ in 0..<40 {
            world.run(for: world.some(0...1_500))
            switch Int.random(in: 0..<12, using: &world.random) {
            case 0: world.command(.play)
            case 1: world.command(.pause)
            case 2: world.command(.seek(seconds: Double.random(in: 0...12, using: &world.random)))
            case 3, 4: world.command(.next)
            case 5, 6, 7:
                let count = min(all.count - known, Int.random(in: 0...2, using: &world.random))
                world.describe(
                    Array(all[known..<known + count]), coming: all.count - known - count)
                known += count
            case 8, 9:
                guard let old = world.leader.session.queue.randomElement(using: &world.random)
                else { break }
                version += 1
                world.change(old.hash, to: asset(version, seconds: 11, sampleRate: 48_000))
            case 10:
                guard world.leader.session.queue.count > 2 else { break }
                world.change(world.leader.session.queue[Int(seed) % 2].hash, to: nil)
            default: world.cut(Int.random(in: world.rooms.indices, using: &world.random))
            }
        }
        world.describe(Array(all[known...]), coming: 0)
        world.isUnreliable = false
        world.run(for: .seconds(1))
        world.command(seed % 4 == 0 ? .pause : .play)
        world.run(for: .seconds(30))
        if let end = world.leader.session.endInstant, end - world.group < .milliseconds(500) {
            world.run(for: .seconds(1))
        }
        world.expectAgreement(seed)
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `messages that make no sense in a state do no harm`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let queue = [asset(1, seconds: 4), asset(2, seconds: 3)]
        var leader = LeaderMachine(configuration(queue: queue, rooms: 1, loops: true))
        var one = RoomMachine(
            RoomConfiguration(
                room: room("x"), instance: 1, outputLatency: .zero, hasOutput: true),
            at: LocalInstant(nanoseconds: 0))
        var now: Int64 = 0
        for _ in 0..<1_500 {
            now += Int64.random(in: -1_000_000...400_000_000, using: &random)
            let group = GroupInstant(nanoseconds: now)
            let local = LocalInstant(nanoseconds: now)
            let id = UInt64.random(in: 0...40, using: &random)
            let link = Int.random(in: 0...3, using: &random)
            let wild = RateChange(
                itemFrame: Int64.random(in: .min ... .max, using: &random),
                instant: GroupInstant(nanoseconds: Int64.random(in: .min ... .max, using: &random)),
                rate: [0, 1, -1, .nan, 1e300].randomElement(using: &random)!)
            let hello = Hello(
                version: id == 0 ? protocolVersion + 1 : protocolVersion,
                room: room("room \(link / 2)"),
                instance: id % 3,
                outputLatency: Nanoseconds(wild.itemFrame), hasOutput: id != 1)
            let toLeader: [RoomToLeader] = [
                .hello(hello), .ready(preparation: id, latency: Nanoseconds(wild.itemFrame)),
                .notReady(preparation: id, reason: "?"),
                .report(RoomReport(roundTrip: Nanoseconds(wild.itemFrame))), .goodbye,
            ]
            _ = leader.receive(
                .received(toLeader.randomElement(using: &random)!, from: link), at: group)
            let commands: [GroupCommand] = [
                .play, .pause, .next, .stop, .seek(seconds: wild.rate),
                .volume(room: nil, percent: Int(wild.itemFrame)),
                .latencyOffset(room: room("a"), .zero),
            ]
            if id % 7 == 0 {
                _ = leader.receive(.described([queue[link % 2]], coming: link), at: group)
            } else if id % 7 == 1 {
                let other = asset(id, seconds: Double(id))
                let changed = queue[link % 2].hash
                let change = link < 2 ? ItemChange.other(other) : .unplayable(reason: "gone")
                _ = leader.receive(.changed(changed, to: change), at: group)
            }
            _ = leader.perform(commands.randomElement(using: &random)!, at: group)
            _ = leader.advance(to: group)
            #expect(leader.status(at: group).positionSeconds.isFinite)

            let state = SessionState(
                term: 7, sequence: id, queue: id % 5 == 0 ? [] : queue,
                index: Int(truncatingIfNeeded: wild.itemFrame), change: wild, phase: .playing)
            let welcome = Welcome(
                leaderName: "", timePort: 0, mediaPort: 0, term: 7, groupClockEpoch: id % 2)
            let order = Preparation(
                id: id, asset: queue[link % 2], itemFrame: wild.itemFrame, rate: wild.rate,
                change: link == 0 ? wild : nil)
            let commit = Commit(
                id: id, index: link, hash: queue[link % 2].hash, change: wild,
                following: link == 2)
            let inputs: [RoomInput] = [
                .connected, .closed(reason: ""), .received(.welcome(welcome)),
                .received(.refused(reason: "")), .received(.prepare(order)),
                .received(.prepare(order)), .received(.commit(commit)),
                .received(.commit(commit)), .received(.withdraw(preparation: id)),
                .received(.state(state)), .received(.stop), .received(.alive),
                .received(.progress(state.progress)),
                .received(
                    .queue(
                        QueueChange(
                            term: 7, sequence: id, first: Int(id) - 1, removed: 0, items: queue,
                            index: 0))),
                .received(.latencyOffset(.zero)),
                .notified(CommitDatagram(instance: id % 3, term: 7, commit: commit)),
                .received(.goodbye), .fetched(queue[link % 2].hash, .done),
                .fetched(queue[link % 2].hash, .failed(reason: "")),
                .fetched(queue[link % 2].hash, .arriving),
                .prepared(id, .ready(latency: .zero)), .prepared(id, .failed(reason: "")),
                .clock(.locked), .clock(.none), .itemEnded(id),
                .itemFailed(id, reason: ""),
            ]
            _ = one.receive(inputs.randomElement(using: &random)!, at: local)
            _ = one.advance(to: local)
            #expect(one.preparations.count <= RoomMachine.mostPreparations)
            #expect(one.lines.count <= RoomMachine.mostLines)
        }
    }
}
