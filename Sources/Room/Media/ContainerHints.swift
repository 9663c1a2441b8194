import Synchronization
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiPlayback
import TuttiPlayout

/// Which container each file of a room is: found out at its first opening, told at the next, by a
/// seek as a rule.
final class ContainerHints: Sendable {
    /// A queue that is played again and again; beyond that it starts over.
    private static let most = 64

    private let names = Mutex<[ContentHash: String]>([:])

    /// Opens files with what is remembered of them, and remembers.
    ///
    /// - Parameters:
    ///   - hash: of what is at the location; one in memory gets its place from another.
    ///   - incoming: the file, where it is still being fetched.
    ///   - frameCount: as the leader counts.
    ///   - cancellation: ends an opening that waits for bytes.
    func opener(
        of hash: ContentHash, _ incoming: IncomingFile?, frameCount: Int64,
        cancellation: MediaCancellation
    ) -> MediaOpener {
        MediaOpener { [self] location throws(MediaError) in
            let known = names.withLock { $0[hash] }
            let source =
                if let incoming {
                    try FFmpegSource(
                        incoming, frameCount: frameCount, container: known,
                        cancellation: cancellation)
                } else {
                    try FFmpegSource(location, container: known, cancellation: cancellation)
                }
            let container = source.info.container
            names.withLock {
                if $0.count >= Self.most, $0[hash] == nil { $0.removeAll() }
                $0[hash] = container
            }
            return source
        }
    }
}
