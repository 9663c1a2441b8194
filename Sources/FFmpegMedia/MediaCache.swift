import CFFmpeg
import Glibc
public import Playout
import Synchronization

/// Assets fetched from elsewhere, in a folder that stays below a limit.
///
/// A file is named by the hash of its bytes, so two rooms can only have the same thing or nothing.
/// It gets its name when length and hash have been verified, never before; an interrupted transfer
/// goes on where it stopped. Several threads and processes may share a folder: the file locks of
/// ``CachedFile`` and of the parts keep them apart.
///
/// All calls block.
public final class MediaCache: Sendable {
    let folder: CacheFolder
    /// Bytes that all files together may take.
    public let limit: Int64
    /// Tells apart the files of transfers whose hash is not known yet.
    private static let downloads = Atomic<Int>(0)

    /// Connections made in a row without receiving a byte before a fetch gives up.
    private static let attemptLimit = 3
    /// Between two attempts: a leader that restarts its media service needs some tenths of a
    /// second.
    private static let pauseMicroseconds: UInt32 = 200_000

    /// - Parameters:
    ///   - folder: created with mode 0700 when it is not there.
    ///   - limit: bytes, more than 0.
    public init(folder: String, limit: Int64) throws(MediaError) {
        precondition(limit > 0, "cache limit \(limit)")
        self.folder = try CacheFolder(folder)
        self.limit = limit
        self.folder.removeStaleParts(now: time(nil))
    }

    /// The file with that hash, held; `nil` when it is not there in that length.
    public func contains(_ fingerprint: MediaFingerprint) -> CachedFile? {
        let prefix = fingerprint.text + "."
        for entry in folder.entries() where entry.name.hasPrefix(prefix) && !entry.isPart {
            let path = folder.file(entry.name)
            let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { continue }
            var status = stat()
            // The lock may have been waited for while the file was removed: look again with it.
            if flock(descriptor, LOCK_SH | LOCK_NB) == 0, unsafe fstat(descriptor, &status) == 0,
                status.st_nlink > 0, status.st_size == fingerprint.byteCount
            {
                futimens(descriptor, nil)
                return CachedFile(path: path, fingerprint: fingerprint, descriptor: descriptor)
            }
            close(descriptor)
        }
        return nil
    }

    /// The file with that hash: from the folder, else over the network.
    ///
    /// - Parameters:
    ///   - fileExtension: for the name; anything but up to 8 letters and digits becomes `media`.
    ///   - arriving: for whoever plays it meanwhile; is told how far it is. A failure is the
    ///     caller's to tell (``ArrivingFile/abandon(_:)``), or to try again after.
    ///   - progress: called now and then with the bytes held so far, on this thread.
    /// - Throws: `.tooLarge` when it exceeds the limit or the disk, `.damaged` when what arrives is
    ///   something else, `.network`, `.notFound`, `.cancelled`.
    public func fetch(
        url: String, _ fingerprint: MediaFingerprint, fileExtension: String = "media",
        arriving: ArrivingFile? = nil, cancellation: MediaCancellation = MediaCancellation(),
        progress: (Int64) -> Void = { _ in }
    ) throws(MediaError) -> CachedFile {
        let file = try load(
            MediaLocation(url), fingerprint, fileExtension, arriving, cancellation, progress)
        arriving?.begins(in: file.path, holding: fingerprint.byteCount)
        return file
    }

    private func load(
        _ location: MediaLocation, _ fingerprint: MediaFingerprint, _ fileExtension: String,
        _ arriving: ArrivingFile?, _ cancellation: MediaCancellation, _ progress: (Int64) -> Void
    ) throws(MediaError) -> CachedFile {
        let part = folder.file(fingerprint.text + ".part")
        while true {
            if let file = contains(fingerprint) { return file }
            if cancellation.isCancelled { throw Self.cancelled(location) }
            guard let transfer = try PartFile(locking: part) else {
                // Another thread or process is fetching the same: its file will be ours.
                arriving?.begins(in: nil, holding: 0)
                usleep(20_000)
                continue
            }
            // It may have finished between the look and the lock.
            if let file = contains(fingerprint) { return file }
            try checkRoom(for: fingerprint.byteCount, held: transfer.byteCount, location)
            if let arriving { transfer.begin(arriving) }
            var held = transfer.byteCount
            try receive(
                location, into: transfer, expecting: fingerprint, cancellation
            ) {
                arriving?.reaches($0)
                arriving?.giveWay(after: max(0, $0 - held), cancellation)
                held = $0
                progress($0)
            }
            return try transfer.finish(
                as: folder.file(fingerprint.text + Self.suffix(fileExtension)), fingerprint)
        }
    }

    /// A whole address as a file of the cache: for a leader that is to play from the web.
    ///
    /// - Throws: as `fetch`; `.unsupported` for a live stream.
    public func download(
        url: String, cancellation: MediaCancellation = MediaCancellation(),
        progress: (Int64) -> Void = { _ in }
    ) throws(MediaError) -> CachedFile {
        try store(MediaLocation(url), cancellation, progress)
    }

    /// A copy of a local file in the cache.
    public func add(
        contentsOf path: String, cancellation: MediaCancellation = MediaCancellation()
    ) throws(MediaError) -> CachedFile {
        try store(MediaLocation(path), cancellation) { _ in }
    }
}

extension MediaCache {
    private func store(
        _ location: MediaLocation, _ cancellation: MediaCancellation, _ progress: (Int64) -> Void
    ) throws(MediaError) -> CachedFile {
        let stream = try ByteStream(location, cancellation: cancellation)
        try stream.checkEnds()
        let size = stream.byteCount ?? 0
        try checkRoom(for: size, held: 0, location)
        let number = Self.downloads.add(1, ordering: .relaxed).newValue
        let name = "download-\(getpid())-\(number).part"
        guard let transfer = try PartFile(locking: folder.file(name)) else {
            preconditionFailure("\(name) is in use")
        }
        do throws(MediaError) {
            while case let bytes = unsafe try stream.next(), !bytes.isEmpty {
                unsafe try transfer.append(bytes)
                progress(transfer.byteCount)
                // A file that grows while it is read ends where it ended at first.
                if transfer.byteCount > size { break }
            }
            guard transfer.byteCount == size else {
                throw MediaError(
                    .network, operation: "read", subject: location.subject,
                    reason: "gave \(transfer.byteCount) of \(size) bytes; try again")
            }
        } catch {
            transfer.discard()
            throw error
        }
        let fingerprint = MediaFingerprint(hash: transfer.hash(), byteCount: size)
        if let file = contains(fingerprint) {
            transfer.discard()
            return file
        }
        return try transfer.finish(
            as: folder.file(fingerprint.text + Self.suffix(location.fileExtension)), fingerprint)
    }

    /// Transfers until all bytes are there and verified; resumes after interruptions.
    private func receive(
        _ location: MediaLocation, into part: PartFile, expecting: MediaFingerprint,
        _ cancellation: MediaCancellation, _ progress: (Int64) -> Void
    ) throws(MediaError) {
        if part.byteCount > expecting.byteCount { try part.restart() }
        // What is left of an earlier transfer may be bad, or the server may refuse to resume:
        // then once more from the beginning.
        var mayRestart = part.byteCount > 0
        var attempts = 0
        while true {
            let before = part.byteCount
            do throws(MediaError) {
                try receiveOnce(location, into: part, expecting, cancellation, progress)
                if part.hash() == expecting.hash { return }
                try part.restart()
                throw MediaError(
                    .damaged, operation: "SHA-256", subject: location.subject,
                    reason: "is not the file that was announced; was it changed on the leader?")
            } catch {
                attempts = part.byteCount > before ? 0 : attempts + 1
                switch error.code {
                case .network where attempts < Self.attemptLimit:
                    usleep(Self.pauseMicroseconds)
                case .notReadable where mayRestart, .damaged where mayRestart:
                    mayRestart = false
                    try part.restart()
                default: throw error
                }
            }
        }
    }

    private func receiveOnce(
        _ location: MediaLocation, into part: PartFile, _ expecting: MediaFingerprint,
        _ cancellation: MediaCancellation, _ progress: (Int64) -> Void
    ) throws(MediaError) {
        guard part.byteCount < expecting.byteCount else { return }
        let stream = try ByteStream(
            location, from: part.byteCount, yields: true, cancellation: cancellation)
        if let size = stream.byteCount, size != expecting.byteCount {
            throw MediaError(
                .damaged, operation: "avio_size", subject: location.subject,
                reason: "has \(size) bytes, \(expecting.byteCount) were announced")
        }
        while part.byteCount < expecting.byteCount {
            let bytes = unsafe try stream.next()
            guard !bytes.isEmpty else {
                throw MediaError(
                    .network, operation: "avio_read_partial", subject: location.subject,
                    reason: "ended after \(part.byteCount) of \(expecting.byteCount) bytes")
            }
            guard part.byteCount + Int64(bytes.count) <= expecting.byteCount else {
                try part.restart()
                throw MediaError(
                    .damaged, operation: "avio_read_partial", subject: location.subject,
                    reason: "is longer than the \(expecting.byteCount) bytes announced")
            }
            unsafe try part.append(bytes)
            progress(part.byteCount)
        }
    }

    private func checkRoom(
        for needed: Int64, held: Int64, _ location: MediaLocation
    ) throws(MediaError) {
        func tooLarge(_ reason: String) -> MediaError {
            MediaError(.tooLarge, operation: "cache", subject: location.subject, reason: reason)
        }
        guard needed <= limit else {
            throw tooLarge(
                "has \(needed) bytes, the cache may hold \(limit); raise the cache limit")
        }
        folder.makeRoom(for: needed - held, limit: limit)
        guard folder.freeBytes > needed - held else {
            throw tooLarge("has \(needed) bytes, more than the disk has room for; make room")
        }
    }

    private static func cancelled(_ location: MediaLocation) -> MediaError {
        MediaError(library: cff_error_exit, operation: "fetch", location: location)
    }

    /// `.flac`; the text comes from a peer and must stay one harmless name.
    static func suffix(_ fileExtension: String) -> String {
        let isHarmless =
            (1...8).contains(fileExtension.utf8.count) && fileExtension.lowercased() != "part"
            && fileExtension.utf8.allSatisfy {
                (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0)
            }
        return "." + (isHarmless ? fileExtension.lowercased() : "media")
    }
}

extension MediaLocation {
    /// What follows the last dot of the name; empty when there is none.
    var fileExtension: String {
        let whole = subject.split(separator: "?").first.map(String.init) ?? subject
        let last = whole.split(separator: "/").last.map(String.init) ?? whole
        guard let dot = last.lastIndex(of: ".") else { return "" }
        return String(last[last.index(after: dot)...])
    }
}
