import CTuttiFFmpeg
import Glibc
import Synchronization
import TuttiPlayout

/// A server's file as a nameless file of this machine.
///
/// Where packets have to be counted, opening reads the whole file in any case. It is kept then: what
/// is known of a file on disk (several recordings in one, bytes that are no sound) is found in it in
/// the same way, and a seek asks the server for nothing. Whoever opens the same address meanwhile reads
/// that file: a second source of an item, where a seek shall not wait for the first one's read.
enum Spool {
    /// Bytes; what is longer is read from the server again and again. Ten hours of MP3.
    static let largest: Int64 = 1 << 30
    /// Connections made in a row without receiving a byte before it is given up.
    private static let attemptLimit = 3

    /// Containers whose packets say where they are, or that are no file.
    private static let numbered: Set<String> = [
        "wav", "w64", "aiff", "caf", "au", "flac", "mov", "hls",
    ]

    /// - Returns: where it is now; `nil` for what is better read where it is, or where no disk takes it.
    static func take(
        _ demuxer: Demuxer, _ cancellation: MediaCancellation
    ) throws(MediaError) -> MediaLocation? {
        let location = demuxer.location
        guard let size = byteCount(of: demuxer) else { return nil }
        if let file = held.withLock({ $0[location.address]?.file }),
            has(file, size, of: location, cancellation)
        {
            return location.held(in: file)
        }
        guard let file = namelessFile(),
            try fill(file, from: location, 0..<size, cancellation)
        else { return nil }
        return keep(file, location)
    }

    /// Bytes of what is kept here; `nil` for what is not.
    static func byteCount(of demuxer: Demuxer) -> Int64? {
        let location = demuxer.location
        guard location.isRemote, location.part == nil, !demuxer.isStation,
            !numbered.contains(demuxer.containerName),
            let size = demuxer.byteCount, size <= largest
        else { return nil }
        return size
    }

    /// Whether somebody reads what was at that address.
    static func holds(_ location: MediaLocation) -> Bool {
        held.withLock { $0[location.address]?.file != nil }
    }

    /// Gets what is missing of a file that was begun.
    ///
    /// - Returns: as ``take(_:_:)``.
    static func finish(
        _ begun: SpoolFile, _ size: Int64, of location: MediaLocation,
        _ cancellation: MediaCancellation
    ) throws(MediaError) -> MediaLocation? {
        let reached = begun.held
        if reached < size, let file = held.withLock({ $0[location.address]?.file }),
            has(file, size, of: location, cancellation)
        {
            return location.held(in: file)
        }
        guard try fill(begun.file, from: location, reached..<size, cancellation) else { return nil }
        return keep(begun.file, location)
    }

    /// All that a server sends without saying how much that is.
    ///
    /// - Parameter head: what was read of it before.
    static func take(
        all stream: ByteStream, behind head: [UInt8]
    ) throws(MediaError) -> MediaLocation {
        let location = stream.location
        // An address may lead to another file each time.
        if let file = held.withLock({ $0[location.address]?.file }),
            file.beginning(head.count) == head
        {
            return location.held(in: file)
        }
        func tooLarge(_ reason: String) -> MediaError {
            MediaError(.tooLarge, operation: "spool", subject: location.subject, reason: reason)
        }
        let full = tooLarge("does not fit on the disk, where it is kept while it plays; make room")
        guard let file = namelessFile(),
            unsafe head.withUnsafeBufferPointer({
                unsafe file.write($0.baseAddress!, $0.count, at: 0)
            })
        else { throw full }
        var count = Int64(head.count)
        defer { MediaLoading.note(location, held: nil, of: nil) }
        while case let bytes = unsafe try stream.next(), !bytes.isEmpty {
            guard count <= largest else {
                throw tooLarge("has no end, or more than \(largest.megabytes) MB")
            }
            guard unsafe file.write(bytes.baseAddress!, bytes.count, at: count) else { throw full }
            count += Int64(bytes.count)
            MediaLoading.note(location, held: count, of: nil)
        }
        return keep(file, location)
    }

    private static func keep(_ file: OpenFile, _ location: MediaLocation) -> MediaLocation {
        held.withLock { held in
            held = held.filter { $0.value.file != nil }
            held[location.address] = Held(file: file)
        }
        return location.held(in: file)
    }

    private struct Held {
        weak var file: OpenFile?
    }

    /// By address, as long as somebody reads it.
    private static let held = Mutex<[String: Held]>([:])
    /// Bytes from its middle by which a file is known again: beginnings of other ones, with the same
    /// picture, are alike.
    private static let sample: Int64 = 4_096

    /// Whether a file is, by its length and its middle, what the server has.
    private static func has(
        _ file: OpenFile, _ size: Int64, of location: MediaLocation,
        _ cancellation: MediaCancellation
    ) -> Bool {
        guard file.byteCount == size else { return false }
        let begin = max(0, size / 2 - sample / 2)
        let end = min(size, begin + sample)
        guard
            let stream = try? ByteStream(
                location, from: begin, to: end, cancellation: cancellation),
            stream.byteCount == size
        else { return false }
        let count = Int(end - begin)
        var there: [UInt8] = []
        while there.count < count, let bytes = unsafe try? stream.next(), !bytes.isEmpty {
            unsafe there += bytes.prefix(count - there.count)
        }
        return there.count == count && there == file.bytes(from: begin, count)
    }

    /// - Returns: whether the disk had room for it.
    private static func fill(
        _ file: OpenFile, from location: MediaLocation, _ missing: Range<Int64>,
        _ cancellation: MediaCancellation
    ) throws(MediaError) -> Bool {
        let size = missing.upperBound
        var held = missing.lowerBound
        defer { MediaLoading.note(location, held: nil, of: nil) }
        var attempts = 0
        while held < size {
            let before = held
            do throws(MediaError) {
                let stream = try ByteStream(location, from: held, cancellation: cancellation)
                guard stream.byteCount == size else {
                    throw MediaError(
                        .damaged, operation: "http", subject: location.subject,
                        reason: "was changed on the server while it was fetched; try again")
                }
                while held < size, case let bytes = unsafe try stream.next(), !bytes.isEmpty {
                    let count = min(bytes.count, Int(size - held))
                    guard unsafe file.write(bytes.baseAddress!, count, at: held) else {
                        return false
                    }
                    held += Int64(count)
                    MediaLoading.note(location, held: held, of: size)
                    // Sent compressed, it is longer than the server says.
                    if bytes.count > count,
                        let error = WebDiagnosis(
                            location: location, trust: .system, cancellation: cancellation
                        ).error()
                    {
                        throw error
                    }
                }
                guard held < size else { return true }
                throw MediaError(
                    library: cff_error(EIO), operation: "av_read_frame", location: location)
            } catch {
                guard error.code == .network, !cancellation.isCancelled else { throw error }
                attempts = held > before ? 1 : attempts + 1
                guard attempts < attemptLimit, held > 0 else { throw error }
            }
        }
        return true
    }

    /// In the first folder for temporary files that takes one.
    static func namelessFile() -> OpenFile? {
        let named = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) }
        for folder in [named, "/var/tmp", "/tmp"].compactMap(\.self) {
            var name = Array((folder + "/tutti-XXXXXX").utf8CString)
            let descriptor = unsafe mkstemp(&name)
            guard descriptor >= 0 else { continue }
            unsafe unlink(name)
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            return OpenFile(descriptor)
        }
        return nil
    }
}
