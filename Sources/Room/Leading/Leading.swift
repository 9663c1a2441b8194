import AvahiDiscovery
import ClockSync
import FFmpegMedia
import GroupControl
import LinuxHost
import Logging
import NIOCore
import Playout
import Synchronization
import Timing
import Wire

/// The role of a node that leads: its services, its clock and the session.
final class Leading: Sendable {
    /// What it tells its node.
    struct Events: Sendable {
        /// The queue has been played to its end.
        var ended: @Sendable () -> Void
        var handedOver: @Sendable (NextLeader) -> Void
    }

    /// The ports of a leader, open before there is anything to say on them.
    final class Services: Sendable {
        let door: NodeServer
        let time: TimeService
        let media: MediaService
        let notices: CommitDatagramSender?
        private let clock: Clock

        /// Nobody is answered before there is one.
        private final class Clock: Sendable {
            let told = Mutex<LeaderClock?>(nil)
            func current() -> SharedClock { told.withLock { $0 }?.current() ?? .unknown }
        }

        private init(
            _ door: NodeServer, _ time: TimeService, _ media: MediaService,
            _ notices: CommitDatagramSender?, _ clock: Clock
        ) {
            self.door = door
            self.time = time
            self.media = media
            self.notices = notices
            self.clock = clock
        }

        var port: UInt16 { UInt16(clamping: door.port) }
        var timePort: UInt16 { UInt16(clamping: time.port) }

        /// - Parameter takesAnyPort: where the one of the configuration is taken: of who is asked to
        ///   lead the rooms are told where it is.
        /// - Throws: `RoomError` when a port is taken.
        static func open(
            _ configuration: NodeConfiguration, _ media: MediaService, takesAnyPort: Bool = false
        ) async throws -> Services {
            let logger = configuration.logger
            let files = OpenFiles.allow(LeaderNode.openFiles) - OpenFiles.ownUse
            let limits = ConnectionPlaces.Limits().fitting(files)
            let exhausted: @Sendable (String) -> Void = { reason in
                logger.warning(
                    "no connection can be accepted for the moment",
                    metadata: ["reason": "\(reason)"])
            }
            let door: NodeServer
            do {
                door = try await NodeServer.open(
                    configuration.port, limits: limits, exhausted: exhausted)
            } catch  where takesAnyPort && configuration.port != 0 {
                door = try await NodeServer.open(0, limits: limits, exhausted: exhausted)
            }
            let clock = Clock()
            do {
                let time = try openTimeService(
                    configuration, beside: door.port,
                    takesAnyPort: takesAnyPort || configuration.port == 0, clock: clock.current)
                let notices = await CommitDatagramSender.open(beside: door.channel, logger: logger)
                return Services(door, time, media, notices, clock)
            } catch {
                door.close()
                throw error
            }
        }

        /// On the number of the control service, where rooms ask before they are welcome; on another
        /// one where any will do and this one is taken.
        private static func openTimeService(
            _ configuration: NodeConfiguration, beside port: Int, takesAnyPort: Bool,
            clock: @escaping @Sendable () -> SharedClock
        ) throws -> TimeService {
            func start(port: Int) throws(HostError) -> TimeService {
                try TimeService.start(
                    port: port, priority: configuration.realTimePriority,
                    broadcasts: configuration.usesBroadcasts, clock: clock)
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

        /// May be called again.
        func close() {
            door.close()
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
    private let announcement: Announcement?
    private let session: AvahiSession?
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
        resuming: (session: SessionState, handover: Handover)? = nil, events: Events
    ) {
        self.services = services
        self.clock = clock
        self.reader = reader
        self.session = session
        origin = configuration.groupClockOrigin
        logger = node.logger
        core = LeaderCore(
            configuration, clock: clock, logger: node.logger, ended: events.ended,
            moved: { reader.move(near: $0) }, removed: { reader.forget($0) },
            obstacle: { await reader.obstacle(to: $0) },
            handedOver: events.handedOver,
            resuming: resuming)
        announcement = (node.usesAvahi ? session : nil).map {
            Announcement(
                session: $0, name: name, role: .leader, port: services.door.port,
                logger: node.logger)
        }
        services.tell(clock)
        announcement?.update(group: name.name)
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
        announcement?.withdraw()
    }

    var isRetired: Bool { retired.load(ordering: .relaxed) }

    /// Ends ``run()``.
    func close() {
        ending.end()
        core.endWatching()
        services.close()
    }

    /// The same; returns when its port is free.
    func stop() async {
        close()
        try? await services.door.channel.closeFuture.get()
    }

    /// Serves until ``close()``, or until the task is cancelled.
    func run() async throws {
        try await withThrowingTaskGroup { group in
            group.addTask {
                try await self.services.door.run(
                    links: { await self.serve($0, $1) },
                    // Files are read where waiting for a disk holds up nobody.
                    media: { connection, visitor in
                        await withTaskExecutorPreference(globalConcurrentExecutor) {
                            await self.services.media.serve(connection, visitor)
                        }
                    })
            }
            group.addTask {
                // Not a task of the group: the first of those to end ends the leader.
                async let _ = self.warnOfSilence()
                async let _ = self.lookForNamesakes()
                async let _ = self.lookAfterFiles()
                await self.core.run()
            }
            group.addTask { await self.ending.wait() }
            do {
                try await group.next()
            } catch is CancellationError {}
            group.cancelAll()
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
            let (current, upcoming) = await core.upcoming
            _ = try? await blocking { [media = services.media] _ throws(MediaError) in
                media.hold(upcoming.map(\.hex))
            }
            for hash in upcoming {
                switch await reader.check(hash, isPlaying: hash == current) {
                case .none: break
                case .other(let asset): await core.change(hash, to: asset)
                case .nothing: await core.change(hash, to: nil)
                }
            }
        }
    }

    // MARK: Avahi

    private func lookForNamesakes() async {
        guard let session, let announcement else { return }
        for await event in session.browse() {
            if let sighting = RoomSighting(event) { announcement.notice(sighting) }
        }
    }

    private func warnOfSilence() async {
        guard let session else { return }
        await Discovery.warnOfSilence(
            consequence: "rooms find this leader only by --leader HOST:PORT", logger: logger,
            isConnected: { session.isConnected })
    }
}
