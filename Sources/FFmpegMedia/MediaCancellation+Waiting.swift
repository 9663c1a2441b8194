import CTuttiFFmpeg
import Dispatch
import Glibc
public import TuttiPlayout
import TuttiTiming

/// How calls that wait ask whether to go on.
extension MediaCancellation {
    /// The next call has to return within that time, or is ended; `nil`: as long as it takes.
    func expect(within span: Nanoseconds?) {
        deadlineNanoseconds = span.map { Self.now() + $0.count } ?? 0
    }

    /// Whether the time of a call is over.
    var isLate: Bool {
        let deadline = deadlineNanoseconds
        return deadline != 0 && Self.now() >= deadline
    }

    /// On the clock that never stands still.
    private static func now() -> Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Blocks for that time, or until it is cancelled.
    public func wait(_ span: Duration) {
        let isCancelled = DispatchSemaphore(value: 0)
        let notice = whenCancelled { isCancelled.signal() }
        _ = isCancelled.wait(timeout: .now() + .nanoseconds(Int(span / .nanoseconds(1))))
        withExtendedLifetime(notice) {}
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
