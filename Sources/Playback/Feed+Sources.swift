import Synchronization
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// What a feed decodes from, and the rings of the channels behind the first two.
extension Feed {
    /// A source of the item; waits while others use all there may be.
    ///
    /// - Returns: `nil` when cancelled meanwhile, or when the item has left its player.
    func borrow() async throws(PlaybackError) -> [SourcePool.Cursor]? {
        while !isCancelled, generation == item.sources.generation {
            if let cursors = try borrowNow(for: control.withLock { $0.position } ?? firstFrame) {
                return cursors
            }
            await nap(Self.shortestNap)
        }
        return nil
    }

    /// One for each track and pair of channels, or none: who has some and waits for others would keep
    /// them from those who have these.
    func borrowNow(for frame: Int64) throws(PlaybackError) -> [SourcePool.Cursor]? {
        let itemFrame = Int64(saturating: recipe.map.itemFrame(Double(frame)))
        var cursors: [SourcePool.Cursor] = []
        do throws(PlaybackError) {
            for choice in pipelines.flatMap(\.choices) {
                guard let cursor = try borrowNow(choice, for: itemFrame) else {
                    give(cursors)
                    return nil
                }
                cursors.append(cursor)
            }
        } catch {
            give(cursors)
            throw error
        }
        return cursors
    }

    private func borrowNow(
        _ choice: MediaOpener.Choice, for frame: Int64
    ) throws(PlaybackError) -> SourcePool.Cursor? {
        switch item.sources.take(choice, for: frame, generation: generation) {
        case .cursor(let cursor): return cursor
        case .none: return nil
        case .mayOpen(let cancellation):
            beginOpening(cancellation)
            defer { control.withLock { $0.opening = nil } }
            do throws(MediaError) {
                return SourcePool.Cursor(
                    try item.asset.opener.open(item.asset.location, choice, cancellation),
                    for: choice, cancellation)
            } catch {
                item.sources.discard(choice, cancellation)
                throw PlaybackError(
                    .mediaFailed, "\(item.asset.location) cannot be opened", underlying: error)
            }
        }
    }

    /// What nobody waits for any more ends with the feed. A read does not: it gives a source back that
    /// the next feed need not open, and ends with the item.
    private func beginOpening(_ cancellation: MediaCancellation) {
        let isOver = control.withLock { control in
            control.opening = cancellation
            return control.isCancelled
        }
        if isOver { cancellation.cancel() }
    }

    func give(_ cursors: [SourcePool.Cursor]) {
        for cursor in cursors { item.sources.give(cursor, generation: generation) }
    }

    /// They may be broken.
    func discard(_ cursors: [SourcePool.Cursor]) {
        for cursor in cursors { item.sources.discard(cursor.choice, cursor.cancellation) }
    }

    /// The other channels are decoded as far as the first two are; where they end before, they are silent.
    func decodeWing(
        to end: Int64, from cursors: [SourcePool.Cursor],
        _ scratch: UnsafeMutableBufferPointer<Float>
    ) throws(MediaError) {
        var rest = cursors.dropFirst(pipelines[0].choices.count)
        for (pipeline, voice) in zip(pipelines.dropFirst(), control.withLock { $0.wing }) {
            let own = Array(rest.prefix(pipeline.choices.count))
            rest = rest.dropFirst(own.count)
            while voice.ring.endFrame < end {
                let wanted = Int(min(Int64(Self.chunkFrames), end - voice.ring.endFrame))
                let part = UnsafeMutableBufferPointer(rebasing: scratch[..<(2 * wanted)])
                var count = try pipeline.read(at: voice.ring.endFrame, from: own, into: part)
                if count == 0 {
                    part.update(repeating: 0)
                    count = wanted
                }
                _ = voice.ring.write(UnsafeBufferPointer(rebasing: part[..<(2 * count)]))
            }
        }
    }

    func hasRoom(_ ring: FrameRing) -> Bool {
        ring.writableFrames >= Self.chunkFrames
            && control.withLock { $0.wing }.allSatisfy {
                $0.ring.writableFrames >= Self.chunkFrames + Int(ring.endFrame - $0.ring.endFrame)
            }
    }

    func finish(_ ring: FrameRing) {
        ring.finish()
        for voice in control.withLock({ $0.wing }) { voice.ring.finish() }
    }
}
