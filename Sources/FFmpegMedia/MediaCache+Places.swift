import Synchronization
import TuttiPlayout

/// Where what is fetched is kept: on the disk, or in memory where that has no room.
extension MediaCache {
    /// A place for a file of that size: on the disk, or in memory where that has none.
    ///
    /// - Parameter mayExceed: the limit, as far as files in use do.
    /// - Returns: `nil` while someone else has it.
    func part(
        _ name: String, _ size: Int64, _ pieces: PieceHashes?, _ subject: String,
        mayExceed: Bool = false
    ) throws(MediaError) -> PartFile? {
        let part: PartFile
        do throws(DiskFailure) {
            try folder.make()
            guard let mine = try PartFile(locking: folder.file(name), pieces: pieces) else {
                return nil
            }
            part = mine
        } catch {
            return try memoryPart(
                size, subject,
                because: "the cache folder \(folder.path) cannot be used: \(error.text)")
        }
        let expected = expected.withLock {
            $0[name] = size
            return $0
        }
        part.whenEnded = { self.expected.withLock { _ = $0.removeValue(forKey: name) } }
        let isWithin = folder.makeRoom(expecting: expected, limit: limit)
        let reason: String
        if !isWithin, !mayExceed {
            reason =
                "the cache limit of \(limit.megabytes) MB has no room for \(size.megabytes) more"
                + (size > limit ? "" : " beside what is being played")
        } else if folder.freeBytes <= size - part.byteCount {
            reason = "the disk of \(folder.path) has no room for \(size.megabytes) MB"
        } else {
            return part
        }
        part.discard()
        return try memoryPart(size, subject, because: reason)
    }

    func memoryPart(
        _ size: Int64, _ subject: String, because reason: String
    ) throws(MediaError) -> PartFile {
        guard let grant = memory.grant(size), let part = PartFile(inMemory: grant) else {
            throw MediaError(
                .tooLarge, operation: "cache", subject: subject,
                reason: "has \(size.megabytes) MB, more than memory has room for, and \(reason);"
                    + " make room, or raise --cache-limit-mb")
        }
        warn(reason)
        return part
    }

    /// Adds bytes, on the disk or, when that fails, to a copy in memory: then a part of them, or all,
    /// may have to come again.
    func append(_ bytes: RawSpan, to part: PartFile, size: Int64) throws(MediaError) {
        do throws(DiskFailure) {
            try part.append(bytes)
        } catch {
            guard !part.isInMemory, let grant = memory.grant(size), part.moveToMemory(grant) else {
                throw error.error
            }
            warn("the cache folder \(folder.path) fails: \(error.text)")
        }
    }
}
