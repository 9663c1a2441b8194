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
        /// Ends a read that waits, and all later ones.
        let cancellation: MediaCancellation
        private let source: any MediaSource
        private var position: Int64
        /// Where it stands after a failure nobody knows: only a seek helps.
        private static let nowhere = Int64.max

        init(
            _ source: sending any MediaSource, for choice: MediaOpener.Choice,
            _ cancellation: MediaCancellation
        ) {
            self.source = source
            self.choice = choice
            self.cancellation = cancellation
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
            // The source may have to ask a server that is gone for what it need not know.
            if let end = source.format.frameCount, frame >= end { return 0 }
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
        /// Of what is lent or being opened, since it was emptied last.
        var uses: [ObjectIdentifier: MediaCancellation] = [:]
        /// Counts the times it was emptied: what was lent before is not kept.
        var generation = 0
    }

    enum Loan {
        case cursor(Cursor)
        /// There may be another one: open it until that is cancelled, then ``give(_:generation:)`` it or
        /// ``discard(_:_:)``.
        case mayOpen(MediaCancellation)
        /// All are in use, or none is to be had any more.
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

    /// - Parameters:
    ///   - frame: where it is to read.
    ///   - generation: of who reads; those of an earlier one get nothing.
    func take(_ choice: MediaOpener.Choice, for frame: Int64, generation: Int) -> Loan {
        state.withLock { state in
            guard generation == state.generation else { return .none }
            let isOne = { (cursor: Cursor) in cursor.choice == choice }
            if let place = state.idle.firstIndex(where: { isOne($0) && $0.reaches(frame) }) {
                let cursor = state.idle.remove(at: place)
                state.lend(choice, cursor.cancellation)
                return .cursor(cursor)
            }
            if state.count(of: choice) >= Self.most {
                guard let place = state.idle.firstIndex(where: isOne) else { return .none }
                state.idle.remove(at: place)
            }
            let cancellation = MediaCancellation()
            state.lend(choice, cancellation)
            return .mayOpen(cancellation)
        }
    }

    func give(_ cursor: Cursor, generation: Int) {
        state.withLock { state in
            state.take(cursor.choice, cursor.cancellation)
            if generation == state.generation { state.idle.append(cursor) }
        }
    }

    /// What was lent cannot be used again, or could not be opened.
    func discard(_ choice: MediaOpener.Choice, _ cancellation: MediaCancellation) {
        state.withLock { $0.take(choice, cancellation) }
    }

    /// Nobody plays the item any more, and a feed that still ends keeps nothing. What it waits for, the
    /// rest of a download or a server that has fallen silent, ends.
    ///
    /// - Returns: what was open; closes when it is let go of, outside of locks.
    func empty() -> [Cursor] {
        let (open, uses) = state.withLock { state in
            defer { (state.idle, state.uses) = ([], [:]) }
            state.generation += 1
            return (state.idle, state.uses.values)
        }
        for use in uses { use.cancel() }
        return open
    }
}

extension SourcePool.State {
    fileprivate mutating func lend(
        _ choice: MediaOpener.Choice, _ cancellation: MediaCancellation
    ) {
        lent[choice, default: 0] += 1
        uses[ObjectIdentifier(cancellation)] = cancellation
    }

    fileprivate mutating func take(
        _ choice: MediaOpener.Choice, _ cancellation: MediaCancellation
    ) {
        lent[choice, default: 0] -= 1
        uses[ObjectIdentifier(cancellation)] = nil
    }

    /// How many of them there are, or will be.
    fileprivate func count(of choice: MediaOpener.Choice) -> Int {
        idle.count { $0.choice == choice } + lent[choice, default: 0]
    }
}
