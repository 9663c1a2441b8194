import CTuttiLinux
import Glibc
import Synchronization

/// A thread of its own for work that must not be late.
///
/// Blocking inside the cooperative pool would starve every task of a two-core machine, and its
/// threads have no priority. This is a plain pthread: named, with SCHED_FIFO where the user may
/// have it, timer slack of 1 ns, its stack already in memory, signals left to the others.
public final class RealTimeThread: Sendable {
    /// How the kernel schedules the thread.
    public enum Scheduling: Equatable, Sendable, CustomStringConvertible {
        /// SCHED_FIFO at this priority, which may be lower than the one asked for.
        case realTime(priority: Int)
        /// Nobody asked for more.
        case ordinary
        /// SCHED_FIFO was asked for and refused; `reason` is one sentence and says what to do.
        case denied(reason: String)

        public var description: String {
            switch self {
            case .realTime(let priority): "SCHED_FIFO \(priority)"
            case .ordinary: "ordinary"
            case .denied(let reason): "ordinary: \(reason)"
            }
        }
    }

    /// What output and clock threads ask for where nothing else is said: below the kernel's
    /// interrupt threads (50), for what passes our packets on must not wait for us.
    public static let usualPriority = 20

    /// As the kernel and a debugger show it.
    public let name: String
    /// What the kernel gave it for the priority that was asked.
    public let scheduling: Scheduling
    private let handle: pthread_t
    private let isJoined = Mutex(false)

    /// Starts `body` on a new thread.
    ///
    /// - Parameters:
    ///   - name: shown by `ps` and `top`; the kernel keeps 15 bytes of it.
    ///   - priority: 1…99 for SCHED_FIFO, 0 for ordinary scheduling. A refusal is not an error:
    ///     the thread runs and ``scheduling`` says why it is ordinary.
    /// - Throws: when there can be no thread at all.
    public static func start(
        name: String, priority: Int, body: @escaping @Sendable () -> Void
    ) throws(HostError) -> RealTimeThread {
        precondition((0...99).contains(priority), "no real-time priority \(priority)")
        let entry = Entry(name: name, body: body)
        guard priority > 0 else {
            return RealTimeThread(name, try spawn(entry, priority: 0), .ordinary)
        }
        var levels = [priority]
        let allowed = allowedPriority()
        if allowed > 0, allowed < priority { levels.append(allowed) }
        var refusal = HostError("pthread_create", code: EPERM, subject: "thread \(name)")
        for level in levels {
            do {
                let handle = try spawn(entry, priority: level)
                return RealTimeThread(name, handle, .realTime(priority: level))
            } catch {
                refusal = error
            }
        }
        let reason =
            refusal.kind == .notPermitted
            ? "real-time priority \(priority) is not permitted here; "
                + "allow it with LimitRTPRIO= in the unit, limits.conf or CAP_SYS_NICE"
            : refusal.description
        return RealTimeThread(name, try spawn(entry, priority: 0), .denied(reason: reason))
    }

    private init(_ name: String, _ handle: pthread_t, _ scheduling: Scheduling) {
        self.name = name
        self.handle = handle
        self.scheduling = scheduling
    }

    deinit {
        if !isJoined.withLock(\.self) { pthread_detach(handle) }
    }

    /// Waits until the body has returned; a second call returns when the first does.
    ///
    /// Must not be called by the thread itself.
    public func join() {
        isJoined.withLock { joined in
            guard !joined else { return }
            let code = pthread_join(handle, nil)
            precondition(code == 0, "pthread_join of \(name) gave \(code)")
            joined = true
        }
    }

    // MARK: -

    /// What the new thread is handed. Retained by `spawn`, released by the thread.
    private final class Entry: Sendable {
        let name: String
        let body: @Sendable () -> Void
        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }

    private static func spawn(
        _ entry: Entry, priority: Int
    ) throws(HostError) -> pthread_t {
        var attributes = pthread_attr_t()
        unsafe pthread_attr_init(&attributes)
        defer { unsafe pthread_attr_destroy(&attributes) }
        if priority > 0 {
            var parameters = sched_param()
            parameters.sched_priority = Int32(priority)
            unsafe pthread_attr_setinheritsched(&attributes, Int32(PTHREAD_EXPLICIT_SCHED))
            unsafe pthread_attr_setschedpolicy(&attributes, Int32(SCHED_FIFO))
            unsafe pthread_attr_setschedparam(&attributes, &parameters)
        }
        var handle = pthread_t()
        let context = unsafe Unmanaged.passRetained(entry).toOpaque()
        let code = unsafe pthread_create(&handle, &attributes, run, context)
        guard code == 0 else {
            unsafe Unmanaged<Entry>.fromOpaque(context).release()
            throw HostError("pthread_create", code: code, subject: "thread \(entry.name)")
        }
        return handle
    }

    private static let run: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? =
        { context in
            let entry = unsafe Unmanaged<Entry>.fromOpaque(context!).takeRetainedValue()
            settle(entry.name)
            entry.body()
            return nil
        }

    /// First thing on the new thread.
    private static func settle(_ name: String) {
        var all = sigset_t()
        unsafe sigfillset(&all)
        unsafe pthread_sigmask(SIG_BLOCK, &all, nil)
        var short = name.utf8.prefix(15).map { CChar(bitPattern: $0) }
        short.append(0)
        unsafe tutti_set_thread_name(short)
        _ = tutti_set_timer_slack(1)
        tutti_touch_stack()
    }

    /// What RLIMIT_RTPRIO lets an ordinary user have.
    private static func allowedPriority() -> Int {
        var limit = rlimit()
        guard unsafe getrlimit(Int32(__RLIMIT_RTPRIO.rawValue), &limit) == 0 else {
            return 0
        }
        return Int(clamping: limit.rlim_cur)
    }
}
