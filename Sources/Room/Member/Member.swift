import Logging
import TuttiClockSync
import TuttiDeviceOutput
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayback
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// One room: its output, its players and its side of the group protocol.
///
/// Runs a `RoomMachine`. What the machine wants done with players, files and the clock happens
/// here; how the leader is reached is the `uplink`'s business, so that the leader's own room and a
/// room on another machine are the same code.
actor Member {
    /// Makes a link to the leader: calls ``linkUp(_:_:foundAt:)``, passes on what the leader says
    /// with ``receive(_:_:)``, and returns, saying why, when the link has ended or cannot be made.
    typealias Uplink = @Sendable (Member, _ attempt: Int) async -> String

    /// Where the room takes the group's time from.
    protocol ClockSource: Sendable {
        var cell: ClockCell { get }
        /// The leader told where its time service is. Another clock gets another cell: what plays
        /// by the old one goes on by its last estimate.
        ///
        /// - Parameter tags: of this leader's datagrams; `nil`: they carry none.
        func follow(_ welcome: Welcome, _ tags: SharedRoomTags?)
        /// It was rarely asked and is soon to be played by.
        func burst()
        /// Somebody is about to play by it, and waits until it is good: to join what already sounds
        /// it need not be as good as for a common start.
        func expectStart(_ start: ExpectedStart)
        /// Nothing is prepared or played: a few exchanges will do.
        func setIdle(_ isIdle: Bool)
        /// Keep what was learnt of the leader's crystal, if it is worth it.
        func remember()
        var figures: ClockFigures { get }
        /// One element when the quality of the clock changed, or another clock is followed.
        var changes: AsyncStream<Void> { get }
        func stop()
    }

    /// What a role of the node brings to its room, which outlives it.
    struct Role: Sendable {
        /// Goes on where the one before is; its cell may be the same.
        var clock: any ClockSource
        var uplink: Uplink
        /// The node leads.
        var isLeaders: Bool
    }

    /// Between two times of keeping what was learnt.
    private static let rememberingInterval = Nanoseconds.seconds(180)

    private let name: String
    let output: OutputThread?
    private(set) var clock: any ClockSource
    /// Clocks that there were before this one.
    private var clocksBefore = 0
    private var uplink: Uplink
    /// The node leads: its own room says less, and has nobody to fetch from.
    private(set) var isLeaders: Bool
    let assets: any AssetSource
    let logger: Logger
    let stage: RoomPlayers?
    let options: Options

    /// What the owner wants of a room, and what it remembers.
    struct Options: Sendable {
        /// Given in the settings; `nil`: as remembered, and to be changed by command.
        var latencyOffset: LatencyOffset?
        /// The output as its owner writes it.
        var outputName = ""
        var target = SyncAlarm.standardTarget
        var store: RoomStore?
        /// Commits by datagram.
        var notices: CommitDatagramListener?
        /// Bytes that files fetched from a leader may take on the disk; `nil`: fetches none.
        var cacheLimit: Int64?
        /// The room of a node that leads from its beginning on.
        var isLeaders = false
        var identity: RoomIdentity?
        /// A leader calls this room otherwise than it calls itself.
        var renamed: @Sendable (RoomID) -> Void = { _ in }
        /// Takes over the lead; `nil`: this node cannot.
        var lead: (@Sendable (Handover, SessionState) async -> LeadAnswer)?
        /// What the room plays of an item unless the group says otherwise.
        var role = ChannelRole.stereo
        /// How long the output is awake and silent before the first frame.
        var leadIn = Nanoseconds.zero
        /// However loud it is asked to be, 0 to 1; see ``RoomSettings/level``.
        var loudestLevel = 1.0
        /// See ``Hello/doorPort``.
        var doorPort: UInt16 = 0
        /// See ``Hello/mayLead``.
        var mayLead = false
        /// Asks nodes who leads; an empty host is that of the leader.
        var askWhoLeads: @Sendable ([NextLeader]) async -> [SightAnswer] = {
            $0.map { _ in .silent }
        }
        /// Takes over from a leader that is lost; `nil`: this node cannot.
        var succeed: (@Sendable (Inheritance, SessionState) async -> LeadAnswer)?
        /// Leads a group of its own.
        var leadAlone: @Sendable () async -> Void = {}
        /// Another leads; what reaches the leader reaches that one from now on.
        ///
        /// - Returns: what the room has from now on; `nil`: as before.
        var follow: @Sendable (NextLeader) -> Role? = { _ in nil }

        /// How loud the room is, and what it plays of an item.
        func apply(_ settings: RoomSettings, to port: OutputPort) {
            port.setGain(RoomSettings.gain(ofLevel: min(settings.level, loudestLevel)))
            port.setRole(settings.role.map(ChannelRole.init) ?? role)
        }
    }

    private var machine: RoomMachine
    private var outbox: Outbox<RoomToLeader>?
    /// The attempt to connect that counts: what an older one still brings is not heard, least of
    /// all its end.
    private var attempt = 0
    /// How far a room has come that found a leader, until something of it is played.
    private var progress: JoinProgress?
    /// The preparation of a line that runs already.
    private var joining: UInt64?
    /// Of who leads, or led last.
    private(set) var welcome: Welcome?
    /// Of the datagrams of who leads, or led last.
    private(set) var keys = RoomKeys()
    var isJoined: Bool { machine.isJoined }
    var isIdle: Bool { machine.isIdle }
    var isSucceeding: Bool { machine.isSucceeding }
    /// There is no link, and nobody is asked who goes on.
    var isWithoutLeader: Bool { !machine.isJoined && !machine.isSearching }
    func isQueued(_ hash: ContentHash) -> Bool { machine.isQueued(hash) }
    private var failedBecause = ""
    /// That it looks for who leads now is said.
    private var isSearching = false
    private var refusedBecause = ""
    /// Of the items that are playing, being prepared, or next.
    var files: [ContentHash: AssetFile] = [:]
    /// The largest items of the queue that was compared with the cache.
    var checkedItems: [Int64] = []
    var dropouts = 0
    var starvedFrames: Int64 = 0
    var xruns = 0
    /// When the figures were taken last.
    var wasCardLost = false
    /// As it stands in the log.
    var clockComplaint = ""
    var latencyOffset: LatencyOffset
    var syncAlarm: SyncAlarm
    private var isClockIdle = false
    private var rememberAt = HostClock.now() + Member.rememberingInterval
    private let alarm = Alarm()
    private var jobs = Jobs()
    /// One element while there are jobs to begin.
    private let jobSignals: AsyncStream<Void>
    private let jobSignal: AsyncStream<Void>.Continuation

    init(
        name: RoomID, output: OutputThread?, clock: any ClockSource, logger: Logger,
        options: Options, assets: any AssetSource, uplink: @escaping Uplink
    ) {
        self.name = name.name
        self.output = output
        self.clock = clock
        isLeaders = options.isLeaders
        self.uplink = uplink
        self.assets = assets
        self.logger = logger
        self.options = options
        latencyOffset =
            options.latencyOffset ?? options.store?.offset(of: options.outputName) ?? .zero
        syncAlarm = SyncAlarm(target: options.target)
        output?.port.setLatencyOffset(latencyOffset.delay)
        stage = output.map {
            RoomPlayers(
                port: $0.port, releasesOutput: $0.manner.releasesWhenIdle,
                leadIn: RoomPlayers.LeadIn(
                    span: options.leadIn, awakeSince: { [output = $0] in output.awakeSince }),
                logger: logger)
        }
        machine = RoomMachine(
            RoomConfiguration(
                room: options.isLeaders ? name : options.identity?.name ?? name,
                instance: options.identity?.number ?? .random(in: .min ... .max),
                outputLatency: stage?.latency ?? .zero, hasOutput: output != nil,
                noticePort: options.notices?.port ?? 0, doorPort: options.doorPort,
                mayLead: options.mayLead,
                settings: options.store?.settings),
            at: HostClock.now())
        if let settings = options.store?.settings, let output {
            options.apply(settings, to: output.port)
        }
        (jobSignals, jobSignal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Takes part until cancelled, then falls silent.
    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.runAlarm() }
            if let notices = options.notices?.notices {
                group.addTask {
                    for await notice in notices { await self.receive(notice) }
                }
            }
            group.addTask { await self.watchClock() }
            for await _ in jobSignals {
                for job in takeJobs() { group.addTask { await job() } }
            }
            // Cancelled: the stream has ended, and with it the need for the others.
            group.cancelAll()
        }
        shutDown()
    }

    /// The alarm rings for a report, or while there is no leader: often enough to look at the
    /// figures then, and fresh is what the leader hears.
    private func runAlarm() async {
        step { machine, now in machine.advance(to: now) }
        for await _ in alarm.rings {
            listen()
            takeFigures()
            if HostClock.now() >= rememberAt {
                clock.remember()
                rememberAt = HostClock.now() + Self.rememberingInterval
            }
            step { machine, now in machine.advance(to: now) }
        }
    }

    /// Says goodbye to the leader; the link ends once that is said.
    func leave() {
        step { machine, now in machine.receive(.leave, at: now) }
        outbox?.finish()
    }

    /// Files of the cache, whole or on their way, of what plays and is next.
    var heldFiles: [(hash: ContentHash, file: AssetFile)] {
        files.filter { $0.value.hold != nil || $0.value.incoming != nil }.map { ($0.key, $0.value) }
    }

    private func receive(_ notice: CommitDatagram) { receiveInput(.notified(notice)) }

    private func shutDown() {
        options.notices?.close()
        alarm.finish()
        stage?.withdrawAll()
        clock.stop()
        options.store?.close()
        options.identity?.close()
        output?.stop()
    }

    // MARK: Link

    /// The uplink reached the leader; `outbox` takes what this room says.
    func linkUp(_ outbox: Outbox<RoomToLeader>, _ attempt: Int, foundAt: LocalInstant) {
        guard attempt == self.attempt else { return outbox.finish() }
        progress = machine.isIdle ? JoinProgress(foundAt: foundAt) : nil
        self.outbox?.finish()
        self.outbox = outbox
        receiveInput(.connected)
    }

    /// Something the leader said.
    func receive(_ message: LeaderToRoom, _ attempt: Int) {
        guard attempt == self.attempt else { return }
        logger.trace("from leader", metadata: ["message": "\(message)"])
        receiveInput(.received(message))
    }

    private func linkDown(_ reason: String, _ attempt: Int) {
        guard attempt == self.attempt else { return }
        outbox?.finish()
        outbox = nil
        // Said once, not at every attempt.
        if welcome == nil, reason != failedBecause {
            failedBecause = reason
            logger.notice("no leader yet; trying again", metadata: ["reason": "\(reason)"])
        }
        receiveInput(.closed(reason: reason))
    }

    // MARK: Machine

    /// By how much what should sound is off the committed line; see `RoomMachine`.
    var deviation: Nanoseconds? { machine.deviation }

    func receiveInput(_ input: RoomInput) {
        step { machine, now in machine.receive(input, at: now) }
    }

    private func step(_ turn: (inout RoomMachine, LocalInstant) -> [RoomEffect]) {
        for effect in turn(&machine, HostClock.now()) { perform(effect) }
        forgetFiles(but: machine.needed)
        alarm.set(machine.nextDeadline)
        if machine.isIdle != isClockIdle {
            isClockIdle = machine.isIdle
            clock.setIdle(isClockIdle)
            // What was rarely asked meanwhile is soon to be played by.
            if !isClockIdle { clock.burst() }
        }
    }

    private func perform(_ effect: RoomEffect) {
        switch effect {
        case .connect:
            attempt += 1
            let attempt = attempt
            start(.link) {
                let reason = await self.uplink(self, attempt)
                await self.linkDown(reason, attempt)
            }
        case .disconnect:
            attempt += 1
            outbox?.finish()
            outbox = nil
        case .send(let message):
            outbox?.send(message)
        case .joined(let welcome):
            logger.notice(
                "joined", metadata: ["leader": "\(welcome.leaderName)", "term": "\(welcome.term)"])
            self.welcome = welcome
            refusedBecause = ""
            isSearching = false
            progress?.reach(.welcome)
            // The machine has forgotten the quality of the clock before.
            takeKey(of: welcome)
            clock.follow(welcome, keys.tags)
        case .renamed(let name):
            logger.warning(
                "another room of this group has the name of this one; choose another --name to tell them apart",
                metadata: ["name": "\(self.name)", "called": "\(name)"])
            options.identity?.keep(name: name)
            options.renamed(name)
        case .disconnected(let reason):
            // The leader's own room ends with it.
            logger.log(
                level: isLeaders ? .debug : .notice, "leader lost; looking for it",
                metadata: ["reason": "\(reason)"])
        case .refused(let reason):
            // Asked again every two seconds; said once.
            guard reason != refusedBecause else { break }
            refusedBecause = reason
            logger.error("the leader refuses this room", metadata: ["reason": "\(reason)"])
        case .fetch(let asset):
            let welcome = welcome
            start(.asset(asset.hash)) { await self.load(asset, welcome) }
        case .prepare(let preparation):
            expectStart(preparation.change == nil ? .common : .joining)
            if preparation.change != nil { joining = preparation.id }
            let file = files[preparation.asset.hash]
            let ticket = stage?.expect(preparation)
            start(.preparation(preparation.id)) {
                await self.prepare(preparation, ticket, file)
            }
        case .apply(let commit):
            logger.debug("commit", metadata: ["commit": "\(commit)"])
            do {
                for ticket in try stage?.apply(commit) ?? [] {
                    start(.silence(ticket.id)) { await self.dropOnceSilent(ticket) }
                }
                sayJoined(commit)
            } catch {
                logger.error(
                    "cannot apply", metadata: ["commit": "\(commit)", "error": "\(error)"])
            }
        case .withdraw(let id):
            jobs.remove(.preparation(id))
            stage?.withdraw(id)
        case .stop:
            stage?.withdrawAll()
        case .settings(let settings):
            if let output { options.apply(settings, to: output.port) }
            options.store?.setSettings(settings)
        case .latencyOffset(let offset): setLatencyOffset(offset)
        case .lineAlarm(let finding, let preparesAnew): sayLine(finding, preparesAnew)
        case .state(let state):
            logger.trace("state", metadata: ["phase": "\(state.phase)"])
            checkCache(for: state)
        case .lead(let handover, let session):
            start(.lead) {
                let cannot = LeadAnswer.cannot(reason: "this node only follows")
                let answer = await self.options.lead?(handover, session) ?? cannot
                await self.receiveInput(.leads(answer))
            }
        case .askWhoLeads(let places, let round):
            if !isSearching { logger.notice("the leader is not heard; asking who leads") }
            isSearching = true
            start(.search) {
                let answers = await self.options.askWhoLeads(places)
                await self.receiveInput(.sights(answers, round: round))
            }
        case .succeed(let inheritance, let session):
            logger.notice("nobody leads; this node goes on")
            start(.lead) {
                let cannot = LeadAnswer.cannot(reason: "this node only follows")
                let answer = await self.options.succeed?(inheritance, session) ?? cannot
                await self.succeeded(answer)
            }
        case .leadAlone:
            logger.notice("this room leads a group of its own from now on")
            start(.lead) { await self.options.leadAlone() }
        case .follow(let next):
            // The node that was asked to lead does so already.
            guard next.name != machine.configuration.room else { break }
            logger.notice("another leader", metadata: ["leader": "\(next.name)"])
            if let role = options.follow(next) { change(to: role) }
        case .datagramKey(let key):
            do {
                try keys.change(to: key, at: HostClock.now())
            } catch {
                logger.error("cannot use a key for datagrams", metadata: ["reason": "\(error)"])
            }
        }
    }

    private func succeeded(_ answer: LeadAnswer) {
        if case .cannot(let reason) = answer {
            logger.warning("this node cannot lead", metadata: ["reason": "\(reason)"])
        }
        receiveInput(.succeeded(answer))
    }

    /// What this room answers who asks it who leads.
    func sight(leader: NextLeader?) -> LeadSight {
        let (origin, hearsLeader) = machine.sight(at: HostClock.now())
        let lead = hearsLeader ? leader.map(LeadSight.Lead.heard) : nil
        return LeadSight(room: machine.configuration.room, origin: origin, lead: lead ?? .none)
    }

    private func takeKey(of welcome: Welcome) {
        do {
            try keys.begin(welcome.datagramKey, at: HostClock.now())
        } catch {
            logger.error("cannot use a key for datagrams", metadata: ["reason": "\(error)"])
        }
        options.notices?.take(keys.tags)
    }

    /// How long after it found the leader a room is heard that joins a running line. Of a common
    /// start others say when it is.
    private func sayJoined(_ commit: Commit) {
        guard var progress = progress.take(), commit.id == joining, let output,
            output.port.hasCard
        else { return }
        let begin = clock.cell.load().map.inverted(commit.change.instant)
        let queueEnd = output.port.report.queueEnd(sampleRate: output.port.format.sampleRate)
        let heardAt = max(HostClock.now(), queueEnd, begin)
        progress.reach(.sound, at: heardAt)
        logger.notice("plays along", metadata: progress.metadata)
    }

    private func setLatencyOffset(_ offset: LatencyOffset) {
        guard options.latencyOffset == nil else {
            logger.warning("the latency offset stays as the settings give it")
            return
        }
        guard offset != latencyOffset else { return }
        latencyOffset = offset
        output?.port.setLatencyOffset(offset.delay)
        options.store?.setOffset(offset, of: options.outputName)
        logger.notice("latency offset", metadata: ["us": "\(offset)"])
    }

    private func start(_ subject: Jobs.Subject, _ job: @escaping Jobs.Work) {
        jobs.add(subject, job)
        jobSignal.yield()
    }

    private func takeJobs() -> [Jobs.Work] { jobs.take() }

    /// Something of a preparation is decoded.
    func didDecode(_ preparation: UInt64) {
        if preparation == joining { progress?.reach(.item) }
    }

    /// Of what the leader is told too: of its own room it says the same in the same log.
    var complaintLevel: Logger.Level { isLeaders ? .debug : .error }

    // MARK: Clock

    func expectStart(_ start: ExpectedStart) {
        if clock.figures.quality == .acquiring {
            logger.notice("measuring the leader's clock; on busy air this takes some seconds")
        }
        clock.expectStart(start)
    }

    /// The node has another role: the next link is its uplink's. What sounds goes on.
    func change(to role: Role) {
        let old = clock
        clocksBefore += 1
        clock = role.clock
        uplink = role.uplink
        isLeaders = role.isLeaders
        clock.setIdle(isClockIdle)
        old.stop()
        takeQuality()
    }

    private func watchClock() async {
        var number = -1
        while number != clocksBefore {
            number = clocksBefore
            for await _ in clock.changes { takeQuality() }
        }
    }

    private func takeQuality() {
        let quality = clock.cell.load().quality
        if quality.isPlayable { progress?.reach(.clock) }
        receiveInput(.clock(quality))
    }
}
