import AvahiDiscovery
import ClockSync
import DeviceOutput
import FFmpegMedia
import GroupControl
import LinuxHost
import Logging
import Playout
import RealTime
import Synchronization
import Timing

/// One machine's part in a group: its room, and the role that it plays.
///
/// A role begins and ends; the room, and what sounds in it, stays. A node that is asked to lead goes
/// on with the session and with the clock as it knows it, and its room plays by the same cell as
/// before, which another writer has now. A node that has handed over follows, from where its own
/// clock is.
///
///     follows ── asked to lead: takeOver ──► leads ── another leads: follow ──► follows
///
/// Who has handed over goes on answering what the time is, until the rooms have gone over, and serves
/// the files that only it has.
final class Node: Sendable {
    enum Role: Sendable {
        case following(Following)
        case leading(Leading)
    }

    /// Roles that begin while the node has not yet come to it: they follow one another by commands.
    private static let mostJobs = 64
    /// How long what was said last may take to leave before the links are cut.
    private static let leaderFarewell = Duration.milliseconds(200)
    private static let followerFarewell = Duration.milliseconds(100)

    let name: RoomID
    let configuration: NodeConfiguration
    /// `nil`: neither announced nor looking for others.
    let session: AvahiSession?
    let media: MediaService
    let library: SessionAssets
    let files: NodeFiles

    /// The program is done when the queue has been played: it was started for that.
    private let endsWithQueue: Bool
    private let endings: AsyncStream<Void>
    private let ended: AsyncStream<Void>.Continuation

    private struct State {
        var role: Role?
        var member: Member?
        var options: Member.Options?
        /// Led before.
        var retired: Leading?
        /// Host of whoever led before this node took over.
        var hostBefore: String?
        var error: (any Error)?
    }
    private let state = Mutex(State())
    private typealias Job = @Sendable () async throws -> Void
    private let jobs: AsyncStream<Job>
    private let job: AsyncStream<Job>.Continuation

    private var logger: Logger { configuration.logger }

    init(
        _ configuration: NodeConfiguration, _ name: RoomID, session: AvahiSession?,
        endsWithQueue: Bool
    ) {
        self.endsWithQueue = endsWithQueue
        (endings, ended) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        self.name = name
        self.configuration = configuration
        self.session = session
        let cache = configuration.openCache()
        media = MediaService(
            logger: configuration.logger,
            uploads: Uploads(
                base: configuration.cacheFolder, limit: configuration.uploadLimitBytes,
                now: { HostClock.now() }))
        library = SessionAssets(
            cache: cache, pieces: media.pieces, logger: configuration.logger)
        files = NodeFiles(library, media, cache)
        (jobs, job) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.mostJobs))
    }

    /// What the room of this node is told, whatever the role.
    func memberOptions(isLeaders: Bool = false) -> Member.Options {
        var options = configuration.memberOptions(name, isLeaders: isLeaders)
        options.lead = { [weak self] in
            await self?.takeOver($0, $1) ?? .cannot(reason: "it is ending")
        }
        options.follow = { [weak self] in self?.follow($0) }
        options.renamed = { [weak self] in self?.rename($0) }
        return options
    }

    /// Plays its part until the task is cancelled or ``end(_:)`` is called.
    func run() async throws {
        if endsWithQueue {
            begin { for await _ in self.endings { await self.endWithQueue() } }
        }
        begin { [media] in
            try await blocking { _ throws(MediaError) in media.uploads?.removeLeftovers() }
        }
        defer { media.uploads?.end() }
        try await withGracefulStop({ await self.leave() }) {
            await onConnectionThread {
                await withDiscardingTaskGroup { group in
                    for await job in self.jobs { group.addTask { await self.perform(job) } }
                    group.cancelAll()
                }
            }
        }
        let last = state.withLock { state in
            defer { state = State() }
            return state
        }
        last.retired?.close()
        if case .leading(let leading)? = last.role { leading.close() }
        if let error = last.error { throw error }
    }

    /// To be done beside everything else, until it ends or the node does.
    func begin(_ work: @escaping @Sendable () async throws -> Void) { job.yield(work) }

    private func perform(_ job: Job) async {
        do {
            try await job()
        } catch is CancellationError {
        } catch {
            end(error)
        }
    }

    /// Ends the node.
    func end(_ error: (any Error)? = nil) {
        state.withLock { $0.error = $0.error ?? error }
        job.finish()
    }

    private func leave() async {
        let (role, member) = state.withLock { ($0.role, $0.member) }
        switch role {
        case .leading(let leading):
            await leading.core.leave()
            try? await Task.sleep(for: Self.leaderFarewell)
        case .following:
            await member?.leave()
            try? await Task.sleep(for: Self.followerFarewell)
        case nil: break
        }
    }

    private func rename(_ name: RoomID) {
        if case .following(let following)? = state.withLock({ $0.role }) {
            following.announcement.rename(name)
        }
    }

    // MARK: Beginning

    /// Begins as a follower.
    func begin(
        _ following: Following, _ output: OutputThread?, _ options: Member.Options
    ) {
        let member = Member(
            name: name, output: output, clock: following.clock, logger: logger, options: options,
            assets: files, uplink: following.uplink)
        state.withLock {
            $0.member = member
            $0.options = options
            $0.role = .following(following)
        }
        files.follow(following.finder)
        begin { await following.run() }
        begin { await member.run() }
    }

    /// Begins as a leader; without an output it has no room.
    func begin(_ leading: Leading, _ output: OutputThread?, _ options: Member.Options) {
        let member = output.map {
            Member(
                name: name, output: $0, clock: OwnClock(leading.clock), logger: logger,
                options: options, assets: files,
                uplink: leading.uplink)
        }
        state.withLock {
            $0.member = member
            $0.options = options
            $0.role = .leading(leading)
        }
        begin { try await self.run(leading) }
        if let member { begin { await member.run() } }
    }

    /// A leader whose services fail ends the node, as long as it leads.
    private func run(_ leading: Leading) async throws {
        do {
            try await leading.run()
        } catch  where isLeading(leading) {
            throw error
        }
    }

    private func isLeading(_ leading: Leading) -> Bool {
        if case .leading(let current)? = state.withLock({ $0.role }) {
            current === leading
        } else {
            false
        }
    }

    private func endWithQueue() async {
        guard case .leading(let leading)? = state.withLock({ $0.role }), !leading.isRetired else {
            return
        }
        logger.notice("the queue has been played")
        await leading.core.leave()
        try? await Task.sleep(for: Self.leaderFarewell)
        end()
    }

    // MARK: From one role to the next

    /// Leads from now on: the session goes on, and so does the group clock as this node knows it.
    private func takeOver(_ handover: Handover, _ session: SessionState) async -> LeadAnswer {
        let now = state.withLock { $0 }
        guard case .following(let following)? = now.role, let member = now.member else {
            return .cannot(reason: "it does not follow")
        }
        guard let before = await member.welcome, let host = following.finder.currentHost else {
            return .cannot(reason: "it has no leader")
        }
        guard following.clock.cell.load().quality.isPlayable else {
            return .cannot(reason: "it is still measuring the clock")
        }
        // Its ports are needed.
        await now.retired?.stop()
        let services: Leading.Services
        do {
            services = try await Leading.Services.open(
                configuration, media, takesAnyPort: true)
        } catch {
            return .cannot(reason: "\(error)")
        }
        guard await member.isJoined, let (known, cell, skew) = following.clock.release() else {
            services.close()
            return .cannot(reason: "it has lost its leader")
        }
        let clock = LeaderClock(
            .continuing(known, at: HostClock.now(), skew: skew, epoch: .random(in: 1 ... .max)),
            in: cell)
        let label = now.options?.identity?.name ?? name
        // What was listed before keeps its identity.
        let last = handover.items.map(\.id).filter { $0 < QueueEntry.firstOwnID }.max() ?? 0
        let reader = AssetReader([], library, media, logger: logger, firstID: last + 1)
        let leading = Leading(
            services, clock, reader, name: label, session: self.session, configuration,
            LeaderConfiguration(
                name: label.name, queue: [], term: session.term + 1,
                groupClockEpoch: clock.current().epoch,
                timePort: services.timePort, mediaPort: services.port,
                ownInstance: now.options?.identity?.number,
                groupClockOrigin: before.groupClockOrigin),
            resuming: (session, handover), events: events)
        await leading.begin()
        files.lead(after: HostPort(host: host, port: Int(before.mediaPort)))
        state.withLock {
            $0.role = .leading(leading)
            $0.retired = nil
            $0.hostBefore = host
        }
        await member.change(
            to: Member.Role(
                clock: OwnClock(clock), uplink: leading.uplink, isLeaders: true))
        following.end()
        for file in await member.heldFiles { files.lend(file.file, of: file.hash) }
        media.provide { [files] hash in
            if let asset = await leading.core.asset(ofHash: hash) { await files.fetch(asset) }
        }
        begin { await reader.run() }
        begin { try await self.run(leading) }
        if let asker = try? RoomID(before.leaderName) {
            let there = NextLeader(name: asker, host: host, port: before.mediaPort)
            begin { [weak self] in await self?.confirm(leading, after: there) }
        }
        logger.notice(
            "leading",
            metadata: [
                "name": "\(label)", "port": "\(services.port)", "term": "\(session.term + 1)",
            ])
        return .leads(port: services.port)
    }

    /// Whether the leader before has heard that this node leads. Where the link broke in between,
    /// it goes on leading, and nobody would come here: this node follows it again.
    private func confirm(_ leading: Leading, after before: NextLeader) async {
        // By then it has gone over or given up.
        try? await Task.sleep(for: .nanoseconds(LeaderMachine.handoverLimit.count))
        let there = HostPort(host: before.host, port: Int(before.port))
        let leads = await LeaderProbe.ask(there, .seconds(1))
        guard let leads, leads.foldedName == before.name.name.foldedName, isLeading(leading),
            !leading.isRetired, let role = follow(before),
            let member = state.withLock({ $0.member })
        else { return }
        logger.warning(
            "the lead was not taken over: \"\(before.name)\" has not heard of it and leads on")
        await member.change(to: role)
    }

    /// What a leader tells its node.
    var events: Leading.Events {
        Leading.Events(
            ended: { [ended] in ended.yield() },
            handedOver: { [weak self] in self?.handedOver($0) })
    }

    /// The rooms have been told who leads; this node's own will come to ``follow(_:)``, if it has one.
    private func handedOver(_ next: NextLeader) {
        guard case .leading(let leading)? = state.withLock({ $0.role }) else { return }
        leading.retire()
        begin { await self.readOn(leading) }
        logger.notice("handed over", metadata: ["to": "\(next.name)"])
    }

    /// Another leads.
    ///
    /// - Returns: what the room plays by from now on; `nil`: as before.
    private func follow(_ next: NextLeader) -> Member.Role? {
        switch state.withLock({ $0.role }) {
        case nil: return nil
        case .following(let following):
            following.finder.follow(next)
            return nil
        case .leading(let leading):
            guard let options = state.withLock({ $0.options }) else { return nil }
            let following = Following(
                configuration, name, session: session, options: options, leader: nil,
                leaderName: nil,
                continuing: RemoteClock.Continued(
                    clock: leading.clock.release(), cell: leading.clock.cell,
                    origin: leading.origin))
            // Whoever asked this node to lead leads still: it took too long.
            let host = leading.isRetired ? nil : state.withLock { $0.hostBefore }
            following.finder.follow(next, toldBy: host)
            files.follow(following.finder)
            state.withLock {
                $0.role = .following(following)
                $0.retired = leading.isRetired ? leading : nil
            }
            if !leading.isRetired { leading.close() }
            begin { await following.run() }
            return Member.Role(
                clock: following.clock, uplink: following.uplink, isLeaders: false)
        }
    }

    /// The group that it is in; `nil` until there is a leader.
    var control: (any GroupControlling)? {
        switch state.withLock({ $0.role }) {
        case .leading(let leading) where !leading.isRetired:
            LeaderControl(core: leading.core, reader: leading.reader)
        case .following(let following):
            following.finder.currentAddress.map { GroupClient(address: $0) }
        case .leading, nil: nil
        }
    }

    /// Where this node leads; `nil` while it follows.
    var address: HostPort? {
        guard case .leading(let leading)? = state.withLock({ $0.role }) else { return nil }
        return HostPort(host: "127.0.0.1", port: Int(leading.port))
    }
}

/// Tells a role to end.
final class Ending: Sendable {
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

    func end() { continuation.finish() }

    /// Returns when it is to end, or with the task. One at a time.
    func wait() async { for await _ in stream {} }
}
