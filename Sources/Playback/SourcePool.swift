import Playout
import Synchronization

/// The sources of one item: opened once, and lent to whichever feed decodes.
///
/// Opening may mean to read a whole file from a server (to count its packets); a seek in what is open
/// moves a few kilobytes. So a feed that has filled its ring gives the source back, and the next one
/// goes to its own place with it. A second is opened only while the first is held up in a read: who
/// seeks then need not wait for that. More are never open at once.
final class SourcePool: Sendable {
    /// One that plays, and one that gets a seek's place.
    static let most = 2

    /// A source and where it stands.
    ///
    /// `@unchecked Sendable`: a pool lends it to one feed at a time, which gives it back when it no
    /// longer uses it; the pool's lock lies in between.
    final class Cursor: @unchecked Sendable {
        private let source: any MediaSource
        private var position: Int64

        init(_ source: sending any MediaSource) {
            self.source = source
            position = 0
        }

        var format: MediaFormat { source.format }
        var metadata: MediaMetadata { source.metadata }

        /// A live stream does not go back.
        func reaches(_ frame: Int64) -> Bool {
            source.format.frameCount != nil || frame >= position
        }

        /// Decodes from `frame` on; see `MediaSource.read(into:)`.
        func read(
            at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>
        ) throws(MediaError) -> Int {
            if frame != position {
                try source.seek(toFrame: frame)
                position = frame
            }
            let count = try source.read(into: buffer)
            position += Int64(count)
            return count
        }
    }

    private struct State {
        var idle: [Cursor] = []
        /// Lent, or being opened.
        var lent = 0
        /// Counts the times it was emptied: what was lent before is not kept.
        var generation = 0
    }

    enum Loan {
        case cursor(Cursor)
        /// There may be another one: open it, then ``give(_:generation:)`` it or ``discard()``.
        case mayOpen
        /// All are in use.
        case none
    }

    private let state = Mutex(State())

    /// What is given back by those who knew an earlier one is not kept.
    var generation: Int { state.withLock { $0.generation } }

    /// Whatever was opened already, for those who knew `generation`.
    func keep(_ cursor: Cursor, generation: Int) {
        state.withLock { state in
            guard generation == state.generation, state.idle.count + state.lent < Self.most else {
                return
            }
            state.idle.append(cursor)
        }
    }

    /// - Parameter frame: where it is to read.
    func take(for frame: Int64) -> Loan {
        state.withLock { state in
            if let place = state.idle.firstIndex(where: { $0.reaches(frame) }) {
                state.lent += 1
                return .cursor(state.idle.remove(at: place))
            }
            if state.idle.count + state.lent >= Self.most {
                guard !state.idle.isEmpty else { return .none }
                state.idle.removeFirst()
            }
            state.lent += 1
            return .mayOpen
        }
    }

    func give(_ cursor: Cursor, generation: Int) {
        state.withLock { state in
            state.lent -= 1
            if generation == state.generation { state.idle.append(cursor) }
        }
    }

    /// What was lent cannot be used again, or could not be opened.
    func discard() { state.withLock { $0.lent -= 1 } }

    /// Nobody plays the item any more, and a feed that still ends keeps nothing.
    ///
    /// - Returns: what was open; closes when it is let go of, outside of locks.
    func empty() -> [Cursor] {
        state.withLock { state in
            defer { state.idle = [] }
            state.generation += 1
            return state.idle
        }
    }
}
