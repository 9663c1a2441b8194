import CFFmpeg
import Synchronization

/// Ends the blocking calls of a source, a download or a fingerprint from another thread.
///
/// Hand it to what may have to be stopped, keep it, call ``cancel()``. Work that notices throws
/// ``MediaError/Code/cancelled``. Once cancelled it stays so.
public final class MediaCancellation: Sendable {
    private let flag = Atomic<Bool>(false)

    private let whole: MediaCancellation?

    public init() { whole = nil }

    /// Of a part of some work: cancelled with the whole, and also without it.
    public init(within whole: MediaCancellation) { self.whole = whole }

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
                return unsafe Unmanaged<MediaCancellation>.fromOpaque(context)
                    .takeUnretainedValue().isCancelled ? 1 : 0
            }, opaque: Unmanaged.passUnretained(self).toOpaque())
    }
}
