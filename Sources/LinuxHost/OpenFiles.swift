import Glibc

/// How many files and connections this process may have open.
public enum OpenFiles {
    /// Raises the soft limit (RLIMIT_NOFILE, setrlimit(2)) to `count` where the hard one allows it.
    /// A service that runs out of descriptors cannot accept connections any more.
    public static func allow(_ count: Int) {
        var limit = rlimit()
        guard unsafe getrlimit(Int32(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return
        }
        let wanted = min(rlim_t(count), limit.rlim_max)
        guard limit.rlim_cur < wanted else { return }
        limit.rlim_cur = wanted
        unsafe setrlimit(Int32(RLIMIT_NOFILE.rawValue), &limit)
    }
}
