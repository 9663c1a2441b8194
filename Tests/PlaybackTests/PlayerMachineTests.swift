import Testing
import TuttiChance
import TuttiPlayout
import TuttiTiming

@testable import TuttiPlayback

/// What a player decides, without anything that plays: every order of a few commands and events, and
/// many at random.
@Suite struct PlayerMachineTests {
    /// What a step does; times in milliseconds.
    enum Step: String, CaseIterable {
        case play, pause, faster, backwards, seekAhead, seekBack, line, pauseLater, otherClock
        case preroll, prerollElsewhere, endPreroll
        /// Loaded at once, or by a later step.
        case nextItem, laterItem
        /// What was loaded is ready, and the machine is not told; and is told.
        case readies, loads
        /// Time passes, and feeds decode what they need.
        case goesOn
        /// Nothing is decoded meanwhile.
        case stands
        case starves, ends, fails, itemFails, fallsBehind, otherOutput
        /// The card goes, or is back.
        case cardChanges
        case append, advance, removeNext, removeAll, endsElsewise
        /// What follows does so by lines, or by itself again; the next item gets its line; all ends.
        case byLines, joinNext, prerollNext, endLater

        /// Three in a row of these, and one of all before or behind two of them.
        static let often: [Step] = [
            .play, .pause, .faster, .seekAhead, .line, .otherClock, .nextItem, .goesOn, .stands,
            .ends, .append,
        ]
        /// Four in a row of these, about an item that is not ready.
        static let early: [Step] = [
            .play, .pause, .seekAhead, .line, .prerollElsewhere, .readies, .loads, .cardChanges,
        ]
    }

    enum Beginning: String, CaseIterable {
        case long, short, playing
        /// Not ready, or not any more.
        case unloaded, failed

        fileprivate var stage: MachineStage {
            var stage = MachineStage(
                isLoaded: self != .unloaded,
                length: self == .short ? MachineStage.short : MachineStage.length)
            switch self {
            case .long, .short, .unloaded: break
            case .playing, .failed:
                stage.take(.play)
                stage.take(.goesOn)
                if self == .failed { stage.take(.itemFails) }
            }
            return stage
        }
    }

    @Test(arguments: Beginning.allCases)
    func `whatever comes in which order, nothing is lost and nothing left over`(
        beginning: Beginning
    ) {
        let all = Step.allCases
        let rows =
            switch beginning {
            case .long, .short: [[Step.often, all, all], [all, Step.often, Step.often]]
            case .playing: [[all, Step.often, all]]
            case .unloaded, .failed:
                [[all, Step.early, Step.early], Array(repeating: Step.early, count: 4)]
            }
        for row in rows {
            guard check([], row[...], beginning) else { return }
        }
    }

    /// Every row of one step of each list.
    private func check(
        _ steps: [Step], _ rest: ArraySlice<[Step]>, _ beginning: Beginning
    ) -> Bool {
        if let next = rest.first {
            return next.allSatisfy { check(steps + [$0], rest.dropFirst(), beginning) }
        }
        var stage = beginning.stage
        for step in steps { stage.take(step) }
        stage.comeToRest()
        guard let fault = stage.fault else { return true }
        Issue.record("\(beginning), \(steps.map(\.rawValue)): \(fault)")
        return false
    }

    @Test(arguments: 0..<600)
    func `the same of long rows at random`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var stage = MachineStage(
            waits: seed % 2 == 0, isLoaded: seed % 5 != 0,
            length: seed % 3 == 0 ? MachineStage.length : MachineStage.short)
        var steps: [Step] = []
        for _ in 0..<200 {
            let step = Step.allCases[Int(generator.next() % UInt64(Step.allCases.count))]
            steps.append(step)
            stage.take(step)
            if let fault = stage.fault {
                Issue.record("seed \(seed), after \(steps.suffix(12).map(\.rawValue)): \(fault)")
                return
            }
        }
        stage.comeToRest()
        #expect(stage.fault == nil, "seed \(seed), after \(steps.suffix(12).map(\.rawValue))")
    }

    @Test func `a seek that waits for its item arrives when that is loaded`() {
        var stage = MachineStage(isLoaded: false)
        stage.take(.seekAhead)
        #expect(stage.endedSeeks.isEmpty)
        stage.load()
        stage.goOn(milliseconds: 400)
        #expect(stage.endedSeeks.map(\.finished) == [true])
        #expect(stage.machine.currentFrame == MachineStage.ahead)
    }

    @Test func `a card that goes while an item is tried again leaves a seek in it alone`() {
        var stage = MachineStage()
        stage.take(.play)
        stage.goOn(milliseconds: 200)
        stage.take(.itemFails)
        #expect(stage.machine.status == .failed && stage.machine.rate == 0)
        stage.take(.play)
        stage.take(.seekAhead)
        stage.hasCard = false
        stage.receive(.cardChanged)
        #expect(stage.machine.rate == 0 && stage.endedSeeks.isEmpty)
        stage.load()
        stage.goOn(milliseconds: 400)
        #expect(stage.endedSeeks.map(\.finished) == [true])
        #expect(stage.machine.currentFrame == MachineStage.ahead)
    }

    /// What was prerolled is what is to play, and may not be filled yet.
    @Test(arguments: [Step.prerollElsewhere, .endPreroll])
    func `a preroll that ends does not take what is waited for with it`(step: Step) {
        var stage = MachineStage()
        stage.take(.preroll)
        stage.take(.play)
        stage.take(step)
        stage.goOn(milliseconds: 500)
        #expect(stage.machine.decided.line.rate == 1 && stage.machine.currentFrame > 0)
    }

    @Test func `the newest of several seeks is where item time is`() {
        var stage = MachineStage()
        stage.take(.play)
        stage.goOn(milliseconds: 500)
        stage.take(.seekAhead)
        stage.take(.seekBack)
        stage.take(.seekAhead)
        stage.goOn(milliseconds: 20)
        #expect(stage.endedSeeks.map(\.finished) == [false, false])
        stage.goOn(milliseconds: 400)
        #expect(stage.endedSeeks.map(\.finished) == [false, false, true])
        #expect(stage.machine.currentFrame > MachineStage.ahead)
    }

    /// Its beginning may be in the card already.
    @Test func `what leaves the queue behind the next item is no order to that`() throws {
        var stage = MachineStage(length: MachineStage.short)
        while stage.machine.actionAtItemEnd != .advance { stage.take(.endsElsewise) }
        stage.take(.append)
        stage.take(.append)
        stage.take(.play)
        // They are loaded one after the other.
        for _ in 0..<3 {
            stage.goOn(milliseconds: 50)
            stage.load()
        }
        let queue = stage.machine.queue
        let next = try #require(stage.machine.kept[queue[0]])
        let last = try #require(stage.machine.kept[queue[1]])
        stage.perform(.remove(queue[1]))
        #expect(stage.machine.program.names(next) && !stage.machine.program.names(last))
        let told = stage.effects.contains {
            switch $0 {
            case .start(let feed, _), .stop(let feed, _), .cancel(let feed): feed == next
            default: false
            }
        }
        #expect(!told)
    }

    /// A line at a host time begins exactly there, whatever sounded before.
    @Test func `what sounds before a line ends at the instant at which it begins`() throws {
        var stage = MachineStage(waits: false)
        stage.take(.play)
        stage.goOn(milliseconds: 500)
        let begin = stage.machine.soon + .milliseconds(300)
        stage.perform(.line(rate: 1, time: MediaTime(seconds: 5), hostTime: begin))
        let stops = stage.effects.compactMap {
            if case .stop(let feed, let instant) = $0 { (feed, instant) } else { nil }
        }
        let starts = stage.effects.compactMap {
            if case .start(let feed, let start) = $0 { (feed, start.line) } else { nil }
        }
        let (stopped, at) = try #require(stops.last)
        let (started, line) = try #require(starts.last)
        #expect(at == begin)
        #expect(line == Line(itemFrame: 5 * 48_000, instant: begin, rate: 1))
        #expect(stopped != started)
    }
}

/// A machine with feeds that do as they are told: each has frames a moment after it was made, sounds by
/// its last start, and closes when it was told to end and is silent.
struct MachineStage {
    static let sampleRate = 48_000
    static let length: Int64 = 60 * 48_000
    static let short: Int64 = 24_000
    static let ahead = 30.0 * 48_000
    private static let back = 1.0 * 48_000
    private static let elsewhere = 5.0 * 48_000
    /// How long a feed decodes before it has frames.
    private let decoding: Nanoseconds

    private struct FakeFeed {
        var madeAt: LocalInstant
        var hasSaid = false
        var first: Double
        var recipe: FeedRecipe
        var start: FeedStart?
        var stop: GroupInstant?
        var isStopped = false
        var retires = false
        var isCancelled = false
    }

    private(set) var machine: PlayerMachine
    private(set) var effects: [PlayerEffect] = []
    private(set) var endedSeeks: [(id: SeekID, finished: Bool)] = []
    /// Of the last command.
    private(set) var wasRefused = false
    /// Item time when the last seek came to its end.
    private(set) var frameAtSeekEnd: Double?
    private(set) var fault: String?
    private(set) var now = LocalInstant(nanoseconds: 1_000_000_000)
    var hasCard = true
    private var feeds: [FeedID: FakeFeed] = [:]
    private var loaded: Set<ItemID> = []
    private var failed: [ItemID: PlaybackError] = [:]
    private var pendingLoads: [ItemID: Int] = [:]
    /// Items that the machine was given and has not released.
    private var owned: Set<ItemID> = [ItemID(number: 1)]
    /// By which items may follow, while they do so by lines.
    private var lines: [ItemID: Line] = [:]
    private let length: Int64
    private var askedSeeks = 0
    private var items = 1
    private var clocks: [ClockID: SharedClock] = [:]
    private var toldRate = 0.0

    init(
        waits: Bool = true, isLoaded: Bool = true, length: Int64 = MachineStage.length,
        decodingMilliseconds: Int64 = 30
    ) {
        self.length = length
        decoding = .milliseconds(decodingMilliseconds)
        machine = PlayerMachine(
            in: PlayerWorld(now: now, latency: .milliseconds(100)))
        machine.automaticallyWaits = waits
        clocks[ClockID(number: 1)] = SharedClock(
            map: ClockMap(from: now, to: GroupInstant(nanoseconds: 77_000_000_000), skew: 1e-4),
            uncertainty: .zero, estimatedAt: now, epoch: 1, quality: .locked)
        perform(.replaceItem(ItemID(number: 1)))
        if isLoaded { load() }
    }

    private var world: PlayerWorld {
        var world = PlayerWorld(now: now, latency: .milliseconds(100))
        world.hasCard = hasCard
        for number in 1...items {
            let id = ItemID(number: number)
            let isKnown = loaded.contains(id)
            world.items[id] = PlayerWorld.Item(
                state: failed[id].map { .failed($0) } ?? (isKnown ? .ready : .unknown),
                facts: isKnown
                    ? PlayerWorld.ItemFacts(
                        sampleRate: Self.sampleRate, frameCount: length, endFrame: length)
                    : nil)
        }
        world.clocks = clocks
        for (id, feed) in feeds {
            let isSupplied = now - feed.madeAt >= decoding
            let first = Double(feed.recipe.firstFrame(for: feed.first))
            world.feeds[id] = PlayerWorld.FeedFacts(
                isAlive: !feed.isCancelled, supply: isSupplied ? .enough : .nothing,
                reach: feed.recipe.reach(first, first + 3 * Double(Self.sampleRate)),
                report: report(of: feed))
        }
        return world
    }

    /// By the output's own time a voice begins on its instant, and time waits for its word.
    private func report(of feed: FakeFeed) -> VoiceReport? {
        let reading = GroupInstant(nanoseconds: now.nanoseconds)
        guard let start = feed.start, start.waits, reading >= start.line.instant else { return nil }
        return VoiceReport(
            state: .playing,
            itemFrame: start.line.frame(at: reading, sampleRate: Self.sampleRate), at: now)
    }

    // MARK: What happens

    mutating func take(_ step: PlayerMachineTests.Step) {
        switch step {
        case .play: perform(.rate(machine.defaultRate, waits: nil))
        case .pause: perform(.rate(0, waits: nil))
        case .faster: perform(.rate(1.5, waits: nil))
        case .backwards: perform(.rate(-1, waits: nil))
        case .preroll: preroll(at: nil)
        case .prerollElsewhere: preroll(at: Self.elsewhere)
        case .endPreroll: perform(.endPreroll(nil))
        case .seekAhead: seek(to: Self.ahead)
        case .seekBack: seek(to: Self.back)
        case .line:
            perform(
                .line(
                    rate: 1, time: MediaTime(seconds: 5),
                    hostTime: machine.soon + .milliseconds(200)))
        case .pauseLater:
            perform(
                .line(rate: 0, time: .invalid, hostTime: machine.soon + .milliseconds(150)))
        case .nextItem:
            replaceItem()
            load()
        case .laterItem: replaceItem()
        case .readies: makeReady()
        case .loads: load()
        case .otherClock: perform(.clock(machine.clock == nil ? ClockID(number: 1) : nil))
        case .append:
            items += 1
            owned.insert(ItemID(number: items))
            perform(.insert(ItemID(number: items), after: nil))
            load()
        case .advance: perform(.advance)
        case .removeAll: perform(.removeAll)
        case .removeNext: if let next = machine.queue.first { perform(.remove(next)) }
        case .endsElsewise:
            let all: [Player.ActionAtItemEnd] = [.advance, .pause, .none]
            let next = (all.firstIndex(of: machine.actionAtItemEnd)! + 1) % 3
            machine.actionAtItemEnd = all[next]
            perform(.refresh)
        case .byLines:
            lines = [:]
            perform(.joinsByLines(machine.joinLines == nil))
        case .joinNext:
            if let next = machine.queue.first, let line = machine.plannedJoin(of: next) {
                lines[next] = line
                perform(.join(next, by: line))
            }
        case .prerollNext:
            if let next = machine.queue.first { perform(.prerollNext(next, rate: 1)) }
        case .endLater: perform(.end(at: machine.soon + .milliseconds(150)))
        case .otherOutput:
            var there = world
            there.latency = .milliseconds(60)
            perform(.output(there))
        case .goesOn: goOn(milliseconds: 120)
        case .stands: now = now + .milliseconds(40)
        case .starves: if let feed = sounding { receive(.starved(feed)) }
        case .ends:
            if let feed = sounding {
                feeds[feed]?.isCancelled = true
                receive(.playedToEnd(feed))
            }
        case .fails: failNewest(PlaybackError(.outputBusy, "all voices are in use"))
        case .itemFails: failNewest(PlaybackError(.mediaFailed, "the disc is scratched"))
        case .fallsBehind:
            // Without a clock of others there is nothing to be behind.
            if let feed = sounding, feeds[feed]?.start?.clock != nil { receive(.leftBehind(feed)) }
        case .cardChanges:
            hasCard.toggle()
            receive(.cardChanged)
        }
    }

    private mutating func replaceItem() {
        carryOut(machine.advance(in: world))
        items += 1
        owned.insert(ItemID(number: items))
        let known = endedSeeks.count
        let follow = machine.queue
        perform(.replaceItem(ItemID(number: items)))
        if endedSeeks.count != askedSeeks || endedSeeks[known...].contains(where: \.finished) {
            fault = "a seek is about another item now"
        }
        if machine.queue != follow { fault = "what follows is another" }
    }

    /// - Parameter frame: `nil`: where item time is, or is going.
    private mutating func preroll(at frame: Double?) {
        var now = machine
        _ = now.advance(in: world)
        let place = min(frame ?? now.destination ?? now.currentFrame, Double(length))
        let time = frame.map { MediaTime(frame: Int64($0), sampleRate: Self.sampleRate) }
        perform(.preroll(rate: 1, time: time ?? .invalid))
        guard !wasRefused else { return }
        guard let filled = machine.prepared.flatMap({ feeds[$0] }), !filled.isCancelled else {
            fault = "nothing is prerolled"
            return
        }
        if filled.first != place { fault = "\(filled.first) is prerolled instead of \(place)" }
    }

    private mutating func failNewest(_ error: PlaybackError) {
        let living = feeds.filter { !$0.value.isCancelled }.keys
        guard let feed = living.max(by: { $0.number < $1.number }) else { return }
        feeds[feed]?.isCancelled = true
        receive(.failed(feed, error))
    }

    private var sounding: FeedID? {
        let feed = machine.program.entry(at: machine.reading).feed
        return feed.flatMap { feeds[$0]?.isCancelled == false ? $0 : nil }
    }

    mutating func seek(to frame: Double) {
        askedSeeks += 1
        perform(
            .seek(
                SeekID(number: askedSeeks),
                to: MediaTime(frame: Int64(frame), sampleRate: Self.sampleRate)))
    }

    /// Loaded, which nobody has told.
    private mutating func makeReady() {
        for item in pendingLoads.keys {
            loaded.insert(item)
            failed[item] = nil
        }
    }

    mutating func load() {
        makeReady()
        for (item, load) in pendingLoads.sorted(by: { $0.value < $1.value }) {
            guard pendingLoads.removeValue(forKey: item) != nil else { continue }
            // It may have asked for another meanwhile.
            makeReady()
            receive(.itemLoaded(load))
        }
    }

    /// Feeds decode, lines begin, and what has ended closes.
    mutating func goOn(milliseconds: Int64) {
        let end = now + .milliseconds(milliseconds)
        while now < end {
            now = min(end, now + .milliseconds(10))
            if let deadline = machine.nextDeadline, deadline <= now {
                carryOut(machine.advance(in: world))
            }
            for id in feeds.keys.sorted(by: { $0.number < $1.number }) {
                guard let feed = feeds[id] else { continue }
                if hasEnded(feed) {
                    feeds[id]?.isCancelled = true
                    receive(.playedToEnd(id))
                    continue
                }
                if !feed.hasSaid, now - feed.madeAt >= decoding {
                    feeds[id]?.hasSaid = true
                    receive(.supplied(id))
                }
                if feed.isCancelled || feed.retires && isSilent(id) {
                    feeds[id] = nil
                    receive(.closed(id))
                }
            }
        }
        machine.look(world)
    }

    /// Some time after its last frame was heard.
    private func hasEnded(_ feed: FakeFeed) -> Bool {
        guard let start = feed.start, !feed.isStopped, !feed.isCancelled, feed.hasSaid,
            let end = start.endFrame
        else { return false }
        let heard = now - .milliseconds(15)
        let reading =
            start.clock.flatMap { clocks[$0]?.map(heard) }
            ?? GroupInstant(nanoseconds: heard.nanoseconds)
        let frame = start.line.frame(at: reading, sampleRate: Self.sampleRate)
        return reading >= start.line.instant
            && (start.line.rate < 0 ? frame <= Double(end) : frame >= Double(end))
    }

    private func isSilent(_ id: FeedID) -> Bool {
        guard let feed = feeds[id] else { return true }
        guard let start = feed.start else { return true }
        guard feed.isStopped else { return false }
        // On the clock by which it sounds.
        let reading =
            start.clock.flatMap { clocks[$0]?.map(now) }
            ?? GroupInstant(nanoseconds: now.nanoseconds)
        return feed.stop.map { $0 <= reading } ?? true
    }

    /// Long enough for all that was asked for.
    mutating func comeToRest() {
        load()
        goOn(milliseconds: 1_500)
        guard fault == nil else { return }
        if endedSeeks.count != askedSeeks {
            fault = "\(askedSeeks) seeks, of which \(endedSeeks.count) came to an end"
        }
        let used = Set(
            machine.program.entries.compactMap(\.feed)
                + [machine.prepared, machine.transition?.feed].compactMap { $0 }
                + machine.kept.values)
        let left = feeds.keys.filter { !used.contains($0) }
        if !left.isEmpty { fault = "\(left.count) feeds are left over: \(left)" }
        if machine.rate != 0, machine.status == .readyToPlay, machine.intent == .decided,
            machine.decided.line.rate != machine.rate
        {
            fault = "asked for rate \(machine.rate), and goes at \(machine.decided.line.rate)"
        }
        if case .awaitsFrames = machine.intent { fault = "still waits for frames" }
        if machine.seek != nil { fault = "a seek is still under way" }
        let listed = Set([machine.item].compactMap { $0 } + machine.queue)
        if listed != owned { fault = "has \(owned) and lists \(listed)" }
    }

    // MARK: The machine

    /// What is due by itself.
    mutating func advance() { carryOut(machine.advance(in: world)) }

    mutating func perform(_ command: PlayerCommand) {
        effects = []
        var before = machine
        wasRefused = false
        do throws(PlaybackError) {
            carryOut(try machine.perform(command, in: world))
        } catch {
            wasRefused = true
            // What was due by itself is no work of the command.
            let due = machine.advance(in: world)
            _ = before.advance(in: world)
            if before.program != machine.program || before.intent != machine.intent
                || before.rate != machine.rate || before.seek != machine.seek
                || before.feeds != machine.feeds
            {
                fault = "a refused command has done something: \(command)"
            }
            carryOut(due)
        }
    }

    mutating func receive(_ event: PlayerEvent) {
        carryOut(machine.receive(event, in: world))
    }

    private mutating func carryOut(_ effects: [PlayerEffect]) {
        self.effects += effects
        for effect in effects { carryOut(effect) }
        check()
    }

    private mutating func carryOut(_ effect: PlayerEffect) {
        switch effect {
        case .load(let item, let load): pendingLoads[item] = load
        case .stopLoading(let item): pendingLoads[item] = nil
        case .failItem(let item, let error): failed[item] = error
        case .release(let item):
            if owned.remove(item) == nil { fault = "\(item) is released twice" }
        case .itemChanged: break
        case .playedToEnd(let item):
            if !owned.contains(item) { fault = "\(item) ends, which is released" }
        case .itemFailed(let item, _):
            if !owned.contains(item) { fault = "\(item) fails, which is released" }
        case .failedAhead(let item, _):
            if !machine.queue.contains(item) { fault = "\(item) fails ahead, and does not follow" }
        case .make(let id, let item, let frame, let recipe, _):
            if !owned.contains(item) { fault = "a feed of \(item), which is released" }
            if feeds[id] != nil { fault = "\(id) is made twice" }
            feeds[id] = FakeFeed(madeAt: now, first: frame, recipe: recipe)
        case .start(let id, let start):
            guard let feed = feeds[id], !feed.isCancelled else {
                return receive(.refusedStart(id))
            }
            feeds[id]?.start = start
            feeds[id]?.isStopped = false
            feeds[id]?.retires = false
        case .stop(let id, let instant):
            feeds[id]?.isStopped = true
            feeds[id]?.stop = instant
        case .retire(let id): feeds[id]?.retires = true
        case .cancel(let id): feeds[id]?.isCancelled = true
        case .endWaiting, .wake, .setGain, .tell: break
        case .changeOutput:
            for (id, feed) in feeds where !feed.isCancelled { fault = "\(id) plays on elsewhere" }
        case .announce(.rateDidChange(let rate, _), _):
            if rate == toldRate { fault = "a change to the rate that there was" }
            toldRate = rate
        case .announce: break
        case .seekEnded(let id, let finished):
            if endedSeeks.contains(where: { $0.id == id }) { fault = "\(id) ends twice" }
            endedSeeks.append((id, finished))
            frameAtSeekEnd = machine.currentFrame
        }
    }

    /// What is so after every turn.
    private mutating func check() {
        guard fault == nil else { return }
        if toldRate != machine.rate { fault = "the rate is not as it was told" }
        let instants = machine.program.entries.map(\.line.instant)
        if zip(instants, instants.dropFirst()).contains(where: { $0 >= $1 }) {
            fault = "the program is not in order: \(instants)"
        }
        // Who sounds is not about to end, and whoever is to end is named by nobody to come.
        for entry in machine.program.pending(after: machine.reading) where entry.line.rate != 0 {
            if let feed = entry.feed, let known = feeds[feed],
                known.isCancelled
                    || known.isStopped && known.stop ?? entry.line.instant <= entry.line.instant
            {
                fault = "\(feed) is to sound and was told to be silent"
            }
            if machine.joinLines != nil, let item = entry.item, item != machine.item,
                lines[item] != entry.line
            {
                fault = "\(item) is to begin otherwise than by its line"
            }
            if let end = machine.endsAt, entry.item != machine.item, entry.line.instant >= end {
                fault = "\(entry) begins after the end of all"
            }
        }
        if case .awaitsFrames(let transition) = machine.intent,
            feeds[transition.feed]?.isCancelled != false
        {
            fault = "waits for frames of a feed that is gone"
        }
    }
}
