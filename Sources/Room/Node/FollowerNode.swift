import Dispatch
import AvahiDiscovery
import ClockSync
import DeviceOutput
import FFmpegMedia
import GroupControl
import LinuxHost
import Logging
import NIOCore
import Playout
import RealTime
import Synchronization
import Timing
import Wire

/// A node that follows: finds a leader, plays what the group plays, and waits for the leader to
/// come back when it went away.
public final class FollowerNode: Sendable {
    static let farewellLimit = Duration.milliseconds(100)
    /// Connections to a leader, and what a room holds of a long queue.
    static let openFiles = 1_024
    /// Items that are looked for, and fetched, at once; each has a thread and some files. The
    /// machine that follows asks for no more.
    static let fetchesMax = 8

    private let configuration: NodeConfiguration
    private let leader: HostPort?
    private let leaderName: String?

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

    /// Follows until the task is cancelled; a leader that goes away is waited for.
    ///
    /// - Throws: `RoomError` when the output cannot be opened or leaders cannot be looked for.
    public func run() async throws {
        let name = try roomID(configuration.name)
        let logger = configuration.logger
        try await OpenFiles.claim(Self.openFiles)
        let cache = configuration.openCache()
        let session = configuration.usesAvahi || leader == nil ? try openSession() : nil
        var options = configuration.memberOptions(name)
        options.cacheLimit = configuration.cacheLimitBytes
        let identity = options.identity
        let finder = LeaderFinder(
            fixed: leader, name: leaderName, preferred: identity?.leader, logger: logger,
            keep: { identity?.keep(leader: $0) })
        let announcement = Announcement(
            session: configuration.usesAvahi ? session : nil, name: identity?.name ?? name,
            role: .follower, port: 0, logger: logger)
        announcement.update(group: "")
        options.renamed = { announcement.rename($0) }
        let output = try configuration.openOutput()
        options.notices = await CommitDatagramListener.open(logger: logger)
        let clock = RemoteClock(
            priority: configuration.realTimePriority,
            broadcasts: configuration.usesBroadcasts, store: options.store, logger: logger)
        let ranges = RangeClient()
        let looking = Workers(Self.fetchesMax, cancelsOldest: false)
        let fetching = Workers(Self.fetchesMax)
        let member = Member(
            name: name, output: output, clock: clock, logger: logger,
            options: options,
            fetch: { asset, welcome in
                try await Self.fetch(
                    asset, welcome, from: finder, ranges, into: cache, looking, fetching)
            },
            uplink: { await Uplink(finder: finder, clock: clock).run($0, $1) })

        try await withGracefulStop(
            {
                await member.leave()
                try? await Task.sleep(for: Self.farewellLimit)
            },
            {
                await onConnectionThread {
                    await withDiscardingTaskGroup { group in
                        if let session, self.leader == nil {
                            group.addTask {
                                for await event in session.browse() {
                                    if let sighting = RoomSighting(event) { finder.take(sighting) }
                                }
                            }
                        }
                        if let session {
                            group.addTask {
                                await Discovery.warnOfSilence(
                                    consequence: self.leader == nil
                                        ? "no leader can be found; give one with --leader HOST:PORT"
                                        : "tutti rooms does not list this room",
                                    logger: logger, isConnected: { session.isConnected })
                            }
                        }
                        group.addTask {
                            for await leader in clock.leaders.messages {
                                announcement.update(group: leader)
                            }
                        }
                        await member.run()
                        group.cancelAll()
                    }
                }
            })
    }

    /// From the cache, or on its way there.
    private static func fetch(
        _ asset: AssetDescriptor, _ welcome: Welcome?, from finder: LeaderFinder,
        _ ranges: RangeClient, into cache: MediaCache, _ looking: Workers, _ fetching: Workers
    ) async throws -> Member.AssetFile {
        let print = MediaFingerprint(
            hash: asset.hash.bytes, byteCount: asset.byteCount,
            piecesRoot: asset.piecesRoot?.bytes)
        let held = try await looking.run {
            try await blocking { cancellation throws(MediaError) in
                cache.contains(print, cancellation: cancellation)
            }
        }
        if let held { return Member.AssetFile(path: held.path, hold: held) }
        let first = try address(of: asset, welcome, finder)
        let arriving = try ArrivingFile(
            url: first, print,
            pace: FetchPace(byteCount: asset.byteCount, seconds: asset.durationSeconds),
            ranges: ranges, mayAskFirst: true)
        let wanted = MediaCancellation()
        return Member.AssetFile(
            path: first,
            arrival: Member.Arrival(
                file: arriving, cancellation: wanted,
                complete: { welcome in
                    try await fetching.run {
                        try await withTaskCancellationHandler {
                            try await complete(
                                asset, print, welcome, from: finder, ranges, into: cache, arriving,
                                wanted)
                        } onCancel: {
                            wanted.cancel()
                        }
                    }
                },
                remove: { cache.removePart(of: print) }))
    }

    /// The whole of an asset, from wherever the leader is: its old address may be gone without a
    /// word, and then nothing would break off.
    private static func complete(
        _ asset: AssetDescriptor, _ print: MediaFingerprint, _ welcome: Welcome?,
        from finder: LeaderFinder, _ ranges: RangeClient, into cache: MediaCache,
        _ arriving: ArrivingFile, _ wanted: MediaCancellation
    ) async throws -> Member.AssetFile {
        while true {
            let host = finder.currentHost ?? ""
            let url = try address(of: asset, welcome, finder)
            try arriving.move(to: url)
            let queue = DispatchQueue(label: "tutti-fetch")
            let file = try await finder.whileItStays(at: host) {
                try await blocking(on: queue, cancellation: MediaCancellation(within: wanted)) {
                    cancellation throws(MediaError) in
                    try cache.fetch(
                        url: url, print, fileExtension: asset.fileExtension, ranges: ranges,
                        arriving: arriving, cancellation: cancellation)
                }
            }
            if let file { return Member.AssetFile(path: file.path, hold: file) }
            try Task.checkCancellation()
        }
    }

    /// Where a leader serves it.
    private static func address(
        of asset: AssetDescriptor, _ welcome: Welcome?, _ finder: LeaderFinder
    ) throws(RoomError) -> String {
        guard let welcome, let host = finder.currentHost else {
            throw RoomError(.noLeader, "the leader is gone")
        }
        return
            "http://\(HostPort(host: host, port: Int(welcome.mediaPort)))/asset/\(asset.hash.hex)"
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
