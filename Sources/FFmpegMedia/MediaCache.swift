import CTuttiFFmpeg
import Crypto
import Glibc
import Synchronization
public import TuttiPlayout

/// Assets fetched from elsewhere, in a folder that stays below a limit.
///
/// A file is named by the hash of its bytes, so two rooms can only have the same thing or nothing.
/// It gets its name when length and hash have been verified, never before, and is believed as long as
/// nobody touched it; after that its bytes are hashed again. An interrupted transfer goes on where it
/// stopped. Several threads and processes may share a folder: the file locks of ``CachedFile`` and of
/// the parts keep them apart.
///
/// A folder that goes away is made again. Where files cannot be put into it, or no more of them, what
/// is fetched is kept in memory, as far as that may be.
///
/// All calls block.
public final class MediaCache: Sendable {
    let folder: CacheFolder
    /// Bytes that all files together may take on the disk.
    public let limit: Int64
    /// Which servers a leader may download from.
    let trust: MediaTrust
    /// For what the disk does not take.
    let memory: MemoryBudget
    /// Parts that are arriving here, and how large each will be.
    let expected = Mutex<[String: Int64]>([:])
    /// What finished files looked like when their bytes were found right, by name.
    private let seen = Mutex<[String: FileStamp]>([:])
    private let warning: @Sendable (String) -> Void
    private let hasWarned = Atomic<Bool>(false)
    /// When it was looked for what interrupted transfers left, in seconds.
    private let sweptAt = Atomic<Int>(0)
    /// Tells apart the files of transfers whose hash is not known yet.
    static let downloads = Atomic<Int>(0)

    /// Files remembered to be right; beyond that their notes are read again.
    private static let seenMax = 1_024
    /// Most bytes held in memory for want of a disk: an item and the next as FLAC, and no more than a
    /// small machine can spare.
    private static let memoryMax: Int64 = 256_000_000
    /// … of all that the machine has: one part of so many.
    private static let memoryShare: Int64 = 4

    /// - Parameters:
    ///   - folder: created with mode 0700 when it is not there.
    ///   - limit: bytes, more than 0.
    ///   - memoryLimit: bytes that may be held in memory for want of a disk; `nil`: as the machine
    ///     can spare.
    ///   - trust: which web servers are believed.
    ///   - warning: what an owner has to know of the folder: once, until it is good again.
    public init(
        folder: String, limit: Int64, memoryLimit: Int64? = nil, trust: MediaTrust = .system,
        warning: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        precondition(limit > 0, "cache limit \(limit)")
        self.folder = CacheFolder(folder)
        self.limit = limit
        self.trust = trust
        let installed = Int64(sysconf(Int32(_SC_PHYS_PAGES))) * Int64(sysconf(Int32(_SC_PAGESIZE)))
        memory = MemoryBudget(
            limit: memoryLimit ?? min(Self.memoryMax, max(0, installed / Self.memoryShare)))
        self.warning = warning
        do throws(DiskFailure) {
            try self.folder.make()
            sweep()
        } catch {
            warn("the cache folder \(folder) cannot be used: \(error.text)")
        }
    }

    /// Removes what interrupted transfers left, now and then.
    func sweep() {
        let now = time(nil)
        guard now - sweptAt.load(ordering: .relaxed) >= CacheFolder.partLifetime else { return }
        sweptAt.store(now, ordering: .relaxed)
        folder.removeLeftovers(now: now)
    }

    /// What came of a file that nobody will ask for again, because it is another one by now.
    public func removePart(of fingerprint: MediaFingerprint) {
        folder.removeUnlessUsed(Self.partName(fingerprint))
    }

    static func partName(_ fingerprint: MediaFingerprint) -> String { fingerprint.text + ".part" }

    func warn(_ what: String) {
        guard !hasWarned.exchange(true, ordering: .relaxed) else { return }
        warning("\(what); what is fetched is held in memory meanwhile")
    }

    /// The file with that hash, held; `nil` when it is not there.
    ///
    /// One that was touched since its bytes were found right is read, some 1.2 GB a second where the
    /// processor has instructions for SHA-256; one that is something else is removed.
    public func contains(
        _ fingerprint: MediaFingerprint, cancellation: MediaCancellation = MediaCancellation()
    ) -> CachedFile? {
        for name in folder.finished(fingerprint.text) {
            if let file = hold(name, fingerprint, cancellation) { return file }
        }
        return nil
    }

    private func hold(
        _ name: String, _ fingerprint: MediaFingerprint, _ cancellation: MediaCancellation
    ) -> CachedFile? {
        let path = folder.file(name)
        let descriptor = unsafe open(path.cFileName, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        let file = OpenFile(descriptor)
        var status = stat()
        // The lock may have been waited for while the file was removed: look again with it.
        guard flock(descriptor, LOCK_SH | LOCK_NB) == 0, unsafe fstat(descriptor, &status) == 0,
            status.st_nlink > 0, status.st_mode & S_IFMT == S_IFREG
        else { return nil }
        let stamp = FileStamp(status)
        if seen.withLock({ $0[name] }) != stamp, !folder.wasSeen(name, stamp) {
            switch file.holds(fingerprint, cancellation) {
            case nil: return nil
            case false?:
                folder.remove(name)
                warning("\(path) was changed: it is removed, and fetched again")
                return nil
            case true?: guard FileStamp(of: descriptor) == stamp else { return nil }
            }
        }
        note(name, stamp)
        return CachedFile(path: path, fingerprint, file, stamp: stamp, grant: nil)
    }

    private func note(_ name: String, _ stamp: FileStamp) {
        seen.withLock {
            if $0.count >= Self.seenMax { $0.removeAll() }
            $0[name] = stamp
        }
        folder.see(name, stamp)
    }

    /// Gives a verified part its name; the disk is good.
    func keep(
        _ part: PartFile, _ fingerprint: MediaFingerprint, _ fileExtension: String
    ) throws(DiskFailure) -> CachedFile {
        let name = fingerprint.text + Self.suffix(fileExtension)
        let file = try part.finish(as: folder.file(name), fingerprint)
        if let stamp = file.stamp {
            note(name, stamp)
            hasWarned.store(false, ordering: .relaxed)
        } else if !part.isInMemory {
            warn("the cache folder \(folder.path) is gone")
        }
        return file
    }

    /// `.flac`; the text comes from a peer and must stay one harmless name.
    static func suffix(_ fileExtension: String) -> String {
        let isHarmless =
            (1...8).contains(fileExtension.utf8.count)
            && !["part", "seen"].contains(fileExtension.lowercased())
            && fileExtension.utf8.allSatisfy {
                (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0)
            }
        return "." + (isHarmless ? fileExtension.lowercased() : "media")
    }
}

extension OpenFile {
    /// Whether these are its bytes; `nil` where they cannot be read, or the reader is cancelled.
    func holds(_ fingerprint: MediaFingerprint, _ cancellation: MediaCancellation) -> Bool? {
        var hasher = SHA256()
        var held: Int64 = 0
        let block = UnsafeMutableRawBufferPointer.allocate(
            byteCount: ByteStream.blockSize, alignment: 16)
        defer { unsafe block.deallocate() }
        while true {
            if cancellation.isCancelled { return nil }
            let count = unsafe pread(descriptor, block.baseAddress, block.count, off_t(held))
            guard count >= 0 else { return nil }
            held += Int64(count)
            guard held <= fingerprint.byteCount else { return false }
            if count == 0 { break }
            unsafe hasher.update(
                bufferPointer: UnsafeRawBufferPointer(rebasing: block[..<count]))
        }
        return held == fingerprint.byteCount && hasher.finalize().elementsEqual(fingerprint.hash)
    }
}

// MARK: For a leader

extension MediaLocation {
    /// What follows the last dot of the name; empty when there is none.
    var fileExtension: String {
        let whole = subject.split(separator: "?").first.map(String.init) ?? subject
        let last = whole.split(separator: "/").last.map(String.init) ?? whole
        guard let dot = last.lastIndex(of: ".") else { return "" }
        return String(last[last.index(after: dot)...])
    }
}
