import Logging
import Synchronization
import TuttiClockSync
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// The estimate of the leader's clock in a following room.
final class RemoteClock: Member.ClockSource {
    /// The cell of the leader followed now.
    var cell: ClockCell { state.withLock { $0.cell } }
    /// Names of the leaders followed, as they change.
    let leaders = Outbox<String>()

    /// Where a time service is.
    private struct Place: Equatable {
        var host: String
        var port: UInt16
    }

    /// A time service that is being asked.
    private struct Source {
        let place: Place
        let cell: ClockCell
        let client: ClockClient

        /// Whether what was heard is this clock. Another leader, or one that has restarted since,
        /// may have answered.
        func maySay(_ epoch: UInt64) -> Bool {
            let clock = cell.load()
            return clock.quality == .none || clock.epoch == epoch
        }
    }

    /// A clock that this node knew by itself until now, and that goes on.
    struct Continued: Sendable {
        var clock: SharedClock
        /// Nobody else writes to it any more.
        var cell: ClockCell
        /// See `Welcome`.
        var origin: UInt64
    }

    private struct State {
        var cell = ClockCell(.unknown)
        var host = ""
        /// Where it is asked for, and which line of time it is.
        var followed: (place: Place, origin: UInt64)?
        /// What the room plays by, before anybody is asked.
        var continued: Continued?
        var client: ClockClient?
        /// Asked already, while its leader has not yet said who it is.
        var approached: Source?
        /// Who is followed, and what was remembered of its crystal before.
        var leader: Welcome?
        var remembered: RoomMemory.Skew?
        var isIdle = false
        var isStopped = false
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
    private let sealed: Bool
    private let store: RoomStore?
    private let logger: Logger

    /// - Parameters:
    ///   - broadcasts: whether to take part in reference broadcasts.
    ///   - sealed: leaders answer members alone, so that nobody is asked before the welcome.
    ///   - continuing: the clock until now.
    init(
        priority: Int, broadcasts: Bool, sealed: Bool = false, store: RoomStore?, logger: Logger,
        continuing: Continued? = nil
    ) {
        self.priority = priority
        self.broadcasts = broadcasts
        self.sealed = sealed
        self.store = store
        self.logger = logger
        (changes, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        guard let continuing else { return }
        state.withLock {
            $0.continued = continuing
            $0.cell = continuing.cell
        }
    }

    /// Connected to the leader at this host, which will say who it is.
    func setHost(_ host: String) { state.withLock { $0.host = host } }

    /// A leader is about to be connected to: asks for its time while that goes on, or only makes ready to
    /// where it takes a key. The time service is where the control service is, as a rule; where it is
    /// not, the welcome says so.
    func approach(_ address: HostPort) {
        let place = Place(host: address.host, port: UInt16(clamping: address.port))
        let isKnown = state.withLock { state in
            state.isStopped || state.followed?.place.host == place.host
                || state.approached?.place == place
        }
        guard !isKnown else { return }
        // That nobody can be asked is said when somebody is followed.
        let source = try? ask(place, .unknown, sealed ? .silent : .asking(nil))
        // Who is not welcome does not ask densely for ever.
        source?.client.setIdle(true)
        let old = state.withLock { state in
            let old = state.approached.take()
            state.approached = source
            return old
        }
        old?.client.stop()
    }

    func follow(_ welcome: Welcome, _ tags: SharedRoomTags? = nil) {
        leaders.send(welcome.leaderName)
        defer { continuation.yield() }
        let (host, approached) = state.withLock { ($0.host, $0.approached.take()) }
        let place = Place(host: host, port: welcome.timePort)
        let target = (place: place, origin: welcome.groupClockOrigin)
        // The same clock is followed already: its estimate is worth keeping, and what plays plays by
        // it. It may be somewhere else: the leader's address has changed.
        let same = state.withLock { state -> ClockClient? in
            guard state.followed?.origin == target.origin, let client = state.client else {
                return nil
            }
            state.followed = target
            return client
        }
        if let same {
            moveOn(to: welcome)
            same.move(host: place.host, port: Int(place.port), tags: tags)
            approached?.client.stop()
            return
        }
        remember()
        let known = store?.storedSkew(of: welcome)
        let source: Source?
        let continued = state.withLock { $0.continued.take() }
        if let continued, continued.origin == target.origin {
            approached?.client.stop()
            source = askOrSay(place, .continuing(continued.clock), .asking(tags), continued)
        } else if let approached, approached.place == place,
            approached.maySay(welcome.groupClockEpoch)
        {
            source = approached
            approached.client.begin(tags)
            if let known { approached.client.recall(known.skew) }
        } else {
            approached?.client.stop()
            source = askOrSay(place, known?.skew ?? .unknown, .asking(tags))
        }
        let (old, isIdle, expectedStart) = state.withLock { state in
            let old = state.client
            state.followed = target
            // What goes on without an answer goes on by its last estimate.
            if source == nil, continued?.origin == target.origin { state.continued = continued }
            state.cell = source?.cell ?? state.continued?.cell ?? ClockCell(.unknown)
            state.client = source?.client
            state.figures = ClockFigures()
            state.quality = state.cell.load().quality
            state.leader = welcome
            state.remembered = known?.entry
            return (old, state.isIdle, state.expectedStart)
        }
        old?.stop()
        source?.client.setIdle(isIdle)
        if let expectedStart { source?.client.expectStart(expectedStart) }
    }

    /// The clock goes on; whose crystal it is has changed where another leads.
    private func moveOn(to welcome: Welcome) {
        guard state.withLock({ $0.leader?.groupClockEpoch != welcome.groupClockEpoch }) else {
            return
        }
        remember()
        state.withLock {
            $0.leader = welcome
            $0.remembered = nil
        }
    }

    /// This node leads from now on: nobody is asked any more, and the cell is not written to.
    ///
    /// - Returns: the clock, the cell and the clock's rate against this machine's, minus one; `nil`
    ///   while there is none.
    func release() -> (clock: SharedClock, cell: ClockCell, skew: Double)? {
        remember()
        let (client, cell) = state.withLock { state in
            state.isStopped = true
            return (state.client.take(), state.cell)
        }
        guard let client else { return nil }
        client.stop()
        let clock = cell.load()
        let isKnown = client.statistics.quality == .locked
        return (clock, cell, isKnown ? client.storedSkew.skew : clock.map.skew)
    }

    private func askOrSay(
        _ place: Place, _ stored: StoredSkew, _ manner: ClockClient.Manner,
        _ continued: Continued? = nil
    ) -> Source? {
        do {
            return try ask(place, stored, manner, continued)
        } catch {
            logger.error("cannot follow the leader's clock", metadata: ["error": "\(error)"])
            return nil
        }
    }

    private func ask(
        _ place: Place, _ stored: StoredSkew, _ manner: ClockClient.Manner,
        _ continued: Continued? = nil
    ) throws(HostError) -> Source {
        let cell = continued?.cell ?? ClockCell(.unknown)
        let client = try ClockClient.start(
            host: place.host, port: Int(place.port), priority: priority,
            seed: .random(in: .min ... .max), stored: stored, continuing: continued?.clock,
            broadcasts: broadcasts, manner: manner
        ) { [weak self] clock, statistics in
            cell.store(clock)
            self?.note(clock, statistics, in: cell)
        }
        return Source(place: place, cell: cell, client: client)
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

    var figures: ClockFigures {
        var (figures, client) = state.withLock { ($0.figures, $0.client) }
        figures.problem = client?.problem
        // Without a clock nothing is published, and the client alone knows how often it asked.
        if figures.quality == .none, let client { figures.statistics = client.statistics }
        return figures
    }

    func stop() {
        remember()
        leaders.finish()
        continuation.finish()
        let (client, approached) = state.withLock { state in
            state.isStopped = true
            return (state.client.take(), state.approached.take())
        }
        client?.stop()
        approached?.client.stop()
    }

    private func note(_ clock: SharedClock, _ statistics: ClockStatistics, in cell: ClockCell) {
        let isNews = state.withLock { state in
            guard state.cell === cell else { return false }
            defer { state.quality = clock.quality }
            state.figures = ClockFigures(
                deviation: statistics.deviation, bound: clock.uncertainty,
                roundTrip: statistics.roundTrip,
                stamps: statistics.roundTrip > .zero ? StampKind(statistics.stamps) : .absent,
                quality: clock.quality, statistics: statistics)
            return clock.quality != state.quality
        }
        if isNews { continuation.yield() }
    }
}
