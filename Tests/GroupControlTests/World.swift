import Testing
import TuttiChance
import TuttiTiming

@testable import TuttiGroupControl

/// A leader and its rooms with a network between them that delays, and links that break.
///
/// Every effect of the leader is checked against what must always hold; after a quiet while every
/// room must do exactly what the session says.
final class World {
    var random: SplitMix64
    var now: Int64 = 1_000_000_000
    var leader: LeaderMachine
    var rooms: [RoomMachine] = []
    /// Leads already, while the one before has not heard of it.
    var heir: LeaderMachine?
    /// Led before, and send rooms on.
    var retired: [LeaderMachine] = []
    /// The term of the leader that a link goes to.
    var terms: [LinkID: UInt64] = [:]
    /// How long it takes to take over, milliseconds.
    var takingOver: ClosedRange<Int64> = 2...400
    /// How long it takes to fetch a file, milliseconds.
    var fetching: ClosedRange<Int64> = 5...400
    /// Told everything that a room's machine has its shell do.
    var heard: (RoomEffect, Int) -> Void = { _, _ in }
    /// The link a room is on, by room; `nil` while it has none.
    var links: [LinkID?] = []
    var lastLink = 0
    var events: [(at: Int64, order: Int, act: () -> Void)] = []
    var order = 0
    var busyUntil: [LinkID: Int64] = [:]
    var toLeaderBusy: [LinkID: Int64] = [:]
    var isUnreliable = true
    /// What a leader may commit: answers that reached it, by link.
    var answered: [LinkID: Set<UInt64>] = [:]
    var committed: [LinkID: Set<UInt64>] = [:]
    var withdrawn: [LinkID: Set<UInt64>] = [:]
    var sequence: [LinkID: UInt64] = [:]
    /// The line in force before the effects being performed.
    var lastChange: RateChange?
    /// When that is over: what begins then is the line in force from that instant on.
    var lastEnd: GroupInstant?
    let reach = Nanoseconds.milliseconds(20)

    /// - Parameter coming: items that are told to the leader later (``describe(_:coming:)``).
    init(
        seed: UInt64, rooms count: Int, queue: [AssetDescriptor], coming: Int = 0, loops: Bool
    ) {
        random = SplitMix64(seed: seed)
        var configuration = configuration(queue: queue, rooms: count, loops: loops)
        configuration.coming = coming
        leader = LeaderMachine(configuration)
        for number in 0..<count {
            rooms.append(
                RoomMachine(
                    RoomConfiguration(
                        room: room("room \(number)"), instance: UInt64(number),
                        outputLatency: reach, hasOutput: true, noticePort: 9),
                    at: LocalInstant(nanoseconds: now)))
            links.append(nil)
        }
    }

    var local: LocalInstant { LocalInstant(nanoseconds: now) }
    var group: GroupInstant { GroupInstant(nanoseconds: now) }

    func after(_ span: Nanoseconds, _ act: @escaping () -> Void) {
        order += 1
        events.append((now + span.count, order, act))
    }

    func some(_ range: ClosedRange<Int64>) -> Nanoseconds {
        .milliseconds(Int64.random(in: range, using: &random))
    }

    func run(for span: Nanoseconds) {
        let end = now + span.count
        while true {
            var next = events.map(\.at).min() ?? .max
            for machine in [leader, heir] {
                next = min(next, machine?.nextDeadline?.nanoseconds ?? .max)
            }
            for room in rooms { next = min(next, room.nextDeadline?.nanoseconds ?? .max) }
            guard next <= end else { break }
            now = max(now, next)
            let due = events.filter { $0.at <= now }.sorted {
                ($0.at, $0.order) < ($1.at, $1.order)
            }
            events.removeAll { $0.at <= now }
            for event in due { event.act() }
            if let deadline = leader.nextDeadline, deadline <= group {
                perform(leader.advance(to: group))
            }
            // It has no links yet.
            if let deadline = heir?.nextDeadline, deadline <= group {
                _ = heir?.advance(to: group)
            }
            for number in rooms.indices {
                if let deadline = rooms[number].nextDeadline, deadline <= local {
                    perform(rooms[number].advance(to: local), of: number)
                }
            }
        }
        now = end
    }

    func command(_ command: GroupCommand) { perform(leader.perform(command, at: group).effects) }

    func describe(_ assets: [AssetDescriptor], coming: Int) {
        perform(leader.receive(.described(assets, coming: coming), at: group))
    }

    func change(_ hash: ContentHash, to asset: AssetDescriptor?) {
        perform(
            leader.receive(
                .changed(hash, to: asset.map { .other($0) } ?? .unplayable(reason: "gone")),
                at: group))
    }

    func cut(_ number: Int) {
        guard let link = links[number] else { return }
        links[number] = nil
        perform(rooms[number].receive(.closed(reason: "cut"), at: local), of: number)
        after(some(0...50)) { self.perform(self.leader.receive(.closed(link), at: self.group)) }
    }

    // MARK: The leader's shell

    func perform(_ effects: [LeaderEffect]) {
        send(effects)
        for case .handOver(let room, let port, _) in effects { handOver(to: room, port: port) }
    }

    private func handOver(to room: RoomID, port: UInt16) {
        guard let heir else { preconditionFailure("\(room) does not lead") }
        let farewell = leader.handedOver(to: NextLeader(name: room, host: "", port: port))
        // Links end with the rooms that go over: what was sent has left by then.
        send(farewell.filter { if case .close = $0 { false } else { true } })
        retired.append(leader)
        leader = heir
        self.heir = nil
        lastChange = leader.session.change
        lastEnd = leader.session.endInstant
    }

    /// To a leader that leads no more.
    private func sendOn(_ message: RoomToLeader, _ link: LinkID) {
        guard case .hello = message,
            let place = retired.firstIndex(where: { $0.session.term == terms[link] })
        else { return }
        send(
            retired[place].receive(.received(message, from: link), at: group)
                .filter { if case .close = $0 { false } else { true } })
    }

    private func send(_ effects: [LeaderEffect]) {
        for case .send(let message, let link) in effects {
            check(message, link)
            guard let number = links.firstIndex(of: link) else { continue }
            let arrival = max(now + some(0...4).count, busyUntil[link] ?? 0)
            busyUntil[link] = arrival
            after(Nanoseconds(arrival - now)) {
                guard self.links[number] == link else { return }
                self.perform(
                    self.rooms[number].receive(.received(message), at: self.local), of: number)
            }
        }
        // Lost, doubled, overtaking the stream or long overdue.
        for case .notify(let notice, _, let link) in effects {
            guard let number = links.firstIndex(of: link) else { continue }
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                after(some(0...400)) {
                    self.perform(
                        self.rooms[number].receive(.notified(notice), at: self.local), of: number)
                }
            }
        }
        for case .close(let link) in effects {
            guard let number = links.firstIndex(of: link) else { continue }
            links[number] = nil
            perform(rooms[number].receive(.closed(reason: "leader"), at: local), of: number)
        }
        lastChange = leader.session.change
        lastEnd = leader.session.endInstant
    }

    private func check(_ message: LeaderToRoom, _ link: LinkID) {
        switch message {
        case .commit(let commit) where commit.isPause:
            #expect(committed[link, default: []].contains(commit.id))
            #expect(commit.change.instant >= group + reach)
        case .commit(let commit):
            #expect(answered[link, default: []].contains(commit.id), "not answered")
            #expect(!withdrawn[link, default: []].contains(commit.id), "superseded")
            // Joining the line in force is late by nature; a new line must be met by everybody.
            let isNew = commit.change != lastChange && commit.change.instant != lastEnd
            if isNew, !commit.following { #expect(commit.change.instant >= group + reach) }
            #expect(committed[link, default: []].insert(commit.id).inserted, "committed twice")
        case .withdraw(let id): withdrawn[link, default: []].insert(id)
        case .state(let state):
            #expect(state.sequence > sequence[link, default: 0])
            sequence[link] = state.sequence
        case .progress(let progress):
            #expect(progress.sequence > sequence[link, default: .max], "no state before")
            sequence[link] = progress.sequence
        case .queue(let change):
            #expect(change.sequence > sequence[link, default: .max], "no state before")
            sequence[link] = change.sequence
        case .welcome, .refused, .prepare, .settings, .latencyOffset, .stop, .alive, .goodbye,
            .lead, .follow, .datagramKey, .succession, .separate:
            break
        }
    }

    // MARK: The rooms' shells

    func perform(_ effects: [RoomEffect], of number: Int) {
        for effect in effects {
            heard(effect, number)
            perform(effect, of: number)
        }
    }

    private func give(_ input: RoomInput, to number: Int, in span: Nanoseconds) {
        after(span) {
            self.perform(self.rooms[number].receive(input, at: self.local), of: number)
        }
    }

    private func perform(_ effect: RoomEffect, of number: Int) {
        switch effect {
        case .connect:
            lastLink += 1
            links[number] = lastLink
            terms[lastLink] = leader.session.term
            give(.connected, to: number, in: some(1...5))
        case .disconnect:
            guard let link = links[number] else { return }
            links[number] = nil
            after(some(0...9)) { self.perform(self.leader.receive(.closed(link), at: self.group)) }
        case .send(let message):
            guard let link = links[number] else { return }
            let arrival = max(now + some(0...4).count, toLeaderBusy[link] ?? 0)
            toLeaderBusy[link] = arrival
            after(Nanoseconds(arrival - now)) {
                guard self.links[number] == link else { return }
                guard self.terms[link] == self.leader.session.term else {
                    return self.sendOn(message, link)
                }
                if case .ready(let id, _) = message { self.answered[link, default: []].insert(id) }
                self.perform(
                    self.leader.receive(.received(message, from: link), at: self.group))
            }
        case .joined: give(.clock(.locked), to: number, in: some(50...300))
        case .fetch(let asset):
            let fails = isUnreliable && Int.random(in: 0..<8, using: &random) == 0
            if isUnreliable, Bool.random(using: &random) {
                give(.fetched(asset.hash, .arriving), to: number, in: .milliseconds(1))
            }
            give(
                .fetched(asset.hash, fails ? .failed(reason: "torn") : .done), to: number,
                in: some(5...400))
        case .prepare(let order):
            let fails = isUnreliable && Int.random(in: 0..<12, using: &random) == 0
            give(
                .prepared(
                    order.id, fails ? .failed(reason: "busy") : .ready(latency: reach)),
                to: number, in: some(1...60))
        case .apply(let commit):
            guard !commit.isPause,
                let asset = leader.session.queue.first(where: { $0.hash == commit.hash }),
                let end = commit.change.instant(
                    ofFrame: asset.frameCount, sampleRate: asset.sampleRate)
            else { return }
            let left = max(.zero, end - group)
            if isUnreliable, Int.random(in: 0..<12, using: &random) == 0 {
                give(.itemFailed(commit.id, reason: "torn"), to: number, in: some(1...300))
            } else {
                give(.itemEnded(commit.id), to: number, in: left)
            }
        case .lead(let handover, let session):
            after(some(takingOver)) {
                var next = configuration(queue: [], term: session.term + 1)
                next.groupClockOrigin = self.leader.configuration.groupClockOrigin
                self.heir = LeaderMachine(next, resuming: session, handover, at: self.group)
                self.give(.leads(.leads(port: 7_431)), to: number, in: .zero)
            }
        case .disconnected, .refused, .renamed, .withdraw, .stop, .settings,
            .latencyOffset, .lineAlarm, .state, .follow, .datagramKey, .askWhoLeads, .succeed,
            .leadAlone:
            break
        }
    }

    // MARK: What must be true after a quiet while

    func expectAgreement(_ seed: UInt64) {
        for (number, room) in rooms.enumerated() {
            #expect(room.isJoined, "seed \(seed) room \(number)")
            #expect(room.session == leader.session, "seed \(seed) room \(number)")
            let context = Comment("seed \(seed) room \(number) \(leader.session.phase)")
            switch leader.session.phase {
            case .playing:
                #expect(room.lines.first?.change == leader.session.change, context)
                #expect(room.lines.count <= 2, context)
                if room.lines.count == 2 {
                    #expect(room.lines[1].change == leader.followUp?.change, context)
                }
            case .paused:
                #expect(room.lines.isEmpty, context)
                #expect(room.preparations.map(\.standing) == [.ready], context)
                #expect(room.activity == .paused, context)
            case .stopped, .ended:
                #expect(room.lines.isEmpty, context)
                #expect(room.preparations.isEmpty, context)
                #expect(room.activity == .idle, context)
                #expect(room.isIdle, context)
            case .waiting, .preparing: Issue.record(context)
            }
        }
    }
}
