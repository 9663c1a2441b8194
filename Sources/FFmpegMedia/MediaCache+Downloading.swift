import CTuttiFFmpeg
import Glibc
import Synchronization
public import TuttiPlayout

// Whole files from elsewhere whose hash nobody knows yet: addresses that a leader is to play.

extension MediaCache {
    /// Connections made in a row without receiving a byte before a download gives up.
    private static let attemptLimit = 3
    /// Times that a download may begin again, where a server cannot go on in the middle.
    private static let restartLimit = 2
    /// Between two attempts: a server or a link of the world needs longer than a node of the house.
    private static let pauseMicroseconds: UInt32 = 1_000_000

    /// A whole address as a file of the cache: for a leader that is to play from the web. A transfer
    /// that breaks off goes on where it was, or begins again where the server cannot do that.
    ///
    /// - Parameter progress: called now and then with the bytes so far and those of the whole, where
    ///   the server says how many these are.
    /// - Throws: as `fetch`; `.unsupported` for a radio station.
    public func download(
        url: String, cancellation: MediaCancellation = MediaCancellation(),
        progress: (_ held: Int64, _ whole: Int64?) -> Void = { _, _ in }
    ) throws(MediaError) -> CachedFile {
        try store(MediaLocation(url), cancellation, progress)
    }

    /// A copy of a local file in the cache.
    public func add(
        contentsOf path: String, cancellation: MediaCancellation = MediaCancellation()
    ) throws(MediaError) -> CachedFile {
        try store(MediaLocation(path), cancellation) { _, _ in }
    }

    private func store(
        _ location: MediaLocation, _ cancellation: MediaCancellation,
        _ progress: (Int64, Int64?) -> Void
    ) throws(MediaError) -> CachedFile {
        let stream = try ByteStream(location, trust: trust, cancellation: cancellation)
        try stream.checkEnds()
        if let size = stream.byteCount, size > limit {
            throw MediaError(
                .tooLarge, operation: "cache", subject: location.subject,
                reason: "has \(size.megabytes) MB, and the cache may hold \(limit.megabytes);"
                    + " raise --cache-limit-mb")
        }
        let number = Self.downloads.add(1, ordering: .relaxed).newValue
        let name = "download-\(getpid())-\(number).part"
        // What a leader's queue needs stays, also when it is more than the limit.
        guard
            let transfer = try part(
                name, stream.byteCount ?? 0, nil, location.subject, mayExceed: true)
        else { preconditionFailure("\(name) is in use") }
        do throws(MediaError) {
            try receive(stream, into: transfer, cancellation, progress)
        } catch {
            transfer.discard()
            throw error
        }
        let fingerprint = MediaFingerprint(hash: transfer.hash(), byteCount: transfer.byteCount)
        if let file = contains(fingerprint) {
            transfer.discard()
            return file
        }
        do throws(DiskFailure) {
            return try keep(transfer, fingerprint, location.fileExtension)
        } catch {
            transfer.discard()
            throw error.error
        }
    }

    /// Until all is here; goes on after interruptions.
    private func receive(
        _ first: ByteStream, into transfer: PartFile, _ cancellation: MediaCancellation,
        _ progress: (Int64, Int64?) -> Void
    ) throws(MediaError) {
        let (location, size) = (first.location, first.byteCount)
        var stream: ByteStream? = first
        var (attempts, restarts) = (0, 0)
        while true {
            let before = transfer.byteCount
            do throws(MediaError) {
                let source: ByteStream
                if let stream {
                    source = stream
                } else {
                    source = try resumed(location, transfer, size, cancellation)
                }
                stream = nil
                try copy(source, size, to: transfer, progress)
                return
            } catch {
                guard error.code == .network, location.isRemote, !cancellation.isCancelled else {
                    throw error
                }
                attempts = transfer.byteCount > before ? 1 : attempts + 1
                guard attempts < Self.attemptLimit else { throw error }
                usleep(Self.pauseMicroseconds)
                if size == nil, transfer.byteCount > 0 {
                    restarts += 1
                    guard restarts <= Self.restartLimit else { throw error }
                    try begin(transfer)
                }
            }
        }
    }

    /// The rest of what `transfer` has the beginning of; all of it where there is no rest to be had.
    private func resumed(
        _ location: MediaLocation, _ transfer: PartFile, _ size: Int64?,
        _ cancellation: MediaCancellation
    ) throws(MediaError) -> ByteStream {
        if transfer.byteCount > 0 {
            let rest = try? ByteStream(
                location, from: transfer.byteCount, trust: trust, cancellation: cancellation)
            // Another length is another file.
            if let rest, rest.byteCount == size { return rest }
            try begin(transfer)
        }
        let whole = try ByteStream(location, trust: trust, cancellation: cancellation)
        guard whole.byteCount == size else {
            throw MediaError(
                .damaged, operation: "http", subject: location.subject,
                reason: "was changed on the server while it was fetched; try again")
        }
        return whole
    }

    private func begin(_ transfer: PartFile) throws(MediaError) {
        do throws(DiskFailure) { try transfer.restart() } catch { throw error.error }
    }

    private func copy(
        _ stream: ByteStream, _ size: Int64?, to transfer: PartFile,
        _ progress: (Int64, Int64?) -> Void
    ) throws(MediaError) {
        let subject = stream.location.subject
        // A file that grows while it is read ends where it ended at first.
        while transfer.byteCount < size ?? .max, case let bytes = unsafe try stream.next(),
            !bytes.isEmpty
        {
            unsafe try append(
                UnsafeRawBufferPointer(bytes).bytes, to: transfer, size: size ?? limit)
            progress(transfer.byteCount, size)
            guard transfer.byteCount <= limit else {
                throw MediaError(
                    .tooLarge, operation: "cache", subject: subject,
                    reason:
                        "has no end, or more than the \(limit.megabytes) MB that the cache may "
                        + "hold; raise the cache limit if it is a file")
            }
        }
        guard let size, transfer.byteCount != size else { return }
        // Sent compressed, it is longer than the server says.
        throw WebDiagnosis(
            location: stream.location, trust: trust, cancellation: MediaCancellation()
        )
        .error()
            ?? MediaError(
                .network, operation: "read", subject: subject,
                reason: "gave \(transfer.byteCount) of \(size) bytes; try again")
    }
}
