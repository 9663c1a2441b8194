import CFFmpeg
import Crypto
import Glibc
import Playout

/// A file that is arriving: its bytes so far, their hash, and a lock that keeps others away.
final class PartFile {
    private let path: String
    private var descriptor: Int32
    private(set) var byteCount: Int64 = 0
    private var hasher = SHA256()

    /// Opens or creates the file and hashes what it holds; `nil` while someone else has it.
    init?(locking path: String) throws(MediaError) {
        self.path = path
        let opened = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        descriptor = opened
        guard opened >= 0 else { throw Self.failure("open", path, errno) }
        guard flock(opened, LOCK_EX | LOCK_NB) == 0 else { return nil }
        // Between opening and locking, its former owner may have renamed or removed it.
        var mine = stat()
        var named = stat()
        guard unsafe fstat(opened, &mine) == 0, unsafe stat(path, &named) == 0,
            mine.st_ino == named.st_ino
        else { return nil }
        try hashContents()
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Lets what arrives be read. What an earlier transfer left is not trusted before all is here.
    func begin(_ arriving: ArrivingFile) {
        arriving.begins(in: byteCount == 0 ? path : nil, holding: 0)
    }

    func append(_ bytes: UnsafeBufferPointer<UInt8>) throws(MediaError) {
        var written = 0
        while written < bytes.count {
            let count = unsafe write(
                descriptor, bytes.baseAddress! + written, bytes.count - written)
            if count < 0 {
                if errno == EINTR { continue }
                throw Self.failure("write", path, errno)
            }
            written += count
        }
        unsafe hasher.update(bufferPointer: UnsafeRawBufferPointer(bytes))
        byteCount += Int64(bytes.count)
    }

    /// Throws away what is there and begins anew.
    func restart() throws(MediaError) {
        guard ftruncate(descriptor, 0) == 0, lseek(descriptor, 0, SEEK_SET) == 0 else {
            throw Self.failure("ftruncate", path, errno)
        }
        hasher = SHA256()
        byteCount = 0
    }

    /// The hash of all bytes so far.
    func hash() -> [UInt8] { Array(hasher.finalize()) }

    func discard() { unsafe unlink(path) }

    /// Gives the complete file its name; from then on it is there for all, or not at all.
    func finish(as name: String, _ fingerprint: MediaFingerprint) throws(MediaError) -> CachedFile {
        guard fdatasync(descriptor) == 0 else { throw Self.failure("fdatasync", path, errno) }
        guard unsafe rename(path, name) == 0 else { throw Self.failure("rename", path, errno) }
        flock(descriptor, LOCK_SH)
        let held = descriptor
        descriptor = -1
        return CachedFile(path: name, fingerprint: fingerprint, descriptor: held)
    }

    private func hashContents() throws(MediaError) {
        let block = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: ByteStream.blockSize)
        defer { unsafe block.deallocate() }
        while true {
            let count = unsafe Glibc.read(descriptor, block.baseAddress, block.count)
            guard count >= 0 else { throw Self.failure("read", path, errno) }
            guard count > 0 else { return }
            unsafe hasher.update(
                bufferPointer: UnsafeRawBufferPointer(
                    rebasing: UnsafeRawBufferPointer(block)[..<count]))
            byteCount += Int64(count)
        }
    }

    private static func failure(_ operation: String, _ path: String, _ code: Int32) -> MediaError {
        let isFull = code == ENOSPC || code == EDQUOT
        return MediaError(
            isFull ? .tooLarge : .notReadable, operation: operation, subject: path,
            reason: isFull
                ? "does not fit on the disk; make room"
                : "cannot be written: \(libraryText(cff_error(code)))")
    }
}
