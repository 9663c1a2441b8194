import Glibc
import Synchronization

/// A file of the cache that stays there while this object lives.
///
/// The hold is a shared `flock` on the file, so that it also binds other processes which use the
/// same folder, and ends with the process whatever happens to it. Where the folder could not keep the
/// file, it is one without a name, in memory as a rule, that ends with this object.
public final class CachedFile: Sendable {
    /// Where the file can be opened as long as this object lives.
    public let path: String
    /// What the file's bytes were found to be.
    public let fingerprint: MediaFingerprint
    private let file: OpenFile
    /// When its bytes were found right; `nil` for a file without a name.
    let stamp: FileStamp?
    private let grant: MemoryGrant?

    /// - Parameter file: open on `path`, holding at least a shared lock.
    init(
        path: String, _ fingerprint: MediaFingerprint, _ file: OpenFile, stamp: FileStamp?,
        grant: MemoryGrant?
    ) {
        self.path = path
        self.fingerprint = fingerprint
        self.file = file
        self.stamp = stamp
        self.grant = grant
    }

    /// Whether nobody has written to it since its bytes were found right, whatever is at ``path`` by now:
    /// those who read it have this file.
    public var holdsItsBytes: Bool {
        guard let stamp, let now = FileStamp(of: file.descriptor) else { return true }
        return now.hasBytes(of: stamp)
    }

    /// For a reader of its own.
    func reopened() -> OpenFile? { file.reopened() }

    /// Whether what is at ``path`` is still the file whose bytes were found right. One that is not
    /// may be gone, or have to be looked at again: ask the cache.
    public var isUntouched: Bool { stamp == nil || stamp == FileStamp(at: path) }
}

/// How much may be held in memory where the disk cannot, by all files together.
final class MemoryBudget: Sendable {
    let limit: Int64
    private let granted = Atomic<Int64>(0)

    init(limit: Int64) { self.limit = limit }

    /// - Returns: `nil` where that is more than is left.
    func grant(_ byteCount: Int64) -> MemoryGrant? {
        guard byteCount <= limit else { return nil }
        let (_, after) = granted.add(byteCount, ordering: .relaxed)
        guard after <= limit else {
            granted.subtract(byteCount, ordering: .relaxed)
            return nil
        }
        return MemoryGrant(byteCount, of: self)
    }

    fileprivate func giveBack(_ byteCount: Int64) {
        granted.subtract(byteCount, ordering: .relaxed)
    }
}

/// A part of a ``MemoryBudget``, until the last reference goes.
final class MemoryGrant: Sendable {
    private let byteCount: Int64
    private let budget: MemoryBudget

    fileprivate init(_ byteCount: Int64, of budget: MemoryBudget) {
        self.byteCount = byteCount
        self.budget = budget
    }

    deinit { budget.giveBack(byteCount) }
}
