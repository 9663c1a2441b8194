import Glibc
import NIOCore
import TuttiFFmpegMedia
import TuttiPlayout

/// What is served, a chunk at a time.
protocol SharedBytes {
    var size: Int { get }
    /// Puts at most `count` bytes into `chunk`, in place of what it had.
    ///
    /// - Returns: how many there are, at least one.
    func read(_ count: Int, from position: Int, into chunk: inout ByteBuffer) async throws -> Int
}

/// The hashes of a file's pieces.
struct SharedList: SharedBytes {
    private let bytes: [UInt8]
    var size: Int { bytes.count }

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    func read(_ count: Int, from position: Int, into chunk: inout ByteBuffer) throws -> Int {
        chunk.clear()
        return chunk.writeBytes(bytes[position..<min(bytes.count, position + count)])
    }
}

/// A local file being served; closed with the last reference.
final class SharedFile: SharedBytes, Sendable {
    /// What is read at once: enough for a fast disk, little to hold for a slow room.
    static let chunkBytes = 128 * 1024

    let size: Int
    private let descriptor: Int32
    private let identity: FileIdentity?

    /// - Returns: `nil` when there is no such regular file, it may not be read, or it is not the
    ///   one that was shared any more.
    init?(path: String, identity: FileIdentity?) {
        let opened = open(path.cFileName, O_RDONLY | O_CLOEXEC)
        guard opened >= 0 else { return nil }
        guard let now = FileIdentity(of: opened), identity == nil || identity == now else {
            // What was not made has no deinit.
            close(opened)
            return nil
        }
        self.identity = identity
        descriptor = opened
        size = Int(now.byteCount)
    }

    deinit { close(descriptor) }

    /// Whether it is what was shared, under its name or without one.
    var isUnwritten: Bool {
        guard let identity else { return true }
        return FileIdentity(of: descriptor)?.isUnwritten(since: identity) ?? false
    }

    /// - Throws: when the file has become shorter than it was, or was written to.
    func read(_ count: Int, from position: Int, into chunk: inout ByteBuffer) throws -> Int {
        chunk.clear()
        let read = chunk.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { bytes in
            max(0, pread(descriptor, bytes.baseAddress, count, off_t(position)))
        }
        guard read > 0 else { throw ChannelError.eof }
        // Looked at behind the reading: what was written before it shows.
        guard isUnwritten else { throw ChannelError.eof }
        return read
    }
}
