import CTuttiLinux
import Glibc

/// What the kernel says about itself and what it lets this process do: read, not measured.
///
/// `nil` and empty mean that it does not tell, as in many containers.
public struct MachineFacts: Equatable, Sendable {
    /// A resource limit; `nil` is none.
    public struct Limit: Equatable, Sendable {
        /// In force now, and may be raised up to ``hard``; `nil`: none.
        public var soft: Int?
        /// What an ordinary user cannot exceed; `nil`: none.
        public var hard: Int?

        /// A limit in the resource's own unit.
        public init(soft: Int?, hard: Int?) {
            self.soft = soft
            self.hard = hard
        }
    }

    /// The share of each period that real-time threads may use together.
    public struct Throttle: Equatable, Sendable {
        /// −1: all of it.
        public var runtimeMicroseconds: Int
        /// Length of the period.
        public var periodMicroseconds: Int

        /// So much of each period; −1: all of it.
        public init(runtimeMicroseconds: Int, periodMicroseconds: Int) {
            self.runtimeMicroseconds = runtimeMicroseconds
            self.periodMicroseconds = periodMicroseconds
        }
    }

    /// A state in which a core sleeps.
    public struct IdleState: Equatable, Sendable {
        /// The kernel's name: `C6`.
        public var name: String
        /// How long the core needs to wake up from it.
        public var exitMicroseconds: Int

        /// A state that takes so long to leave.
        public init(name: String, exitMicroseconds: Int) {
            self.name = name
            self.exitMicroseconds = exitMicroseconds
        }
    }

    /// How CLOCK_REALTIME is being steered, as `adjtimex` tells.
    public struct TimeDaemon: Equatable, Sendable {
        /// Somebody keeps it on time; false: nobody does, or it has lost its source.
        public var isSynchronised: Bool
        /// What the clock is made faster than the crystal, for good.
        public var partsPerMillion: Double

        /// The kernel's clock as a daemon steers it.
        public init(isSynchronised: Bool, partsPerMillion: Double) {
            self.isSynchronised = isSynchronised
            self.partsPerMillion = partsPerMillion
        }
    }

    /// RLIMIT_RTPRIO.
    public var realTimePriority: Limit?
    /// CAP_SYS_NICE is effective: any priority may be had.
    public var hasSysNice = false
    /// How much of its time real-time threads may have; `nil` where it is not told.
    public var throttle: Throttle?
    /// RLIMIT_MEMLOCK, bytes.
    public var lockedMemory: Limit?
    /// RLIMIT_NOFILE.
    public var openFiles: Limit?
    /// What the kernel keeps time by: `tsc`, `hpet` …
    public var clockSource: String?
    /// What it could keep time by instead.
    public var clockSources: [String] = []
    /// One of each that a core has.
    public var governors: [String] = []
    /// The deepest that is enabled on the first core.
    public var deepestIdle: IdleState?
    /// What keeps the machine's clock on time; `nil` where it is not told.
    public var timeDaemon: TimeDaemon?

    /// Of a machine that tells nothing.
    public init() {}

    /// Reads all of it; a few ms.
    public static func read() -> MachineFacts {
        var facts = MachineFacts()
        facts.realTimePriority = limit(__RLIMIT_RTPRIO)
        facts.lockedMemory = limit(__RLIMIT_MEMLOCK)
        facts.openFiles = limit(RLIMIT_NOFILE)
        facts.hasSysNice = hasCapability(23)
        if let runtime = KernelFile.number("/proc/sys/kernel/sched_rt_runtime_us"),
            let period = KernelFile.number("/proc/sys/kernel/sched_rt_period_us")
        {
            facts.throttle = Throttle(runtimeMicroseconds: runtime, periodMicroseconds: period)
        }
        let clocks = "/sys/devices/system/clocksource/clocksource0"
        facts.clockSource = KernelFile.words("\(clocks)/current_clocksource").first
        facts.clockSources = KernelFile.words("\(clocks)/available_clocksource")
        let cores = "/sys/devices/system/cpu"
        facts.governors = Set(
            KernelFile.names(in: cores, beginning: "cpu").compactMap {
                KernelFile.words("\(cores)/\($0)/cpufreq/scaling_governor").first
            }
        ).sorted()
        facts.deepestIdle = deepestIdle("\(cores)/cpu0/cpuidle")
        facts.timeDaemon = timeDaemon()
        return facts
    }

    private static func limit(_ which: __rlimit_resource) -> Limit? {
        var limit = rlimit()
        guard unsafe getrlimit(Int32(which.rawValue), &limit) == 0 else { return nil }
        func known(_ value: rlim_t) -> Int? { value == .max ? nil : Int(clamping: value) }
        return Limit(soft: known(limit.rlim_cur), hard: known(limit.rlim_max))
    }

    /// - Parameter number: of linux/capability.h.
    private static func hasCapability(_ number: Int) -> Bool {
        let mask = KernelFile.field("CapEff", of: "/proc/self/status").flatMap {
            UInt64($0, radix: 16)
        }
        return (mask ?? 0) >> UInt64(number) & 1 == 1
    }

    private static func deepestIdle(_ folder: String) -> IdleState? {
        KernelFile.names(in: folder, beginning: "state").compactMap { state -> IdleState? in
            guard KernelFile.number("\(folder)/\(state)/disable") != 1,
                let latency = KernelFile.number("\(folder)/\(state)/latency")
            else { return nil }
            let name = KernelFile.text("\(folder)/\(state)/name") ?? state
            return IdleState(name: name, exitMicroseconds: latency)
        }.max { $0.exitMicroseconds < $1.exitMicroseconds }
    }

    /// Asks without changing anything: that needs no right.
    private static func timeDaemon() -> TimeDaemon? {
        var state = timex()
        guard unsafe adjtimex(&state) >= 0 else { return nil }
        // Frequency in 2^-16 ppm; a tick of 10 000 µs is the nominal one (linux/timex.h).
        let rate = Double(state.freq) / 65_536 + Double(state.tick - 10_000) * 100
        return TimeDaemon(
            isSynchronised: state.status & 0x40 /* STA_UNSYNC */ == 0, partsPerMillion: rate)
    }
}
