import Synchronization
import TuttiPlayout

/// How much is here of what is fetched as a whole before it can be played: whoever waits for that
/// wants to see it move.
package enum MediaLoading {
    package struct Progress: Equatable, Sendable {
        /// Bytes.
        package var held: Int64
        /// Of all of it; `nil` where the server does not say.
        package var whole: Int64?
    }

    private static let running = Mutex<[String: Progress]>([:])

    /// - Parameter location: as it was opened.
    /// - Returns: `nil` where nothing is being fetched so.
    package static func progress(of location: String) -> Progress? {
        running.withLock { $0[location.readableFileName] }
    }

    /// - Parameter held: `nil`: nothing is fetched any more.
    static func note(_ location: MediaLocation, held: Int64?, of whole: Int64?) {
        running.withLock { running in
            running[location.subject] = held.map { Progress(held: $0, whole: whole) }
        }
    }
}
