import Synchronization

/// Ends the blocking calls of an opening, a source, a download or a fingerprint from another thread.
///
/// Hand it to what may have to be stopped, keep it, call ``cancel()``. Work that notices throws
/// ``MediaError/Code/cancelled``. Once cancelled it stays so.
public final class MediaCancellation: Sendable {
    private let flag = Atomic<Bool>(false)

    private let whole: MediaCancellation?
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

    /// Of the call that waits, for those who measure its time; nanoseconds of their clock, 0: none.
    package var deadlineNanoseconds: Int64 {
        get { deadline.load(ordering: .acquiring) }
        set { deadline.store(newValue, ordering: .releasing) }
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
}
