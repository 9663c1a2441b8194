import TuttiRealTime
import TuttiTiming

/// What a voice's ring can serve at this moment.
struct Supply: BitwiseCopyable {
    var first: Int64 = 0
    var held: Int64 = 0
    /// The end of the item; `.max` while it is not known.
    var end = Int64.max

    @_noLocks @_noAllocation
    init(_ source: StartCommand) {
        // `isFinished` before `endFrame`: the end read after it is then final.
        var isFinished = false
        var held: Int64 = 0
        var first: Int64 = 0
        unsafe source.ring._withUnsafeGuaranteedRef {
            isFinished = $0.isFinished
            held = $0.endFrame
            first = $0.firstFrame
        }
        self.first = first
        self.held = held
        end = min(source.endFrame, isFinished ? held : .max)
    }

    /// The output frame behind the last whose input is there; may lie beyond `count`.
    @_noLocks @_noAllocation
    func limit(of path: FramePath, half: Int, count: Int) -> Int {
        guard end > held else { return .max }
        let room = Double(held - path.base) - Double(half)
        if path.offset(count) < room {
            return count + Int(min((room - path.offset(count)) / path.step, 1e9))
        }
        return path.firstIndex(reaching: Double(held) - Double(half), count: count)
    }
}

extension VoiceKernel {
    /// Adds the frames `range` of the period to the sum.
    @_noLocks @_noAllocation
    mutating func play(
        _ range: Range<Int>, path: FramePath, _ period: PeriodTimes, next: Double,
        _ source: StartCommand, _ buffers: RenderBuffers, _ rendersAudio: Bool
    ) {
        guard !range.isEmpty, isActive else { return }
        let upper = range.upperBound
        let fadeFrames = buffers.fadeFrames
        let half = source.taps / 2
        let start =
            isArmed
            ? enter(range, path: path, half: half, fadeFrames: fadeFrames, source)
            : range.lowerBound
        guard start < upper else { return }

        // Which output frames the ring can serve. Without enough for a fade beyond this period,
        // fade while there are some.
        let supply = Supply(source)
        let zeros = max(0, zeroBefore)
        var lowest = start
        if supply.first > zeros {
            let reached = Double(supply.first) + Double(half) - 1
            lowest = max(start, path.firstIndex(reaching: reached, count: upper))
        }
        let highest = supply.limit(of: path, half: half, count: upper)
        var dataFall = Int.max
        if highest < upper + fadeFrames { dataFall = max(range.lowerBound, highest - fadeFrames) }
        if highest <= start { level = 0 }
        let stopFall = stopFall(range, period, next: next, fadeFrames: fadeFrames)
        let fall = isDipping ? range.lowerBound : min(stopFall, dataFall)

        let isPlain =
            level == fadeFrames && lowest == start && fall >= upper && ghost == nil && gain.isUnity
        var peak = level
        var stop = upper
        var k = isPlain ? upper : start
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
                if hasSounded, !isDipping {
                    starvedFrames += 1
                    starvedFramesEver += 1
                }
            }
            peak = max(peak, level)
            unsafe buffers.gains[k] = buffers.fade[level] * gain.next()
            k += 1
        }
        if peak > 0, start < stop { hasSounded = true }
        if peak > 0, start < stop {
            mixGhost(start..<stop, period, source, buffers, rendersAudio)
        }
        if rendersAudio, peak > 0, start < stop {
            let from = max(supply.first, zeros)
            unsafe mix(
                start..<stop, path: path, source, buffers,
                gains: isPlain ? nil : UnsafePointer(buffers.gains),
                held: from..<max(from, min(supply.held, supply.end)))
        }
        let isStopped = stop < upper || (level == 0 && stopFall <= upper)
        conclude(path, at: isStopped ? stop : nil, count: upper, half: half, supply, source)
    }

    /// Where in the period an armed voice begins to sound; the upper bound: not yet.
    @_noLocks @_noAllocation
    private mutating func enter(
        _ range: Range<Int>, path: FramePath, half: Int, fadeFrames: Int, _ source: StartCommand
    ) -> Int {
        let upper = range.upperBound
        if let stopInstant, stopInstant <= line.instant {
            state = .stopped
            return upper
        }
        let begin = line.itemFrame
        var start = range.lowerBound
        let isLate = Double(path.base) + path.offset(start) > begin + 0.5
        if isLate || source.fadeIn {
            if !isLate { start = path.firstIndex(reaching: begin, count: upper) }
            guard start < upper else { return upper }
            level = 0
            zeroBefore = 0
        } else {
            // The band-limited beginning rings half the filter's length ahead of its instant.
            start = max(start, path.firstIndex(reaching: begin - Double(half), count: upper))
            guard start < upper else { return upper }
            level = fadeFrames
            zeroBefore = Int64(saturating: begin)
            if Double(zeroBefore) < begin - 1e-6 { zeroBefore += 1 }
        }
        state = .playing
        needsAnchor = false
        return start
    }

    /// The output frame at which the fade of a stop begins; may lie outside the period.
    @_noLocks @_noAllocation
    private func stopFall(
        _ range: Range<Int>, _ period: PeriodTimes, next: Double, fadeFrames: Int
    ) -> Int {
        if stopsNow { return range.lowerBound }
        guard let stopInstant else { return .max }
        let time = timePath(period, to: stopInstant, next: next)
        let left = -time.offset(period.count) * period.sampleRate
        let k =
            left > 0
            ? period.count + Int(min(left, 1e9)) + 1
            : time.firstIndex(reaching: 0, count: period.count)
        return k - fadeFrames + 1  // its last step is silence, at the instant
    }

    /// Settles the state behind output frame `count`, and gives used frames back to the ring.
    ///
    /// - Parameter stop: the first frame of the silence of a stop.
    @_noLocks @_noAllocation
    private mutating func conclude(
        _ path: FramePath, at stop: Int?, count: Int, half: Int, _ supply: Supply,
        _ source: StartCommand
    ) {
        let reached = path.base.adding(saturating: Int64(saturating: path.offset(count)))
        buffered = Int(max(0, min(supply.held, supply.end) - reached))
        if let stop {
            state = .stopped
            stopInstant = nil
            stopsNow = false
            position = Double(path.base) + path.offset(stop)
            release(upTo: path.base + Int64(path.offset(stop)) - Int64(half), source)
        } else if supply.end < .max, reached >= supply.end.adding(saturating: Int64(half)) {
            state = .ended
            position = Double(supply.end)
            release(upTo: supply.end, source)
        } else {
            state = level == 0 && !isDipping ? .starved : .playing
            if isDipping, level == 0 {
                isDipping = false
                needsAnchor = true
                zeroBefore = 0
                if jumps, let nextLine {
                    line = nextLine
                    self.nextLine = nil
                }
                jumps = false
            }
            release(upTo: reached - Int64(half), source)
        }
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
    func mix(
        _ range: Range<Int>, path: FramePath, _ source: StartCommand, _ buffers: RenderBuffers,
        gains: UnsafePointer<Float>?, held: Range<Int64>
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
                buffers: buffers, gains: gains)
            k = end
        }
    }
}
