import GroupControl
import LinuxHost
import Logging
import Timing

/// Runs the leader's machine: serialises what links and commands bring, and does its effects.
///
/// The group's time is the leader's (``LeaderClock``); a room maps its own local clock to it.
actor LeaderCore {
    /// Sends a notice to this port of the room at the other end of a link.
    typealias Notifier = @Sendable (CommitDatagram, _ port: UInt16) -> Void

    private var machine: LeaderMachine
    private var outboxes: [LinkID: Outbox<LeaderToRoom>] = [:]
    private var notifiers: [LinkID: Notifier] = [:]
    /// Of the rooms' links, where one can be said.
    private var hosts: [LinkID: String] = [:]
    private var nextLink: LinkID = 1
    private var hasLeft = false
    /// Of the last event.
    private var sequence: UInt64 = 0
    /// Another leads.
    private var isRetired = false
    private var newsFilter = NewsFilter()
    /// As it stands in the log.
    private var headline = ""
    private let alarm = Alarm()
    private let clock: LeaderClock
    private let logger: Logger
    /// Called when the queue has been played to its end.
    private let ended: @Sendable () -> Void
    /// Called when the session is at another place of its queue, waits for another item, or the queue
    /// is another, with what is near that place.
    private let moved: @Sendable (Set<ContentHash>) -> Void
    /// Called when items have left the queue.
    private let removed: @Sendable ([QueueEntry.ID]) -> Void
    /// Why an item cannot be played from another place; looks at its file.
    private let obstacle: @Sendable (AssetDescriptor) async -> String?
    /// Called when another leads, after everybody was told.
    private let handedOver: @Sendable (NextLeader) -> Void
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
        _ configuration: LeaderConfiguration, clock: LeaderClock, logger: Logger,
        ended: @escaping @Sendable () -> Void,
        moved: @escaping @Sendable (Set<ContentHash>) -> Void = { _ in },
        removed: @escaping @Sendable ([QueueEntry.ID]) -> Void = { _ in },
        obstacle: @escaping @Sendable (AssetDescriptor) async -> String? = { _ in nil },
        handedOver: @escaping @Sendable (NextLeader) -> Void = { _ in },
        resuming: (session: SessionState, handover: Handover)? = nil
    ) {
        self.moved = moved
        self.removed = removed
        self.handedOver = handedOver
        self.obstacle = obstacle
        machine =
            resuming.map {
                LeaderMachine(
                    configuration, resuming: $0.session, $0.handover, at: clock.groupNow())
            } ?? LeaderMachine(configuration)
        self.clock = clock
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

    func listing(from first: Int, count: Int) -> QueueListing {
        machine.listing(from: first, count: count)
    }

    /// One element at once, and one whenever the group may be seen to have changed.
    nonisolated func watch() -> AsyncStream<Void> { watchers.add() }

    /// Nobody is told of anything any more.
    nonisolated func endWatching() { watchers.finish() }

    /// The present state, numbered.
    func event() -> GroupEvent {
        sequence += 1
        return GroupEvent(sequence: sequence, status: status(hasPoints: false))
    }

    /// An item has other bytes now, or none.
    func change(_ hash: ContentHash, to asset: AssetDescriptor?) {
        step { machine, now in machine.receive(.changed(hash, to: asset), at: now) }
    }

    /// What plays and what is about to.
    var upcoming: (current: ContentHash?, all: [ContentHash]) {
        (machine.session.current?.hash, machine.upcoming.map(\.hash))
    }

    /// The item of the queue whose hash has these digits.
    func asset(ofHash hex: String) -> AssetDescriptor? {
        machine.session.queue.first { $0.hash.hex == hex }
    }

    /// Items that no room could play.
    var skippedCount: Int { skipped.count }

    /// Why nothing can be asked for while another leads, or is about to.
    var refusal: CommandOutcome? { machine.refusalAfterHandover }

    /// What joins the queue joins that of this leader: between the question and the work nobody else
    /// begins to lead.
    ///
    /// - Throws: `RoomError` with code `refused` while another leads, or is about to.
    func unlessHandingOver(_ work: @Sendable () -> Void) throws {
        if case .refused(let reason)? = refusal { throw RoomError(.refused, reason) }
        work()
    }

    /// Does a command. One that needs the bytes of a file that is gone is refused and changes nothing:
    /// rooms that hold them would go on without the others.
    ///
    /// - Parameter objection: asked last, and nothing happens between its answer and the command.
    func perform(
        _ command: GroupCommand, unless objection: @Sendable () -> String? = { nil }
    ) async -> CommandOutcome {
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
        let deadline = ContinuousClock.now + .nanoseconds(CommandEffect.longestWait.count)
        let timer = Task { [watchers] in
            guard (try? await Task.sleep(until: deadline)) != nil else { return }
            watchers.tell()
        }
        defer { timer.cancel() }
        for await _ in watch() {
            let now = clock.groupNow()
            if let effect = machine.settledEffect(of: command, at: now) { return effect }
            if ContinuousClock.now >= deadline || Task.isCancelled { break }
        }
        return machine.effect(of: command, at: clock.groupNow())
    }

    func status(hasPoints: Bool) -> GroupStatus {
        machine.status(at: clock.groupNow(), hasPoints: hasPoints)
    }

    private func step(_ turn: (inout LeaderMachine, GroupInstant) -> [LeaderEffect]) {
        for effect in turn(&machine, clock.groupNow()) {
            switch effect {
            case .send(let message, let link):
                logger.trace("to room", metadata: ["link": "\(link)", "message": "\(message)"])
                outboxes[link]?.send(message)
            case .notify(let notice, let port, let link): notifiers[link]?(notice, port)
            case .close(let link): outboxes.removeValue(forKey: link)?.finish()
            case .handOver(let room, let port, let link):
                let next = NextLeader(name: room, host: hosts[link] ?? "", port: port)
                isRetired = true
                // Its node knows before its room does.
                handedOver(next)
                step { machine, _ in machine.handedOver(to: next) }
                watchers.finish()
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

    /// What plays, and what is waited for: whoever sees the leader's terminal wants to know. That
    /// one more item was read is no news.
    private func sayHeadline(_ isElsewhere: Bool) {
        let latest = machine.headline
        guard latest != headline || isElsewhere, !hasLeft, !isRetired else { return }
        headline = latest
        logger.notice("the group \(machine.headlineWithPlace)")
    }

    private func log(_ news: RoomNews, of room: RoomID) {
        let name = room
        let room: Logger.Metadata = ["room": "\(name)"]
        switch news {
        case .joined: logger.notice("a room joined", metadata: room)
        case .renamed(let wanted):
            logger.warning(
                "two rooms have one name; choose another --name in one of them",
                metadata: ["name": "\(wanted)", "the second is called": "\(name)"])
        case .left: logger.notice("a room left", metadata: room)
        case .lost: logger.warning("a room is not heard any more", metadata: room)
        case .heardAgain: logger.notice("a room is heard again", metadata: room)
        case .failed(let reason):
            logger.warning(
                "a room cannot play",
                metadata: room.merging(["reason": "\(reason)"]) { $1 })
        case .line(let finding) where finding.isAlarm:
            logger.error(
                "a room does not play what was committed",
                metadata: room.merging(["reason": "it \(finding.words)"]) { $1 })
        case .line: logger.notice("a room plays what was committed again", metadata: room)
        case .missing:
            logger.warning(
                "a room does not answer; the others do not wait for it until it does",
                metadata: room)
        case .leads: logger.notice("another room leads", metadata: room)
        case .declined(let reason):
            logger.warning(
                "a room does not take over the lead; this one goes on leading",
                metadata: room.merging(["reason": "\(reason)"]) { $1 })
        case .refused(let reason):
            logger.warning(
                "a room is refused", metadata: room.merging(["reason": "\(reason)"]) { $1 })
        case .alarm(let isRaised, let bound):
            let bound: Logger.Metadata = ["bound_us": "\(bound.count / 1_000)"]
            logger.log(
                level: isRaised ? .warning : .notice,
                isRaised
                    ? "a room may be further off than it should"
                    : "a room is within its target again",
                metadata: room.merging(bound) { $1 })
        }
    }
}
