public import Playout
import Synchronization

extension Player {
    /// Every voice of the output that this player holds: playing, standing by, or about to end.
    ///
    /// For whoever compares what an output plays with what its players were told.
    public var voices: [VoiceID] {
        state.withLock { $0.feeds.values.compactMap { $0.voice?.id } }
    }
}
