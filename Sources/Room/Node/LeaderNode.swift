import Logging
import Synchronization
import TuttiAvahiDiscovery
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayout
import TuttiTiming
import TuttiTrust

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
    private let pairing = Mutex<HouseholdDesk?>(nil)

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
        PacketMarks.areSet = configuration.marksPackets
        let configuration = try configuration.withCredentials()
        try foundHousehold(configuration)
        try await OpenFiles.claim(Self.openFiles)
        let node = Node(
            configuration, name, session: openSession(), endsWithQueue: !locations.isEmpty)
        let reader = AssetReader(locations, node.library, node.media, logger: logger)
        async let _ = reader.run()
        try await reader.begin()
        let term = UInt64(max(1, time(nil)))
        let door = try await openDoor(configuration)
        // A leader that does not come to serve leaves no port taken.
        defer { door.close() }
        let services = try await Leading.Services.open(
            configuration, node.media, door, term: term,
            takesAnyPort: door.port != configuration.port)
        defer { services.close() }
        node.open(door)
        let output = try configuration.openOutput(sparing: await sources())
        let options = node.memberOptions(isLeaders: true)
        let clock = LeaderClock(epoch: .random(in: 1 ... .max))
        let leading = Leading(
            services, clock, reader, name: name, session: node.session, configuration,
            LeaderConfiguration(
                name: name.name, queue: [], coming: locations.count,
                roomsToWaitFor: roomsToWaitFor, loops: loops, term: term,
                groupClockEpoch: clock.current().epoch, timePort: services.timePort,
                mediaPort: services.port, crystal: configuration.crystal(),
                ownInstance: output != nil ? options.identity?.number : nil),
            events: node.events)
        await leading.begin()
        pairing.withLock { $0 = leading.services.door.desk }
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

    /// Where another node of this machine follows, it has the port, and any other will do: Avahi says
    /// which. A leader there is somebody else's.
    private func openDoor(_ configuration: NodeConfiguration) async throws -> NodeServer {
        do {
            return try await NodeServer.open(configuration, port: configuration.port)
        } catch let error as RoomError where error.code == .portTaken {
            let here = NextLeader(
                name: try roomID(configuration.name), host: "127.0.0.1",
                port: UInt16(clamping: configuration.port))
            let question = SightQuestion(credentials: configuration.credentials)
            guard case .sight(let sight)? = await question.ask([here], hosts: []).first else {
                throw error
            }
            if case .own = sight.lead { throw error }
            let door = try await NodeServer.open(configuration, port: 0)
            configuration.logger.notice(
                "port \(configuration.port) belongs to a node that follows; another one is taken",
                metadata: ["node": "\(sight.room)", "port": "\(door.port)"])
            return door
        }
    }

    private func foundHousehold(_ configuration: NodeConfiguration) throws(RoomError) {
        guard let keeper = configuration.credentials.keeper else {
            configuration.logger.warning(
                "this group is open: everybody on the network may steer it, feed it files and read what it plays"
            )
            return
        }
        if case .removed(_, _)? = keeper.ownStanding {
            configuration.logger.warning(
                "this machine was removed from its household, and founds one of its own")
        }
        try keeper.foundIfNone()
    }

    // MARK: Pairing

    /// Machines that want to join the household and wait for a person, each time that they change.
    /// Ends with the task; empty for an open group.
    public var candidates: AsyncStream<[PairingCandidate]> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let task = Task {
                var desk: HouseholdDesk?
                while desk == nil, !Task.isCancelled {
                    desk = pairing.withLock { $0 }
                    if desk == nil { try? await Task.sleep(for: .milliseconds(200)) }
                }
                guard let desk else { return continuation.finish() }
                for await candidates in desk.candidates {
                    continuation.yield(
                        candidates.map { PairingCandidate(digits: $0.digits, name: $0.name.text) })
                }
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    /// A person has seen that a candidate shows these digits.
    ///
    /// - Throws: `RoomError`, code `refused`, when none does.
    public func accept(_ digits: String) throws(RoomError) {
        try pairing.withLock { $0 }?.accept(digits)
    }

    /// A person does not know the machine that shows these digits.
    public func decline(_ digits: String) throws(RoomError) {
        try pairing.withLock { $0 }?.decline(digits)
    }

    private func openSession() -> AvahiSession? {
        guard configuration.usesAvahi else { return nil }
        do {
            return try Discovery.openSession(on: configuration.networkInterface)
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
