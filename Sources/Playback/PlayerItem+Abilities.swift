import TuttiPlayout
public import TuttiTiming

/// What can be done with an item; nothing until it is ready.
extension PlayerItem {
    /// Rates above 1.
    public var canPlayFastForward: Bool { format != nil }
    /// Rates between 0 and 1.
    public var canPlaySlowForward: Bool { format != nil }
    /// The rate −1: whatever has an end to begin at.
    public var canPlayReverse: Bool { format?.frameCount != nil }
    /// Rates between −1 and 0.
    public var canPlaySlowReverse: Bool { canPlayReverse }
    /// Rates below −1.
    public var canPlayFastReverse: Bool { canPlayReverse }
    /// Whether its sound is coded in packets, to go by one after the other.
    public var canStepForward: Bool { packetFrames > 0 }
    /// Whether one can also go back by packets: where in addition the length is known.
    public var canStepBackward: Bool { packetFrames > 0 && format?.frameCount != nil }

    /// Goes on, or back, by packets of the sound: to the beginning of the one that is so many behind
    /// the present one.
    ///
    /// - Returns: as ``Player/seek(to:toleranceBefore:toleranceAfter:)``.
    /// - Throws: ``PlaybackError/Code/noItem`` for an item that is no player's current one;
    ///   ``PlaybackError/Code/cannotStep``.
    @discardableResult
    public func step(byCount count: Int) async throws(PlaybackError) -> Bool {
        guard let player, player.currentItem === self else {
            throw PlaybackError(.noItem, "only a player's current item can go a step")
        }
        if count == 0 { return true }
        guard count < 0 ? canStepBackward : canStepForward, let format else {
            throw PlaybackError(.cannotStep, "\(asset.location) has no packets to go by")
        }
        guard let frame = player.currentTime().frame(atSampleRate: format.sampleRate) else {
            return false
        }
        let size = Int64(packetFrames)
        // Between two beginnings, the one before is the nearest step back.
        let place = count < 0 ? (frame + size - 1) / size : frame / size
        let (target, isBeyond) = place.adding(saturating: Int64(count))
            .multipliedReportingOverflow(by: size)
        let end = format.frameCount ?? .max
        return await player.seek(
            to: MediaTime(
                frame: isBeyond ? (count < 0 ? 0 : end) : max(0, min(target, end)),
                sampleRate: format.sampleRate))
    }

    /// Item time, where it is a player's current one; else zero.
    public func currentTime() -> MediaTime {
        guard let player, player.currentItem === self else { return .zero }
        return player.currentTime()
    }

    /// See ``Player/seek(to:toleranceBefore:toleranceAfter:)``; false where it is no player's current one.
    @discardableResult
    public func seek(
        to time: MediaTime, toleranceBefore: MediaTime = .zero, toleranceAfter: MediaTime = .zero
    ) async -> Bool {
        guard let player, player.currentItem === self else { return false }
        return await player.seek(
            to: time, toleranceBefore: toleranceBefore, toleranceAfter: toleranceAfter)
    }

    /// Ends a seek of the item that is under way with false.
    public func cancelPendingSeeks() {
        guard let player, player.currentItem === self else { return }
        player.cancelPendingSeeks()
    }
}
