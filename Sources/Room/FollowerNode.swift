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
    /// Longest silence while a TCP connection is made.
    static let connectLimit = TimeAmount.seconds(3)
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
        let finder = LeaderFinder(
            fixed: leader, name: leaderName, session: session, logger: logger)
        var options = configuration.memberOptions(name)
        options.cacheLimit = configuration.cacheLimitBytes
        let output = try configuration.openOutput()
        options.notices = await NoticeListener.open(logger: logger)
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
            uplink: { await Self.uplink($0, $1, finder: finder, clock: clock, logger: logger) })
        let announcement = Announcement(
            session: configuration.usesAvahi ? session : nil, name: name)
        announcement.update(group: "")

        try await withFarewell(
            {
                await member.leave()
                try? await Task.sleep(for: Self.farewellLimit)
            },
            {
                await onConnectionThread {
                    await withDiscardingTaskGroup { group in
                        group.addTask { await finder.run() }
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
            arrival: Member.Arrival(file: arriving, cancellation: wanted) { welcome in
                let url = try address(of: asset, welcome, finder)
                try arriving.move(to: url)
                let file = try await fetching.run {
                    let queue = DispatchQueue(label: "tutti-fetch")
                    return try await blocking(on: queue, cancellation: wanted) {
                        cancellation throws(MediaError) in
                        try cache.fetch(
                            url: url, print, fileExtension: asset.fileExtension, ranges: ranges,
                            arriving: arriving, cancellation: cancellation)
                    }
                }
                return Member.AssetFile(path: file.path, hold: file)
            })
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

    private static func uplink(
        _ member: Member, _ attempt: Int, finder: LeaderFinder, clock: RemoteClock, logger: Logger
    ) async -> String {
        do {
            let found = try await finder.next()
            let address = found.address
            clock.approach(address)
            let channel = try await Room.connect(
                to: address, timeout: connectLimit, limit: FrameDecoder.roomLimit)
            finder.connected(to: address)
            clock.setHost(address.host)
            return try await channel.executeThenClose { inbound, outbound in
                let outbox = Outbox<RoomToLeader>()
                channel.cut(after: outbox)
                return try await withThrowingTaskGroup { group in
                    group.addTask { try await channel.say(outbox, on: outbound) { .toLeader($0) } }
                    await member.linkUp(outbox, attempt, foundAt: found.at)
                    for try await envelope in inbound {
                        if case .toRoom(let message) = envelope {
                            await member.receive(message, attempt)
                        }
                    }
                    outbox.finish()
                    group.cancelAll()
                    return "the leader closed the connection"
                }
            }
        } catch let error as RoomError {
            return error.description
        } catch {
            return reason(of: error)
        }
    }
}

/// Which leader to follow: the one given, or what Avahi sees.
final class LeaderFinder: Sendable {
    /// A leader, and since when this room knows of it.
    typealias Found = (address: HostPort, at: LocalInstant)

    /// How often to look for one that Avahi reports: at first, when most are found, and later.
    private static let pause = Nanoseconds.milliseconds(50)
    private static let firstPause = Nanoseconds.milliseconds(5)
    private static let firstLooks = 200

    private struct State {
        var seen: [String: (room: DiscoveredRoom, since: LocalInstant)] = [:]
        var current: HostPort?
        var currentName: String?
        /// Turns over the candidates so that a dead entry does not block a live one.
        var attempt = 0
        /// Since when one is looked for; `nil` while connected.
        var wantedAt: LocalInstant?
        /// Said to the user, since then.
        var saysItLooks = false
    }

    private let fixed: HostPort?
    private let name: String?
    private let session: AvahiSession?
    private let logger: Logger
    private let state = Mutex(State())

    init(fixed: HostPort?, name: String?, session: AvahiSession?, logger: Logger) {
        self.fixed = fixed
        self.name = name
        self.session = session
        self.logger = logger
    }

    /// Host of the leader connected to last.
    var currentHost: String? { state.withLock { $0.current?.host } }

    /// Keeps the list of leaders until cancelled.
    func run() async {
        guard fixed == nil, let session else { return }
        for await event in session.browse() {
            switch event {
            case .found(let service):
                guard let room = DiscoveredRoom(service), room.role == .leader else { continue }
                let now = HostClock.now()
                state.withLock { state in
                    let known = state.seen[service.name]
                    // The same address family may bring a new port: the leader restarted.
                    if let known, Discovery.isBetter(known.room, than: room) { return }
                    state.seen[service.name] = (room, known?.since ?? now)
                }
            case .removed(let name): state.withLock { _ = $0.seen.removeValue(forKey: name) }
            case .daemonLost: logger.warning("avahi-daemon went away; waiting for it")
            case .allKnownReported: break
            }
        }
    }

    /// A leader to try now; waits until there is one.
    func next() async throws -> Found {
        let wantedAt = state.withLock { state in
            let wantedAt = state.wantedAt ?? HostClock.now()
            state.wantedAt = wantedAt
            return wantedAt
        }
        if let fixed { return (fixed, wantedAt) }
        var looks = 0
        while true {
            if let (room, since) = candidate() { return (room.address, max(since, wantedAt)) }
            if isFirstLook() { logger.notice("looking for a leader") }
            looks += 1
            let pause = looks < Self.firstLooks ? Self.firstPause : Self.pause
            await LoopExecutor.shared.sleep(for: pause)
            try Task.checkCancellation()
        }
    }

    /// Once until a leader is connected to, however many attempts that takes.
    private func isFirstLook() -> Bool {
        state.withLock { state in
            defer { state.saysItLooks = true }
            return !state.saysItLooks
        }
    }

    private func candidate() -> (DiscoveredRoom, since: LocalInstant)? {
        let (found, count) = state.withLock { state in
            let rooms = state.seen.values
                .filter { name == nil || $0.room.name.foldedName == name?.foldedName }
                .sorted { $0.room.name < $1.room.name }
            defer { state.attempt += 1 }
            let last = rooms.first { $0.room.name == state.currentName }
            if state.attempt.isMultiple(of: 2), let last { return (Optional(last), rooms.count) }
            guard !rooms.isEmpty else { return (nil, 0) }
            let found = rooms[(state.attempt / 2) % rooms.count]
            state.currentName = found.room.name
            return (found, rooms.count)
        }
        guard let found else { return nil }
        if count > 1 {
            logger.warning(
                "more than one leader on this LAN; choose one with --group NAME or --leader HOST:PORT",
                metadata: ["count": "\(count)", "following": "\(found.room.name)"])
        }
        return (found.room, found.since)
    }

    func connected(to address: HostPort) {
        state.withLock {
            $0.current = address
            $0.attempt = 0
            $0.wantedAt = nil
            $0.saysItLooks = false
        }
    }
}

/// What the LAN hears of a following room.
final class Announcement: Sendable {
    private let session: AvahiSession?
    private let name: RoomID
    private let current = Mutex<PublicationID?>(nil)

    init(session: AvahiSession?, name: RoomID) {
        self.session = session
        self.name = name
    }

    func update(group: String) {
        guard let session else { return }
        current.withLock { current in
            if let old = current { session.withdraw(old) }
            current = session.advertise(
                Advertisement(
                    name: name.name, port: 0,
                    attributes: [
                        "role": "follower", "name": name.name,
                        // Its leader's word, on the way to everybody's terminal.
                        "group": group.shown(limit: RoomID.longestBytes), "v": "1",
                    ]))
        }
    }
}
