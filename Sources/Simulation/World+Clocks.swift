import TuttiChance
import TuttiClockSync
import TuttiGroupControl
import TuttiPlayout
import TuttiRealTime
import TuttiTiming
import TuttiTrust
import TuttiWire

// Time packets: a room asks, the network delays, the leader answers, kernels stamp.

extension World {
    // MARK: Asking

    /// The leader told which clock is the group's.
    func follow(_ welcome: Welcome, _ room: SimulatedRoom) {
        let place = room.life.room
        room.asked = room.link.map { links[$0].leaderLife } ?? 0
        if room.followed != welcome.groupClockOrigin {
            room.followed = welcome.groupClockOrigin
            room.cell = ClockCell(.unknown)
            room.follower = nil
            if place == leaderPlace, let leader {
                room.cell.store(leader.clock)
            } else {
                let draw = drawOfClock(room)
                begin(ClockFollower(start: local(place), seed: draw), room)
            }
        } else if room.follower == nil, place != leaderPlace {
            // It led until now, and goes on from where its own clock is.
            let clock = room.cell.load()
            begin(
                ClockFollower(
                    start: local(place), seed: drawOfClock(room), continuing: clock,
                    stored: .continuing(clock)), room)
        }
        let quality = room.cell.load().quality
        step(room) { $0.receive(.clock(quality), at: $1) }
    }

    private func drawOfClock(_ room: SimulatedRoom) -> UInt64 {
        room.clocksMade += 1
        var draw = SplitMix64(
            seed: seed, "clock", room.life.room, room.life.life * 1_000 + room.clocksMade)
        return draw.next()
    }

    private func begin(_ follower: ClockFollower, _ room: SimulatedRoom) {
        room.follower = follower
        room.clockAlarm = nil
        armClock(room)
    }

    func expect(_ start: ExpectedStart, _ room: SimulatedRoom) {
        room.follower?.expectStart(start, at: local(room.life.room))
        armClock(room)
    }

    private func armClock(_ room: SimulatedRoom) {
        guard let deadline = room.follower?.nextDeadline, deadline != room.clockAlarm else {
            return
        }
        let place = room.life.room
        room.clockAlarm = deadline
        let due = max(now, hosts[place].crystal.instant(of: deadline))
        queue.schedule(.clockTimer(room.life), at: due + hosts[place].realTimeLateness())
    }

    func clockTimer(_ room: SimulatedRoom) {
        guard let deadline = room.follower?.nextDeadline, deadline <= local(room.life.room) else {
            return
        }
        room.clockAlarm = nil
        stepClock(room) { $0.advance(to: $1) }
    }

    private func stepClock(
        _ room: SimulatedRoom,
        _ turn: (inout ClockFollower, LocalInstant) -> [ClockFollower.Effect]
    ) {
        guard var follower = room.follower else { return }
        room.follower = nil
        let effects = turn(&follower, local(room.life.room))
        room.follower = follower
        for effect in effects {
            switch effect {
            case .send(let request): ask(request, room)
            case .publish(let clock): publish(clock, room)
            }
        }
        armClock(room)
    }

    private func publish(_ clock: SharedClock, _ room: SimulatedRoom) {
        let before = room.cell.load().quality
        room.cell.store(clock)
        if clock.quality != before {
            step(room) { $0.receive(.clock(clock.quality), at: $1) }
        }
    }

    private func ask(_ request: TimeRequest, _ room: SimulatedRoom) {
        let place = room.life.room
        let departure = now + hosts[place].sendDuration()
        let stamp = local(place, departure)
        queue.schedule(
            .requestStamp(room.life, sequence: request.sequence, stamp),
            at: departure + hosts[place].readDuration())
        guard let leader = leader(ofLife: room.asked), hosts[place].isOn, hosts[leader.place].isOn,
            let sealed = room.tags?.seal(request: TimePacket.request(request).encoded)
        else { return }
        let instants = hosts[place].toLeader.arrivals(of: departure)
        for (bytes, arrival) in arrivals(of: sealed, at: instants) {
            queue.schedule(.request(room.life, leader: leader.life, bytes), at: arrival)
        }
    }

    func requestStamped(_ room: SimulatedRoom, _ sequence: UInt32, _ stamp: LocalInstant) {
        stepClock(room) { $0.transmitted(sequence: sequence, at: stamp, now: $1) }
    }

    func advanceClock(_ room: SimulatedRoom) { stepClock(room) { $0.advance(to: $1) } }

    func replyArrived(_ life: RoomLife, _ bytes: [UInt8]) {
        guard !hosts[life.room].isAsleep else { return }
        let stamped = now + hosts[life.room].receiveStampLateness()
        queue.schedule(
            .replyRead(life, bytes, arrival: local(life.room, stamped)),
            at: stamped + hosts[life.room].readDuration())
    }

    func replyRead(_ room: SimulatedRoom, _ bytes: [UInt8], _ arrival: LocalInstant) {
        guard let opened = room.tags?.open(reply: bytes, at: local(room.life.room)),
            case .reply(let reply)? = (unsafe TimePacket(opened.span.bytes))
        else { return }
        stepClock(room) { $0.receive(reply, t4: arrival, isKernelStamp: true, at: $1) }
    }

    // MARK: Answering

    func requestArrived(_ life: RoomLife, of asked: Int, _ bytes: [UInt8]) {
        guard let leader = leader(ofLife: asked) else { return }
        let place = leader.place
        guard let (payload, asker) = leader.tags.open(request: bytes, at: local(place)),
            case .request(let request)? = (unsafe TimePacket(payload.span.bytes))
        else { return }
        let stamped = now + hosts[place].receiveStampLateness()
        let arrival = local(place, stamped)
        let receipt = leader.time.receive(
            request,
            .init(
                peer: life.peer, route: ReplyRoute(life: life, asker: asker), instant: arrival,
                isKernelStamp: true),
            epoch: leader.clock.epoch, at: arrival)
        guard let due = receipt.due else { return }
        queue.schedule(
            .leaderWakes(leader.life),
            at: stamped + (due - arrival) + hosts[place].readDuration())
    }

    /// The thread of the time service is awake: whatever is due leaves.
    func answer(_ life: Int) {
        guard let leader = leader(ofLife: life) else { return }
        let place = leader.place
        while true {
            leader.packet += 1
            guard
                let answer = leader.time.advance(
                    to: local(place), packet: leader.packet, clock: leader.clock)
            else { return }
            let departure = now + hosts[place].sendDuration()
            queue.schedule(
                .replyStamp(
                    life: leader.life, packet: leader.packet, local(place, departure)),
                at: departure + hosts[place].readDuration())
            let (life, asker) = (answer.route.life, answer.route.asker)
            guard
                let sealed = leader.tags.seal(
                    reply: TimePacket.reply(answer.reply).encoded, to: asker, at: local(place))
            else { continue }
            let instants = hosts[life.room].toRoom.arrivals(of: departure)
            for (bytes, arrival) in arrivals(of: sealed, at: instants) {
                queue.schedule(.reply(life, bytes), at: arrival)
            }
        }
    }

    func replyStamped(_ life: Int, _ packet: UInt32, _ stamp: LocalInstant) {
        guard let leader = leader(ofLife: life) else { return }
        leader.time.transmitted(packet: packet, at: stamp)
    }
}
