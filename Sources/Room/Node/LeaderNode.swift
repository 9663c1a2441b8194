import AvahiDiscovery
import ClockSync
import DeviceOutput
import GroupControl
import LinuxHost
import Logging
import NIOCore
import Playout
import RealTime
import Synchronization
import Timing
import Wire

import func Glibc.time

/// A node that leads a group: announces itself, serves clock, assets and control, and, with an
/// output, plays as the first room of its own group.
public final class LeaderNode: Sendable {
    /// All connections, a file for each that is served, and what a node has open anyway.
    static let openFiles = NodeServer.connectionsMax + MediaService.connectionsMax + 256
    /// How long what was said last may take to leave before the links are cut.
    static let farewellLimit = Duration.milliseconds(200)

    private let configuration: NodeConfiguration
    private let locations: [String]
    private let roomsToWaitFor: Int
    private let loops: Bool
    private let listening = Mutex<HostPort?>(nil)
    private let crowd = Crowd()
    private let replies = ReplyBudget()
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

    /// Where the control service listens, once it does.
    public var address: HostPort? { listening.withLock { $0 } }

    /// Items that were to be played and were not, and of how many; final once ``run()`` has returned.
    public var missedItems: (count: Int, of: Int) { missed.withLock { $0 } }

    /// Leads until the queue has been played or the task is cancelled; then says goodbye.
    ///
    /// - Throws: `RoomError` when a port is taken, the output cannot be opened or none of the assets
    ///   can be played.
    public func run() async throws {
        let logger = configuration.logger
        let name = try roomID(configuration.name)
        try await OpenFiles.claim(Self.openFiles)
        let media = MediaService(logger: logger)
        let library = SessionAssets(
            cache: configuration.openCache(), pieces: media.pieces, logger: logger)
        let reader = AssetReader(locations, library, media, logger: logger)
        async let _ = reader.run()
        try await reader.begin()
        let files = OpenFiles.allow(Self.openFiles) - OpenFiles.ownUse
        let door = try await NodeServer.open(
            configuration.port, limits: ConnectionPlaces.Limits().fitting(files),
            exhausted: { reason in
                logger.warning(
                    "no connection can be accepted for the moment",
                    metadata: ["reason": "\(reason)"])
            })
        // A leader that does not come to serve leaves no port taken.
        defer { door.close() }
        let notices = await CommitDatagramSender.open(beside: door.channel, logger: logger)
        defer { notices?.close() }
        let port = door.port
        let epoch = UInt64.random(in: 1 ... .max)
        let clock = LeaderClock(epoch: epoch)
        let timeService = try openTimeService(port: port, clock: clock)
        defer { timeService.stop() }

        let output = try configuration.openOutput(sparing: await sources())
        let options = configuration.memberOptions(name, isLeaders: true)
        let (ended, endedContinuation) = AsyncStream.makeStream(of: Void.self)
        let core = LeaderCore(
            LeaderConfiguration(
                name: name.name, queue: [], coming: locations.count,
                roomsToWaitFor: roomsToWaitFor, loops: loops, term: UInt64(max(1, time(nil))),
                groupClockEpoch: epoch,
                timePort: UInt16(timeService.port), mediaPort: UInt16(port),
                crystal: configuration.crystal(),
                ownInstance: output != nil ? options.identity?.number : nil),
            clock: clock, logger: logger, ended: { endedContinuation.yield() },
            moved: { reader.move(near: $0) }, obstacle: { await reader.obstacle(to: $0) })
        await core.take(reader.take())
        reader.follow { await core.wanted(ahead: $0, most: $1) }
        listening.withLock { $0 = HostPort(host: "127.0.0.1", port: port) }

        let (session, announcement) = announce(name: name, port: port)
        logger.notice(
            "leading",
            metadata: ["name": "\(name)", "port": "\(port)", "avahi": "\(session != nil)"])
        try await withGracefulStop(
            {
                await core.leave()
                try? await Task.sleep(for: Self.farewellLimit)
            },
            {
                try await onConnectionThread {
                    try await withThrowingTaskGroup { group in
                        group.addTask {
                            try await door.run(
                                links: { await self.serve($0, $1, core, reader, notices) },
                                // Files are read where waiting for a disk holds up nobody.
                                media: { connection, visitor in
                                    await withTaskExecutorPreference(globalConcurrentExecutor) {
                                        await media.serve(connection, visitor)
                                    }
                                })
                        }
                        group.addTask {
                            // Not a task of the group: the first of those to end ends the leader.
                            async let _ = self.warnOfSilence(session)
                            async let _ = Self.lookForNamesakes(session, announcement)
                            async let _ = Self.passOn(reader, to: core)
                            async let _ = Self.lookAfterFiles(reader, core)
                            await core.run()
                        }
                        if let output {
                            let member = self.localMember(
                                name, output, core, library, clock, options)
                            group.addTask { await member.run() }
                        }
                        group.addTask {
                            // One that was started without anything waits for more.
                            for await _ in ended where !self.locations.isEmpty { break }
                            guard !Task.isCancelled else { return }
                            logger.notice("the queue has been played")
                            await core.leave()
                            try? await Task.sleep(for: Self.farewellLimit)
                            throw CancellationError()
                        }
                        do {
                            try await group.next()
                        } catch is CancellationError {}
                        group.cancelAll()
                    }
                }
            })
        withExtendedLifetime((session, announcement)) {}
        let (count, total) = reader.misses
        let skipped = await core.skippedCount
        missed.withLock { $0 = (count + skipped, total) }
        try reader.checkSomethingPlays()
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

    private static func passOn(_ reader: AssetReader, to core: LeaderCore) async {
        for await _ in reader.changes {
            await core.take(reader.take())
        }
    }

    /// Files are looked at so often: what is written anew is noticed before what was decoded ahead
    /// of it has been played.
    private static let fileInterval = Duration.milliseconds(250)

    /// Notices when the file of what plays or comes next is not the one any more that was read.
    private static func lookAfterFiles(_ reader: AssetReader, _ core: LeaderCore) async {
        while !Task.isCancelled {
            try? await Task.sleep(for: fileInterval)
            let (current, upcoming) = await core.upcoming
            for hash in upcoming {
                switch await reader.check(hash, isPlaying: hash == current) {
                case .none: break
                case .other(let asset): await core.change(hash, to: asset)
                case .nothing: await core.change(hash, to: nil)
                }
            }
        }
    }

    // MARK: Services

    /// On the number of the control service, where rooms ask before they are welcome; on another
    /// one where any will do and this one is taken.
    private func openTimeService(port: Int, clock: LeaderClock) throws -> TimeService {
        func start(port: Int) throws(HostError) -> TimeService {
            try TimeService.start(
                port: port, priority: configuration.realTimePriority,
                broadcasts: configuration.usesBroadcasts, clock: clock.current)
        }
        do {
            if configuration.port == 0, let service = try? start(port: port) { return service }
            return try start(port: configuration.port)
        } catch {
            throw RoomError(.portTaken, "the time service cannot start: \(error)")
        }
    }

    private func announce(name: RoomID, port: Int) -> (AvahiSession?, Announcement?) {
        guard configuration.usesAvahi else { return (nil, nil) }
        do {
            let session = try Discovery.openSession()
            let announcement = Announcement(
                session: session, name: name, role: .leader, port: port,
                logger: configuration.logger)
            announcement.update(group: name.name)
            return (session, announcement)
        } catch {
            configuration.logger.warning("not announced", metadata: ["reason": "\(error)"])
            return (nil, nil)
        }
    }

    private static func lookForNamesakes(
        _ session: AvahiSession?, _ announcement: Announcement?
    ) async {
        guard let session, let announcement else { return }
        for await event in session.browse() {
            if let sighting = RoomSighting(event) { announcement.notice(sighting) }
        }
    }

    private func warnOfSilence(_ session: AvahiSession?) async {
        guard let session else { return }
        await Discovery.warnOfSilence(
            consequence: "rooms find this leader only by --leader HOST:PORT",
            logger: configuration.logger, isConnected: { session.isConnected })
    }

    // MARK: Links

    private func serve(
        _ channel: any Channel, _ visitor: Visitor, _ core: LeaderCore, _ reader: AssetReader,
        _ notices: CommitDatagramSender?
    ) async {
        let remote = channel.remoteAddress.map { "\($0)" } ?? "?"
        // Whoever connects and says nothing is cut off; a room or client that spoke may stay.
        let deadline = channel.eventLoop.scheduleTask(
            in: .nanoseconds(NodeServer.firstWordLimit.wholeNanoseconds)
        ) { channel.close(promise: nil) }
        do {
            let crowd = crowd
            let client = try await channel.asyncChannel(of: EnvelopeChannel.self) {
                // What is said to one that does not read waits here, where it is counted.
                try $0.syncOptions?.setOption(
                    .socketOption(.so_sndbuf), value: SocketOptionValue(MediaService.sendBuffer))
                try EnvelopeCodec.add(
                    to: $0, limit: FrameDecoder.leaderLimit, pace: .toLeader, crowd: crowd)
            }
            try await client.executeThenClose { inbound, outbound in
                var envelopes = inbound.makeAsyncIterator()
                guard let first = try await envelopes.next() else { return }
                deadline.cancel()
                switch first {
                case .request(let request):
                    guard visitor.becomes(.client) else { return }
                    let control = ControlLink(
                        channel: channel, core: core, reader: reader, replies: self.replies)
                    defer { control.end() }
                    var next: Envelope? = .request(request)
                    while case .request(let request)? = next {
                        visitor.isUseful(andBusy: true)
                        guard try await control.take(request) else { return }
                        visitor.isUseful()
                        next = try await envelopes.next()
                    }
                case .toLeader(let hello):
                    guard visitor.becomes(.room) else { return }
                    try await Self.serveRoom(
                        hello, client, visitor, inbound: &envelopes, outbound, core, notices)
                case .toRoom, .reply:
                    break
                }
            }
        } catch {
            configuration.logger.debug(
                "link ended", metadata: ["from": "\(remote)", "reason": "\(reason(of: error))"])
        }
    }

    private static func serveRoom(
        _ hello: RoomToLeader, _ client: EnvelopeChannel, _ visitor: Visitor,
        inbound: inout NIOAsyncChannelInboundStream<Envelope>.AsyncIterator,
        _ outbound: NIOAsyncChannelOutboundWriter<Envelope>, _ core: LeaderCore,
        _ notices: CommitDatagramSender?
    ) async throws {
        let outbox = Outbox<LeaderToRoom> { $0.roughSize }
        client.cut(after: outbox)
        let room = client.channel.remoteAddress
        let link = await core.open(
            outbox,
            notifier: { notice, port in
                if let room { notices?.send(notice, to: room, port: port) }
            })
        await withThrowingTaskGroup { group in
            group.addTask { try await client.say(outbox, on: outbound) { .toRoom($0) } }
            await core.receive(hello, from: link)
            do {
                while case .toLeader(let message)? = try await inbound.next() {
                    visitor.isUseful()
                    await core.receive(message, from: link)
                }
            } catch {}
            await core.closed(link)
            group.cancelAll()
        }
    }

    // MARK: The leader's own room

    private func localMember(
        _ name: RoomID, _ output: OutputThread, _ core: LeaderCore, _ library: SessionAssets,
        _ clock: LeaderClock, _ options: Member.Options
    ) -> Member {
        Member(
            name: name, output: output, clock: OwnClock(clock),
            logger: configuration.logger, options: options,
            fetch: { asset, _ in try library.file(of: asset) },
            uplink: { member, attempt in
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
            })
    }
}

/// The clock of the leader's own room: the group clock itself.
final class OwnClock: Member.ClockSource {
    let cell: ClockCell
    let changes: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init(_ clock: LeaderClock) {
        (changes, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        cell = clock.cell
    }

    func follow(_ welcome: Welcome) { continuation.yield() }
    func burst() {}
    func expectStart(_ start: ExpectedStart) {}
    func setIdle(_ isIdle: Bool) {}
    func remember() {}
    var figures: ClockFigures {
        ClockFigures(roundTrip: .zero, stamps: .own, quality: .locked)
    }
    func stop() { continuation.finish() }
}
