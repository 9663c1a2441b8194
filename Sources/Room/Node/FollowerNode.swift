import AvahiDiscovery
import GroupControl
import LinuxHost
import Logging
import Synchronization

/// A node that follows: finds a leader, plays what the group plays, and waits for the leader to
/// come back when it went away.
public final class FollowerNode: Sendable {
    /// Connections to a leader, and what a room holds of a long queue.
    static let openFiles = 1_024

    private let configuration: NodeConfiguration
    private let leader: HostPort?
    private let leaderName: String?
    private let node = Mutex<Node?>(nil)

    /// - Parameters:
    ///   - configuration: the room, its output and its cache.
    ///   - leader: follow this one; `nil` looks for one with Avahi.
    ///   - leaderName: of those that Avahi finds, follow only the one of this name.
    public init(
        _ configuration: NodeConfiguration, leader: HostPort?, leaderName: String? = nil
    ) {
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
        try await OpenFiles.claim(Self.openFiles)
        let session = configuration.usesAvahi || leader == nil ? try openSession() : nil
        let node = Node(configuration, name, session: session, endsWithQueue: false)
        var options = node.memberOptions()
        options.cacheLimit = configuration.cacheLimitBytes
        let following = Following(
            configuration, name, session: session, options: options, leader: leader,
            leaderName: leaderName)
        let output = try configuration.openOutput()
        options.notices = await CommitDatagramListener.open(logger: configuration.logger)
        node.begin(following, output, options)
        self.node.withLock { $0 = node }
        defer { self.node.withLock { $0 = nil } }
        try await node.run()
    }

    /// Without Avahi a follower that has an address still works; one that has none cannot.
    private func openSession() throws -> AvahiSession? {
        do {
            return try Discovery.openSession()
        } catch {
            guard leader != nil else { throw error }
            configuration.logger.warning("not announced", metadata: ["reason": "\(error)"])
            return nil
        }
    }
}
