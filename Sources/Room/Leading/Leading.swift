import Logging
import NIOCore
import Synchronization
import TuttiAvahiDiscovery
import TuttiClockSync
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayout
import TuttiTiming
import TuttiWire

/// The role of a node that leads: its services, its clock and the session.
final class Leading: Sendable {
    /// What it tells its node.
    struct Events: Sendable {
        /// The queue has been played to its end.
        var ended: @Sendable () -> Void
        var handedOver: @Sendable (NextLeader) -> Void
        /// Asks nodes who leads.
        var ask: @Sendable ([NextLeader], LeadClaim?) async -> [SightAnswer]
    }

    /// What a leader goes on with.
    struct Resumption: Sendable {
        var session: SessionState
        var handover: Handover
        /// See `LeaderMachine.init(_:resuming:_:missing:at:)`.
        var missing: [NextLeader] = []
        /// See `Precedence`; `nil`: the new term.
        var reign: UInt64?
        /// It went without a word: what only it has is gone with it.
        var isPredecessorLost = false
    }

    /// The ports of a leader, open before there is anything to say on them.
    final class Services: Sendable {
        let door: NodeServer
        let time: TimeService
        let media: MediaService
        let notices: CommitDatagramSender?
        /// Of the datagrams of all of them; `nil`: they carry none.
        let tags: SharedLeaderTags?
        private let clock: Clock

        /// Nobody is answered before there is one.
        private final class Clock: Sendable {
            let told = Mutex<LeaderClock?>(nil)
            func current() -> SharedClock { told.withLock { $0 }?.current() ?? .unknown }
        }

        private init(
            _ door: NodeServer, _ time: TimeService, _ media: MediaService,
            _ notices: CommitDatagramSender?, _ tags: SharedLeaderTags?, _ clock: Clock
        ) {
            self.door = door
            self.time = time
            self.media = media
            self.notices = notices
            self.tags = tags
            self.clock = clock
        }

        var port: UInt16 { UInt16(clamping: door.port) }
        var timePort: UInt16 { UInt16(clamping: time.port) }

        /// - Parameters:
        ///   - door: of the node.
        ///   - term: of the session.
        ///   - takesAnyPort: for the time service too, where the number of the door is taken.
        /// - Throws: `RoomError` when a port is taken.
        static func open(
            _ configuration: NodeConfiguration, _ media: MediaService, _ door: NodeServer,
            term: UInt64, takesAnyPort: Bool = false
        ) async throws -> Services {
            let clock = Clock()
            let tags = configuration.sealsDatagrams ? SharedLeaderTags(session: term) : nil
            let time = try openTimeService(
                configuration, beside: door.port,
                takesAnyPort: takesAnyPort || configuration.port == 0, tags: tags,
                clock: clock.current)
            let notices = await CommitDatagramSender.open(
                beside: door.channel, logger: configuration.logger)
            return Services(door, time, media, notices, tags, clock)
        }

        /// On the number of the control service, where rooms ask before they are welcome; on another
        /// one where any will do and this one is taken.
        private static func openTimeService(
            _ configuration: NodeConfiguration, beside port: Int, takesAnyPort: Bool,
            tags: SharedLeaderTags?, clock: @escaping @Sendable () -> SharedClock
        ) throws -> TimeService {
            func start(port: Int) throws(HostError) -> TimeService {
                try TimeService.start(
                    port: port, priority: configuration.realTimePriority,
                    broadcasts: configuration.usesBroadcasts, tags: tags, clock: clock)
            }
            do {
                do {
                    return try start(port: port)
                } catch  where takesAnyPort {
                    return try start(port: 0)
                }
            } catch {
                throw RoomError(.portTaken, "the time service cannot start: \(error)")
            }
        }

        /// The time is told from now on.
        func tell(_ clock: LeaderClock) { self.clock.told.withLock { $0 = clock } }

        /// The door stays the node's. May be called again.
        func close() {
            notices?.close()
            time.stop()
        }
    }

    let core: LeaderCore
    let clock: LeaderClock
    /// Of the group clock; see `Welcome`.
    let origin: UInt64
    let services: Services
    /// Of what is put into the queue here.
    let reader: AssetReader
    private let announcement: Announcement
    private let session: AvahiSession?
    private let credentials: Credentials
    let logger: Logger
    let crowd = Crowd()
    let replies = ReplyBudget()
    private let ending = Ending()
    private let retired = Atomic(false)

    /// - Parameters:
    ///   - name: as it is announced.
    ///   - resuming: the session that goes on.
    init(
        _ services: Services, _ clock: LeaderClock, _ reader: AssetReader, name: RoomID,
        session: AvahiSession?,
        _ node: NodeConfiguration, _ configuration: LeaderConfiguration,
        resuming: Resumption? = nil, events: Events
    ) {
        self.services = services
        self.clock = clock
        self.reader = reader
        self.session = session
        origin = configuration.groupClockOrigin
        credentials = node.credentials
        logger = node.logger
        core = LeaderCore(
            configuration, clock: clock, tags: services.tags, logger: node.logger,
            ended: events.ended,
            moved: { reader.move(near: $0) }, removed: { reader.forget($0) },
            obstacle: { await reader.obstacle(to: $0) },
            check: { await reader.check($0, current: $1, isAsked: $2) },
            again: { await reader.again($0) },
            handedOver: events.handedOver, ask: events.ask,
            resuming: resuming)
        announcement = Announcement(
            session: node.usesAvahi ? session : nil, name: name, role: .leader,
            port: services.door.port, household: node.credentials.announcedHousehold,
            logger: node.logger)
        services.tell(clock)
        announcement.update(group: name.name)
    }

    var port: UInt16 { services.port }

    /// The way of the node's own room to its leader.
    var uplink: Member.Uplink {
        { [core] member, attempt in
            let toRoom = Outbox<LeaderToRoom>()
            let toLeader = Outbox<RoomToLeader>()
            let link = await core.open(toRoom)
            await withDiscardingTaskGroup { group in
                group.addTask {
                    for await message in toLeader.messages {
                        await core.receive(message, from: link)
                    }
                    await core.closed(link)
                }
                await member.linkUp(toLeader, attempt, foundAt: HostClock.now())
                for await message in toRoom.messages {
                    await member.receive(message, attempt)
                }
                toLeader.finish()
            }
            return "the leader ended"
        }
    }

    /// The reader reads in the order of the queue from now on, and what it finds joins the queue.
    func begin() async {
        await core.take(reader.take())
        reader.follow { [core] in
            await core.wanted(ahead: $0, most: $1)
        } tell: { [core] in
            await core.take($0)
        }
    }

    /// Another leads: it is not announced any more. Time and files are still there for whoever asks.
    func retire() {
        retired.store(true, ordering: .relaxed)
        announcement.withdraw()
    }

    /// See ``Announcement/isAnnounced``.
    var isAnnounced: Bool { announcement.isAnnounced }

    var isRetired: Bool { retired.load(ordering: .relaxed) }

    /// Ends ``run()``, also where nobody had followed it yet: what is announced would lead people to a
    /// leader that is none.
    func close() {
        retire()
        ending.end()
        core.endWatching()
        services.close()
    }

    /// What comes to the node's door from now on.
    var handlers: NodeServer.Handlers {
        NodeServer.Handlers(
            links: { await self.serve($0, $1) }, media: services.media.handler,
            // Who was removed knows the key.
            removed: { await self.core.rekey() })
    }

    /// Serves until ``close()``, or until the task is cancelled.
    func run() async throws {
        services.door.serve(by: handlers)
        try await withThrowingTaskGroup { group in
            group.addTask {
                // Not a task of the group: the first of those to end ends the leader.
                async let _ = self.warnOfSilence()
                async let _ = self.lookForNamesakes()
                async let _ = self.lookAfterFiles()
                async let _ = self.announceHousehold()
                await self.core.run()
            }
            group.addTask { await self.ending.wait() }
            do {
                try await group.next()
            } catch is CancellationError {}
            group.cancelAll()
        }
    }

    /// Another household, or none, may be this node's meanwhile. One that belongs to nobody leads
    /// nobody, and is not announced: that would be an open group.
    private func announceHousehold() async {
        guard let keeper = credentials.keeper else { return }
        for await _ in keeper.changes() where !isRetired {
            if keeper.isSeated {
                announcement.update(household: credentials.announcedHousehold)
            } else {
                announcement.hide()
            }
        }
    }

    // MARK: The queue

    /// Files are looked at so often: what is written anew is noticed before what was decoded ahead
    /// of it has been played.
    private static let fileInterval = Duration.milliseconds(250)

    /// Notices when the file of what plays or comes next is not the one any more that was read.
    private func lookAfterFiles() async {
        while !Task.isCancelled {
            try? await Task.sleep(for: Self.fileInterval)
            guard !isRetired else { continue }
            let upcoming = await core.upcomingAssets.map(\.hash)
            _ = try? await blocking { [media = services.media] _ throws(MediaError) in
                media.hold(upcoming.map(\.hex))
            }
            for hash in upcoming { await core.lookAtFiles(of: hash) }
        }
    }

    // MARK: Avahi

    private func lookForNamesakes() async {
        guard let session else { return }
        for await event in session.browse() {
            if let sighting = RoomSighting(event) { announcement.notice(sighting) }
        }
    }

    private func warnOfSilence() async {
        guard let session else { return }
        await Discovery.warnOfSilence(
            consequence: "rooms find this leader only by --leader HOST:PORT", logger: logger,
            obstacle: { Discovery.obstacle(to: session) })
    }
}
