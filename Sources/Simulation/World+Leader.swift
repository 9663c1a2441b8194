import Chance
import GroupControl
import Timing
import Wire

// The shell of the leader: its group clock is its host's clock, number for number.

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
                name: scenario.rooms[Self.leaderPlace].name, queue: assets,
                roomsToWaitFor: scenario.roomsToWaitFor ?? present, term: UInt64(life),
                groupClockEpoch: epoch, timePort: 7_430, mediaPort: 7_431))
        let fresh = SimulatedLeader(
            life: life, machine: machine,
            clock: .own(at: LocalInstant(nanoseconds: 0), epoch: epoch))
        leader = fresh
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
        for effect in turn(&leader.machine, groupNow) {
            switch effect {
            case .send(let message, let link): send(.toRoom(message), on: links[link])
            case .notify(let notice, _, let link): notify(notice, on: links[link])
            case .close(let link): close(links[link], fromLeader: true)
            case .ended, .skipped, .news: break
            }
        }
        arm(leader)
    }

    private func arm(_ leader: SimulatedLeader) {
        guard let deadline = leader.machine.nextDeadline, deadline != leader.alarm else { return }
        leader.alarm = deadline
        let place = Self.leaderPlace
        let reading = LocalInstant(
            nanoseconds: max(deadline.nanoseconds, local(place).nanoseconds))
        queue.schedule(
            .leaderTimer(life: leader.life),
            at: hosts[place].crystal.instant(of: reading) + hosts[place].taskLateness())
    }

    func leaderTimer(_ life: Int) {
        guard let leader, leader.life == life, let deadline = leader.machine.nextDeadline,
            deadline <= groupNow
        else { return }
        leader.alarm = nil
        step(leader) { $0.advance(to: $1) }
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
