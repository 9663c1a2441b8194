import TuttiChance
import TuttiClockSync
import TuttiGroupControl
import TuttiPlayout
import TuttiTiming
import TuttiWire

// The shell of a room: performs the effects of its machine and reports back.

extension World {
    /// Rings are topped up and voices looked after this often.
    private static let upkeepInterval = Nanoseconds.milliseconds(20)
    /// Upkeeps between two reports: about a quarter of a second.
    private static let reportEvery = 12
    /// Upkeeps between two looks at what the output plays, as often as the machine asks for.
    private static let lookEvery = 15
    /// A preparation that finds no voice or no clock tries again after this …
    private static let prepareRetry = Nanoseconds.milliseconds(5)
    /// … for two seconds.
    private static let prepareAttempts = 400

    func start(room place: Int) {
        lives[place] += 1
        let life = RoomLife(room: place, life: lives[place])
        let plan = scenario.rooms[place]
        var draw = SplitMix64(seed: seed, "process", place, life.life)
        let crystal = Crystal(
            nominalRate: SimulatedOutput.format.sampleRate, partsPerMillion: plan.card,
            wander: 0.2, seed: draw.next())
        guard let id = try? RoomID(plan.name) else {
            preconditionFailure("a scenario calls a room \"\(plan.name)\"")
        }
        let machine = RoomMachine(
            RoomConfiguration(
                room: id, instance: draw.next(), outputLatency: SimulatedOutput.latency,
                hasOutput: true, noticePort: 7_432, doorPort: 7_430, mayLead: true),
            at: local(place))
        let room = SimulatedRoom(
            life: life, machine: machine,
            output: SimulatedOutput(crystal: crystal, fidelity: fidelity))
        rooms[place] = room
        meter.processStarted(place)
        queue.schedule(.period(life), at: now + Nanoseconds(seconds: draw.uniform(0, 10e-3)))
        queue.schedule(.upkeep(life), at: now + Nanoseconds(seconds: draw.uniform(0, 20e-3)))
        step(room) { $0.advance(to: $1) }
    }

    /// The process ends: its figures are all that stays.
    func retire(room place: Int) {
        guard let room = rooms[place] else { return }
        meter.processEnded(place, room.output)
        rooms[place] = nil
    }

    // MARK: The machine

    func step(_ room: SimulatedRoom, _ turn: (inout RoomMachine, LocalInstant) -> [RoomEffect]) {
        for effect in turn(&room.machine, local(room.life.room)) { perform(effect, room) }
        arm(room)
    }

    private func arm(_ room: SimulatedRoom) {
        let place = room.life.room
        guard let deadline = room.machine.nextDeadline, deadline != room.machineAlarm else {
            return
        }
        room.machineAlarm = deadline
        let due = max(now, hosts[place].crystal.instant(of: deadline))
        queue.schedule(.roomTimer(room.life), at: due + hosts[place].taskLateness())
    }

    func roomTimer(_ room: SimulatedRoom) {
        guard let deadline = room.machine.nextDeadline, deadline <= local(room.life.room) else {
            return
        }
        room.machineAlarm = nil
        step(room) { $0.advance(to: $1) }
    }

    private func perform(_ effect: RoomEffect, _ room: SimulatedRoom) {
        switch effect {
        case .connect: connect(room)
        case .disconnect:
            if let link = room.link { close(links[link], fromLeader: false) }
            room.link = nil
        case .send(let message):
            if case .hello = message { room.helloAt = now }
            if let link = room.link { send(.toLeader(message), on: links[link]) }
        case .joined(let welcome):
            takeKey(welcome.datagramKey, room)
            follow(welcome, room)
        case .datagramKey(let key): takeKey(key, room)
        case .lineAlarm(let finding, _): meter.note(finding, of: room.life.room)
        case .disconnected, .refused, .renamed, .state, .follow, .leadAlone: break
        case .lead(let handover, let session):
            takeOver(handover, session, room)
            step(room) { $0.receive(.leads(.leads(port: 7_430)), at: $1) }
        case .askWhoLeads(let places, let round):
            let arrival = hosts[room.life.room].toLeader.streamArrival(of: now)
            queue.schedule(.asked(room.life, places, round: round), at: arrival)
        case .succeed(let inheritance, let session):
            takeOver(inheritance.handover, session, room, reign: inheritance.reign)
            step(room) { $0.receive(.succeeded(.leads(port: 7_430)), at: $1) }
        case .fetch(let asset): fetch(asset, room)
        case .prepare(let order):
            expect(order.change == nil ? .common : .joining, room)
            let duration = hosts[room.life.room].prepareDuration()
            queue.schedule(.prepared(room.life, order, attempt: 1), at: now + duration)
        case .apply(let commit): apply(commit, room)
        case .withdraw(let id): room.stage.withdraw(id)
        case .stop: room.stage.withdrawAll()
        case .settings(let settings):
            room.output.engine.port.setGain(RoomSettings.gain(ofLevel: settings.level))
        case .latencyOffset(let offset): room.output.engine.port.setLatencyOffset(offset.delay)
        }
    }

    private func apply(_ commit: Commit, _ room: SimulatedRoom) {
        let isTaken = room.stage.apply(commit, clock: room.cell)
        precondition(isTaken, "\(room.id): a commit for nothing prepared, \(commit)")
        if !commit.isPause {
            meter.noteCommit(
                of: room.life.room, LineKey(index: commit.index, change: commit.change))
        }
    }

    // MARK: Media

    private func fetch(_ asset: AssetDescriptor, _ room: SimulatedRoom) {
        let place = room.life.room
        let isHere = place == leaderPlace || hosts[place].cached.contains(asset.hash)
        let duration =
            isHere
            ? hosts[place].taskLateness() : hosts[place].fetchDuration(bytes: asset.byteCount)
        queue.schedule(.fetched(room.life, asset), at: now + duration)
    }

    func fetched(_ room: SimulatedRoom, _ asset: AssetDescriptor) {
        let place = room.life.room
        if place == leaderPlace || hosts[place].cached.contains(asset.hash) {
            return step(room) { $0.receive(.fetched(asset.hash, .done), at: $1) }
        }
        guard leader != nil else {
            return step(room) {
                $0.receive(.fetched(asset.hash, .failed(reason: "the leader is gone")), at: $1)
            }
        }
        guard !hosts[place].isDiskFull else {
            return step(room) {
                $0.receive(
                    .fetched(asset.hash, .failed(reason: "no space left on device")), at: $1)
            }
        }
        hosts[place].cached.append(asset.hash)
        step(room) { $0.receive(.fetched(asset.hash, .done), at: $1) }
    }

    func prepared(_ room: SimulatedRoom, _ order: Preparation, attempt: Int) {
        switch room.stage.prepare(order, clock: room.cell, now: local(room.life.room)) {
        case .ready:
            step(room) {
                $0.receive(.prepared(order.id, .ready(latency: SimulatedOutput.latency)), at: $1)
            }
        case .later where attempt < Self.prepareAttempts:
            queue.schedule(
                .prepared(room.life, order, attempt: attempt + 1), at: now + Self.prepareRetry)
        case .later:
            step(room) {
                $0.receive(
                    .prepared(order.id, .failed(reason: "no voice or no clock here")), at: $1)
            }
        }
    }

    func upkeep(_ room: SimulatedRoom) {
        room.stage.feed()
        for id in room.stage.settle() {
            step(room) { $0.receive(.itemEnded(id), at: $1) }
        }
        room.upkeeps += 1
        if room.upkeeps.isMultiple(of: Self.lookEvery) {
            let look = room.stage.look(
                by: room.cell, room.output.engine.port, at: local(room.life.room))
            step(room) { $0.receive(.heard(look), at: $1) }
        }
        if room.upkeeps.isMultiple(of: Self.reportEvery) {
            let report = report(of: room)
            step(room) { $0.receive(.report(report), at: $1) }
        }
        queue.schedule(.upkeep(room.life), at: now + Self.upkeepInterval)
    }

    private func report(of room: SimulatedRoom) -> RoomReport {
        let output = room.output.engine.port.report
        let statistics = room.follower?.statistics(at: local(room.life.room))
        return RoomReport(
            clockBound: statistics?.bound ?? .zero, roundTrip: statistics?.roundTrip ?? .zero,
            stamps: .kernel, cardPartsPerMillion: output.cardPartsPerMillion,
            ratioPartsPerMillion: output.ratioPartsPerMillion, error: output.error,
            dropouts: Int(output.starvedFrames), xruns: output.restarts)
    }

    // MARK: The card

    func period(_ room: SimulatedRoom) {
        let place = room.life.room
        let (boundaries, next) = room.output.run(at: local(place)) { room.stage.reports() }
        for boundary in boundaries {
            let instant = hosts[place].crystal.instant(of: boundary.instant)
            trace.add(instant.nanoseconds)
            meter.note(boundary, of: place, at: instant, group: group(at: instant))
        }
        let due = max(now, hosts[place].crystal.instant(of: next))
        queue.schedule(.period(room.life), at: due + hosts[place].realTimeLateness())
    }
}
