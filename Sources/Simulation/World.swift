import TuttiChance
import TuttiClockSync
import TuttiGroupControl
import TuttiPlayout
import TuttiRealTime
import TuttiTiming
import TuttiTrust

/// A seeded world in which the machines of a leader and its rooms run unchanged.
///
/// Everything happens in the order of one queue of events in true time; the machines see only
/// their hosts' clocks, and each other only through bytes that a network carries late, twice or
/// not at all. Nothing else decides: no clock, no thread, no order of a hash table.
///
/// Confined to one thread.
final class World {
    /// Between two looks at who plays what.
    static let grid = Nanoseconds.milliseconds(10)
    /// Host and room of the leader at the beginning.
    static let firstLeaderPlace = 0

    enum Event {
        case script(Int)
        case look
        case leaderTimer(life: Int)
        case roomTimer(RoomLife)
        case clockTimer(RoomLife)
        case period(RoomLife)
        case upkeep(RoomLife)
        case fetched(RoomLife, AssetDescriptor)
        case prepared(RoomLife, Preparation, attempt: Int)
        /// A room's questions who leads have arrived.
        case asked(RoomLife, [NextLeader], round: Int)
        case sights(RoomLife, [SightAnswer], round: Int)
        /// A connection is made, at the room's end.
        case linkUp(RoomLife, link: Int)
        case segment(link: Int, toLeader: Bool, [UInt8])
        case notice(RoomLife, [UInt8])
        case linkDown(link: Int, atLeader: Bool)
        case relief(room: Int, Hardship, seconds: Double)
        case request(RoomLife, leader: Int, [UInt8])
        /// The time service of this life of the leader: something is due.
        case leaderWakes(Int)
        case requestStamp(RoomLife, sequence: UInt32, LocalInstant)
        case reply(RoomLife, [UInt8])
        case replyRead(RoomLife, [UInt8], arrival: LocalInstant)
        case replyStamp(life: Int, packet: UInt32, LocalInstant)
    }

    /// One process of a room: what is meant for an earlier one does not reach a later one.
    struct RoomLife: Equatable {
        var room: Int
        var life: Int

        /// As the leader tells peers apart.
        var peer: Int { room * 1_000 + life }
    }

    /// Where the answer to a time request goes, and by which key.
    struct ReplyRoute: Equatable {
        var life: RoomLife
        var asker: LeaderTags.Asker
    }

    let scenario: Scenario
    /// The scenario's, and what chance adds.
    let script: [ScriptLine]
    let seed: UInt64
    let fidelity: OutputEngine.Fidelity
    var queue = EventQueue<Event>()
    var now = TrueInstant(nanoseconds: 0)
    var hosts: [Host]
    var rooms: [SimulatedRoom?]
    var lives: [Int]
    var leader: SimulatedLeader?
    /// The leader that has handed over: it still answers time requests.
    var retired: SimulatedLeader?
    /// The leader that was killed last: whoever goes on has its queue.
    var lost: SimulatedLeader?
    /// Host and room of whoever leads, or led last.
    var leaderPlace = World.firstLeaderPlace
    /// What the group clock is, by the clock of that host.
    var groupClock = SharedClock.own(at: LocalInstant(nanoseconds: 0), epoch: 0)
    var links: [ControlLink] = []
    var trace = TraceHash()
    var meter: Meter
    var eventCount = 0
    /// Datagrams that were not believed by those who were there at the end.
    private(set) var droppedAtEnd = 0
    /// Draws what strangers do to datagrams.
    var mischief: SplitMix64

    init(_ scenario: Scenario, seed: UInt64, fidelity: OutputEngine.Fidelity) {
        self.scenario = scenario
        self.seed = seed
        let chance = scenario.storm?.script(rooms: scenario.rooms.count, seed: seed) ?? []
        script = scenario.script + chance
        mischief = SplitMix64(seed: seed, "mischief")
        self.fidelity = fidelity
        hosts = scenario.rooms.indices.map { Host(scenario.rooms[$0], place: $0, seed: seed) }
        rooms = scenario.rooms.map { _ in nil }
        lives = scenario.rooms.map { _ in 0 }
        meter = Meter(roomNames: scenario.rooms.map(\.name))
        meter.restBegins = scenario.storm?.rests
    }

    func run() {
        let end = TrueInstant(nanoseconds: 0) + Nanoseconds(seconds: scenario.seconds)
        startLeader()
        for place in scenario.rooms.indices {
            let instant = Nanoseconds(seconds: scenario.rooms[place].startsAt)
            if instant == .zero {
                start(room: place)
            } else {
                queue.schedule(.script(~place), at: now + instant)
            }
        }
        for (place, line) in script.enumerated() {
            queue.schedule(.script(place), at: now + Nanoseconds(seconds: line.at))
        }
        queue.schedule(.look, at: now + Self.grid)
        while let (instant, event) = queue.next(until: end) {
            now = instant
            eventCount += 1
            if let end = standstill(for: event) {
                queue.schedule(event, at: end)
            } else {
                perform(event)
            }
        }
        now = end
        droppedAtEnd = droppedDatagrams
        for place in rooms.indices { retire(room: place) }
    }

    private func perform(_ event: Event) {
        trace.add(now.nanoseconds)
        switch event {
        case .script(let place):
            if place < 0 { start(room: ~place) } else { perform(script[place].step) }
        case .look:
            look()
            queue.schedule(.look, at: now + Self.grid)
        case .leaderTimer(let life): leaderTimer(life)
        case .roomTimer(let life): with(life) { roomTimer($0) }
        case .clockTimer(let life): with(life) { clockTimer($0) }
        case .period(let life): with(life) { period($0) }
        case .upkeep(let life): with(life) { upkeep($0) }
        case .fetched(let life, let asset): with(life) { fetched($0, asset) }
        case .prepared(let life, let order, let attempt):
            with(life) { prepared($0, order, attempt: attempt) }
        case .asked(let life, let places, let round):
            with(life) { answerWhoLeads($0, places, round: round) }
        case .sights(let life, let answers, let round):
            with(life) { step($0) { $0.receive(.sights(answers, round: round), at: $1) } }
        case .linkUp(let life, let link): linkUp(life, link: link)
        case .segment(let link, let toLeader, let bytes):
            trace.add(UInt64(bytes.count))
            arrive(bytes, on: link, toLeader: toLeader)
        case .notice(let life, let bytes): with(life) { noticeArrived($0, bytes) }
        case .linkDown(let link, let atLeader): linkDown(link, atLeader: atLeader)
        case .relief(let place, let hardship, let seconds):
            relieve(place, of: hardship, after: seconds)
        case .request(let life, let leader, let bytes):
            requestArrived(life, of: leader, bytes)
        case .leaderWakes(let life): answer(life)
        case .requestStamp(let life, let sequence, let stamp):
            with(life) { requestStamped($0, sequence, stamp) }
        case .reply(let life, let bytes): replyArrived(life, bytes)
        case .replyRead(let life, let bytes, let arrival):
            with(life) { replyRead($0, bytes, arrival) }
        case .replyStamp(let life, let packet, let stamp): replyStamped(life, packet, stamp)
        }
    }

    /// The process, while it lives.
    private func with(_ life: RoomLife, _ body: (SimulatedRoom) -> Void) {
        trace.add(UInt64(life.room))
        if let room = rooms[life.room], room.life == life { body(room) }
    }

    // MARK: The script

    private func perform(_ step: ScriptLine.Step) {
        switch step {
        case .command(let command): self.command(command)
        case .kill(let place):
            // Nothing happens on a machine that sleeps.
            guard !hosts[place].isAsleep else { return }
            hosts[place].frozenUntil = now
            for link in links where link.room.room == place && link.isOpen {
                // The host closes what the process had open.
                close(link, fromLeader: false)
            }
            retire(room: place)
            if place == leaderPlace {
                for link in links where link.isOpen { close(link, fromLeader: true) }
                loseLeader()
            }
            if place == retired?.place { retired = nil }
        case .killLeader: perform(.kill(room: leaderPlace))
        case .powerOff(let place):
            retire(room: place)
            hosts[place].isOn = false
            if place == leaderPlace { loseLeader() }
            if place == retired?.place { retired = nil }
        case .start(let place):
            guard rooms[place] == nil else { return }
            hosts[place].isOn = true
            if place == leaderPlace, leader == nil { startLeader() }
            start(room: place)
        case .handOver(let place):
            guard let room = rooms[place] else { return }
            command(.handOver(to: room.id))
        case .hardship(let hardship, let place, let seconds):
            suffer(hardship, at: place, for: seconds)
        }
    }

    private func loseLeader() {
        lost = leader
        leader = nil
        meter.noteLeader(nil, at: now)
    }

    // MARK: Looking on

    func local(_ place: Int, _ instant: TrueInstant? = nil) -> LocalInstant {
        hosts[place].crystal.reading(at: instant ?? now)
    }

    /// What the group clock is: by the clock of the leader's host, whoever still knows it.
    func group(at instant: TrueInstant) -> GroupInstant {
        groupClock.map(local(leaderPlace, instant))
    }

    var groupNow: GroupInstant { group(at: now) }

    private func look() {
        let group = groupNow
        meter.begin(at: group, now)
        for place in rooms.indices {
            guard let room = rooms[place] else { continue }
            let local = local(place)
            let sound = room.output.sounding(at: local)
            let clock = room.cell.load()
            if clock.quality > .none {
                meter.noteClock(of: place, error: clock.map(local) - group)
            }
            if let (voice, position) = sound, let key = voice.key {
                meter.note(
                    MeterReading(
                        room: place, key: key, sampleRate: voice.sampleRate, position: position),
                    helloGroup: room.helloAt.map(self.group(at:)))
            }
        }
        meter.finish { trace.add($0) }
    }
}
