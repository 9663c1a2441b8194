import CTuttiFFmpeg
import Crypto
import Glibc
import TuttiPlayout

/// A file that is arriving: its bytes so far, their hash, and a lock that keeps others away.
///
/// It is in the folder of the cache, or, where that cannot be written, in memory.
final class PartFile {
    /// Where it is, and who finds it there.
    private enum Home {
        /// In the folder, under a name of its own; what it looked like after our last write.
        case named(path: String, FileStamp?)
        /// The same, and somebody else wrote to it since.
        case touched(path: String)
        /// In memory, as far as that may be.
        case memory(MemoryGrant)
        /// Nobody finds it any more, or everybody, under its final name.
        case released

        var path: String? {
            switch self {
            case .named(let path, _), .touched(let path): path
            case .memory, .released: nil
            }
        }
    }

    private var home = Home.released
    private(set) var file: OpenFile
    private(set) var byteCount: Int64 = 0
    private var hasher = SHA256()
    /// Called when nobody writes to it any more.
    var whenEnded: (() -> Void)?

    /// Opens or creates the file and hashes what it holds; `nil` while someone else has it.
    ///
    /// - Parameter pieces: what is there is kept as far as it is right; without them all of it is,
    ///   to be judged at the end.
    init?(locking path: String, pieces: PieceHashes? = nil) throws(DiskFailure) {
        let opened = unsafe open(path.cFileName, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard opened >= 0 else { throw DiskFailure("open", path) }
        file = OpenFile(opened)
        guard flock(opened, LOCK_EX | LOCK_NB) == 0 else { return nil }
        // Between opening and locking, its former owner may have renamed or removed it.
        var mine = stat()
        var named = stat()
        guard unsafe fstat(opened, &mine) == 0, unsafe stat(path.cFileName, &named) == 0,
            mine.st_ino == named.st_ino
        else { return nil }
        home = .named(path: path, nil)
        try keepContents(pieces)
    }

    /// What never received anything leaves nothing behind.
    deinit {
        if byteCount == 0 { discard() }
        whenEnded?()
    }

    /// - Returns: `nil` where the system has no memory that is like a file.
    init?(inMemory grant: MemoryGrant) {
        guard let memory = OpenFile.memory() else { return nil }
        file = memory
        home = .memory(grant)
    }

    var isInMemory: Bool { if case .memory = home { true } else { false } }

    func append(_ bytes: [UInt8]) throws(DiskFailure) {
        unsafe try append(bytes.span.bytes)
    }

    func append(_ bytes: RawSpan) throws(DiskFailure) {
        let written: Result<Void, DiskFailure> = unsafe bytes.withUnsafeBytes { bytes in
            do throws(DiskFailure) {
                unsafe try write(bytes)
                return .success(())
            } catch {
                return .failure(error)
            }
        }
        try written.get()
    }

    private func write(_ bytes: UnsafeRawBufferPointer) throws(DiskFailure) {
        noteTouch()
        var written = 0
        while written < bytes.count {
            let count = unsafe pwrite(
                file.descriptor, bytes.baseAddress! + written, bytes.count - written,
                off_t(byteCount) + off_t(written))
            if count < 0 {
                if errno == EINTR { continue }
                throw DiskFailure("write", home.path)
            }
            written += count
        }
        unsafe hasher.update(bufferPointer: bytes)
        byteCount += Int64(bytes.count)
        noteWrite()
    }

    private func noteTouch() {
        guard case .named(let path, let stamp?) = home, stamp != FileStamp(of: file.descriptor)
        else { return }
        home = .touched(path: path)
    }

    private func noteWrite() {
        guard case .named(let path, _) = home else { return }
        home = .named(path: path, FileStamp(of: file.descriptor))
    }

    /// Throws away what is there and begins anew.
    func restart() throws(DiskFailure) { try cut(to: 0, hasher: SHA256()) }

    private func cut(to count: Int64, hasher: SHA256) throws(DiskFailure) {
        guard ftruncate(file.descriptor, off_t(count)) == 0 else {
            throw DiskFailure("ftruncate", home.path)
        }
        self.hasher = hasher
        byteCount = count
        noteWrite()
    }

    /// The hash of all bytes so far.
    func hash() -> [UInt8] { Array(hasher.finalize()) }

    /// Nobody shall find it.
    func discard() {
        guard let path = home.path else { return }
        unsafe unlink(path.cFileName)
        home = .released
    }

    /// Leaves the disk: what came so far is copied, or has to come again where it cannot be read.
    ///
    /// - Returns: false where the system has no memory that is like a file.
    func moveToMemory(_ grant: MemoryGrant) -> Bool {
        guard let memory = OpenFile.memory() else { return false }
        let isCopied = copy(to: memory)
        discard()
        file = memory
        home = .memory(grant)
        if !isCopied {
            ftruncate(memory.descriptor, 0)
            hasher = SHA256()
            byteCount = 0
        }
        return true
    }

    private func copy(to memory: OpenFile) -> Bool {
        var position = off_t(0)
        while position < off_t(byteCount) {
            let count = unsafe sendfile(
                memory.descriptor, file.descriptor, &position, Int(byteCount) - Int(position))
            guard count > 0 else { return false }
        }
        return true
    }

    /// Gives the complete file its name; from then on it is there for all, or not at all.
    ///
    /// - Throws: when the disk did not take it, or holds something else by now.
    ///
    /// - Returns: in memory, or where its folder is gone, a file without a name.
    func finish(as name: String, _ fingerprint: MediaFingerprint) throws(DiskFailure) -> CachedFile
    {
        noteTouch()
        let path: String
        // What it looked like when its bytes were right: what is written to it from here on is not.
        var right = FileStamp(of: file.descriptor)
        switch home {
        case .memory(let grant):
            return CachedFile(path: file.path, fingerprint, file, stamp: nil, grant: grant)
        case .released:
            return CachedFile(path: file.path, fingerprint, file, stamp: nil, grant: nil)
        case .named(let name, let stamp):
            path = name
            right = stamp ?? right
        case .touched(let name):
            path = name
            guard file.holds(fingerprint, MediaCancellation()) == true else {
                errno = EIO
                throw DiskFailure("read", path)
            }
        }
        guard fdatasync(file.descriptor) == 0 else { throw DiskFailure("fdatasync", path) }
        let isNamed = unsafe rename(path.cFileName, name.cFileName) == 0
        guard isNamed else {
            return CachedFile(path: file.path, fingerprint, file, stamp: nil, grant: nil)
        }
        let stamp = FileStamp(of: file.descriptor)
        guard let stamp, let right, stamp.hasBytes(of: right) else {
            home = .named(path: name, nil)
            errno = EIO
            throw DiskFailure("read", name)
        }
        home = .released
        flock(file.descriptor, LOCK_SH)
        return CachedFile(path: name, fingerprint, file, stamp: stamp, grant: nil)
    }

    private func keepContents(_ pieces: PieceHashes?) throws(DiskFailure) {
        let size = Int(pieces?.pieceSize ?? Int64(ByteStream.blockSize))
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
        defer { unsafe block.deallocate() }
        while true {
            var count = 0
            while count < size {
                let got = unsafe pread(
                    file.descriptor, block.baseAddress! + count, size - count,
                    off_t(byteCount) + off_t(count))
                guard got >= 0 else { throw DiskFailure("read", home.path) }
                if got == 0 { break }
                count += got
            }
            let read = unsafe UnsafeRawBufferPointer(rebasing: block[..<count])
            let right = unsafe pieces?.rightBytes(of: read, at: byteCount) ?? count
            unsafe hasher.update(bufferPointer: UnsafeRawBufferPointer(rebasing: read[..<right]))
            byteCount += Int64(right)
            guard right == size else { break }
        }
        try cut(to: byteCount, hasher: hasher)
    }
}

/// Why a disk does not take what is written, or gives back what is there.
struct DiskFailure: Error {
    var operation: String
    var code: Int32
    var path: String

    /// As the system said just now.
    init(_ operation: String, _ path: String?) {
        code = errno
        self.operation = operation
        self.path = path ?? "memory"
    }

    var text: String { libraryText(cff_error(code)) }

    /// Where nothing else can be done about it.
    var error: MediaError {
        let isFull = code == ENOSPC || code == EDQUOT
        return MediaError(
            isFull ? .tooLarge : .notReadable, operation: operation, subject: path,
            reason: isFull ? "does not fit on the disk; make room" : "cannot be written: \(text)")
    }
}
