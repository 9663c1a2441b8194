public import TuttiPlayout

/// What a room fetches from its leader.
extension MediaCache {
    /// Taken at once, bytes, or a piece where that is larger: little enough to make way for others
    /// after it.
    private static let blockSize: Int64 = 131_072
    /// Until it is looked again whether somebody else, who fetches the same, is ready.
    private static let otherPause = Duration.milliseconds(20)

    /// All of a file: from the folder, else over the network. Whoever reads it meanwhile is told how
    /// far it is.
    ///
    /// - Parameters:
    ///   - file: a failure is the caller's to tell (``IncomingFile/abandon(_:)``), or to try again
    ///     after.
    ///   - fileExtension: for the name; anything but up to 8 letters and digits becomes `media`.
    ///   - progress: called now and then with the bytes held so far, on this thread.
    /// - Throws: `.tooLarge` when neither limit nor memory has room for it, `.damaged` when what
    ///   arrives is something else, `.network`, `.notFound`, `.cancelled`.
    public func fetch(
        _ file: IncomingFile, fileExtension: String = "media",
        cancellation: MediaCancellation = MediaCancellation(),
        progress: (Int64) -> Void = { _ in }
    ) throws(MediaError) -> CachedFile {
        let order = Order(file: file, cancellation: cancellation)
        sweep()
        let cached: CachedFile
        do throws(MediaError) {
            cached = try load(order, fileExtension, progress)
        } catch {
            // Who has it not any more, or as something else, will not have it again.
            if error.code == .notFound || error.code == .damaged {
                removePart(of: file.fingerprint)
            }
            throw error
        }
        file.begins(in: cached.reopened(), holding: order.size)
        return cached
    }

    /// What is to be fetched, and for whom.
    private struct Order {
        var file: IncomingFile
        var cancellation: MediaCancellation
        var fingerprint: MediaFingerprint { file.fingerprint }
        var size: Int64 { fingerprint.byteCount }
        /// Where it is just now.
        var place: String { file.location.subject }

        func checkWanted() throws(MediaError) {
            guard cancellation.isCancelled else { return }
            throw MediaError(
                .cancelled, operation: "fetch", subject: place, reason: "stopped on request")
        }
    }

    private func load(
        _ order: Order, _ fileExtension: String, _ progress: (Int64) -> Void
    ) throws(MediaError) -> CachedFile {
        let name = Self.partName(order.fingerprint)
        var pieces: PieceHashes?
        var isOnDisk = true
        while true {
            if let file = contains(order.fingerprint, cancellation: order.cancellation) {
                return file
            }
            try order.checkWanted()
            if pieces == nil { pieces = try self.pieces(order) }
            let part =
                isOnDisk
                ? try part(name, order.size, pieces, order.place)
                : try memoryPart(order.size, order.place, because: "the disk failed")
            guard let part else {
                // Another thread or process is fetching the same: its file will be ours.
                order.file.begins(in: nil, holding: 0)
                order.cancellation.wait(Self.otherPause)
                continue
            }
            // It may have finished between the look and the lock.
            if let file = contains(order.fingerprint, cancellation: order.cancellation) {
                return file
            }
            let isBelieved = pieces != nil
            order.file.begins(
                in: isBelieved ? part.file.reopened() : nil, holding: part.byteCount)
            try receive(order, into: part, pieces, progress)
            do throws(DiskFailure) {
                return try keep(part, order.fingerprint, fileExtension)
            } catch {
                // What a disk did not take may not be what it gives back.
                warn("the cache folder \(folder.path) fails: \(error.text)")
                part.discard()
                isOnDisk = false
            }
        }
    }

    /// The hashes of its pieces; `nil` where nobody announced any.
    private func pieces(_ order: Order) throws(MediaError) -> PieceHashes? {
        var persistence = Persistence()
        while true {
            do throws(MediaError) {
                return try order.file.knownPieces(order.cancellation)
            } catch {
                try persistence.wait(after: error, order.cancellation)
            }
        }
    }

    /// Transfers until all bytes are there and verified.
    private func receive(
        _ order: Order, into part: PartFile, _ pieces: PieceHashes?, _ progress: (Int64) -> Void
    ) throws(MediaError) {
        // What is left of an earlier transfer, and nobody verified, may be bad: then once more.
        var mayRestart = pieces == nil && part.byteCount > 0
        if part.byteCount > order.size { try restart(part) }
        while true {
            do throws(MediaError) {
                return try receiveRest(order, into: part, pieces, progress)
            } catch {
                guard error.code == .damaged else { throw error }
                guard mayRestart else {
                    part.discard()
                    throw error
                }
                mayRestart = false
                try restart(part)
            }
        }
    }

    /// What the part does not have, in its order.
    private func receiveRest(
        _ order: Order, into part: PartFile, _ pieces: PieceHashes?, _ progress: (Int64) -> Void
    ) throws(MediaError) {
        var latest: ServedStream?
        while part.byteCount < order.size {
            let stream: ServedStream
            if let latest, latest.position == part.byteCount {
                stream = latest
            } else {
                // A disk that failed may have lost what it had: that comes again.
                stream = ServedStream(
                    part.byteCount..<order.size, at: order.file.server, order.cancellation,
                    url: { order.place })
            }
            latest = stream
            try receiveBlock(order, from: stream, into: part, pieces)
            progress(part.byteCount)
        }
        guard part.hash() == order.fingerprint.hash else {
            order.file.distrust()
            throw .notAnnounced(order.place, operation: "SHA-256")
        }
    }

    /// A few pieces: only right ones are written.
    private func receiveBlock(
        _ order: Order, from stream: ServedStream, into part: PartFile, _ pieces: PieceHashes?
    ) throws(MediaError) {
        try order.checkWanted()
        // A reader may have found out meanwhile that the server gives something else.
        if let failure = order.file.failure { throw failure }
        let begin = part.byteCount
        let bytes = try stream.take(Int(max(Self.blockSize, pieces?.pieceSize ?? 0)))
        if let pieces, pieces.rightBytes(of: bytes, at: begin) < bytes.count {
            throw .notAnnounced(order.place, operation: "SHA-256")
        }
        let home = part.file
        unsafe try append(bytes.span.bytes, to: part, size: order.size)
        if part.file !== home {
            order.file.begins(
                in: pieces == nil ? nil : part.file.reopened(), holding: part.byteCount)
        }
        order.file.reaches(part.byteCount)
        order.file.giveWay(after: max(0, part.byteCount - begin), order.cancellation)
    }

    private func restart(_ part: PartFile) throws(MediaError) {
        do throws(DiskFailure) { try part.restart() } catch { throw error.error }
    }
}
