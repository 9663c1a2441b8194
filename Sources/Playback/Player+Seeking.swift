import Synchronization
import TuttiPlayout
public import TuttiTiming

/// Going to another place, and getting ready for one.
extension Player {
    /// Sample-exact; see ``seek(to:toleranceBefore:toleranceAfter:)``.
    @discardableResult
    public func seek(to time: MediaTime) async -> Bool {
        await seek(to: time, toleranceBefore: .zero, toleranceAfter: .zero)
    }

    /// Goes to `time`, clamped into the item, always exactly: the tolerances allow more than is
    /// used.
    ///
    /// While playing, the old place sounds until the new one is buffered and takes over,
    /// through a dip of 10 ms. Loads the item first where that is not done.
    ///
    /// A pause or another rate meanwhile are about the new place. Cancelling the task ends the seek.
    ///
    /// - Returns: true when ``currentTime()`` is there: the new place is buffered and, if playing, in
    ///   force. False when a newer seek, a line with a place of its own, another item, an error or
    ///   the task's end came in between, or the time is not a number.
    @discardableResult
    public func seek(
        to time: MediaTime, toleranceBefore: MediaTime, toleranceAfter: MediaTime
    ) async -> Bool {
        let id = state.withLock { state in
            state.seekCount += 1
            return SeekID(number: state.seekCount)
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                turn { state in
                    // Its task may have ended before it had begun to wait.
                    if Task.isCancelled { return continuation.resume(returning: false) }
                    state.seeks[id] = continuation
                    perform(.seek(id, to: time), &state)
                }
            }
        } onCancel: {
            perform(.endSeek(id))
        }
    }

    /// Ends a seek under way with false; what plays goes on.
    public func cancelPendingSeeks() {
        turn { state in
            if let id = state.machine.seek?.id { perform(.endSeek(id), &state) }
        }
    }

    /// Decodes and fills the pipeline at the current time, without starting.
    ///
    /// - Returns: true when filled; false when ended by ``cancelPendingPrerolls()``, a seek, a rate
    ///   change or another item.
    /// - Throws: ``PlaybackError`` with the codes `noItem`, `itemNotReady`, `alreadyPlaying`,
    ///   `rateNotSupported`, or the media's error.
    public func preroll(atRate rate: Double) async throws(PlaybackError) -> Bool {
        try await preroll(atRate: rate, time: .invalid)
    }

    /// Gets ready to play from `time` at `rate` while what sounds now goes on undisturbed.
    ///
    /// A following ``setRate(_:time:atHostTime:)`` to that place (or to a line that passes it soon)
    /// starts it on its instant and stops the old sound at the same instant: an exact seek. One
    /// place can be prerolled at a time; a newer preroll ends the older with false.
    ///
    /// - Parameter time: ``MediaTime/invalid``: the current time; then the player must be paused.
    /// - Returns: see ``preroll(atRate:)``.
    public func preroll(
        atRate rate: Double, time: MediaTime
    ) async throws(PlaybackError) -> Bool {
        guard let (feed, id) = try beginPreroll(atRate: rate, time: time) else { return false }
        let filling = await withTaskCancellationHandler {
            await feed.filled()
        } onCancel: {
            // Somebody may be playing it by now.
            perform(.endPreroll(id))
        }
        switch filling {
        case .filled: return state.withLock { $0.machine.prepared == id }
        case .ended: return false
        case .failed(let error): throw error
        }
    }

    /// Begins what ``preroll(atRate:time:)`` does, and waits for nothing; see there for its errors.
    package func prepare(atRate rate: Double, time: MediaTime) throws(PlaybackError) {
        _ = try beginPreroll(atRate: rate, time: time)
    }

    /// - Returns: `nil` where something that was under way has taken its place already.
    private func beginPreroll(
        atRate rate: Double, time: MediaTime
    ) throws(PlaybackError) -> (Feed, FeedID)? {
        try Self.check(rate, allowsZero: false)
        return try turn { state throws(PlaybackError) in
            try attempt(.preroll(rate: rate, time: time), &state)
            guard let id = state.machine.prepared, let feed = state.feeds[id] else { return nil }
            return (feed, id)
        }
    }

    /// Ends all prerolls under way with false, and gives up what was prerolled.
    public func cancelPendingPrerolls() { perform(.endPreroll(nil)) }

    static func time(ofFrame frame: Double, sampleRate: Int) -> MediaTime {
        let whole = Int64(saturating: frame)
        return Double(whole) == frame
            ? MediaTime(frame: whole, sampleRate: sampleRate)
            : MediaTime(seconds: frame / Double(sampleRate))
    }
}
