import TuttiRealTime

/// What a voice played before it jumped: it goes on for a cross-fade, ever softer.
struct Ghost: BitwiseCopyable {
    var timeline: Timeline
    var line: Line
    /// Output frame of the running period at which the cross-fade begins; 0 in the next.
    var from: Int
    /// Frames of the cross-fade in the periods before.
    var done = 0

    @_noLocks @_noAllocation
    init(timeline: Timeline, line: Line, from: Int) {
        self.timeline = timeline
        self.line = line
        self.from = from
    }

    /// Steps of the cross-fade that are behind at output frame `k`.
    @_noLocks @_noAllocation
    func step(at k: Int, of count: Int) -> Int { max(0, min(count, done + k - from)) }
}

/// The ladder of a voice that is not where its line is: up to 5 ms are slewed, or 200 µs where the
/// line was moved at once (``Timeline``). Up to a second, one cross-fade of 15 ms leads from the old
/// place to the new: both are in the ring as a rule, and 15 ms of two copies of the same music are a
/// passing colour where a gap would be a hole. Beyond, or when the new place is not in the ring, the voice falls silent for 5 ms, goes
/// there and comes back.
extension VoiceKernel {
    /// The timeline is off by more than can be slewed.
    @_noLocks @_noAllocation
    mutating func resync(
        _ period: PeriodTimes, _ buffers: RenderBuffers, _ source: StartCommand
    ) {
        guard !isDipping else { return }
        var anchored = timeline
        anchored.anchor(nanoseconds: target, skew: known)
        let old = Self.path(timeline, line, source, period, next: timeline.skew)
        let fresh = Self.path(anchored, line, source, period, next: known)
        guard canCross(from: old, to: fresh, by: error, at: 0, period, buffers, source) else {
            isDipping = true
            return
        }
        ghost = Ghost(timeline: timeline, line: line, from: 0)
        timeline = anchored
        error = 0
    }

    /// Whether the ring holds what a cross-fade from output frame `k` on needs, at both places.
    @_noLocks @_noAllocation
    func canCross(
        from old: FramePath, to fresh: FramePath, by seconds: Double, at k: Int,
        _ period: PeriodTimes, _ buffers: RenderBuffers, _ source: StartCommand
    ) -> Bool {
        guard ghost == nil, !isDipping, level == buffers.fadeFrames,
            seconds < Timeline.crossLimit, seconds > -Timeline.crossLimit
        else { return false }
        let supply = Supply(source)
        let first = max(supply.first, max(0, zeroBefore))
        let end = min(supply.held, supply.end)
        let half = Int64(source.taps / 2 + 2)
        let length = period.count + buffers.crossFrames
        return Self.holds(first + half..<max(first + half, end - half), old, k, length)
            && Self.holds(first + half..<max(first + half, end - half), fresh, k, length)
    }

    @_noLocks @_noAllocation
    private static func holds(
        _ held: Range<Int64>, _ path: FramePath, _ k: Int, _ length: Int
    ) -> Bool {
        // Straight on behind the period: the bend of one period means nothing there.
        let low = Double(path.base) + path.offset(k)
        let high = Double(path.base) + path.offset + path.step * Double(length)
        return low >= Double(held.lowerBound) && high < Double(held.upperBound)
    }

    /// Splits the gains of `range` between what is played and the ghost, and adds the ghost.
    @_noLocks @_noAllocation
    func mixGhost(
        _ range: Range<Int>, _ period: PeriodTimes, _ source: StartCommand,
        _ buffers: RenderBuffers, _ rendersAudio: Bool
    ) {
        guard let ghost else { return }
        let count = buffers.crossFrames
        for k in range {
            let step = ghost.step(at: k, of: count)
            unsafe buffers.ghostGains[k] = buffers.gains[k] * buffers.cross[count - step]
            unsafe buffers.gains[k] *= buffers.cross[step]
        }
        guard rendersAudio else { return }
        let path = Self.path(
            ghost.timeline, ghost.line, source, period, next: ghost.timeline.skew)
        let supply = Supply(source)
        let from = max(supply.first, max(0, zeroBefore))
        let end = min(range.upperBound, max(range.lowerBound, ghost.from + count - ghost.done))
        unsafe mix(
            range.lowerBound..<end, path: path, source, buffers, gains: buffers.ghostGains,
            held: from..<max(from, min(supply.held, supply.end)))
    }

    /// The period is over.
    @_noLocks @_noAllocation
    mutating func advanceGhost(_ period: PeriodTimes, _ buffers: RenderBuffers) {
        guard var old = ghost else { return }
        old.done += period.count - old.from
        old.from = 0
        old.timeline.advance(seconds: period.duration, to: old.timeline.skew)
        ghost = old.done < buffers.crossFrames && isOnLine && !needsAnchor ? old : nil
    }
}
