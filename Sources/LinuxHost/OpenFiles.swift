import Dispatch
import Glibc

/// How many files and connections this process may have open.
public enum OpenFiles {
    /// What a node has open besides connections and the files that are read for them: event loops,
    /// timers, signals, sockets of clock and notices, the card, what is played and comes next.
    public static let ownUse = 128
    /// With fewer, a node cannot even begin.
    public static let least = 28

    /// Raises the soft limit (RLIMIT_NOFILE, setrlimit(2)) to `count` where the hard one allows it.
    /// A service that runs out of descriptors cannot accept connections any more.
    ///
    /// - Returns: how many may be open now.
    @discardableResult
    public static func allow(_ count: Int) -> Int {
        var limit = rlimit()
        guard unsafe getrlimit(Int32(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return count
        }
        let wanted = min(rlim_t(count), limit.rlim_max)
        guard limit.rlim_cur < wanted else { return Int(clamping: limit.rlim_cur) }
        limit.rlim_cur = wanted
        let isRaised = unsafe setrlimit(Int32(RLIMIT_NOFILE.rawValue), &limit) == 0
        if isRaised { return Int(clamping: wanted) }
        return unsafe getrlimit(Int32(RLIMIT_NOFILE.rawValue), &limit) == 0
            ? Int(clamping: limit.rlim_cur) : count
    }

    /// Opens what libdispatch would open when a timer is first set, and keeps open.
    ///
    /// It has one descriptor for each clock, makes it when somebody first waits by that clock, and
    /// ends the process where there is none left: a node out of descriptors died of its first
    /// `Task.sleep`, as it said goodbye.
    public static func openTimers() async {
        try? await Task.sleep(for: .nanoseconds(1), clock: .continuous)
        try? await Task.sleep(for: .nanoseconds(1), clock: .suspending)
        await withCheckedContinuation { continuation in
            DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(1)) {
                continuation.resume()
            }
        }
        await withCheckedContinuation { continuation in
            DispatchQueue.global().asyncAfter(wallDeadline: .now() + .microseconds(1)) {
                continuation.resume()
            }
        }
    }
}
