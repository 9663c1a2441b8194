public import Timing

/// What a player says by itself.
public enum PlayerNotice: Sendable {
    /// The item's status changed; `nil` without an item.
    case itemStatusDidChange(PlayerItem.Status?)
    case rateDidChange(rate: Double, reason: RateChangeReason)
    /// Item time did not continue from where it was: a seek, or a line joined late.
    case timeJumped(to: MediaTime)
    case didPlayToEnd(PlayerItem)
    /// Another item is the current one, or none.
    case currentItemDidChange(PlayerItem?)
    case failedToPlayToEnd(PlaybackError)
    /// The decoder did not keep up; playback waits, pauses or rejoins its line.
    case playbackStalled
    /// The card is gone, or back. Meanwhile nothing is heard and the rate stays; item time runs on, and
    /// so does the line that is shared with others.
    case outputDidChange(isAvailable: Bool)

    public enum RateChangeReason: Sendable {
        case setRateCalled
        /// The item cannot play, or its end was reached.
        case setRateFailed
        case itemEnded
    }
}
