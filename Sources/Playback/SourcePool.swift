import Synchronization
import TuttiPlayout

/// The sources of one item: opened once, and lent to whichever feed decodes.
///
/// Opening may mean to read a whole file from a server (to count its packets); a seek in what is open
/// moves a few kilobytes. So a feed that has filled its ring gives the source back, and the next one
/// goes to its own place with it. A second is opened only while the first is held up in a read: who
/// seeks then need not wait for that. More are never open at once, of
/// each track and pair of channels.
final class SourcePool: Sendable {
    /// One that plays, and one that gets a seek's place.
    static let most = 2

    /// A source and where it stands.
    ///
    /// `@unchecked Sendable`: a pool lends it to one feed at a time, which gives it back when it no
    /// longer uses it; the pool's lock lies in between.
    final class Cursor: @unchecked Sendable {
        let choice: MediaOpener.Choice
        private let source: any MediaSource
        private var position: Int64
        /// Where it stands after a failure nobody knows: only a seek helps.
        private static let nowhere = Int64.max

        init(_ source: sending any MediaSource, for choice: MediaOpener.Choice) {
            self.source = source
            self.choice = choice
            position = 0
        }

        var facts: AssetFacts {
            AssetFacts(
                format: source.format, metadata: source.metadata, tracks: source.tracks,
                track: source.track, packetFrames: source.packetFrames)
        }

        /// A live stream does not go back.
        func reaches(_ frame: Int64) -> Bool {
            source.format.frameCount != nil || frame >= position
        }

        /// Decodes from `frame` on; see `MediaSource.read(into:)`.
        func read(
            at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>
        ) throws(MediaError) -> Int {
            if frame != position {
                position = Self.nowhere
                try source.seek(toFrame: frame)
                position = frame
            }
            do {
                let count = try source.read(into: buffer)
                position += Int64(count)
                return count
            } catch {
                position = Self.nowhere
                throw error
            }
        }
    }

    fileprivate struct State {
        var idle: [Cursor] = []
        /// Lent, or being opened.
        var lent: [MediaOpener.Choice: Int] = [:]
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
            guard generation == state.generation, state.count(of: cursor.choice) < Self.most else {
                return
            }
            state.idle.append(cursor)
        }
    }

    /// - Parameter frame: where it is to read.
    func take(_ choice: MediaOpener.Choice, for frame: Int64) -> Loan {
        state.withLock { state in
            let isOne = { (cursor: Cursor) in cursor.choice == choice }
            if let place = state.idle.firstIndex(where: { isOne($0) && $0.reaches(frame) }) {
                state.lent[choice, default: 0] += 1
                return .cursor(state.idle.remove(at: place))
            }
            if state.count(of: choice) >= Self.most {
                guard let place = state.idle.firstIndex(where: isOne) else { return .none }
                state.idle.remove(at: place)
            }
            state.lent[choice, default: 0] += 1
            return .mayOpen
        }
    }

    func give(_ cursor: Cursor, generation: Int) {
        state.withLock { state in
            state.lent[cursor.choice, default: 0] -= 1
            if generation == state.generation { state.idle.append(cursor) }
        }
    }

    /// What was lent cannot be used again, or could not be opened.
    func discard(_ choice: MediaOpener.Choice) {
        state.withLock { $0.lent[choice, default: 0] -= 1 }
    }

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

extension SourcePool.State {
    /// How many of them there are, or will be.
    fileprivate func count(of choice: MediaOpener.Choice) -> Int {
        idle.count { $0.choice == choice } + lent[choice, default: 0]
    }
}
