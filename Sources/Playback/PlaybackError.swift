/// Why playback was refused or ended: the one error of this module.
public struct PlaybackError: Error, CustomStringConvertible {
    public enum Code: String, Sendable {
        /// The player has no item.
        case noItem
        /// The item is not ready to play yet, or failed.
        case itemNotReady
        /// The item belongs to another player.
        case itemInUse
        /// The rate is not 0 and not within 0.5…2.
        case rateNotSupported
        /// Prerolling at the current time needs a paused player.
        case alreadyPlaying
        /// A rate at a host time needs `automaticallyWaitsToMinimizeStalling == false`.
        case waitsToMinimizeStalling
        /// At that host time another item of the queue plays.
        case itemEndsBefore
        /// The time is not a number.
        case timeNotNumeric
        /// All voices of the output are in use.
        case outputBusy
        /// The task that waited was cancelled.
        case cancelled
        /// The asset cannot be opened, read or positioned; `underlying` says why.
        case mediaFailed
    }

    public var code: Code
    /// What happened and with what, in one sentence.
    public var reason: String
    /// What the adapter said.
    public var underlying: (any Error)?

    public init(_ code: Code, _ reason: String, underlying: (any Error)? = nil) {
        self.code = code
        self.reason = reason
        self.underlying = underlying
    }

    public var description: String {
        underlying.map { "\(reason): \($0)" } ?? reason
    }
}
