import ClockSync
import GroupControl
import LinuxHost
import Logging
import Playout
import RealTime
import Synchronization
import Timing

/// The estimate of the leader's clock in a following room.
final class RemoteClock: Member.ClockSource {
    /// The cell of the leader followed now.
    var cell: ClockCell { state.withLock { $0.cell } }
    /// Names of the leaders followed, as they change.
    let leaders = Outbox<String>()

    private struct State {
        var cell = RemoteClock.emptyCell()
        var host = ""
        var followed: (host: String, port: UInt16, epoch: UInt64)?
        var client: ClockClient?
        /// Who is followed, and what was remembered of its crystal before.
        var leader: Welcome?
        var remembered: RoomMemory.Skew?
        var isIdle = false
        /// Of whoever is followed next, too; until nothing is wanted any more.
        var expectedStart: ExpectedStart?
        var figures = ClockFigures()
        var quality = SharedClock.Quality.none
    }
    private let state = Mutex(State())
    let changes: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation
    private let priority: Int
    private let broadcasts: Bool
    private let store: RoomStore?
    private let logger: Logger

    /// - Parameter broadcasts: whether to take part in reference broadcasts.
    init(priority: Int, broadcasts: Bool, store: RoomStore?, logger: Logger) {
        self.priority = priority
        self.broadcasts = broadcasts
        self.store = store
        self.logger = logger
        (changes, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    func setHost(_ host: String) { state.withLock { $0.host = host } }

    func follow(_ welcome: Welcome) {
        leaders.send(welcome.leaderName)
        defer { continuation.yield() }
        let host = state.withLock { $0.host }
        let target = (host: host, port: welcome.timePort, epoch: welcome.groupClockEpoch)
        // The same clock at the same place is followed already: its estimate is worth keeping.
        let isFollowed = state.withLock { $0.followed.map { $0 == target } ?? false }
        guard !isFollowed else { return }
        remember()
        let known = store?.storedSkew(of: welcome)
        let (old, isIdle, expectedStart) = state.withLock { state in
            state.followed = target
            state.cell = Self.emptyCell()
            state.figures = ClockFigures()
            state.leader = welcome
            state.remembered = known?.entry
            return (state.client.take(), state.isIdle, state.expectedStart)
        }
        old?.stop()
        do {
            let cell = cell
            let client = try ClockClient.start(
                host: target.host, port: Int(target.port), priority: priority,
                seed: .random(in: .min ... .max), stored: known?.skew ?? .unknown,
                broadcasts: broadcasts
            ) { [weak self] clock, statistics in
                cell.store(clock)
                self?.note(clock, statistics)
            }
            client.setIdle(isIdle)
            if let expectedStart { client.expectStart(expectedStart) }
            state.withLock { $0.client = client }
        } catch {
            logger.error("cannot follow the leader's clock", metadata: ["error": "\(error)"])
        }
    }

    func burst() { state.withLock { $0.client }?.burst() }

    func expectStart(_ start: ExpectedStart) {
        let client = state.withLock { state in
            state.expectedStart = start
            return state.client
        }
        client?.expectStart(start)
    }

    func setIdle(_ isIdle: Bool) {
        let client = state.withLock { state in
            state.isIdle = isIdle
            if isIdle { state.expectedStart = nil }
            return state.client
        }
        client?.setIdle(isIdle)
    }

    /// Keeps the leader's rate, once it is known better than a memory ever is.
    func remember() {
        let (client, leader, before) = state.withLock { ($0.client, $0.leader, $0.remembered) }
        guard let store, let client, let leader else { return }
        let learnt = client.storedSkew
        guard client.statistics.quality == .locked,
            learnt.deviation <= RoomMemory.settledDeviation
        else { return }
        store.remember(learnt, of: leader, before: before)
    }

    var figures: ClockFigures { state.withLock { $0.figures } }

    func stop() {
        remember()
        leaders.finish()
        continuation.finish()
        state.withLock { $0.client.take() }?.stop()
    }

    private func note(_ clock: SharedClock, _ statistics: ClockStatistics) {
        let isNews = state.withLock { state in
            defer { state.quality = clock.quality }
            state.figures = ClockFigures(
                deviation: statistics.deviation, bound: clock.uncertainty,
                roundTrip: statistics.roundTrip,
                stamps: statistics.roundTrip > .zero ? "\(statistics.stamps)" : "",
                quality: clock.quality, statistics: statistics)
            return clock.quality != state.quality
        }
        if isNews { continuation.yield() }
    }

    private static func emptyCell() -> ClockCell {
        ClockCell(
            SharedClock(
                map: ClockMap(
                    from: LocalInstant(nanoseconds: 0), to: GroupInstant(nanoseconds: 0)),
                uncertainty: .seconds(1), estimatedAt: LocalInstant(nanoseconds: 0), epoch: 0,
                quality: .none))
    }
}
