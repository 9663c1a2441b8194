public import TuttiTiming

/// What a player says by itself. There will be more: applications need an `@unknown default` (SE-0487).
@nonexhaustive
public enum PlayerNotice: Sendable {
    /// The item's status changed; `nil` without an item.
    case itemStatusDidChange(PlayerItem.Status?)
    case rateDidChange(rate: Double, reason: RateChangeReason)
    /// Item time did not continue from where it was: a seek, or a line joined late.
    case timeJumped(to: MediaTime)
    case didPlayToEnd(PlayerItem)
    /// Another item is the current one, or none.
    case currentItemDidChange(PlayerItem?)
    /// Which one that was say ``Player/itemNotices()``.
    case failedToPlayToEnd(PlaybackError)
    /// A selected text cannot be read; what is heard is not concerned.
    case textFailed(PlaybackError)
    /// The decoder did not keep up; playback waits, pauses or rejoins its line.
    case playbackStalled
    /// The card is gone, or back. Meanwhile nothing is heard; what becomes of the rate says
    /// ``Player/actionAtOutputLoss``.
    case outputDidChange(isAvailable: Bool)

    /// Why the rate is another.
    @nonexhaustive
    public enum RateChangeReason: Sendable {
        case setRateCalled
        /// The item cannot play, or not on, or not at that rate.
        case setRateFailed
        case itemEnded
        /// The card went away; see ``Player/actionAtOutputLoss``.
        case audioSessionInterrupted
    }
}

/// What a player says, with the item that it says it of.
public struct ItemNotice: Sendable {
    /// What is said.
    public let notice: PlayerNotice
    /// The one that failed or ended, or was the current one then; `nil` where there was none. Another
    /// current item is no notice of either of the two: there it is `nil`, too.
    public let item: PlayerItem?
}
