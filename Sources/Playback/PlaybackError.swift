/// Why playback was refused or ended: the one error of this module.
public struct PlaybackError: Error, CustomStringConvertible {
    /// There will be more of them.
    @nonexhaustive
    public enum Code: String, Sendable {
        /// The player has no item.
        case noItem
        /// The item is not ready to play yet, or failed.
        case itemNotReady
        /// The item belongs to another player.
        case itemInUse
        /// The rate is not 0 and not within ±1/32…32, or the item cannot be played at it.
        case rateNotSupported
        /// Prerolling at the current time needs a paused player.
        case alreadyPlaying
        /// A rate at a host time needs `automaticallyWaitsToMinimizeStalling == false`.
        case waitsToMinimizeStalling
        /// At that host time another item of the queue plays.
        case itemEndsBefore
        /// The time is not a number.
        case timeNotNumeric
        /// A range or a place of a composition or a mix is none, is not finite or too far away.
        case rangeNotValid
        /// Two volumes of a mix would be in force at once.
        case volumesOverlap
        /// The volume is not a number of those that can be set.
        case volumeNotSupported
        /// The composition has no track of that number.
        case noSuchTrack
        /// A composition or a mix cannot become larger.
        case tooLarge
        /// The sample rate cannot be played.
        case sampleRateNotSupported
        /// An item is always heard by one of its tracks.
        case selectionNotEmpty
        /// The item has nothing to go a step by.
        case cannotStep
        /// All voices of the output are in use.
        case outputBusy
        /// The task that waited was cancelled.
        case cancelled
        /// The asset cannot be opened, read or positioned; `underlying` says why.
        case mediaFailed
    }

    /// What kind of failure it is, for programs.
    public var code: Code
    /// What happened and with what, in one sentence.
    public var reason: String
    /// What the adapter said.
    public var underlying: (any Error)?

    /// An error with a sentence for people, and what an adapter threw, where one did.
    public init(_ code: Code, _ reason: String, underlying: (any Error)? = nil) {
        self.code = code
        self.reason = reason
        self.underlying = underlying
    }

    public var description: String {
        underlying.map { "\(reason): \($0)" } ?? reason
    }
}
