import Glibc

/// A file of the cache that stays there while this object lives.
///
/// The hold is a shared `flock` on the file, so that it also binds other processes which use the
/// same folder, and ends with the process whatever happens to it.
public final class CachedFile: Sendable {
    public let path: String
    public let fingerprint: MediaFingerprint
    private let descriptor: Int32

    /// Takes over `descriptor`, which is open on `path` and holds at least a shared lock.
    init(path: String, fingerprint: MediaFingerprint, descriptor: Int32) {
        self.path = path
        self.fingerprint = fingerprint
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }
}
