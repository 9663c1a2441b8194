import Dispatch
import Synchronization
import TuttiFFmpegMedia
import TuttiPlayout

/// The hashes of the pieces of what a leader shares, as rooms ask for them.
///
/// They are known from when an item was looked at. Those of a long queue are not all kept: what was
/// forgotten is computed again when a room asks, one file after the other.
final class PieceLists: Sendable {
    /// Bytes of lists that are kept: of some hundred items.
    static let most = 16_000_000

    private struct Kept {
        var lists: [String: [UInt8]] = [:]
        /// The oldest first.
        var order: [String] = []
        var byteCount = 0

        mutating func forget(_ hash: String) {
            guard let list = lists.removeValue(forKey: hash) else { return }
            order.removeAll { $0 == hash }
            byteCount -= list.count
        }
    }

    private let kept = Mutex(Kept())
    private let queue = DispatchQueue(label: "tutti-pieces")
    private let limit: Int

    init(limit: Int = PieceLists.most) { self.limit = limit }

    /// Keeps those of the file with that hash, 64 hexadecimal digits, in place of the oldest.
    func keep(_ pieces: PieceHashes, of hash: String) { keep(pieces.bytes, of: hash) }

    private func keep(_ list: [UInt8], of hash: String) {
        kept.withLock {
            $0.forget(hash)
            $0.lists[hash] = list
            $0.order.append(hash)
            $0.byteCount += list.count
            while $0.byteCount > limit, let oldest = $0.order.first { $0.forget(oldest) }
        }
    }

    /// - Returns: `nil` where the file cannot be read.
    func list(of hash: String, at path: String) async -> [UInt8]? {
        if let list = kept.withLock({ $0.lists[hash] }) { return list }
        // A room that asks learns from the root whether the file is still the one described.
        return try? await blocking(on: queue) { [self] cancellation throws(MediaError) in
            if let list = kept.withLock({ $0.lists[hash] }) { return list }
            let list = try MediaFingerprint.measure(path, cancellation: cancellation).pieces.bytes
            keep(list, of: hash)
            return list
        }
    }
}
