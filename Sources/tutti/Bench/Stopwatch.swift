import Glibc

/// Processor time of this thread: what others on the machine take is not counted.
///
/// What they do to caches and clock frequency still is; hence many short runs, and a reference
/// beside each.
enum Stopwatch {
    /// Nanoseconds; the epoch is the thread's beginning.
    static var nanoseconds: Int64 {
        var time = timespec()
        let code = clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        precondition(code == 0, "the kernel counts no processor time of threads: \(errno)")
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Nanoseconds that `body` takes.
    static func time(_ body: () -> Void) -> Int64 {
        let begin = nanoseconds
        body()
        return nanoseconds - begin
    }
}

/// The yardstick: a fixed piece of arithmetic, each step of which waits for the one before.
///
/// A step is one xorshift (six integer operations in a row) and one multiplication and addition of
/// doubles. It touches no memory, so that it tells the speed of a core and nothing else. A figure
/// divided by it compares between machines; what remains is what differs by design, the width of
/// vectors and the caches.
enum ReferenceLoop {
    static let description = "xorshift64 and a double multiply-add, dependent"

    /// - Returns: a number that depends on every step.
    @inline(never)
    static func run(steps: Int) -> UInt64 {
        var word: UInt64 = 0x9E37_79B9_7F4A_7C15
        var sum = 0.5
        for _ in 0..<steps {
            word ^= word &<< 13
            word ^= word &>> 7
            word ^= word &<< 17
            sum = sum * 0.999_999 + Double(Int32(truncatingIfNeeded: word)) * 1e-9
        }
        return word ^ sum.bitPattern
    }
}
