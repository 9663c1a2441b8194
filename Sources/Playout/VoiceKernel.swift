import TuttiRealTime
import TuttiTiming

/// The output thread's side of one voice: decides which part of the item each output frame shows.
///
/// ```
/// idle ──start──► armed ──the line's beginning──► playing ◄──frames come/run out──► starved
///                   ▲                               │ stop          │ end of item
///                   └───────────── start ────── stopped            ended
/// ```
///
/// The position always follows the line: a voice that had nothing to play comes back where the line
/// is, never late. Each interruption ends in a fade.
@safe struct VoiceKernel: BitwiseCopyable {
    var state = VoiceState.idle
    var serial: UInt64 = 0
    /// Of the last start, as its owner counts.
    var number: UInt64 = 0
    var source: StartCommand?
    var line = Line(itemFrame: 0, instant: GroupInstant(nanoseconds: 0))
    /// Takes over at its instant while another line is playing.
    var nextLine: Line?
    /// It does not meet the line that is playing: the dip leads to it.
    var jumps = false
    var stopInstant: GroupInstant?
    var stopsNow = false
    var isReleasing = false
    /// The line jumped, and the place it jumped to is not there yet: fade out, anchor anew, fade
    /// in.
    var isDipping = false
    /// The line jumped: what was played until now, fading out under what is played from now on.
    var ghost: Ghost?
    /// Where the timeline should be at the period's first frame, clock nanoseconds.
    var target: Int64 = 0
    var timeline = Timeline()
    /// The timeline is set on its target each period until the voice is heard.
    var needsAnchor = true
    /// It was set on the line's beginning instead, which was over: time of the output begins late.
    var beganLate = false
    /// Position in the fade: 0 silent … `fadeFrames` full.
    var level = 0
    /// Input before this frame counts as silence.
    var zeroBefore: Int64 = 0
    var error = 0.0
    var known = 0.0
    /// Of the clock that the target came from.
    var clockEpoch: UInt64 = 0
    /// That the target came from; nanoseconds.
    var latencyOffset: Int64 = 0
    /// One of the two is another than in the period before.
    var isMoved = false
    var starvedFrames: Int64 = 0
    /// Of all voices this slot has served.
    var starvedFramesEver: Int64 = 0
    /// Silence before the first frame is waiting, after it a gap.
    var hasSounded = false
    /// Of its own, under the fades and the mixer's.
    var gain = VoiceGain()
    /// Position behind the last rendered frame, and when that is heard.
    var position = 0.0
    var positionAt = LocalInstant(nanoseconds: 0)
    var buffered = 0
    /// Whether the timeline says where in the item this period is.
    var canPlay = false

    init() {}

    // Comparing enums with == would be a generic call, which the output thread must not make.

    var isArmed: Bool {
        @_noLocks @_noAllocation get {
            if case .armed = state { true } else { false }
        }
    }
    var isOnLine: Bool {
        @_noLocks @_noAllocation get {
            switch state {
            case .playing, .starved: true
            case .idle, .armed, .stopped, .ended: false
            }
        }
    }
    var isActive: Bool {
        @_noLocks @_noAllocation get { isArmed || isOnLine }
    }

    // MARK: Commands

    @_noLocks @_noAllocation
    mutating func start(_ command: StartCommand) {
        let continues = isOnLine && !isReleasing
        source = command
        number = command.number
        stopInstant = nil
        stopsNow = false
        if command.serial != serial {
            serial = command.serial
            starvedFrames = 0
            hasSounded = false
            // What the slot served before had its own.
            gain.set(command.gain, rampFrames: 0)
        }
        if continues {
            nextLine = command.line
        } else {
            line = command.line
            nextLine = nil
            state = .armed
            isDipping = false
            jumps = false
            ghost = nil
            needsAnchor = true
            beganLate = false
            level = 0
            position = command.line.itemFrame
        }
    }

    @_noLocks @_noAllocation
    mutating func setGain(_ linear: Float, serial: UInt64, rampFrames: Int) {
        // What follows in the slot brings its own.
        guard serial == self.serial else { return }
        gain.set(linear, rampFrames: isSounding ? rampFrames : 0)
    }

    @_noLocks @_noAllocation
    mutating func stop(at instant: GroupInstant?) {
        switch state {
        case .armed:
            if let instant { stopInstant = instant } else { state = .stopped }
        case .playing, .starved:
            if let instant { stopInstant = instant } else { stopsNow = true }
        case .idle, .stopped, .ended: break
        }
    }

    /// - Returns: whether the voice is silent and gone already.
    @_noLocks @_noAllocation
    mutating func release(fades: Bool) -> Bool {
        if fades, level > 0, isOnLine {
            stopsNow = true
            isReleasing = true
            return false
        }
        vacate()
        return true
    }

    @_noLocks @_noAllocation
    mutating func vacate() {
        state = .idle
        source = nil
        isReleasing = false
        ghost = nil
        level = 0
    }

    /// Whether other voices of its clock must take over its timeline.
    var leads: Bool {
        @_noLocks @_noAllocation get { isSounding && !isDipping }
    }

    /// Whether it is on its line, and its timeline is steered and no longer set.
    var isSounding: Bool {
        @_noLocks @_noAllocation get { isOnLine && !needsAnchor }
    }

    /// The card broke off: what was queued is lost, nothing can be faded out.
    @_noLocks @_noAllocation
    mutating func interrupt() {
        guard isOnLine else { return }
        level = 0
        isDipping = false
        jumps = false
        ghost = nil
        needsAnchor = true
        beganLate = false
        zeroBefore = 0
    }

    /// The output has another rate from now on; position and line stay.
    @_noLocks @_noAllocation
    mutating func adopt(rows: UnsafePointer<SIMD8<Float>>, taps: Int) {
        guard var changed = source else { return }
        unsafe changed.rows = rows
        changed.taps = taps
        source = changed
        // Counted in frames of the rate before.
        level = 0
        ghost = nil
    }

    // MARK: One period

    /// First half of a period: sets the timeline or measures its error; before any voice renders.
    ///
    /// - Parameter sibling: the timeline of a sounding voice that follows the same clock.
    @_noLocks @_noAllocation
    mutating func follow(_ period: PeriodTimes, sibling: Timeline?) {
        canPlay = false
        error = 0
        isMoved = false
        guard let source, isActive else { return }
        // Nothing to steer by: a running voice keeps its rate.
        known = timeline.skew
        canPlay = !needsAnchor
        guard period.isPlaceable else { return }
        target = period.heard.nanoseconds
        var next = 0.0
        if let clock = unsafe source.clock {
            var latest: SharedClock?
            unsafe clock._withUnsafeGuaranteedRef { latest = $0.load() }
            guard let shared = latest, shared.quality.rawValue > 0 else { return }
            if needsAnchor, Self.isTooVague(shared) { return }
            isMoved = shared.epoch != clockEpoch || period.latencyOffset.count != latencyOffset
            clockEpoch = shared.epoch
            latencyOffset = period.latencyOffset.count
            target = shared.map(period.heard).nanoseconds
            next = (1 + shared.map.skew) * period.cardStretch - 1
        }
        known = next
        canPlay = true
        if needsAnchor {
            if let sibling {
                timeline = sibling
            } else if beganLate, !isArmed {
                // It has begun, and goes on from there.
                beganLate = false
            } else if unsafe source.waits, source.clock == nil, isArmed,
                target > line.instant.nanoseconds
            {
                timeline.anchor(nanoseconds: line.instant.nanoseconds, skew: known)
                beganLate = true
            } else {
                timeline.anchor(nanoseconds: target, skew: known)
            }
            needsAnchor = isArmed
        }
        // The card's own clock is nobody else's: there is nothing to correct.
        guard source.clockAddress != 0 else { return }
        error = timeline.error(to: target)
    }

    /// Silence is better than sound that is out of step with the other rooms: a voice waits while
    /// the clock is being found and may be wrong by more than a millisecond. That passes in a
    /// second or two. A voice that sounds plays on whatever the bound (a leader that died, a path
    /// that is congested: the line is still the best there is), and one that comes into a group
    /// without a leader plays by the line that the others play by.
    @_noLocks @_noAllocation
    private static func isTooVague(_ clock: SharedClock) -> Bool {
        if case .acquiring = clock.quality { clock.uncertainty.count > 1_000_000 } else { false }
    }

    /// Second half of a period: adds the voice to the sum and moves its timeline on.
    ///
    /// - Returns: whether the voice has been released and is now silent.
    @_noLocks @_noAllocation
    mutating func render(
        _ period: PeriodTimes, buffers: RenderBuffers, rendersAudio: Bool
    ) -> Bool {
        guard canPlay, let source else {
            if isReleasing {
                vacate()
                return true
            }
            if stopsNow, isActive {
                state = .stopped
            }
            return false
        }
        let limit = isMoved ? Timeline.moveLimit : Timeline.slewLimit
        if error > limit || error < -limit, !needsAnchor {
            resync(period, buffers, source)
        }
        let next = timeline.servoed(error: error, known: known, duration: period.duration)
        let target = unsafe source.clock == nil ? 0 : next
        var begin = 0
        if let nextLine, !isDipping {
            let time = timePath(period, to: nextLine.instant, next: target)
            begin = time.firstIndex(reaching: 0, count: period.count)
            if begin < period.count {
                play(
                    0..<begin, path: path(period, next: target), period, next: target, source,
                    buffers, rendersAudio)
                change(to: nextLine, at: begin, period, buffers, source, next: target)
            } else {
                begin = 0
            }
        }
        let path = path(period, next: target)
        play(
            begin..<period.count, path: path, period, next: target, source, buffers, rendersAudio)
        if isOnLine { position = Double(path.base) + path.offset(period.count) }
        positionAt = period.heardEnd
        timeline.advance(seconds: period.duration, to: target)
        advanceGhost(period, buffers)
        if isReleasing, level == 0 {
            vacate()
            return true
        }
        return false
    }

    /// Seconds from `instant` to each output frame of the period.
    @_noLocks @_noAllocation
    func timePath(
        _ period: PeriodTimes, to instant: GroupInstant, next: Double
    ) -> FramePath {
        FramePath(
            base: 0, offset: -timeline.error(to: instant.nanoseconds),
            step: (1 + timeline.skew) / period.sampleRate,
            bend: (next - timeline.skew) / (2 * Double(period.count) * period.sampleRate))
    }

    /// Frames of the item at each output frame of the period.
    @_noLocks @_noAllocation
    func path(_ period: PeriodTimes, next: Double) -> FramePath {
        guard let source = source else {
            return FramePath(base: 0, offset: 0, step: 0, bend: 0)
        }
        return Self.path(timeline, line, source, period, next: next)
    }

    /// The same on any timeline and line.
    @_noLocks @_noAllocation
    static func path(
        _ timeline: Timeline, _ line: Line, _ source: StartCommand, _ period: PeriodTimes,
        next: Double
    ) -> FramePath {
        // Whole seconds and the rest apart: at rate 1 the first product is a whole number.
        let elapsed = timeline.nanoseconds.subtracting(saturating: line.instant.nanoseconds)
        let seconds = elapsed / 1_000_000_000
        let rest = Double(elapsed - seconds * 1_000_000_000) + timeline.fraction
        let speed = source.sampleRate * line.rate
        let coarse = Double(seconds) * speed
        let base = Int64(saturating: coarse).adding(saturating: Int64(saturating: line.itemFrame))
        let start =
            (coarse - Double(Int64(saturating: coarse)))
            + (line.itemFrame - Double(Int64(saturating: line.itemFrame))) + rest * 1e-9 * speed
        // Keep the offset within a second's worth of frames: base takes the whole part.
        let whole = Int64(saturating: start)
        let step = speed / period.sampleRate
        return FramePath(
            base: base.adding(saturating: whole), offset: start - Double(whole),
            step: step * (1 + timeline.skew),
            bend: step * (next - timeline.skew) / (2 * Double(period.count)))
    }

    /// Puts `new` in force at output frame `k`: continuously when it nearly meets the old line,
    /// else as a cross-fade or a dip.
    @_noLocks @_noAllocation
    private mutating func change(
        to new: Line, at k: Int, _ period: PeriodTimes, _ buffers: RenderBuffers,
        _ source: StartCommand, next: Double
    ) {
        let running = line
        let old = path(period, next: next)
        line = new
        let fresh = path(period, next: next)
        let ahead =
            (Double(fresh.base - old.base) + fresh.offset(k) - old.offset(k))
            / (source.sampleRate * new.rate)
        if ahead <= Timeline.slewLimit, ahead >= -Timeline.slewLimit {
            nextLine = nil
            timeline.shift(bySeconds: -ahead)
        } else if canCross(from: old, to: fresh, by: ahead, at: k, period, buffers, source) {
            nextLine = nil
            ghost = Ghost(timeline: timeline, line: running, from: k)
        } else {
            line = running
            isDipping = true
            jumps = true
        }
    }

    // MARK: Report

    @_noLocks @_noAllocation
    func report() -> VoiceReport {
        VoiceReport(
            state: state, itemFrame: position, at: positionAt,
            errorNanoseconds: error * 1e9, ratioPartsPerMillion: timeline.skew * 1e6,
            bufferedFrames: buffered, starvedFrames: starvedFrames, number: number)
    }
}
