import Logging
import Synchronization
import TuttiAvahiDiscovery
import TuttiClockSync
import TuttiDeviceOutput
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

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
    /// How long an heir may take to lead when this node ends: the rest of a graceful stop is for the
    /// rooms to be told.
    private static let lastHandover = Duration.milliseconds(700)
    private static let householdInterval = Duration.seconds(2)

    let name: RoomID
    let configuration: NodeConfiguration
    /// `nil`: neither announced nor looking for others.
    let session: AvahiSession?
    let media: MediaService
    let library: SessionAssets
    let files: NodeFiles

    /// The program is done when the queue has been played: it was started for that.
    private let endsWithQueue: Bool
    /// Before it ends another room goes on with the group, where there is one that can.
    private let handsOverAtEnd: Bool
    /// Where it keeps the session that it leads; `nil`: nowhere.
    let sessions: SessionFolder?
    /// Whom it was told to follow, also once it has led.
    private let leader: HostPort?
    var isGivenLeader: Bool { leader != nil }
    private let leaderName: String?
    private let endings: AsyncStream<Void>
    private let ended: AsyncStream<Void>.Continuation

    /// Where items of a session come from that this node has put into its queue, whoever leads it.
    struct Origins {
        var session: UInt64
        var items: [QueueEntry.ID: AssetList.Item]
    }

    struct State {
        var role: Role?
        /// Where rooms and clients come to; `nil`: nowhere, and this node cannot lead.
        var door: NodeServer?
        var member: Member?
        var options: Member.Options?
        /// Led before.
        var retired: Leading?
        /// Host of whoever led before this node took over.
        var hostBefore: String?
        var error: (any Error)?
        var origins: Origins?
        /// It says goodbye, and takes nothing over any more.
        var isEnding = false

        /// Those that are known of a session; none of another one.
        func origins(of session: UInt64) -> [QueueEntry.ID: AssetList.Item] {
            origins?.session == session ? origins?.items ?? [:] : [:]
        }
    }
    let state = Mutex(State())
    private typealias Job = @Sendable () async throws -> Void
    private let jobs: AsyncStream<Job>
    private let job: AsyncStream<Job>.Continuation

    var logger: Logger { configuration.logger }

    init(
        _ configuration: NodeConfiguration, _ name: RoomID, session: AvahiSession?,
        endsWithQueue: Bool, handsOverAtEnd: Bool = false, keepsSession: Bool = false,
        leader: HostPort? = nil, leaderName: String? = nil
    ) {
        sessions = configuration.stateFolder.flatMap { folder in
            keepsSession ? SessionFolder(folder: StateFolder(path: folder)) : nil
        }
        self.leader = leader
        self.leaderName = leaderName
        self.endsWithQueue = endsWithQueue
        self.handsOverAtEnd = handsOverAtEnd
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
        files = NodeFiles(library, media, cache, configuration.credentials)
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
        options.doorPort = UInt16(clamping: door?.port ?? 0)
        options.mayLead = configuration.succeeds
        options.askWhoLeads = { [weak self] in
            await self?.askWhoLeads($0) ?? $0.map { _ in .silent }
        }
        options.leadAlone = { [weak self] in await self?.leadAlone() }
        options.succeed = { [weak self] in
            await self?.succeed($0, $1) ?? .cannot(reason: "it is ending")
        }
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
        if let keeper = configuration.credentials.keeper {
            // What other processes of this node do, like the command line.
            begin {
                while true {
                    try await Task.sleep(for: Self.householdInterval)
                    keeper.refresh()
                }
            }
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
        last.door?.close()
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
        let leading: Leading? = state.withLock { state in
            state.isEnding = true
            return if case .leading(let leading)? = state.role { leading } else { nil }
        }
        if handsOverAtEnd, let leading { await handOverAtEnd(leading) }
        let (role, member) = state.withLock { ($0.role, $0.member) }
        switch role {
        case .leading(let leading):
            if handsOverAtEnd, await !leading.core.heirs.isEmpty {
                // Nobody took it in time, in the middle of a start for instance: a goodbye would silence
                // them all, and without one they go on by themselves.
                await leading.core.vanish()
            } else {
                await leading.core.leave()
            }
            try? await Task.sleep(for: Self.leaderFarewell)
        case .following:
            await member?.leave()
            try? await Task.sleep(for: Self.followerFarewell)
        case nil: break
        }
    }

    /// The music of the others goes on without this node: the first heir that can leads, since one may be
    /// ending too.
    private func handOverAtEnd(_ leading: Leading) async {
        let deadline = ContinuousClock.now + Self.lastHandover
        for heir in await leading.core.heirs where ContinuousClock.now < deadline {
            let outcome = await leading.core.perform(.handOver(to: heir)) {
                leading.reader.isListing ? LeaderMachine.stillListing : nil
            }
            guard outcome == .accepted else { continue }
            while !leading.isRetired, await leading.core.isHandingOver,
                ContinuousClock.now < deadline
            {
                try? await Task.sleep(for: .milliseconds(10))
            }
            // The rooms are told, and this node's own follows.
            if leading.isRetired {
                try? await Task.sleep(for: Self.leaderFarewell)
                return
            }
        }
    }

    private func rename(_ name: RoomID) {
        if case .following(let following)? = state.withLock({ $0.role }) {
            following.announcement.rename(name)
        }
    }

    // MARK: Beginning

    /// How a node begins that nobody told to lead.
    enum Beginning: Sendable {
        case looking
        /// It had one, and has it again, with nothing in its queue.
        case ownGroup
        case restoring(SavedSession)
    }

    /// Begins as a follower.
    ///
    /// - Parameter beginning: leads before it looks for anybody, where it is to lead: a room that
    ///   is found in another group for the second in which a file is read would be told of that
    ///   group.
    func begin(
        _ following: Following, _ output: OutputThread?, _ options: Member.Options,
        by beginning: Beginning
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
        openDoorAsFollower()
        begin {
            switch beginning {
            case .looking: break
            case .ownGroup: await self.leadAlone()
            case .restoring(let saved): await self.leadAlone(restoring: saved)
            }
            if self.isFollowing(following) { await following.run() }
        }
        begin { await member.run() }
        configuration.whenReady()
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
        configuration.whenReady()
    }

    /// A leader whose services fail ends the node, as long as it leads.
    func run(_ leading: Leading) async throws {
        do {
            try await leading.run()
        } catch  where isLeading(leading) {
            throw error
        }
    }

    func isLeading(_ leading: Leading) -> Bool {
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

    /// Whether the leader before has heard that this node leads. Where the link broke in between,
    /// it goes on leading, and nobody would come here: this node follows it again.
    func confirm(_ leading: Leading, after before: NextLeader) async {
        // By then it has gone over or given up.
        try? await Task.sleep(for: .nanoseconds(LeaderMachine.handoverLimit.count))
        let there = GroupClient(
            address: HostPort(host: before.host, port: Int(before.port)), timeout: .seconds(1),
            attempts: .few, configuration.credentials)
        let own = GroupStatus.text(of: await leading.core.sessionID)
        // It may lead by now what it was sent away to lead: that is another session.
        guard let status = try? await there.status(), status.session == own,
            status.leader.foldedName == before.name.name.foldedName, isLeading(leading),
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
            handedOver: { [weak self] in self?.handedOver($0) },
            ask: { [weak self] in
                await self?.askWhoLeads($0, claim: $1) ?? $0.map { _ in .silent }
            })
    }

    /// The rooms have been told who leads; this node's own will come to ``follow(_:)``, if it has one.
    private func handedOver(_ next: NextLeader) {
        guard case .leading(let leading)? = state.withLock({ $0.role }) else { return }
        leading.retire()
        begin { await self.readOn(leading) }
        begin { await self.keepUploads(of: leading) }
        logger.notice("handed over", metadata: ["to": "\(next.name)"])
    }

    /// Another leads.
    ///
    /// - Returns: what the room plays by from now on; `nil`: as before.
    private func follow(_ next: NextLeader) -> Member.Role? {
        switch state.withLock({ $0.role }) {
        case nil: return nil
        case .following(let following):
            let host = next.host(toldBy: following.finder.currentHost ?? "")
            // This node follows: at its own door nobody leads.
            guard !isOwnDoor(HostPort(host: host, port: Int(next.port))) else { return nil }
            following.finder.follow(next)
            return nil
        case .leading(let leading):
            guard let options = state.withLock({ $0.options }) else { return nil }
            let following = Following(
                configuration, name, session: session, options: options, leader: leader,
                leaderName: leaderName,
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
            openDoorAsFollower()
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
            following.finder.currentAddress.map {
                GroupClient(address: $0, credentials: configuration.credentials)
            }
        case .leading, nil: nil
        }
    }

    /// Where this node leads; `nil` while it follows.
    var address: HostPort? {
        guard case .leading(let leading)? = state.withLock({ $0.role }) else { return nil }
        return HostPort(host: "127.0.0.1", port: Int(leading.port))
    }
}
