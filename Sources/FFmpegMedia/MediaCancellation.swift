import CFFmpeg
import Glibc
import Synchronization
import Timing

/// Ends the blocking calls of a source, a download or a fingerprint from another thread.
///
/// Hand it to what may have to be stopped, keep it, call ``cancel()``. Work that notices throws
/// ``MediaError/Code/cancelled``. Once cancelled it stays so.
public final class MediaCancellation: Sendable {
    private let flag = Atomic<Bool>(false)

    private let whole: MediaCancellation?
    /// On the clock that never stands still; 0: none.
    private let deadline = Atomic<Int64>(0)

    public init() { whole = nil }

    /// Of a part of some work: cancelled with the whole, and also without it.
    public init(within whole: MediaCancellation) { self.whole = whole }

    /// The next call has to return within that time, or is ended; `nil`: as long as it takes.
    func expect(within span: Nanoseconds?) {
        deadline.store(span.map { Self.now() + $0.count } ?? 0, ordering: .releasing)
    }

    /// Whether the time of a call is over.
    var isLate: Bool {
        let deadline = deadline.load(ordering: .acquiring)
        return deadline != 0 && Self.now() >= deadline
    }

    private static func now() -> Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    public func cancel() { flag.store(true, ordering: .releasing) }

    public var isCancelled: Bool {
        flag.load(ordering: .acquiring) || whole?.isCancelled ?? false
    }

    /// What FFmpeg asks during every wait; the context is `self`, unretained: whoever opens keeps
    /// the object alive until it has closed.
    var interrupt: AVIOInterruptCB {
        unsafe AVIOInterruptCB(
            callback: { context in
                guard let context = unsafe context else { return 0 }
                let cancellation = unsafe Unmanaged<MediaCancellation>.fromOpaque(context)
                    .takeUnretainedValue()
                return cancellation.isCancelled || cancellation.isLate ? 1 : 0
            }, opaque: Unmanaged.passUnretained(self).toOpaque())
    }
}
