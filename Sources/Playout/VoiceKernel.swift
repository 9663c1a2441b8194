import RealTime
import Timing

/// What the engine knows about the coming period, for all voices.
struct PeriodTimes: BitwiseCopyable {
    var count: Int
    /// Nominal card seconds of the period, and frames per second.
    var duration: Double
    var sampleRate: Double
    /// When the period's first frame is heard; latency offset included.
    var heard: LocalInstant
    /// When the frame behind the period's last is heard.
    var heardEnd: LocalInstant
    /// Local seconds per nominal card second.
    var cardStretch: Double
    /// Whether frames can be placed in time; without it voices stay silent.
    var isPlaceable: Bool

    /// - Parameter first: number of the period's first frame since the card's restart.
    @_noLocks @_noAllocation
    init(first: Int64, count: Int, sampleRate: Int, card: CardClock, latencyOffset: Nanoseconds) {
        self.count = count
        self.sampleRate = Double(sampleRate)
        duration = Double(count) / Double(sampleRate)
        heard = card.instant(ofFrame: Double(first)) + latencyOffset
        heardEnd = card.instant(ofFrame: Double(first) + Double(count)) + latencyOffset
        cardStretch = 1 / (1 + card.skew)
        isPlaceable = card.isUsable
    }
}

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
    private(set) var source: StartCommand?
    private var line = Line(itemFrame: 0, instant: GroupInstant(nanoseconds: 0))
    /// Takes over at its instant while another line is playing.
    private var nextLine: Line?
    /// It does not meet the line that is playing: the dip leads to it.
    private var jumps = false
    private var stopInstant: GroupInstant?
    private var stopsNow = false
    private var isReleasing = false
    /// The line jumped: fade out, anchor anew, fade in.
    private var isDipping = false
    var timeline = Timeline()
    /// The timeline is set on its target each period until the voice is heard.
    private(set) var needsAnchor = true
    /// Position in the fade: 0 silent … `fadeFrames` full.
    private var level = 0
    /// Input before this frame counts as silence.
    private var zeroBefore: Int64 = 0
    private var error = 0.0
    private var known = 0.0
    private var starvedFrames: Int64 = 0
    /// Position behind the last rendered frame, and when that is heard.
    private(set) var position = 0.0
    private var positionAt = LocalInstant(nanoseconds: 0)
    private var buffered = 0
    /// Whether the timeline says where in the item this period is.
    private var canPlay = false

    init() {}

    // Comparing enums with == would be a generic call, which the output thread must not make.

    private var isArmed: Bool {
        @_noLocks @_noAllocation get {
            if case .armed = state { true } else { false }
        }
    }
    private var isOnLine: Bool {
        @_noLocks @_noAllocation get {
            switch state {
            case .playing, .starved: true
            case .idle, .armed, .stopped, .ended: false
            }
        }
    }
    private var isActive: Bool {
        @_noLocks @_noAllocation get { isArmed || isOnLine }
    }

    // MARK: Commands

    @_noLocks @_noAllocation
    mutating func start(_ command: StartCommand) {
        let continues = isOnLine && !isReleasing
        source = command
        stopInstant = nil
        stopsNow = false
        if command.serial != serial {
            serial = command.serial
            starvedFrames = 0
        }
        if continues {
            nextLine = command.line
        } else {
            line = command.line
            nextLine = nil
            state = .armed
            isDipping = false
            jumps = false
            needsAnchor = true
            level = 0
            position = command.line.itemFrame
        }
    }

    @_noLocks @_noAllocation
    mutating func stop(at instant: GroupInstant?) {
        switch state {
        case .armed, .playing, .starved:
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
    private mutating func vacate() {
        state = .idle
        source = nil
        isReleasing = false
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
        needsAnchor = true
    }

    // MARK: One period

    /// First half of a period: sets the timeline or measures its error; before any voice renders.
    ///
    /// - Parameter sibling: the timeline of a sounding voice that follows the same clock.
    @_noLocks @_noAllocation
    mutating func follow(_ period: PeriodTimes, sibling: Timeline?) {
        canPlay = false
        error = 0
        guard let source, isActive, period.isPlaceable else { return }
        var target = period.heard.nanoseconds
        known = 0
        if let clock = unsafe source.clock {
            var latest: SharedClock?
            unsafe clock._withUnsafeGuaranteedRef { latest = $0.load() }
            guard let shared = latest, shared.quality.rawValue > 0 else {
                // Nothing to steer by: a running voice keeps its rate.
                known = timeline.skew
                canPlay = !needsAnchor
                return
            }
            target = shared.map(period.heard).nanoseconds
            known = (1 + shared.map.skew) * period.cardStretch - 1
        }
        canPlay = true
        if needsAnchor {
            if let sibling {
                timeline = sibling
            } else {
                timeline.anchor(nanoseconds: target, skew: known)
            }
            needsAnchor = isArmed
        }
        // The card's own clock is nobody else's: there is nothing to correct.
        guard source.clockAddress != 0 else { return }
        error = timeline.error(to: target)
        if error > Timeline.slewLimit || error < -Timeline.slewLimit, !needsAnchor {
            isDipping = true
        }
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
                change(to: nextLine, at: begin, period, next: target)
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
        if isReleasing, level == 0 {
            vacate()
            return true
        }
        return false
    }

    /// Seconds from `instant` to each output frame of the period.
    @_noLocks @_noAllocation
    private func timePath(
        _ period: PeriodTimes, to instant: GroupInstant, next: Double
    ) -> FramePath {
        FramePath(
            base: 0, offset: -timeline.error(to: instant.nanoseconds),
            step: (1 + timeline.skew) / period.sampleRate,
            bend: (next - timeline.skew) / (2 * Double(period.count) * period.sampleRate))
    }

    /// Frames of the item at each output frame of the period.
    @_noLocks @_noAllocation
    private func path(_ period: PeriodTimes, next: Double) -> FramePath {
        guard let source = source else {
            return FramePath(base: 0, offset: 0, step: 0, bend: 0)
        }
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

    /// Puts `new` in force at output frame `k`, continuously when it nearly meets the old line; a
    /// jump begins with a fade on the old line.
    @_noLocks @_noAllocation
    private mutating func change(to new: Line, at k: Int, _ period: PeriodTimes, next: Double) {
        let running = line
        let old = path(period, next: next)
        line = new
        let fresh = path(period, next: next)
        let sampleRate = source?.sampleRate ?? 1
        let ahead =
            (Double(fresh.base - old.base) + fresh.offset(k) - old.offset(k))
            / (sampleRate * new.rate)
        if ahead > Timeline.slewLimit || ahead < -Timeline.slewLimit {
            line = running
            isDipping = true
            jumps = true
        } else {
            nextLine = nil
            timeline.shift(bySeconds: -ahead)
        }
    }

    /// Adds the frames `range` of the period to the sum.
    @_noLocks @_noAllocation
    private mutating func play(
        _ range: Range<Int>, path: FramePath, _ period: PeriodTimes, next: Double,
        _ source: StartCommand, _ buffers: RenderBuffers, _ rendersAudio: Bool
    ) {
        guard !range.isEmpty, isActive else {
            return
        }
        let upper = range.upperBound
        let fadeFrames = buffers.fadeFrames
        let half = source.taps / 2
        // `isFinished` before `endFrame`: the end read after it is then final.
        var isFinished = false
        var held: Int64 = 0
        var firstHeld: Int64 = 0
        unsafe source.ring._withUnsafeGuaranteedRef {
            isFinished = $0.isFinished
            held = $0.endFrame
            firstHeld = $0.firstFrame
        }
        let end = min(source.endFrame, isFinished ? held : .max)

        // Where the stop's fade begins.
        var stopFall = Int.max
        if stopsNow {
            stopFall = range.lowerBound
        } else if let stopInstant {
            let time = timePath(period, to: stopInstant, next: next)
            let left = -time.offset(period.count) * period.sampleRate
            let k =
                left > 0
                ? period.count + Int(min(left, 1e9)) + 1
                : time.firstIndex(reaching: 0, count: period.count)
            stopFall = k - fadeFrames + 1  // its last step is silence, at the instant
        }

        var start = range.lowerBound
        if isArmed {
            if let stopInstant, stopInstant <= line.instant || stopsNow {
                state = .stopped
                return
            }
            let begin = line.itemFrame
            if Double(path.base) + path.offset(start) > begin + 0.5 {
                level = 0
                zeroBefore = 0
            } else if source.fadeIn {
                start = path.firstIndex(reaching: begin, count: upper)
                guard start < upper else { return }
                level = 0
                zeroBefore = 0
            } else {
                // The band-limited beginning rings half the filter's length ahead of its instant.
                start = max(start, path.firstIndex(reaching: begin - Double(half), count: upper))
                guard start < upper else { return }
                level = fadeFrames
                zeroBefore = Int64(saturating: begin)
                if Double(zeroBefore) < begin - 1e-6 { zeroBefore += 1 }
            }
            state = .playing
            needsAnchor = false
        }

        // Which output frames the ring can serve.
        let zeros = max(0, zeroBefore)
        var lowest = start
        if firstHeld > zeros {
            lowest = max(
                start, path.firstIndex(reaching: Double(firstHeld) + Double(half) - 1, count: upper)
            )
        }
        var highest = Int.max
        if end > held {
            let room = Double(held - path.base) - Double(half)
            if path.offset(upper) < room {
                highest = upper + Int(min((room - path.offset(upper)) / path.step, 1e9))
            } else {
                highest = path.firstIndex(
                    reaching: Double(held) - Double(half), count: upper)
            }
        }
        // Without the frames for a fade beyond this period, fade while there are some.
        var dataFall = Int.max
        if highest < upper + fadeFrames { dataFall = max(range.lowerBound, highest - fadeFrames) }
        if highest <= start { level = 0 }
        let fall = isDipping ? range.lowerBound : min(stopFall, dataFall)

        var isPlain = level == fadeFrames && lowest == start && fall >= upper
        var peak = level
        var stop = upper
        if !isPlain {
            var k = start
            while k < upper {
                if k < lowest || k >= highest {
                    level = 0
                } else if k >= fall {
                    level = max(0, level - 1)
                } else {
                    level = min(fadeFrames, level + 1)
                }
                if level == 0 {
                    if k >= stopFall {
                        stop = k
                        break
                    }
                    if !isDipping { starvedFrames += 1 }
                }
                peak = max(peak, level)
                unsafe buffers.gains[k] = buffers.fade[level]
                k += 1
            }
            isPlain = false
        }
        if rendersAudio, peak > 0, start < stop {
            mix(
                start..<stop, path: path, source, buffers, isPlain: isPlain,
                held: max(firstHeld, zeros)..<max(max(firstHeld, zeros), min(held, end)))
        }

        let reached = path.base.adding(saturating: Int64(saturating: path.offset(upper)))
        if stop < upper || (level == 0 && stopFall <= upper) {
            state = .stopped
            stopInstant = nil
            stopsNow = false
            position = Double(path.base) + path.offset(stop)
            release(upTo: path.base + Int64(path.offset(stop)) - Int64(half), source)
        } else if end < .max, reached >= end.adding(saturating: Int64(half)) {
            state = .ended
            position = Double(end)
            release(upTo: end, source)
        } else {
            state = level == 0 && !isDipping ? .starved : .playing
            if isDipping, level == 0 {
                isDipping = false
                needsAnchor = true
                if jumps, let nextLine {
                    line = nextLine
                    self.nextLine = nil
                }
                jumps = false
            }
            release(upTo: reached - Int64(half), source)
        }
        buffered = Int(max(0, min(held, end) - reached))
    }

    /// Gives back what lies an eighth of the ring behind `frame`; the eighth stays for a resume.
    @_noLocks @_noAllocation
    private func release(upTo frame: Int64, _ source: StartCommand) {
        unsafe source.ring._withUnsafeGuaranteedRef {
            $0.release(upTo: frame - Int64($0.capacityFrames / 8))
        }
    }

    /// Resamples in pieces whose input fits the buffers.
    @_noLocks @_noAllocation
    private func mix(
        _ range: Range<Int>, path: FramePath, _ source: StartCommand, _ buffers: RenderBuffers,
        isPlain: Bool, held: Range<Int64>
    ) {
        let taps = source.taps
        let fitting = Double(RenderBuffers.inputFrames - taps - 4) / (path.step * 1.001)
        let piece = max(1, Int(min(fitting, 1e6)))
        var k = range.lowerBound
        while k < range.upperBound {
            let end = min(range.upperBound, k + piece)
            var lowest = Int(path.offset(k))
            if Double(lowest) > path.offset(k) { lowest -= 1 }
            let span = min(
                RenderBuffers.inputFrames, Int(path.offset(end - 1)) - lowest + taps + 2)
            let first = path.base + Int64(lowest - taps / 2 + 1)
            let from = max(first, min(held.lowerBound, first + Int64(span)))
            let to = max(from, min(first + Int64(span), held.upperBound))
            let lead = Int(from - first)
            let count = Int(to - from)
            for i in 0..<lead {
                unsafe buffers.inputLeft[i] = 0
                unsafe buffers.inputRight[i] = 0
            }
            if count > 0 {
                unsafe source.ring._withUnsafeGuaranteedRef {
                    unsafe $0.copy(
                        from: from, count: count, left: buffers.inputLeft + lead,
                        right: buffers.inputRight + lead)
                }
            }
            for i in lead + count..<span {
                unsafe buffers.inputLeft[i] = 0
                unsafe buffers.inputRight[i] = 0
            }
            unsafe Resampler.add(
                outputs: k..<end, path: path, origin: lowest, rows: source.rows, taps: taps,
                buffers: buffers, gains: isPlain ? nil : UnsafePointer(buffers.gains))
            k = end
        }
    }

    // MARK: Report

    @_noLocks @_noAllocation
    func report() -> VoiceReport {
        VoiceReport(
            state: state, itemFrame: position, at: positionAt,
            errorNanoseconds: error * 1e9, ratioPartsPerMillion: timeline.skew * 1e6,
            bufferedFrames: buffered, starvedFrames: starvedFrames)
    }
}
