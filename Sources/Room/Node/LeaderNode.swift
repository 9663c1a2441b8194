import AvahiDiscovery
import FFmpegMedia
import GroupControl
import LinuxHost
import Logging
import Playout
import Synchronization
import Timing

import func Glibc.time

/// A node that leads a group: announces itself, serves clock, assets and control, and, with an
/// output, plays as the first room of its own group.
public final class LeaderNode: Sendable {
    /// All connections, a file for each that is served, and what a node has open anyway.
    static let openFiles = NodeServer.connectionsMax + MediaService.connectionsMax + 256

    private let configuration: NodeConfiguration
    private let locations: [String]
    private let roomsToWaitFor: Int
    private let loops: Bool
    private let listening = Mutex<HostPort?>(nil)
    private let node = Mutex<Node?>(nil)
    private let missed = Mutex((count: 0, of: 0))

    /// - Parameters:
    ///   - assets: paths of files, folders and playlists (see `FileName`) and addresses, played in
    ///     order.
    ///   - roomsToWaitFor: the start waits until so many rooms are ready, this one included.
    public init(
        _ configuration: NodeConfiguration, assets: [String], roomsToWaitFor: Int, loops: Bool
    ) {
        self.configuration = configuration
        self.locations = assets
        self.roomsToWaitFor = roomsToWaitFor
        self.loops = loops
    }

    /// Where the control service listens, once it does; also after the lead was handed over.
    public var address: HostPort? { listening.withLock { $0 } }

    /// Where the control service listens, while this node leads; `nil` while it follows.
    public var leadingAddress: HostPort? { node.withLock { $0 }?.address }

    /// The group that this node is in, to be steered from this process; `nil` until there is a leader.
    /// It belongs to the leader of this moment: ask again once its events have ended.
    public var control: (any GroupControlling)? { node.withLock { $0 }?.control }

    /// Items that were to be played and were not, and of how many; final once ``run()`` has returned.
    public var missedItems: (count: Int, of: Int) { missed.withLock { $0 } }

    /// Leads until the queue has been played or the task is cancelled; then says goodbye. Once another
    /// room leads, it follows until the task is cancelled.
    ///
    /// - Throws: `RoomError` when a port is taken, the output cannot be opened or none of the assets
    ///   can be played.
    public func run() async throws {
        let logger = configuration.logger
        let name = try roomID(configuration.name)
        try await OpenFiles.claim(Self.openFiles)
        let node = Node(
            configuration, name, session: openSession(), endsWithQueue: !locations.isEmpty)
        let reader = AssetReader(locations, node.library, node.media, logger: logger)
        async let _ = reader.run()
        try await reader.begin()
        let services = try await Leading.Services.open(configuration, node.media)
        // A leader that does not come to serve leaves no port taken.
        defer { services.close() }
        let output = try configuration.openOutput(sparing: await sources())
        let options = node.memberOptions(isLeaders: true)
        let clock = LeaderClock(epoch: .random(in: 1 ... .max))
        let leading = Leading(
            services, clock, reader, name: name, session: node.session, configuration,
            LeaderConfiguration(
                name: name.name, queue: [], coming: locations.count,
                roomsToWaitFor: roomsToWaitFor, loops: loops, term: UInt64(max(1, time(nil))),
                groupClockEpoch: clock.current().epoch, timePort: services.timePort,
                mediaPort: services.port, crystal: configuration.crystal(),
                ownInstance: output != nil ? options.identity?.number : nil),
            events: node.events)
        await leading.begin()
        listening.withLock { $0 = HostPort(host: "127.0.0.1", port: Int(services.port)) }
        logger.notice(
            "leading",
            metadata: [
                "name": "\(name)", "port": "\(services.port)", "avahi": "\(node.session != nil)",
            ])
        node.begin(leading, output, options)
        self.node.withLock { $0 = node }
        defer { self.node.withLock { $0 = nil } }
        try await node.run()
        let (count, total) = reader.misses
        let skipped = await leading.core.skippedCount
        missed.withLock { $0 = (count + skipped, total) }
        try reader.checkSomethingPlays()
    }

    private func openSession() -> AvahiSession? {
        guard configuration.usesAvahi else { return nil }
        do {
            return try Discovery.openSession()
        } catch {
            configuration.logger.warning("not announced", metadata: ["reason": "\(error)"])
            return nil
        }
    }

    // MARK: The queue

    /// What must not be written over: all of it is looked for only where files may be.
    private func sources() async throws -> [String] {
        guard configuration.overwritesFiles else { return locations }
        let locations = locations
        return try await blocking { cancellation throws(MediaError) in
            var list = AssetList(locations)
            var sources: [String] = []
            while let step = list.next(cancellation) {
                if case .item(let item) = step { sources.append(item.location) }
            }
            return sources + list.playlists
        }
    }
}
