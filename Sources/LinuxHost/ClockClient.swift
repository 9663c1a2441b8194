import Glibc
import Synchronization
public import TuttiClockSync
public import TuttiTiming
import TuttiTrust
import TuttiWire

/// A follower's clock thread: asks a leader for the time for as long as it lives.
///
/// It does not give up: a name that cannot be resolved, a missing network or a silent leader is
/// reported in ``problem`` and tried again with back-off, while the line runs on.
public final class ClockClient: Sendable {
    /// First pause after a failure, doubled up to ``longestRetry``.
    static let firstRetry = Nanoseconds.milliseconds(500)
    static let longestRetry = Nanoseconds.seconds(10)
    /// Without an answer for this long the name is looked up again and another address tried.
    static let deafLimit = Nanoseconds.seconds(10)

    private let thread: RealTimeThread
    private let shared: Shared

    /// What the thread and its owner tell each other.
    final class Shared: Sendable {
        /// What the thread looks at each time it wakes.
        struct Orders {
            var isStopped = false
            var wantsBurst = false
            var expectedStart: ExpectedStart?
            var recalled: StoredSkew?
            var isIdle = false
            var place: Place?
            /// To be asked from now on, with these tags or none.
            var begins: Tagging?
        }
        struct Tagging {
            var tags: SharedRoomTags?
        }
        struct Place: Equatable {
            var host: String
            var port: Int
        }
        struct State {
            var orders = Orders()
            var statistics = ClockStatistics()
            var storedSkew = StoredSkew.unknown
            var problem: HostError?
            var resolution: (of: Place, result: Result<[SocketAddress], HostError>)?
        }
        let wakeUp: WakeUp
        let state = Mutex(State())
        init() throws(HostError) { wakeUp = try WakeUp() }
    }

    /// Starts to ask `host`; returns at once.
    ///
    /// - Parameters:
    ///   - host: a name, or a numeric address of either family.
    ///   - priority: for SCHED_FIFO; 0 for ordinary. A refusal is in ``scheduling``.
    ///   - seed: of sequence numbers and spacing; should differ from start to start.
    ///   - stored: ``storedSkew`` of an earlier session with this leader.
    ///   - continuing: a clock that is played by and goes on; `nil`: it begins with what is measured.
    ///   - broadcasts: whether to take part in reference broadcasts, where the network has
    ///     multicast.
    ///   - publish: takes every new snapshot and how it came about; called on the clock thread up
    ///     to 100 times a second, so it must not wait.
    /// - Throws: only when there can be no thread.
    public static func start(
        host: String, port: Int, priority: Int, seed: UInt64, stored: StoredSkew = .unknown,
        continuing: SharedClock? = nil,
        broadcasts: Bool = true, publish: @escaping @Sendable (SharedClock, ClockStatistics) -> Void
    ) throws(HostError) -> ClockClient {
        try start(
            host: host, port: port, priority: priority, seed: seed, stored: stored,
            continuing: continuing, broadcasts: broadcasts, manner: .asking(nil), publish: publish)
    }

    /// How a client begins.
    package enum Manner: Sendable {
        /// With these tags; `nil`: without.
        case asking(SharedRoomTags?)
        /// Finds the way and opens the sockets, but asks nothing before ``ClockClient/begin(_:)``: nobody
        /// is answered before there is a key.
        case silent
    }

    /// The same for members.
    package static func start(
        host: String, port: Int, priority: Int, seed: UInt64, stored: StoredSkew = .unknown,
        continuing: SharedClock? = nil, broadcasts: Bool = true, manner: Manner,
        publish: @escaping @Sendable (SharedClock, ClockStatistics) -> Void
    ) throws(HostError) -> ClockClient {
        let shared = try Shared()
        shared.state.withLock { $0.storedSkew = stored }
        let thread = try RealTimeThread.start(name: "tutti-clock", priority: priority) {
            var loop = ClockLoop(
                host: host, port: port, seed: seed, stored: stored, continuing: continuing,
                broadcasts: broadcasts, manner: manner, shared: shared, publish: publish)
            loop.run()
        }
        return ClockClient(thread, shared)
    }

    private init(_ thread: RealTimeThread, _ shared: Shared) {
        self.thread = thread
        self.shared = shared
    }

    deinit { stop() }

    /// Ends the thread; returns when it has ended, within milliseconds. May be called again.
    public func stop() {
        shared.state.withLock { $0.orders.isStopped = true }
        shared.wakeUp.signal()
        thread.join()
    }

    /// Somebody is about to play by the clock, and waits until it is good: within twelve seconds of
    /// this and of the first answer it is `locked`, while somebody answers. Without this call it may
    /// stay `acquiring` on a poor path.
    ///
    /// - Parameter start: who joins what already sounds is content with less, and sooner.
    public func expectStart(_ start: ExpectedStart) {
        shared.state.withLock { $0.orders.expectedStart = start }
        shared.wakeUp.signal()
    }

    /// ``storedSkew`` of an earlier session, when the leader turned out to be a known one only after
    /// it was asked first.
    public func recall(_ stored: StoredSkew) {
        shared.state.withLock { $0.orders.recalled = stored }
        shared.wakeUp.signal()
    }

    /// The same clock is somewhere else now: what is known of it stays, and is asked for there.
    public func move(host: String, port: Int) {
        shared.state.withLock { $0.orders.place = Shared.Place(host: host, port: port) }
        shared.wakeUp.signal()
    }

    /// The same, with these tags from now on; `nil`: without.
    package func move(host: String, port: Int, tags: SharedRoomTags?) {
        shared.state.withLock {
            $0.orders.place = Shared.Place(host: host, port: port)
            $0.orders.begins = Shared.Tagging(tags: tags)
        }
        shared.wakeUp.signal()
    }

    /// Whoever began silently asks from now on, with these tags; `nil`: without.
    package func begin(_ tags: SharedRoomTags?) {
        shared.state.withLock { $0.orders.begins = Shared.Tagging(tags: tags) }
        shared.wakeUp.signal()
    }

    /// 16 exchanges from now on, 10 ms apart at most; after it was idle. Nothing within 0.1 s of the
    /// burst before.
    public func burst() {
        shared.state.withLock { $0.orders.wantsBurst = true }
        shared.wakeUp.signal()
    }

    /// Two or three exchanges a second while nothing plays, instead of 6 to 50, or 100 in the first half
    /// minute.
    public func setIdle(_ isIdle: Bool) {
        shared.state.withLock { $0.orders.isIdle = isIdle }
        shared.wakeUp.signal()
    }

    /// How the thread is scheduled; when real-time priority was denied, why.
    public var scheduling: RealTimeThread.Scheduling { thread.scheduling }
    /// As of the latest exchange or silence.
    public var statistics: ClockStatistics { shared.state.withLock { $0.statistics } }
    /// To be kept for the next session with this leader.
    public var storedSkew: StoredSkew { shared.state.withLock { $0.storedSkew } }
    /// Why there is no answer just now; `nil` while there is, or while nothing is wrong yet.
    public var problem: HostError? { shared.state.withLock { $0.problem } }
}
