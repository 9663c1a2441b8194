import DeviceOutput
import FFmpegMedia
import GroupControl
import LinuxHost
import Logging
import Playback
import Playout
import RealTime
import Timing

/// One room: its output, its players and its side of the group protocol.
///
/// Runs a `RoomMachine`. What the machine wants done with players, files and the clock happens
/// here; how the leader is reached is the `uplink`'s business, so that the leader's own room and a
/// room on another machine are the same code.
actor Member {
    /// Makes a link to the leader: calls ``linkUp(_:_:)``, passes on what the leader says with
    /// ``receive(_:_:)``, and returns, saying why, when the link has ended or cannot be made.
    typealias Uplink = @Sendable (Member, _ attempt: Int) async -> String

    /// Where the room takes the group's time from.
    protocol ClockSource: Sendable {
        var cell: ClockCell { get }
        /// The leader told where its time service is. Another clock gets another cell: what plays
        /// by the old one goes on by its last estimate.
        func follow(_ welcome: Welcome)
        /// A start is near: measure as well as can be.
        func burst()
        var figures: ClockFigures { get }
        /// One element when the quality of the clock changed, or another clock is followed.
        var changes: AsyncStream<Void> { get }
        func stop()
    }

    /// Turns an asset into a local file.
    typealias Fetch = @Sendable (AssetDescriptor, Welcome?) async throws -> AssetFile

    /// An asset on this machine; held, it stays there.
    struct AssetFile: Sendable {
        var path: String
        /// Keeps a file of the cache from being evicted.
        var hold: CachedFile?
    }

    /// After the instant of a stop: what the card holds, and the fade, with room to spare.
    private static let silenceMargin = Nanoseconds.milliseconds(250)
    /// How often the figures for the status are taken.
    private static let reportInterval = Duration.milliseconds(250)
    /// More jobs at once than a room ever has: fetch and prepare of a few items, and the link.
    private static let jobsMax = 64

    private let name: String
    private let output: OutputThread?
    private let clock: any ClockSource
    private let uplink: Uplink
    private let fetch: Fetch
    private let logger: Logger
    private let stage: Stage?

    private var machine: RoomMachine
    private var outbox: Outbox<RoomToLeader>?
    /// The attempt to connect that counts: what an older one still brings is not heard, least of
    /// all its end.
    private var attempt = 0
    private var welcome: Welcome?
    private var failedBecause = ""
    private var files: [ContentHash: AssetFile] = [:]
    private var dropouts = 0
    private var starvedFrames: Int64 = 0
    private let alarm = Alarm()
    private let jobs: AsyncStream<@Sendable () async -> Void>
    private let jobContinuation: AsyncStream<@Sendable () async -> Void>.Continuation

    init(
        name: RoomID, output: OutputThread?, clock: any ClockSource, logger: Logger,
        fetch: @escaping Fetch, uplink: @escaping Uplink
    ) {
        self.name = name.name
        self.output = output
        self.clock = clock
        self.uplink = uplink
        self.fetch = fetch
        self.logger = logger
        stage = output.map { Stage(port: $0.port, logger: logger) }
        machine = RoomMachine(
            RoomConfiguration(
                room: name, instance: .random(in: .min ... .max),
                outputLatency: stage?.latency ?? .zero, hasOutput: output != nil),
            at: HostClock.now())
        (jobs, jobContinuation) = AsyncStream.makeStream(
            bufferingPolicy: .bufferingOldest(Self.jobsMax))
    }

    /// Takes part until cancelled, then falls silent.
    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.runAlarm() }
            group.addTask { await self.runReports() }
            group.addTask {
                for await _ in self.clock.changes { await self.takeQuality() }
            }
            for await job in jobs {
                group.addTask { await job() }
            }
            // Cancelled: the stream of jobs has ended, and with it the need for the others.
            group.cancelAll()
        }
        shutDown()
    }

    private func runAlarm() async {
        step { machine, now in machine.advance(to: now) }
        for await _ in alarm.rings {
            step { machine, now in machine.advance(to: now) }
        }
    }

    private func runReports() async {
        while !Task.isCancelled {
            takeFigures()
            try? await Task.sleep(for: Self.reportInterval)
        }
    }

    /// Says goodbye to the leader; the link ends once that is said.
    func leave() {
        step { machine, now in machine.receive(.leave, at: now) }
        outbox?.finish()
    }

    private func shutDown() {
        alarm.finish()
        stage?.withdrawAll()
        clock.stop()
        output?.stop()
    }

    // MARK: Link

    /// The uplink reached the leader; `outbox` takes what this room says.
    func linkUp(_ outbox: Outbox<RoomToLeader>, _ attempt: Int) {
        guard attempt == self.attempt else { return outbox.finish() }
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

    private func receiveInput(_ input: RoomInput) {
        step { machine, now in machine.receive(input, at: now) }
    }

    private func step(_ turn: (inout RoomMachine, LocalInstant) -> [RoomEffect]) {
        for effect in turn(&machine, HostClock.now()) { perform(effect) }
        alarm.set(machine.nextDeadline)
    }

    private func perform(_ effect: RoomEffect) {
        switch effect {
        case .connect:
            attempt += 1
            let attempt = attempt
            start {
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
            // The machine has forgotten the quality of the clock before.
            clock.follow(welcome)
        case .disconnected(let reason):
            logger.notice("leader lost; looking for it", metadata: ["reason": "\(reason)"])
        case .refused(let reason):
            logger.error("the leader refuses this room", metadata: ["reason": "\(reason)"])
        case .fetch(let asset):
            let welcome = welcome
            start { await self.load(asset, welcome) }
        case .prepare(let preparation):
            clock.burst()
            let file = files[preparation.asset.hash]
            stage?.expect(preparation.id)
            start { await self.prepare(preparation, file) }
        case .apply(let commit):
            logger.debug("commit", metadata: ["commit": "\(commit)"])
            do {
                for id in try stage?.apply(commit) ?? [] {
                    start { await self.drop(id, afterwards: commit.change.instant) }
                }
            } catch {
                logger.error(
                    "cannot apply", metadata: ["commit": "\(commit)", "error": "\(error)"])
            }
        case .withdraw(let id):
            stage?.withdraw(id)
        case .stop:
            stage?.withdrawAll()
        case .settings(let settings):
            output?.port.setGain(settings.gain)
        case .state(let state):
            logger.trace("state", metadata: ["phase": "\(state.phase)"])
            // What is not in the queue any more may leave the cache.
            let queued = Set(state.queue.map(\.hash))
            files = files.filter { queued.contains($0.key) }
        }
    }

    private func start(_ job: @escaping @Sendable () async -> Void) {
        if case .dropped = jobContinuation.yield(job) {
            logger.critical("more than \(Self.jobsMax) jobs at once: one was dropped")
        }
    }

    private func load(_ asset: AssetDescriptor, _ welcome: Welcome?) async {
        do {
            files[asset.hash] = try await fetch(asset, welcome)
            receiveInput(.fetched(asset.hash, .done))
        } catch {
            logger.error(
                "cannot fetch", metadata: ["title": "\(asset.title)", "error": "\(error)"])
            receiveInput(.fetched(asset.hash, .failed(reason: "\(error)")))
        }
    }

    private func prepare(_ preparation: Preparation, _ file: AssetFile?) async {
        guard let stage else {
            return finish(preparation, .failed(reason: "this room has no output"))
        }
        guard let file else {
            return finish(preparation, .failed(reason: "the asset is not loaded"))
        }
        do {
            let notices = try await stage.prepare(
                preparation, path: file.path, clock: clock.cell)
            finish(preparation, .ready(latency: stage.latency))
            for await notice in notices {
                switch notice {
                case .didPlayToEnd:
                    receiveInput(.itemEnded(preparation.id))
                    stage.withdraw(preparation.id)
                case .failedToPlayToEnd(let error):
                    logger.error("playing failed", metadata: ["error": "\(error)"])
                case .playbackStalled: logger.warning("the decoder does not keep up")
                case .itemStatusDidChange, .rateDidChange, .timeJumped: break
                }
            }
        } catch is CancellationError {
            logger.debug("withdrawn", metadata: ["preparation": "\(preparation.id)"])
        } catch {
            logger.error("cannot prepare", metadata: ["error": "\(error)"])
            finish(preparation, .failed(reason: "\(error)"))
        }
    }

    private func finish(_ preparation: Preparation, _ outcome: PrepareOutcome) {
        receiveInput(.prepared(preparation.id, outcome))
    }

    /// Gives a player back once it is silent.
    private func drop(_ id: UInt64, afterwards instant: GroupInstant) async {
        let silent = clock.cell.load().map.inverted(instant) + Self.silenceMargin
        let wait = min(max(.zero, silent - HostClock.now()), .seconds(60))
        try? await Task.sleep(for: .nanoseconds(wait.count))
        stage?.dropEnded(id, at: instant)
    }

    // MARK: Figures

    private func takeFigures() {
        receiveInput(.report(report()))
    }

    private func takeQuality() { receiveInput(.clock(clock.cell.load().quality)) }

    private func report() -> RoomReport {
        let card = output?.port.report ?? OutputReport()
        let voice = stage?.figures
        if card.starvedFrames > starvedFrames {
            starvedFrames = card.starvedFrames
            dropouts += 1
        }
        let figures = clock.figures
        var detail = ""
        if let output, case .lost(let error) = output.state { detail = "\(error)" }
        return RoomReport(
            bufferSeconds: voice?.bufferedSeconds ?? 0,
            clockDeviation: figures.deviation, clockBound: figures.bound,
            roundTrip: figures.roundTrip, stamps: figures.stamps,
            cardPartsPerMillion: card.cardPartsPerMillion,
            ratioPartsPerMillion: card.ratioPartsPerMillion, error: card.error,
            dropouts: dropouts, restarts: card.restarts, detail: detail)
    }
}

/// What a person wants to know about a room's clock.
struct ClockFigures: Sendable {
    /// Estimate minus the line that is played by: what the line still leans by.
    var deviation = Nanoseconds.zero
    var bound = Nanoseconds.zero
    var roundTrip: Nanoseconds?
    /// Where the time stamps come from: "kernel", "kernel receive", "program", or "own".
    var stamps = ""
}

extension RoomSettings {
    /// Amplitude for the volume: a cubic taper, which follows loudness well enough for a slider
    /// (50 % is −18 dB) and reaches silence at 0.
    var gain: Float {
        let position = Float(volume) / 100
        return isSilent ? 0 : position * position * position
    }

    private var isSilent: Bool { muted || volume == 0 }
}
