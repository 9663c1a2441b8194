import TuttiChance
import TuttiClockSync
import TuttiGroupControl
import TuttiRealTime
import TuttiTiming
import TuttiTrust
import TuttiWire

// The shell of the leader. The first leader's group clock is its host's clock, number for number;
// whoever takes over goes on with what it knew of it.

extension World {
    func startLeader() {
        let life = (leader?.life ?? 0) + 1
        var draw = SplitMix64(seed: seed, "leader", life)
        let epoch = draw.next() | 1
        let assets = scenario.items.enumerated().map { place, seconds in
            Self.asset(place, seconds: seconds)
        }
        let present = scenario.rooms.count { $0.startsAt == 0 }
        let machine = LeaderMachine(
            LeaderConfiguration(
                name: scenario.rooms[leaderPlace].name, queue: assets,
                roomsToWaitFor: scenario.roomsToWaitFor ?? present, term: UInt64(life),
                groupClockEpoch: epoch, timePort: 7_430, mediaPort: 7_431))
        let fresh = SimulatedLeader(
            life: life, place: leaderPlace, machine: machine,
            clock: .own(at: LocalInstant(nanoseconds: 0), epoch: epoch),
            secret: secret(ofLeader: life))
        leader = fresh
        meter.noteLeader(fresh.place, at: now)
        groupClock = fresh.clock
        step(fresh) { $0.advance(to: $1) }
    }

    private static func asset(_ place: Int, seconds: Double) -> AssetDescriptor {
        let rate = Scenario.itemSampleRate
        let number = UInt64(place + 1)
        do {
            return try AssetDescriptor(
                hash: ContentHash(words: (number, 0, 0, number)),
                byteCount: Int64(seconds * 110_000), sampleRate: rate,
                frameCount: Int64(seconds * Double(rate)), title: "item \(number)",
                fileExtension: "flac")
        } catch {
            preconditionFailure("an item of \(seconds) s: \(error)")
        }
    }

    func step(
        _ leader: SimulatedLeader, _ turn: (inout LeaderMachine, GroupInstant) -> [LeaderEffect]
    ) {
        for effect in turn(&leader.machine, leader.clock.map(local(leader.place))) {
            switch effect {
            case .send(let message, let link):
                send(.toRoom(keyed(message, by: leader, to: link)), on: links[link])
            case .notify(let notice, _, let link): notify(notice, on: links[link])
            case .close(let link): close(links[link], fromLeader: true)
            case .ended, .removed, .skipped, .news: break
            case .handOver(let room, let port, _):
                let next = NextLeader(name: room, host: "", port: port)
                step(leader) { machine, _ in machine.handedOver(to: next) }
            // Nobody is cut off here and leads on.
            case .yield, .askWhoLeads: break
            }
        }
        arm(leader)
    }

    private func arm(_ leader: SimulatedLeader) {
        guard let deadline = leader.machine.nextDeadline, deadline != leader.alarm else { return }
        leader.alarm = deadline
        let place = leader.place
        let reading = max(leader.clock.map.inverted(deadline), local(place))
        queue.schedule(
            .leaderTimer(life: leader.life),
            at: hosts[place].crystal.instant(of: reading) + hosts[place].taskLateness())
    }

    func leaderTimer(_ life: Int) {
        guard let leader = leader(ofLife: life), let deadline = leader.machine.nextDeadline,
            deadline <= leader.clock.map(local(leader.place))
        else { return }
        leader.alarm = nil
        step(leader) { $0.advance(to: $1) }
    }

    /// Whoever leads, or has handed over.
    func leader(ofLife life: Int) -> SimulatedLeader? {
        if let leader, leader.life == life { return leader }
        return retired.flatMap { $0.life == life ? $0 : nil }
    }

    /// Makes a room the leader, with the group clock as that room knows it.
    func takeOver(
        _ handover: Handover, _ session: SessionState, _ room: SimulatedRoom, reign: UInt64? = nil
    ) {
        guard let before = leader ?? lost else { return }
        let place = room.life.room
        var draw = SplitMix64(seed: seed, "leader", before.life + 1)
        let known = room.cell.load()
        let clock = SharedClock.continuing(
            known, at: local(place), skew: room.follower?.storedSkew.skew ?? known.map.skew,
            epoch: draw.next() | 1)
        meter.handovers.append(
            .init(
                step: (clock.map(local(place)) - groupNow).microseconds,
                bound: known.uncertainty.microseconds))
        var configuration = before.machine.configuration
        configuration.name = scenario.rooms[place].name
        configuration.term = session.nextTerm
        configuration.groupClockEpoch = clock.epoch
        configuration.reign = reign
        let fresh = SimulatedLeader(
            life: before.life + 1, place: place,
            machine: LeaderMachine(
                configuration, resuming: session, handover, at: clock.map(local(place))),
            clock: clock, secret: secret(ofLeader: before.life + 1))
        room.follower = nil
        room.cell.store(clock)
        hosts[place].reach(.inProcess, draw: &draw)
        hosts[before.place].reach(scenario.rooms[before.place].network, draw: &draw)
        hosts[before.place].cached += session.queue.map(\.hash)
        retired = leader
        leader = fresh
        meter.noteLeader(fresh.place, at: now)
        leaderPlace = place
        groupClock = clock
        step(fresh) { $0.advance(to: $1) }
    }

    /// What those answer whom a room asks who leads; a host that is off says nothing.
    func answerWhoLeads(_ room: SimulatedRoom, _ places: [NextLeader], round: Int) {
        let answers = places.map(sight)
        let wait = answers.contains(.silent) ? Bereavement.answerLimit : .zero
        let arrival = hosts[room.life.room].toRoom.streamArrival(of: now)
        queue.schedule(.sights(room.life, answers, round: round), at: arrival + wait)
    }

    private func sight(of asked: NextLeader) -> SightAnswer {
        guard let place = scenario.rooms.firstIndex(where: { $0.name == asked.name.name }),
            hosts[place].isOn, hosts[place].frozenUntil <= now
        else { return .silent }
        if let leader, leader.place == place, let sight = leader.machine.sight {
            return .sight(sight)
        }
        guard let other = rooms[place] else { return .refused }
        let (origin, hearsLeader) = other.machine.sight(at: local(place))
        guard hearsLeader, let leader = leader ?? lost,
            let name = try? RoomID(scenario.rooms[leader.place].name)
        else { return .sight(LeadSight(room: other.id, origin: origin, lead: .none)) }
        return .sight(
            LeadSight(
                room: other.id, origin: origin,
                lead: .heard(NextLeader(name: name, host: "", port: 7_430))))
    }

    /// A person asks for something, at the leader.
    func command(_ command: GroupCommand) {
        guard let leader else { return }
        step(leader) { machine, now in
            let (outcome, effects) = machine.perform(command, at: now)
            if case .refused(let reason) = outcome {
                meter.refusals.append("\(command): \(reason)")
            }
            return effects
        }
    }
}
