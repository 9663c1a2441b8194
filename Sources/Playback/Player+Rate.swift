import Synchronization
import TuttiPlayout
public import TuttiTiming

/// Starting, stopping and changing rate, at once or at an instant of the source clock.
extension Player {
    /// Plays at ``defaultRate``; waits for item and buffer where they are not ready. At the end of the
    /// item it does nothing; an item that failed is tried again.
    public func play() {
        turn { perform(.rate($0.machine.defaultRate, waits: nil), &$0) }
    }

    /// Pauses as soon as the output allows; ``currentTime()`` then stands where the sound ended.
    public func pause() { perform(.rate(0, waits: nil)) }

    /// Plays at `rate`, or pauses with 0; waits like ``play()``. Negative rates play backwards.
    ///
    /// - Throws: ``PlaybackError/Code/rateNotSupported``.
    public func setRate(_ rate: Double) throws(PlaybackError) {
        try request(rate, waits: nil, allowsZero: true)
    }

    private func request(
        _ rate: Double, waits: Bool?, allowsZero: Bool
    ) throws(PlaybackError) {
        try Self.check(rate, allowsZero: allowsZero)
        try turn { state throws(PlaybackError) in
            state.machine.look(world(state))
            if let refusal = state.machine.refusal(of: rate) { throw refusal }
            perform(.rate(rate, waits: waits), &state)
        }
    }

    /// Plays at `rate` with whatever is buffered; with nothing, as soon as the first frames are there.
    ///
    /// - Throws: ``PlaybackError/Code/rateNotSupported``.
    public func playImmediately(atRate rate: Double) throws(PlaybackError) {
        try request(rate, waits: false, allowsZero: false)
    }

    /// From `hostTime` on, item time `time` leaves the output, at `rate`.
    ///
    /// Rate 0 is a pause whose last sound ends at the host time. A host time that is past still
    /// defines the line: the player joins where the line is now. Until the host time what sounds
    /// goes on; a newer call replaces one that is pending. With the place prerolled and the call
    /// made ``PlayerOutput/latency`` ahead, the first sample is exact.
    ///
    /// - Parameters:
    ///   - rate: 0, or ±1/32…32.
    ///   - time: ``MediaTime/invalid``: wherever item time is at the host time, or a seek under way
    ///     is going.
    ///   - hostTime: an instant of ``sourceClock``; without one, local nanoseconds. `nil`: as soon
    ///     as the output allows and the first frames are there.
    /// - Throws: ``PlaybackError`` with the codes `waitsToMinimizeStalling`, `itemNotReady`,
    ///   `noItem`, `rateNotSupported` or `timeNotNumeric`.
    public func setRate(
        _ rate: Double, time: MediaTime = .invalid, atHostTime hostTime: GroupInstant? = nil
    ) throws(PlaybackError) {
        try Self.check(rate, allowsZero: true)
        try attempt(.line(rate: rate, time: time, hostTime: hostTime))
    }
}
