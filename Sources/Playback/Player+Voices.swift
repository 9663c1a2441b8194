import Synchronization
public import TuttiPlayout

extension Player {
    /// Every voice of the output that this player holds: playing, standing by, or about to end.
    ///
    /// For whoever compares what an output plays with what its players were told.
    public var voices: [VoiceID] {
        state.withLock { $0.feeds.values.flatMap { $0.voices.map(\.id) } }
    }

    /// Those that play one item, or are about to; also when it has left the queue since.
    ///
    /// Each with how its frames lie on those of the item: not by what it was told, but by what makes
    /// its frames.
    package func voices(of item: PlayerItem) -> [VoiceID: FrameMap] {
        let feeds = state.withLock { state in
            state.feeds.values.filter { $0.item === item }
        }
        return feeds.reduce(into: [:]) { maps, feed in
            let (voices, map) = feed.control.withLock { ($0.voices, $0.map) }
            for voice in voices { maps[voice.id] = map }
        }
    }
}
