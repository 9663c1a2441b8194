import Logging
import Synchronization
import TuttiAvahiDiscovery
import TuttiClockSync
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayout
import TuttiTiming

/// The role of a node that follows: looks for the leader, reaches it and knows its time.
final class Following: Sendable {
    let finder: LeaderFinder
    let clock: RemoteClock
    let announcement: Announcement
    private let session: AvahiSession?
    private let credentials: Credentials
    private let isGivenLeader: Bool
    private let logger: Logger
    private let ending = Ending()
    private let hasLooked = Atomic(false)

    /// - Parameters:
    ///   - session: `nil`: leaders are not looked for.
    ///   - leader: follow this one.
    ///   - leaderName: of those that are announced, only the one of this name counts.
    ///   - continuing: the clock that the room plays by already.
    init(
        _ configuration: NodeConfiguration, _ name: RoomID, session: AvahiSession?,
        options: Member.Options, leader: HostPort?, leaderName: String?,
        continuing: RemoteClock.Continued? = nil
    ) {
        self.session = session
        credentials = configuration.credentials
        isGivenLeader = leader != nil
        logger = configuration.logger
        let identity = options.identity
        finder = LeaderFinder(
            fixed: leader, name: leaderName, preferred: identity?.leader,
            credentials: configuration.credentials, logger: logger,
            keep: { identity?.keep(leader: $0) })
        clock = RemoteClock(
            priority: configuration.realTimePriority,
            broadcasts: configuration.usesBroadcasts, sealed: configuration.sealsDatagrams,
            store: options.store, logger: logger,
            continuing: continuing)
        announcement = Announcement(
            session: configuration.usesAvahi ? session : nil, name: identity?.name ?? name,
            role: .follower, port: 0, household: configuration.credentials.announcedHousehold,
            logger: logger)
    }

    var uplink: Member.Uplink {
        { [finder, clock, credentials] in
            await Uplink(finder: finder, clock: clock, credentials: credentials).run($0, $1)
        }
    }

    /// Whether it has begun to look: who has not looked does not know that it is alone.
    var isLooking: Bool { hasLooked.load(ordering: .relaxed) }

    func end() {
        finder.end()
        ending.end()
    }

    /// Looks and listens until ``end()``, or until the task is cancelled.
    func run() async {
        hasLooked.store(true, ordering: .relaxed)
        announcement.update(group: "")
        await withDiscardingTaskGroup { group in
            if let session {
                if !isGivenLeader {
                    group.addTask {
                        for await event in session.browse() {
                            if let sighting = RoomSighting(event) { self.finder.take(sighting) }
                        }
                    }
                }
                group.addTask {
                    await Discovery.warnOfSilence(
                        consequence: self.isGivenLeader
                            ? "tutti rooms does not list this room"
                            : "no leader can be found; give one with --leader HOST:PORT",
                        logger: self.logger, obstacle: { Discovery.obstacle(to: session) })
                }
            }
            group.addTask {
                for await leader in self.clock.leaders.messages {
                    self.announcement.update(group: leader)
                }
            }
            if let keeper = credentials.keeper {
                group.addTask {
                    for await _ in keeper.changes() {
                        self.finder.householdChanged()
                        self.announcement.update(household: self.credentials.announcedHousehold)
                    }
                }
            }
            await ending.wait()
            group.cancelAll()
        }
        announcement.withdraw()
    }
}
