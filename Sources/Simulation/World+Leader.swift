import Chance
import ClockSync
import GroupControl
import RealTime
import Timing
import Wire

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
            clock: .own(at: LocalInstant(nanoseconds: 0), epoch: epoch))
        leader = fresh
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
            case .send(let message, let link): send(.toRoom(message), on: links[link])
            case .notify(let notice, _, let link): notify(notice, on: links[link])
            case .close(let link): close(links[link], fromLeader: true)
            case .ended, .removed, .skipped, .news: break
            case .handOver(let room, let port, _):
                let next = NextLeader(name: room, host: "", port: port)
                step(leader) { machine, _ in machine.handedOver(to: next) }
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
    func takeOver(_ handover: Handover, _ session: SessionState, _ room: SimulatedRoom) {
        guard let before = leader else { return }
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
        configuration.term = session.term + 1
        configuration.groupClockEpoch = clock.epoch
        let fresh = SimulatedLeader(
            life: before.life + 1, place: place,
            machine: LeaderMachine(
                configuration, resuming: session, handover, at: clock.map(local(place))),
            clock: clock)
        room.follower = nil
        room.cell.store(clock)
        hosts[place].reach(.inProcess, draw: &draw)
        hosts[before.place].reach(scenario.rooms[before.place].network, draw: &draw)
        hosts[before.place].cached += session.queue.map(\.hash)
        retired = before
        leader = fresh
        leaderPlace = place
        groupClock = clock
        step(fresh) { $0.advance(to: $1) }
        step(room) { $0.receive(.leads(.leads(port: 7_430)), at: $1) }
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
