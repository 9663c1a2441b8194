import CTuttiFFmpeg
import Dispatch
import Glibc
import Synchronization
import TuttiTiming

/// Ends the blocking calls of a source, a download or a fingerprint from another thread.
///
/// Hand it to what may have to be stopped, keep it, call ``cancel()``. Work that notices throws
/// ``MediaError/Code/cancelled``. Once cancelled it stays so.
public final class MediaCancellation: Sendable {
    private let flag = Atomic<Bool>(false)

    private let whole: MediaCancellation?
    /// On the clock that never stands still; 0: none.
    private let deadline = Atomic<Int64>(0)

    /// Called by ``cancel()``, by number.
    private struct Listeners {
        var calls: [UInt64: @Sendable () -> Void] = [:]
        var latest: UInt64 = 0
    }
    private let listeners = Mutex(Listeners())

    /// Of work that is no part of other work.
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

    /// Ends the work, for good; from any thread. Whoever wanted to be told is called on this one.
    public func cancel() {
        flag.store(true, ordering: .releasing)
        let calls = listeners.withLock { listeners in
            defer { listeners.calls = [:] }
            return listeners.calls.values
        }
        for call in calls { call() }
    }

    /// Whether it was ended, or the work that it is a part of.
    public var isCancelled: Bool {
        flag.load(ordering: .acquiring) || whole?.isCancelled ?? false
    }

    /// Calls `body` once it is cancelled, on the thread that does that; at once where it is already.
    /// May call it twice.
    ///
    /// - Returns: what ends that with its last reference.
    public func whenCancelled(_ body: @escaping @Sendable () -> Void) -> Notice {
        let notice = Notice(self, whole.map { $0.whenCancelled(body) }, number(of: body))
        if isCancelled { body() }
        return notice
    }

    private func number(of body: @escaping @Sendable () -> Void) -> UInt64 {
        listeners.withLock {
            $0.latest += 1
            $0.calls[$0.latest] = body
            return $0.latest
        }
    }

    /// Somebody who is told that work was cancelled.
    public final class Notice: Sendable {
        private let part: MediaCancellation
        private let whole: Notice?
        private let number: UInt64

        fileprivate init(_ part: MediaCancellation, _ whole: Notice?, _ number: UInt64) {
            self.part = part
            self.whole = whole
            self.number = number
        }

        deinit { part.listeners.withLock { _ = $0.calls.removeValue(forKey: number) } }
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
