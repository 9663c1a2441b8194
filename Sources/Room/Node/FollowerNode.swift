import Logging
import Synchronization
import TuttiAvahiDiscovery
import TuttiGroupControl
import TuttiLinuxHost

/// A node that follows: finds a leader, plays what the group plays, and waits for the leader to
/// come back when it went away.
public final class FollowerNode: Sendable {
    /// Connections to a leader, and what a room holds of a long queue.
    static let openFiles = 1_024

    /// Nodes that are started together are all heard of by then.
    private static let patience = Duration.seconds(4)
    /// Once it has founded a household nobody else leads in it.
    private static let founderPatience = Duration.milliseconds(200)

    private let configuration: NodeConfiguration
    private let leader: HostPort?
    private let leaderName: String?
    private let leadsWhenAlone: Bool
    private let node = Mutex<Node?>(nil)

    /// - Parameters:
    ///   - configuration: the room, its output and its cache.
    ///   - leader: follow this one; `nil` looks for one with Avahi.
    ///   - leaderName: of those that Avahi finds, follow only the one of this name.
    ///   - leadsWhenAlone: where nobody leads it founds a household, if it is in none, and a group
    ///     that others may join.
    public init(
        _ configuration: NodeConfiguration, leader: HostPort?, leaderName: String? = nil,
        leadsWhenAlone: Bool = false
    ) {
        self.leadsWhenAlone = leadsWhenAlone
        self.configuration = configuration
        self.leader = leader
        self.leaderName = leaderName
    }

    /// Where the control service listens, while this node leads; `nil` while it follows.
    public var leadingAddress: HostPort? { node.withLock { $0 }?.address }

    /// The group that this node is in, to be steered from this process; `nil` until there is a leader.
    /// It belongs to the leader of this moment: ask again once its events have ended.
    public var control: (any GroupControlling)? { node.withLock { $0 }?.control }

    /// Follows until the task is cancelled; a leader that goes away is waited for. Leads as long as
    /// the lead is handed to it.
    ///
    /// - Throws: `RoomError` when the output cannot be opened or leaders cannot be looked for.
    public func run() async throws {
        let name = try roomID(configuration.name)
        PacketMarks.areSet = configuration.marksPackets
        let configuration = try configuration.withCredentials()
        try await OpenFiles.claim(Self.openFiles)
        let session = configuration.usesAvahi || leader == nil ? try openSession() : nil
        var hasFounded = false
        if let keeper = configuration.credentials.keeper, keeper.isFree {
            let search = HouseholdSearch(
                keeper: keeper, leader: leader, leaderName: leaderName,
                founding: leadsWhenAlone && configuration.succeeds
                    ? founding(name, session) : nil,
                logger: configuration.logger)
            do {
                hasFounded = try await search.run(session)
            } catch is CancellationError {
                return
            }
        }
        let node = Node(
            configuration, name, session: session, endsWithQueue: false,
            handsOverAtEnd: leadsWhenAlone,
            keepsSession: leadsWhenAlone && configuration.succeeds, leader: leader,
            leaderName: leaderName)
        if let door = try await openDoor(configuration) { node.open(door) }
        var options = node.memberOptions()
        options.cacheLimit = configuration.cacheLimitBytes
        let following = Following(
            configuration, name, session: session, options: options, leader: leader,
            leaderName: leaderName)
        let output = try configuration.openOutput()
        options.notices = await CommitDatagramListener.open(logger: configuration.logger)
        switch await node.sessionToRestore() {
        case .led(let saved)?: node.begin(following, output, options, by: .restoring(saved))
        case .elsewhere(let saved)?:
            node.begin(following, output, options, by: .looking)
            node.begin { await node.giveBack(saved) }
        case nil:
            let label = options.identity?.name ?? name
            let hasOwnGroup =
                options.identity?.leader == label.name && leader == nil && leadsWhenAlone
                && configuration.succeeds
            node.begin(following, output, options, by: hasOwnGroup ? .ownGroup : .looking)
        }
        if leadsWhenAlone, configuration.succeeds {
            // Those that wait for a household find it by its leader.
            let patience = Self.patience + .milliseconds(.random(in: 0...1_000))
            let first = hasFounded ? Self.founderPatience : patience
            node.begin { await node.leadsWhenAlone(after: first, then: patience) }
            node.begin { await node.followsWhenIdle() }
        }
        self.node.withLock { $0 = node }
        defer { self.node.withLock { $0 = nil } }
        try await node.run()
    }

    private func founding(_ name: RoomID, _ session: AvahiSession?) -> HouseholdSearch.Founding {
        let announcement = (configuration.usesAvahi ? session : nil).map {
            Announcement(
                session: $0, name: name, role: .follower, port: 0, household: nil, mayFound: true,
                logger: configuration.logger)
        }
        return HouseholdSearch.Founding(patience: Self.patience, announcement: announcement)
    }

    /// Where others ask this node who leads, and come to when it does.
    private func openDoor(_ configuration: NodeConfiguration) async throws -> NodeServer? {
        do {
            return try await NodeServer.open(configuration, port: configuration.port)
        } catch {
            // A leader on the same machine, as a rule.
            return try? await NodeServer.open(configuration, port: 0)
        }
    }

    /// Without Avahi a follower that has an address still works; one that has none cannot.
    private func openSession() throws -> AvahiSession? {
        do {
            return try Discovery.openSession(on: configuration.networkInterface)
        } catch {
            guard leader != nil else { throw error }
            configuration.logger.warning("not announced", metadata: ["reason": "\(error)"])
            return nil
        }
    }
}
