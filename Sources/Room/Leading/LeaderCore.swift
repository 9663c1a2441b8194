import Logging
import Synchronization
import TuttiGroupControl
import TuttiLinuxHost
import TuttiTiming
import TuttiTrust

/// Runs the leader's machine: serialises what links and commands bring, and does its effects.
///
/// The group's time is the leader's (``LeaderClock``); a room maps its own local clock to it.
actor LeaderCore {
    /// Sends a notice to this port of the room at the other end of a link, sealed where its datagrams
    /// are.
    typealias Notifier =
        @Sendable (CommitDatagram, _ port: UInt16, CommitDatagramSender.Seal?) -> Void

    private(set) var machine: LeaderMachine
    private var outboxes: [LinkID: Outbox<LeaderToRoom>] = [:]
    private var notifiers: [LinkID: Notifier] = [:]
    /// Of the rooms' links, where one can be said.
    private var hosts: [LinkID: String] = [:]
    private var nextLink: LinkID = 1
    private(set) var hasLeft = false
    /// Of the last event.
    private var sequence: UInt64 = 0
    /// Another leads, since then.
    private(set) var retiredAt: ContinuousClock.Instant?
    var isRetired: Bool { retiredAt != nil }
    var use = Use.asked
    private var newsFilter = NewsFilter()
    /// As it stands in the log.
    private var headline = ""
    private let alarm = Alarm()
    let clock: LeaderClock
    /// `nil`: datagrams carry no tags.
    private nonisolated let tags: SharedLeaderTags?
    /// Control clients that have a key; their numbers are below those of links.
    private nonisolated let guests = Atomic<LinkID>(0)
    let logger: Logger
    /// Called when the queue has been played to its end.
    private let ended: @Sendable () -> Void
    /// Called when the session is at another place of its queue, waits for another item, or the queue
    /// is another, with what is near that place.
    private let moved: @Sendable (Set<ContentHash>) -> Void
    /// Called when items have left the queue.
    private let removed: @Sendable ([QueueEntry.ID]) -> Void
    /// Why an item cannot be played from another place; looks at its file.
    private let obstacle: @Sendable (AssetDescriptor) async -> String?
    let check: Check
    let again: Again
    /// Called when another leads, after everybody was told.
    private let handedOver: @Sendable (NextLeader) -> Void
    /// Asks nodes who leads.
    private let ask: @Sendable ([NextLeader], LeadClaim?) async -> [SightAnswer]
    private struct Place: Equatable {
        var index = 0
        var revision: UInt64 = 0
        /// Item that has to be read before the group can go on to it.
        var awaited: QueueEntry.ID?
    }
    private var place = Place()
    private let watchers = Watchers()
    /// Items that no room could play.
    private var skipped: Set<ContentHash> = []

    init(
        _ configuration: LeaderConfiguration, clock: LeaderClock,
        tags: SharedLeaderTags? = nil, logger: Logger,
        ended: @escaping @Sendable () -> Void,
        moved: @escaping @Sendable (Set<ContentHash>) -> Void = { _ in },
        removed: @escaping @Sendable ([QueueEntry.ID]) -> Void = { _ in },
        obstacle: @escaping @Sendable (AssetDescriptor) async -> String? = { _ in nil },
        check: @escaping Check = { _, _, _ in [] }, again: @escaping Again = { _ in nil },
        handedOver: @escaping @Sendable (NextLeader) -> Void = { _ in },
        ask: @escaping @Sendable ([NextLeader], LeadClaim?) async -> [SightAnswer] = { _, _ in [] },
        resuming: Leading.Resumption? = nil
    ) {
        self.ask = ask
        self.moved = moved
        self.removed = removed
        self.handedOver = handedOver
        self.obstacle = obstacle
        self.check = check
        self.again = again
        machine =
            resuming.map {
                LeaderMachine(
                    configuration, resuming: $0.session, $0.handover, missing: $0.missing,
                    waitingFor: $0.isPredecessorLost ? LeaderMachine.handoverLimit : nil,
                    at: clock.groupNow())
            } ?? LeaderMachine(configuration)
        self.clock = clock
        self.tags = tags
        self.logger = logger
        self.ended = ended
    }

    /// Advances the machine at its deadlines until cancelled.
    func run() async {
        step { machine, now in machine.advance(to: now) }
        for await _ in alarm.rings {
            step { machine, now in machine.advance(to: now) }
        }
        alarm.finish()
    }

    /// Tells the rooms that the leader leaves, and ends their links once that is said.
    func leave() {
        hasLeft = true
        step { machine, now in machine.leave(at: now) }
        for outbox in outboxes.values { outbox.finish() }
        outboxes = [:]
        watchers.finish()
    }

    /// Ends the links without a word, as a crash does: the rooms play on and see who goes on.
    func vanish() {
        hasLeft = true
        for outbox in outboxes.values { outbox.finish() }
        outboxes = [:]
        watchers.finish()
    }

    /// A room's link is up; what it says comes through ``receive(_:from:)``.
    ///
    /// - Parameter host: of the room, as others reach it too; `nil`: it is this one.
    func open(
        _ outbox: Outbox<LeaderToRoom>, notifier: Notifier? = nil, host: String? = nil
    ) -> LinkID {
        let link = nextLink
        nextLink += 1
        if hasLeft {
            outbox.finish()
        } else {
            outboxes[link] = outbox
            notifiers[link] = notifier
            hosts[link] = host
            step { machine, now in
                machine.receive(.linked(link, host: host ?? ""), at: now)
            }
        }
        return link
    }

    func receive(_ message: RoomToLeader, from link: LinkID) {
        step { machine, now in machine.receive(.received(message, from: link), at: now) }
    }

    func closed(_ link: LinkID) {
        outboxes.removeValue(forKey: link)?.finish()
        notifiers[link] = nil
        hosts[link] = nil
        // Who has handed over answers the rooms until they have gone over.
        if !isRetired { tags? { $0.end(link) } }
        step { machine, now in machine.receive(.closed(link), at: now) }
    }

    /// What has become known of the queue.
    func take(_ inputs: [LeaderInput]) {
        for input in inputs { step { machine, now in machine.receive(input, at: now) } }
    }

    /// See ``LeaderMachine/wanted(ahead:most:)``.
    func wanted(ahead: Int, most: Int) -> [QueueEntry.ID] {
        machine.wanted(ahead: ahead, most: most)
    }

    /// What became of the items that are not unread any more.
    var readItems: [ReadItem] {
        machine.entries.compactMap { entry in
            switch entry.state {
            case .unread: nil
            case .known(let asset): ReadItem(id: entry.id, outcome: .known(asset))
            case .unplayable(let reason):
                ReadItem(id: entry.id, outcome: .unplayable(reason: reason))
            }
        }
    }

    var unreadItems: [QueueEntry.ID] {
        machine.entries.filter { $0.state == .unread }.map(\.id)
    }

    /// The first item that is this asset.
    func item(of hash: ContentHash) -> QueueEntry.ID? {
        machine.entries.first { $0.asset?.hash == hash }?.id
    }

    func listing(from first: Int, count: Int) -> QueueListing {
        machine.listing(from: first, count: count)
    }

    /// One element at once, and one whenever the group may be seen to have changed.
    nonisolated func watch() -> AsyncStream<Void> { watchers.add() }

    /// Nobody is told of anything any more.
    nonisolated func endWatching() { watchers.finish() }

    /// The present state, numbered; `nil` where another leads: what this leader has given up is not
    /// what the group does.
    func event() -> GroupEvent? {
        guard !isRetired else { return nil }
        sequence += 1
        return GroupEvent(sequence: sequence, status: status(hasPoints: false))
    }

    /// What plays and what is about to.
    var upcomingAssets: [AssetDescriptor] { machine.upcoming }

    /// Whether it plays, and rooms are silent since its bytes are missing.
    func isStarving(for asset: AssetDescriptor) -> Bool {
        machine.session.current?.hash == asset.hash && machine.hasStarvedRooms
    }

    /// What has to be read before the group can go on.
    var awaitedItem: QueueEntry.ID? { machine.awaitedID }

    /// The item of the queue whose hash has these digits.
    func asset(ofHash hex: String) -> AssetDescriptor? {
        machine.session.queue.first { $0.hash.hex == hex }
    }

    /// Items that no room could play.
    var skippedCount: Int { skipped.count }

    /// Why nothing can be asked for while another leads, or is about to.
    var refusal: CommandOutcome? { machine.refusalAfterHandover }

    /// What this leader has given up is not what the group does: who asks is told where to.
    ///
    /// - Throws: `RoomError` with code `refused` where another leads.
    func checkLeads() throws {
        if isRetired, case .refused(let reason)? = refusal { throw RoomError(.refused, reason) }
    }

    /// What joins the queue joins that of this leader: between the question and the work nobody else
    /// begins to lead.
    ///
    /// - Throws: `RoomError` with code `refused` while another leads, or is about to.
    func unlessHandingOver(_ work: @Sendable () -> Void) throws {
        if case .refused(let reason)? = refusal { throw RoomError(.refused, reason) }
        use = .asked
        work()
    }

    /// Does a command. One that needs the bytes of a file that is gone is refused and changes nothing:
    /// rooms that hold them would go on without the others.
    ///
    /// - Parameter objection: asked last, and nothing happens between its answer and the command.
    func perform(
        _ command: GroupCommand, unless objection: @Sendable () -> String? = { nil }
    ) async -> CommandOutcome {
        use = .asked
        if case .queue(.play(let id)) = command { await look(again: id) }
        if let item = machine.destination(of: command, at: clock.groupNow()) {
            await look(at: item)
        }
        var outcome = CommandOutcome.accepted
        if let item = machine.needed(for: command, at: clock.groupNow()),
            let reason = await obstacle(item)
        {
            outcome = .refused(reason: reason)
        } else if let reason = objection() {
            outcome = .refused(reason: reason)
        } else {
            step { machine, now in
                let result = machine.perform(command, at: now)
                outcome = result.outcome
                return result.effects
            }
        }
        logger.info("command", metadata: ["command": "\(command)", "outcome": "\(outcome)"])
        return outcome
    }

    var present: CommandEffect { machine.present }

    /// Does a command, and waits for what comes of it.
    ///
    /// - Throws: `RoomError` with code `refused` and the reason.
    func effect(
        of command: GroupCommand, unless objection: @Sendable () -> String? = { nil }
    ) async throws -> CommandEffect {
        if case .refused(let reason) = await perform(command, unless: objection) {
            throw RoomError(.refused, reason)
        }
        let deadline = ContinuousClock.now + .nanoseconds(command.longestWait.count)
        let timer = Task { [watchers] in
            guard (try? await Task.sleep(until: deadline)) != nil else { return }
            watchers.tell()
        }
        defer { timer.cancel() }
        for await _ in watch() {
            if let reason = machine.failure(of: command) { throw RoomError(.refused, reason) }
            let now = clock.groupNow()
            if let effect = machine.settledEffect(of: command, at: now) { return effect }
            if ContinuousClock.now >= deadline || Task.isCancelled { break }
        }
        return machine.effect(of: command, at: clock.groupNow())
    }

    func status(hasPoints: Bool) -> GroupStatus {
        var status = machine.status(at: clock.groupNow(), hasPoints: hasPoints)
        if let drops = tags?.drops, drops != .zero { status.dropped = drops }
        status.sessionTerm = sessionTerm
        return status
    }

    // MARK: Tags of datagrams

    /// Somebody was removed: everybody who has a link gets another key, and nobody else.
    func rekey() {
        guard let tags else { return }
        tell(tags.beginTerm(at: HostClock.now()))
        logger.notice("another key for datagrams")
    }

    private func tell(_ keys: [(link: LinkID, key: DatagramKey)]) {
        for (link, key) in keys { outboxes[link]?.send(.datagramKey(key)) }
    }

    /// A welcome says the key that goes with the link.
    private func withKey(_ message: LeaderToRoom, for link: LinkID) -> LeaderToRoom {
        guard let tags, case .welcome(var welcome) = message else { return message }
        let (key, others) = tags.grant(to: link, at: HostClock.now())
        tell(others)
        welcome.datagramKey = key
        return .welcome(welcome)
    }

    private func notify(_ notice: CommitDatagram, port: UInt16, of link: LinkID) {
        let seal = tags.map { tags in
            { @Sendable (bytes: [UInt8]) in
                tags { $0.seal(commit: bytes, to: link, at: HostClock.now()) }
            }
        }
        notifiers[link]?(notice, port, seal)
    }

    /// A key for a control client, until ``end(guest:)``; `nil`: datagrams carry no tags.
    nonisolated func keyForGuest() -> (guest: LinkID, key: DatagramKey)? {
        guard let tags else { return nil }
        let guest = guests.subtract(1, ordering: .relaxed).newValue
        // Rooms come first: a client gets none where there are no numbers.
        return tags { $0.grant(to: guest) }.map { (guest, DatagramKey($0)) }
    }

    nonisolated func end(guest: LinkID) { tags? { $0.end(guest) } }

    func step(_ turn: (inout LeaderMachine, GroupInstant) -> [LeaderEffect]) {
        for effect in turn(&machine, clock.groupNow()) {
            switch effect {
            case .send(let message, let link):
                logger.trace("to room", metadata: ["link": "\(link)", "message": "\(message)"])
                outboxes[link]?.send(withKey(message, for: link))
            case .notify(let notice, let port, let link): notify(notice, port: port, of: link)
            case .close(let link): outboxes.removeValue(forKey: link)?.finish()
            case .handOver(let room, let port, let link):
                let next = NextLeader(name: room, host: hosts[link] ?? "", port: port)
                retire(before: next)
            case .yield(let next): retire(before: next)
            case .askWhoLeads(let places):
                let claim = sight.map {
                    LeadClaim(sight: $0, port: machine.configuration.mediaPort)
                }
                Task { [ask] in
                    for (place, answer) in zip(places, await ask(places, claim)) {
                        if case .sight(let sight) = answer { self.take(sight, of: place) }
                    }
                }
            case .ended: ended()
            case .removed(let items): removed(items)
            case .skipped(let asset, let reason):
                skipped.insert(asset.hash)
                logger.error("skipped \(asset.title)", metadata: ["reason": "\(reason)"])
            case .news(let news, let room):
                // Rooms that call again while it leaves are no news.
                if !hasLeft, newsFilter.admits(news, of: room, at: clock.groupNow()) {
                    log(news, of: room)
                }
            }
        }
        alarm.set(machine.nextDeadline.map(clock.local))
        let latest = Place(
            index: machine.session.index, revision: machine.queueRevision,
            awaited: machine.awaitedID)
        let isElsewhere = latest != place
        let hasMoved = latest.index != place.index
        place = latest
        if isElsewhere { moved(machine.near(before: 1, behind: AssetReader.mostAhead)) }
        sayHeadline(hasMoved)
        watchers.tell()
    }

    /// What another node says of who leads.
    func take(_ sight: LeadSight, of place: NextLeader) {
        step { machine, now in machine.receive(.sight(sight, of: place), at: now) }
    }

    /// Another leads. Its node knows before its room does.
    func retire(before next: NextLeader) {
        guard !isRetired else { return }
        retiredAt = .now
        handedOver(next)
        step { machine, _ in machine.handedOver(to: next) }
        watchers.finish()
    }

    /// What plays, and what is waited for: whoever sees the leader's terminal wants to know. That
    /// one more item was read is no news.
    private func sayHeadline(_ isElsewhere: Bool) {
        let latest = machine.headline
        guard latest != headline || isElsewhere, !hasLeft, !isRetired else { return }
        headline = latest
        logger.notice("the group \(machine.headlineWithPlace)")
    }
}
