import Dispatch
import NIOCore
import NIOHTTP1
import TuttiFFmpegMedia
import TuttiPlayout

/// A file that is still on its way to this node, for others: each piece goes on as soon as it is here
/// and right.
///
/// Whoever reads hurries the fetch when it waits for what comes next, and has other places asked for.
/// So a room hears an item that only the leader before has as soon as one that is asked for there.
final class ArrivingBytes: SharedBytes, Sendable {
    let size: Int
    private let file: IncomingFile
    /// Waiting takes a thread: none of those that all share.
    private let queue = DispatchQueue(label: "tutti-relay")
    private let service: MediaService

    init(_ file: IncomingFile, among service: MediaService) throws(MediaService.Refusal) {
        guard service.beginRelaying() else {
            throw MediaService.Refusal(.serviceUnavailable, retryAfter: 1)
        }
        self.file = file
        self.service = service
        size = Int(file.fingerprint.byteCount)
    }

    deinit { service.endRelaying() }

    func read(_ count: Int, from position: Int, into chunk: inout ByteBuffer) async throws -> Int {
        let cancellation = MediaCancellation(within: file.cancellation)
        let bytes = try await blocking(on: queue, cancellation: cancellation) {
            [file] cancellation throws(MediaError) in
            try file.bytes(at: Int64(position), count, cancellation)
        }
        guard !bytes.isEmpty else { throw ChannelError.eof }
        chunk.clear()
        return chunk.writeBytes(bytes)
    }

    /// The hashes of the pieces of such a file, from where it comes.
    static func list(of file: IncomingFile) async throws(MediaService.Refusal) -> [UInt8] {
        let queue = DispatchQueue(label: "tutti-relay")
        do {
            let list = try await blocking(
                on: queue, cancellation: MediaCancellation(within: file.cancellation)
            ) { cancellation throws(MediaError) in try file.pieceHashes(cancellation) }
            guard let list else { throw MediaService.Refusal(.notFound) }
            return list.bytes
        } catch let refusal as MediaService.Refusal {
            throw refusal
        } catch {
            // Who does not have it will not; who does not answer may.
            let isGone = (error as? MediaError)?.code != .network
            throw MediaService.Refusal(isGone ? .notFound : .badGateway)
        }
    }
}
