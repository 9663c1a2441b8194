import CTuttiLinux
import Glibc
import Synchronization
public import TuttiTiming

/// How late a thread like our output thread really wakes up, and what REALTIME does meanwhile.
public struct WakeUpFacts: Equatable, Sendable {
    /// What the thread was given for the priority that was asked.
    public var scheduling = RealTimeThread.Scheduling.ordinary
    /// For SCHED_FIFO; 0: ordinary scheduling.
    public var priorityAsked = 0
    /// `nil` where the kernel does not tell; real-time threads have none.
    public var timerSlack: Nanoseconds?
    /// Wake-ups that were measured.
    public var count = 0
    /// Half of the wake-ups are not later than this.
    public var median = Nanoseconds.zero
    /// 99 of 100 are not later than this.
    public var late = Nanoseconds.zero
    /// The latest of all wake-ups.
    public var latest = Nanoseconds.zero
    /// CLOCK_REALTIME against CLOCK_MONOTONIC_RAW while it was measured; `nil` when the machine
    /// was too busy to read both at once.
    public var realTimePartsPerMillion: Double?
    /// How far apart the two clock reads around a kernel stamp are at best: twice the error with
    /// which stamps are brought into local time. `nil` when that does not work here.
    public var conversion: Nanoseconds?

    /// Of a thread that has not run yet.
    public init() {}

    /// More often than the output thread wakes: more to judge by in a second.
    static let interval = Nanoseconds.milliseconds(2)

    /// Wakes up every 2 ms for `duration`, on a thread of its own; returns when that is over.
    ///
    /// - Parameter priority: for SCHED_FIFO, 0 for ordinary; a refusal is in ``scheduling``.
    /// - Throws: when there can be no thread.
    public static func measure(
        priority: Int, duration: Nanoseconds = .seconds(1)
    ) throws(HostError) -> WakeUpFacts {
        let count = max(1, Int(duration.count / interval.count))
        let box = Box()
        let thread = try RealTimeThread.start(name: "tutti-doctor", priority: priority) {
            let measured = run(count)
            box.value.withLock { $0 = measured }
        }
        thread.join()
        var facts = box.value.withLock(\.self)
        facts.scheduling = thread.scheduling
        facts.priorityAsked = priority
        return facts
    }

    private final class Box: Sendable { let value = Mutex(WakeUpFacts()) }

    private static func run(_ count: Int) -> WakeUpFacts {
        var facts = WakeUpFacts()
        var lateness: [Nanoseconds] = []
        lateness.reserveCapacity(count)
        let slack = Int64(tutti_timer_slack())
        facts.timerSlack = slack >= 0 ? Nanoseconds(slack) : nil
        let first = ClockPair.tightest()
        let start = HostClock.now()
        for number in 1...count {
            let due = start + interval * Int64(number)
            HostClock.sleep(until: due)
            lateness.append(HostClock.now() - due)
        }
        let last = ClockPair.tightest()
        lateness.sort()
        facts.count = count
        facts.median = lateness[count / 2]
        facts.late = lateness[min(count - 1, count * 99 / 100)]
        facts.latest = lateness[count - 1]
        if let first, let last, last.raw > first.raw {
            let moved = Double(last.offset - first.offset)
            facts.realTimePartsPerMillion = moved / Double(last.raw - first.raw) * 1e6
        }
        facts.conversion = ClockPair.conversion()
        return facts
    }
}

/// REALTIME and RAW, read at one moment.
private struct ClockPair {
    /// REALTIME − RAW.
    var offset: Int64
    var raw: Int64
    var width: Int64

    /// The tightest of many tries; `nil` when none was tight enough to tell a rate by.
    static func tightest() -> ClockPair? {
        let pairs = (0..<50).map { _ in
            let before = HostClock.read(CLOCK_MONOTONIC_RAW)
            let there = HostClock.read(CLOCK_REALTIME)
            let after = HostClock.read(CLOCK_MONOTONIC_RAW)
            let middle = before + (after - before) / 2
            return ClockPair(offset: there - middle, raw: middle, width: after - before)
        }
        return pairs.min { $0.width < $1.width }.flatMap { $0.width < 20_000 ? $0 : nil }
    }

    /// Brings a stamp of this moment into local time the way that a packet's is, and looks whether
    /// it lands between the reads around it.
    static func conversion() -> Nanoseconds? {
        var conversion = StampConversion()
        var best: Nanoseconds?
        for _ in 0..<20 {
            let before = HostClock.now()
            let stamp = HostClock.read(CLOCK_REALTIME)
            let width = HostClock.now() - before
            guard let local = conversion.local(realTime: stamp),
                local >= before - .microseconds(2), local <= before + width + .microseconds(2)
            else { continue }
            best = min(best ?? width, width)
        }
        return best
    }
}
