import Synchronization
import Testing
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

@testable import TuttiPlayback

/// A player's world in virtual time: engine, a card with a crystal of its own, clocks, sleepers.
///
/// Time moves only in ``step()``, a period at a time, and only when every feed is asleep: decoding
/// takes no virtual time and the outcome does not depend on the machine's load.
///
/// `@unchecked Sendable`: engine, card and recording are touched by `step` alone, which one test
/// task calls; the rest is behind a mutex.
final class VirtualRoom: @unchecked Sendable {
    /// A frame that has left the card, and when.
    struct Heard {
        var value: Float
        var instant: LocalInstant
    }

    private struct Sleepers {
        var now = LocalInstant(nanoseconds: 1_000_000_000)
        var serial = 0
        var waiting:
            [Int: (deadline: LocalInstant, continuation: CheckedContinuation<Void, Never>)] = [:]
        var cancelled: Set<Int> = []
        var naps = 0
    }
    private struct WeakPlayer { weak var player: Player? }

    let format: OutputFormat
    let engine: OutputEngine
    /// The group's clock: another epoch and another rate than the local one.
    let clock: ClockCell
    private let sleepers = Mutex(Sleepers())
    /// So much later it is for players already than for their alarms and the card.
    let lead = Mutex(Nanoseconds.zero)
    /// Lets what items and feeds report reach the players late; `nil`: at once.
    var lateness: Lateness?
    private var players: [WeakPlayer] = []
    private var card: VirtualCard
    private var period: [Float]
    /// Of the first channel.
    private(set) var heard: [Heard] = []
    /// The last that was heard, of all channels.
    private(set) var lastFrame: [Float] = []
    /// False: time moves on while a source is blocked.
    var waitsForFeeds = true
    /// Whether the card is away: nothing is rendered meanwhile.
    private var isCardAway = false

    init(
        sampleRate: Int = 8_000, cardPartsPerMillion: Double = 80, clockSkew: Double = 50e-6,
        channelCount: Int = 2
    ) {
        format = OutputFormat(
            sampleRate: sampleRate, channelCount: channelCount, periodFrames: sampleRate / 100,
            bufferFrames: sampleRate / 25)
        engine = OutputEngine(format: format)
        card = VirtualCard(
            format: format,
            crystal: Crystal(
                nominalRate: sampleRate, partsPerMillion: cardPartsPerMillion, wander: 0, seed: 1))
        period = [Float](repeating: 0, count: channelCount * format.periodFrames)
        clock = ClockCell(
            SharedClock(
                map: ClockMap(
                    from: LocalInstant(nanoseconds: 0),
                    to: GroupInstant(nanoseconds: 7_000_000_000_000), skew: clockSkew),
                uncertainty: .zero, estimatedAt: LocalInstant(nanoseconds: 0), epoch: 1,
                quality: .locked))
    }

    /// The same for players.
    var groupClock: MediaClock { .group(clock, now: { [self] in now }) }

    var now: LocalInstant { sleepers.withLock { $0.now } }
    /// What the shared clock reads now.
    var groupNow: GroupInstant { clock.load().map(now) }
    var napCount: Int { sleepers.withLock { $0.naps } }

    var output: PlayerOutput {
        var output = PlayerOutput(
            port: engine.port, now: { [self] in now + lead.withLock { $0 } },
            sleep: { [self] in await sleep($0) })
        if let lateness {
            output.postpone = { [self] in lateness.postpone($0, now: now) }
        }
        return output
    }

    func makePlayer(shared: Bool = false) -> Player {
        let player = Player(output: output)
        if shared {
            player.sourceClock = groupClock
            player.automaticallyWaitsToMinimizeStalling = false
        }
        players.append(WeakPlayer(player: player))
        return player
    }

    func makeQueue(_ items: [PlayerItem], shared: Bool = false) throws -> QueuePlayer {
        let player = try QueuePlayer(items: items, output: output)
        if shared {
            player.sourceClock = groupClock
            player.automaticallyWaitsToMinimizeStalling = false
        }
        players.append(WeakPlayer(player: player))
        return player
    }

    /// A player with an item that is ready, on a card whose rate is known.
    func makeReadyPlayer(
        _ item: PlayerItem, shared: Bool = false
    ) async throws -> Player {
        let player = makePlayer(shared: shared)
        try player.replaceCurrentItem(with: item)
        try await item.ready()
        await step(seconds: 1)
        return player
    }

    // MARK: Time

    private func sleep(_ span: Nanoseconds) async {
        let serial = sleepers.withLock {
            $0.serial += 1
            $0.naps += 1
            return $0.serial
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = sleepers.withLock {
                    if $0.cancelled.remove(serial) != nil { return true }
                    $0.waiting[serial] = ($0.now + span, continuation)
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            let waiting = sleepers.withLock {
                let waiting = $0.waiting.removeValue(forKey: serial)
                if waiting == nil { $0.cancelled.insert(serial) }
                return waiting
            }
            waiting?.continuation.resume()
        }
    }

    /// Whether no feed or alarm has anything to do before time moves.
    private var isSettled: Bool {
        let players = players.compactMap(\.player)
        let feeds = players.flatMap { player in
            player.state.withLock { Array($0.feeds.values) }
        }.filter { !$0.control.withLock { $0.isCancelled } }
        let alarms = players.count { $0.state.withLock { $0.alarm != nil } }
        return feeds.allSatisfy { $0.control.withLock { $0.nap != nil && !$0.isWoken } }
            && sleepers.withLock { $0.waiting.count } >= feeds.count + alarms
    }

    private static let turns = 20

    /// Lets one period pass.
    func step() async {
        while waitsForFeeds, !isSettled { await Task.yield() }
        // Who watches a blocked source has its turn, however busy the machine is.
        if !waitsForFeeds { for _ in 0..<Self.turns { await Task.yield() } }
        let duration = Nanoseconds(
            Int64(format.periodFrames) * 1_000_000_000 / Int64(format.sampleRate))
        let now = sleepers.withLock {
            $0.now += duration
            return $0.now
        }
        if !isCardAway { play(until: now) }
        let due = sleepers.withLock { sleepers in
            let due = sleepers.waiting.filter { $0.value.deadline <= now }
            for serial in due.keys { sleepers.waiting[serial] = nil }
            return due
        }
        for waiting in due.values { waiting.continuation.resume() }
        lateness?.deliver(until: now)
        await Task.yield()
    }

    /// The card plays what it holds, and the engine fills it up.
    private func play(until now: LocalInstant) {
        var emitted: [(ArraySlice<Float>, Int64)] = []
        let event = card.advance(to: now) { emitted.append(($0, $1)) }
        if event == .restarted { engine.restarted() }
        for (samples, first) in emitted {
            let channels = format.channelCount
            lastFrame = Array(samples.suffix(channels))
            for (offset, index) in stride(
                from: samples.startIndex, to: samples.endIndex, by: channels
            ).enumerated() {
                let instant = card.instant(ofFrame: Double(first) + Double(offset))
                heard.append(Heard(value: samples[index], instant: instant?.instant ?? now))
            }
        }
        if let reading = card.reading(at: now) { engine.observe(reading) }
        while card.writableFrames >= format.periodFrames {
            period.withUnsafeMutableBufferPointer {
                engine.render(into: $0.baseAddress!, now: now)
            }
            period.withUnsafeBufferPointer { card.write($0, now: now) }
        }
    }

    /// The card is pulled out, and plugged in again.
    func loseCard(seconds: Double) async {
        isCardAway = true
        engine.port.setHasCard(false)
        await step(seconds: seconds)
        isCardAway = false
        card = VirtualCard(
            format: format,
            crystal: Crystal(
                nominalRate: format.sampleRate, partsPerMillion: 80, wander: 0, seed: 2))
        engine.replaced()
        engine.port.setHasCard(true)
    }

    func step(seconds: Double) async {
        let periods = seconds * Double(format.sampleRate) / Double(format.periodFrames)
        for _ in 0..<Int(periods.rounded(.up)) { await step() }
    }

    /// The process stands still; then the feeds are the first to go on, the output thread follows.
    func standStill(seconds: Double) async {
        while !isSettled { await Task.yield() }
        let due = sleepers.withLock { sleepers in
            sleepers.now += Nanoseconds(seconds: seconds)
            let due = sleepers.waiting.filter { $0.value.deadline <= sleepers.now }
            for serial in due.keys { sleepers.waiting[serial] = nil }
            return due
        }
        for waiting in due.values { waiting.continuation.resume() }
        await Task.yield()
    }

    /// Lets time pass until `condition` holds; an issue is recorded when it does not within a
    /// minute.
    func step(
        until condition: () -> Bool, sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        for _ in 0..<6_000 {
            if condition() { return }
            await step()
        }
        Issue.record("this never came about", sourceLocation: sourceLocation)
    }

    /// Lets time pass while `operation` goes on.
    func during<Value: Sendable>(
        _ operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let isDone = Flag()
        let task = Task {
            let result = await Result { try await operation() }
            isDone.set()
            return result
        }
        while !isDone.isSet { await step() }
        return try await task.value.get()
    }

    // MARK: What was heard

    /// Frames heard from `start` until `end`, with the item frame that their value says.
    func frames(
        from start: LocalInstant, to end: LocalInstant
    ) -> [(frame: Double, instant: LocalInstant, value: Float)] {
        heard.filter { $0.instant >= start && $0.instant < end }
            .map { (TestSource.frame(ofValue: $0.value), $0.instant, $0.value) }
    }

    /// The local instant when the shared clock reads `instant`.
    func local(_ instant: GroupInstant) -> LocalInstant { clock.load().map.inverted(instant) }

    /// Voices that nobody holds.
    var freeVoices: Int {
        var voices: [Voice] = []
        while let voice = engine.port.makeVoice(sampleRate: 8_000) { voices.append(voice) }
        for voice in voices { voice.cancel() }
        return voices.count
    }
}

extension Result where Failure == any Error {
    init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}

final class Flag: Sendable {
    private let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .acquiring) }
    func set() { value.store(true, ordering: .releasing) }
}
