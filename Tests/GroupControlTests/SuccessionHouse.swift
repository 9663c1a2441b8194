import Testing
import TuttiChance
import TuttiTiming

@testable import TuttiGroupControl

/// Nodes that each are a room and may lead, on a network that parts and heals; processes that die,
/// freeze and come back. All clocks are the same one: who leads is the matter here, not the time.
final class SuccessionHouse {
    final class Node {
        let place: Int
        // When each is due is asked for at every step of the house, and reading it copies a machine.
        var room: RoomMachine { didSet { roomDue = Self.due(room.nextDeadline) } }
        private(set) var roomDue: Int64
        /// Leads, or led: then it sends everybody on.
        var leader: LeaderMachine? { didSet { leaderDue = Self.due(leader?.nextDeadline) } }
        private(set) var leaderDue = Int64.max
        var isAlive = true
        var frozenUntil: Int64 = 0
        /// Which part of the network it is in.
        var part = 0
        /// Where its room goes to.
        var target: Int
        /// Attempts to reach it that came to nothing.
        var failures = 0
        /// The link of its room.
        var link: LinkID?
        /// Nobody leads there but itself, and it has not been heard of by others.
        var name: RoomID { room.configuration.room }

        init(_ place: Int, _ room: RoomMachine) {
            self.place = place
            self.room = room
            roomDue = Self.due(room.nextDeadline)
            target = 0
        }

        private static func due<Clock>(_ deadline: Instant<Clock>?) -> Int64 {
            deadline?.nanoseconds ?? .max
        }

        var leads: Bool { leader.map { $0.heir == nil } ?? false }
    }

    struct Link {
        var from: Int
        var to: Int
        var isBroken = false
        /// Later messages do not overtake earlier ones.
        var busy: (there: Int64, back: Int64) = (0, 0)
    }

    var random: SplitMix64
    var now: Int64 = 1_000_000_000
    var nodes: [Node] = []
    var links: [LinkID: Link] = [:]
    private var lastLink = 0
    private var order = 0
    private var steps = 0
    /// The last one is due first.
    private var events: [Event] = []

    private struct Event {
        var at: Int64
        let order: Int
        let node: Int
        let act: () -> Void

        func isDue(before other: Event) -> Bool { (at, order) < (other.at, other.order) }
    }
    /// How long one way takes, milliseconds.
    var latency: ClosedRange<Int64> = 1...8
    /// What ended a sound by force: room and effect.
    var silenced: [(room: Int, at: Int64, effect: RoomEffect)] = []
    /// Who began to lead, and when.
    var accessions: [(room: Int, at: Int64)] = []

    init(seed: UInt64, rooms: Int, items: Int = 3) {
        random = SplitMix64(seed: seed)
        let start = LocalInstant(nanoseconds: now)
        for place in 0..<rooms {
            let machine = RoomMachine(
                RoomConfiguration(
                    room: .numbered(place),
                    instance: UInt64(100 + place), outputLatency: .milliseconds(20),
                    hasOutput: true, doorPort: 7_430, mayLead: true),
                at: start)
            nodes.append(Node(place, machine))
        }
        var settings = configuration(
            queue: (1...items).map { asset(UInt64($0), seconds: 300) }, rooms: rooms, loops: true)
        settings.name = nodes[0].name.name
        settings.ownInstance = 100
        nodes[0].leader = LeaderMachine(settings)
    }

    var local: LocalInstant { LocalInstant(nanoseconds: now) }
    var group: GroupInstant { GroupInstant(nanoseconds: now) }

    func some(_ range: ClosedRange<Int64>) -> Int64 {
        Int64.random(in: range, using: &random) * 1_000_000
    }

    private func isActive(_ node: Node) -> Bool { node.isAlive && node.frozenUntil <= now }

    private func reaches(_ one: Int, _ other: Int) -> Bool {
        one == other || nodes[one].part == nodes[other].part
    }

    /// At a node: not while it is frozen, and never once its process has died.
    private func after(_ span: Int64, at node: Int, _ act: @escaping () -> Void) {
        order += 1
        insert(Event(at: now + span, order: order, node: node, act: act))
    }

    private func insert(_ event: Event) {
        var (low, high) = (0, events.count)
        while low < high {
            let middle = (low + high) / 2
            if event.isDue(before: events[middle]) { low = middle + 1 } else { high = middle }
        }
        events.insert(event, at: low)
    }

    func run(for span: Nanoseconds) {
        let end = now + span.count
        while true {
            var next = events.last?.at ?? .max
            for node in nodes where node.isAlive {
                next = min(next, max(min(node.roomDue, node.leaderDue), node.frozenUntil))
            }
            guard next <= end else { break }
            steps += 1
            precondition(steps < 2_000_000, "the house never rests")
            now = max(now, next)
            var due: [Event] = []
            while let event = events.last, event.at <= now { due.append(events.removeLast()) }
            for var event in due where nodes[event.node].isAlive {
                if nodes[event.node].frozenUntil > now {
                    event.at = nodes[event.node].frozenUntil
                    insert(event)
                } else {
                    event.act()
                }
            }
            for node in nodes where isActive(node) {
                if node.leaderDue <= now {
                    perform(node.leader?.advance(to: group) ?? [], of: node)
                }
                if node.roomDue <= now { perform(node.room.advance(to: local), of: node) }
            }
        }
        now = end
    }

    // MARK: What happens to the house

    /// The process dies, and its machine says so to whoever is connected.
    func kill(_ place: Int) {
        nodes[place].isAlive = false
        for (id, link) in links where link.from == place || link.to == place {
            hangUp(id, by: place)
        }
    }

    /// The process is started again: its node keeps its number, and finds whoever is announced.
    func revive(_ place: Int) {
        let before = nodes[place]
        guard !before.isAlive else { return }
        let node = Node(place, RoomMachine(before.room.configuration, at: local))
        node.part = before.part
        node.failures = Self.mostAttempts
        // What was under way in the process of before is nothing to this one.
        events.removeAll { $0.node == place }
        nodes[place] = node
        perform(node.room.advance(to: local), of: node)
    }

    func freeze(_ place: Int, for span: Nanoseconds) {
        nodes[place].frozenUntil = now + span.count
    }

    /// Connections across a border carry nothing more, also after it is gone: both ends are slow to
    /// send again.
    func part(_ parts: [Int]) {
        for (node, part) in zip(nodes, parts) { node.part = part }
        for (id, link) in links where !reaches(link.from, link.to) { links[id]?.isBroken = true }
    }

    func command(_ command: GroupCommand, at place: Int) -> CommandOutcome? {
        guard let result = nodes[place].leader?.perform(command, at: group) else { return nil }
        perform(result.effects, of: nodes[place])
        return result.outcome
    }

    var leaders: [Int] { nodes.filter { $0.isAlive && $0.leads }.map(\.place) }

    // MARK: Links

    private func hangUp(_ id: LinkID, by place: Int) {
        guard let link = links.removeValue(forKey: id) else { return }
        if nodes[link.from].link == id { nodes[link.from].link = nil }
        guard reaches(link.from, link.to), !link.isBroken else { return }
        if link.from != place {
            after(some(latency), at: link.from) {
                self.tell(.closed(reason: "closed"), self.nodes[link.from])
            }
        }
        if link.to != place {
            after(some(latency), at: link.to) { self.tell(.closed(id), self.nodes[link.to]) }
        }
    }

    private func say(_ id: LinkID, there: Bool, _ act: @escaping () -> Void) {
        guard var link = links[id] else { return }
        let span = some(link.from == link.to ? 0...0 : latency)
        let arrival = max(now + span, there ? link.busy.there : link.busy.back)
        if there { link.busy.there = arrival } else { link.busy.back = arrival }
        links[id] = link
        after(arrival - now, at: there ? link.to : link.from) {
            guard let link = self.links[id], !link.isBroken else { return }
            act()
        }
    }

    private func tell(_ input: RoomInput, _ node: Node) {
        perform(node.room.receive(input, at: local), of: node)
    }

    private func tell(_ input: LeaderInput, _ node: Node) {
        perform(node.leader?.receive(input, at: group) ?? [], of: node)
    }

    // MARK: The leaders' shells

    func perform(_ effects: [LeaderEffect], of node: Node) {
        for effect in effects {
            switch effect {
            case .send(let message, let id):
                say(id, there: false) { [self] in
                    guard let link = links[id], nodes[link.from].link == id else { return }
                    tell(.received(message), nodes[link.from])
                }
            case .close(let id): say(id, there: false) { self.hangUp(id, by: node.place) }
            case .handOver, .notify, .ended, .removed, .skipped, .news: break
            case .yield(let next):
                guard node.leads else { break }
                let farewell = node.leader?.handedOver(to: next) ?? []
                perform(farewell, of: node)
            case .askWhoLeads(let places):
                let claim = node.leader?.sight
                for asked in places {
                    ask(asked, from: node.place, claim: claim) { [self] answer in
                        if case .sight(let sight) = answer { tell(.sight(sight, of: asked), node) }
                    }
                }
            }
        }
    }

    /// - Parameter then: called at the node that asks.
    private func ask(
        _ asked: NextLeader, from place: Int, claim: LeadSight? = nil,
        then: @escaping (SightAnswer) -> Void
    ) {
        let other = nodes[Int(asked.host) ?? nodes[place].target]
        let silence = Bereavement.answerLimit.count
        after(some(latency), at: place) { [self] in
            guard reaches(place, other.place), other.frozenUntil <= now else {
                return after(silence, at: place) { then(.silent) }
            }
            guard other.isAlive else { return after(0, at: place) { then(.refused) } }
            if let claim, other.leads {
                let there = NextLeader(name: claim.room, host: "\(place)", port: 7_430)
                tell(.sight(claim, of: there), other)
            }
            let answer = SightAnswer.sight(sight(of: other))
            after(some(latency), at: place) { then(answer) }
        }
    }

    private func sight(of node: Node) -> LeadSight {
        if node.leads, let sight = node.leader?.sight { return sight }
        let (origin, hears) = node.room.sight(at: local)
        let leader = nodes[node.target]
        return LeadSight(
            room: node.name, origin: origin,
            lead: hears
                ? .heard(NextLeader(name: leader.name, host: "\(leader.place)", port: 7_430))
                : .none)
    }

    // MARK: The rooms' shells

    func perform(_ effects: [RoomEffect], of node: Node) {
        for effect in effects { perform(effect, of: node) }
    }

    private func perform(_ effect: RoomEffect, of node: Node) {
        switch effect {
        case .connect: connect(node)
        case .disconnect:
            if let id = node.link { hangUp(id, by: node.place) }
            node.link = nil
        case .send(let message):
            guard let id = node.link else { return }
            say(id, there: true) { [self] in receive(message, id) }
        case .joined:
            node.failures = 0
            after(some(20...120), at: node.place) { self.tell(.clock(.locked), node) }
        case .fetch(let asset):
            after(some(2...40), at: node.place) { self.tell(.fetched(asset.hash, .done), node) }
        case .prepare(let order):
            after(some(2...40), at: node.place) {
                self.tell(.prepared(order.id, .ready(latency: .milliseconds(20))), node)
            }
        case .stop, .withdraw: silenced.append((node.place, now, effect))
        case .follow(let next):
            node.failures = 0
            node.target = Int(next.host) ?? node.target
        case .askWhoLeads(let places, let round):
            var answers: [SightAnswer?] = places.map { _ in nil }
            for (number, place) in places.enumerated() {
                ask(place, from: node.place) { [self] answer in
                    answers[number] = answer
                    let given = answers.compactMap(\.self)
                    if given.count == places.count {
                        tell(.sights(given, round: round), node)
                    }
                }
            }
        case .succeed(let inheritance, let session): succeed(node, inheritance, session)
        case .apply, .disconnected, .refused, .renamed, .settings, .latencyOffset, .lineAlarm,
            .state, .lead, .datagramKey, .leadAlone:
            break
        }
    }

    /// Attempts after which a room goes to any leader that is announced, as `LeaderFinder` does.
    private static let mostAttempts = 5

    private func connect(_ node: Node) {
        node.failures += 1
        if node.failures > Self.mostAttempts,
            let announced = nodes.first(where: {
                isActive($0) && $0.leads && reaches(node.place, $0.place)
            })
        {
            node.target = announced.place
        }
        let other = nodes[node.target]
        guard reaches(node.place, other.place), other.frozenUntil <= now else { return }
        guard other.isAlive else {
            return after(some(latency), at: node.place) { self.tell(.closed(reason: "no"), node) }
        }
        lastLink += 1
        let id = lastLink
        node.link = id
        links[id] = Link(from: node.place, to: other.place)
        tell(.linked(id, host: other === node ? "" : "\(node.place)"), other)
        after(some(latency), at: node.place) {
            if node.link == id { self.tell(.connected, node) }
        }
    }

    private func receive(_ message: RoomToLeader, _ id: LinkID) {
        guard let link = links[id] else { return }
        let other = nodes[link.to]
        guard other.leader != nil else {
            // Its door sends on.
            let leader = nodes[other.target]
            let next = NextLeader(name: leader.name, host: "\(leader.place)", port: 7_430)
            return say(id, there: false) { [self] in
                guard nodes[link.from].link == id else { return }
                tell(
                    .received(leader === other ? .refused(reason: "no leader") : .follow(next)),
                    nodes[link.from])
            }
        }
        tell(.received(message, from: id), other)
    }

    private func succeed(_ node: Node, _ inheritance: Inheritance, _ session: SessionState) {
        let before = nodes[node.target]
        let others = inheritance.others.map { other in
            var other = other
            if other.host.isEmpty { other.host = "\(before.place)" }
            return other
        }
        after(some(2...40), at: node.place) { [self] in
            var settings = configuration(queue: [], term: session.term + 1)
            settings.name = node.name.name
            settings.ownInstance = node.room.configuration.instance
            settings.groupClockOrigin = node.room.membership?.groupClockOrigin ?? 0
            settings.groupClockEpoch = UInt64(node.place) << 32 | session.term
            settings.reign = inheritance.reign
            node.leader = LeaderMachine(
                settings, resuming: session, inheritance.handover, missing: others,
                waitingFor: LeaderMachine.handoverLimit, at: group)
            node.target = node.place
            accessions.append((node.place, now))
            tell(.succeeded(.leads(port: 7_430)), node)
        }
    }

    // MARK: What must be true after a quiet while

    /// Of those that are there and reach each other one leads, and all play what it has.
    func expectAgreement(_ context: Comment) {
        for part in Set(nodes.filter(\.isAlive).map(\.part)) {
            let here = nodes.filter { $0.isAlive && $0.part == part }
            let leading = here.filter(\.leads)
            let known = leading.map { node in
                "\(node.place) \(node.leader?.precedence as Any) misses \(node.leader?.missed.map(\.place.host) ?? [])"
            }
            #expect(leading.count == 1, "\(context): \(known) lead part \(part)")
            guard let leader = leading.first?.leader else { continue }
            for node in here {
                let (isJoined, isTold) = (node.room.isJoined, node.room.session == leader.session)
                #expect(isJoined && isTold, "\(context), room \(node.place)")
                if leader.session.phase == .playing {
                    #expect(
                        node.room.lines.first?.change == leader.session.change,
                        "\(context), room \(node.place)")
                }
                #expect(node.room.bereft == nil, "\(context), room \(node.place)")
            }
        }
    }
}

extension RoomID {
    fileprivate static func numbered(_ place: Int) -> RoomID { room("room \(place)") }
}
