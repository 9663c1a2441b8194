import TuttiGroupControl
import TuttiPlayout
import TuttiTiming

/// One output: the engine that runs on the output thread, and a card whose every frame's instant
/// is known.
@safe final class SimulatedOutput {
    /// Four periods of 10 ms; a real card holds 80 ms unless told otherwise, so this one runs dry
    /// sooner.
    static let format = OutputFormat(
        sampleRate: 48_000, channelCount: 2, periodFrames: 480, bufferFrames: 1_920)
    /// From handing a frame over until it is heard.
    static let latency = Nanoseconds.milliseconds(40)
    /// Periods remembered: all that can be queued, and some that were heard.
    private static let remembered = 16

    /// Output frames; not less than half of the longest filter.
    private static let filterReach = 64.0

    /// A line's beginning or end as it was heard.
    struct Boundary {
        enum Kind { case begin, joined, end }
        var kind: Kind
        var key: LineKey
        var instant: LocalInstant
    }

    let engine: OutputEngine
    private var card: VirtualCard
    /// A twin of the card's crystal: asked for past and future without moving the card's own.
    private var truth: Crystal
    private var startTick: Double?
    private let period: UnsafeMutableBufferPointer<Float>
    private var periods: [PeriodTrace] = []
    /// Number of the next frame since the card's last restart.
    private var nextFrame: Int64 = 0
    private(set) var steps = 0
    private(set) var audio = AudioCheck()
    var restarts: Int { card.restarts }
    var starvedFrames: Int64 { starvedBefore + starvedNow.values.reduce(0, +) }
    private var starvedBefore: Int64 = 0
    private var starvedNow: [UInt64: Int64] = [:]

    init(crystal: Crystal, fidelity: OutputEngine.Fidelity) {
        engine = OutputEngine(format: Self.format, fidelity: fidelity)
        card = VirtualCard(format: Self.format, crystal: crystal)
        truth = crystal
        audio.isEnabled = fidelity == .audio
        unsafe period = .allocate(capacity: Self.format.periodFrames * Self.format.channelCount)
        unsafe period.initialize(repeating: 0)
    }

    deinit { unsafe period.deallocate() }

    /// What the output thread does when it wakes: fills the card.
    ///
    /// - Returns: the lines that begin or end in what was rendered, and when to wake again.
    func run(
        at now: LocalInstant, reports: () -> [(trace: VoiceTrace, report: VoiceReport)]
    ) -> (boundaries: [Boundary], next: LocalInstant) {
        let format = Self.format
        if advance(to: now) == .restarted {
            engine.restarted()
            startTick = nil
            nextFrame = 0
            periods = []
            for (trace, _) in reports() { trace.lastEnd = nil }
        }
        var boundaries: [(Boundary.Kind, LineKey, Double)] = []
        while card.writableFrames >= format.periodFrames {
            if let reading = card.reading(at: now) { engine.observe(reading) }
            if let base = unsafe period.baseAddress { unsafe engine.render(into: base, now: now) }
            let first = nextFrame
            nextFrame += Int64(format.periodFrames)
            unsafe card.write(UnsafeBufferPointer(period), now: now)
            if startTick == nil, card.isRunning { startTick = truth.frames(at: now) }
            record(first, reports(), &boundaries)
        }
        let due = Double(nextFrame - Int64(format.bufferFrames - format.periodFrames))
        return (
            boundaries.compactMap { kind, key, frame in
                instant(ofFrame: frame).map { Boundary(kind: kind, key: key, instant: $0) }
            }, (instant(ofFrame: due) ?? now) + .microseconds(1)
        )
    }

    /// What leaves the card at a local instant, and where in its item.
    func sounding(at instant: LocalInstant) -> (voice: VoiceTrace, position: Double)? {
        guard let startTick else { return nil }
        return sounding(atFrame: truth.frames(at: instant) - startTick)
    }

    private func sounding(atFrame frame: Double) -> (voice: VoiceTrace, position: Double)? {
        for period in periods.reversed()
        where Double(period.firstFrame) <= frame && frame < Double(period.endFrame) {
            return period.sounding(at: frame)
        }
        return nil
    }

    private func instant(ofFrame frame: Double) -> LocalInstant? {
        startTick.map { truth.instant(ofFrame: $0 + frame).instant }
    }

    private func advance(to now: LocalInstant) -> OutputEvent {
        guard audio.isEnabled else { return card.advance(to: now) }
        var check = audio
        let event = card.advance(to: now) { samples, first in
            check.take(samples, firstFrame: first) { self.sounding(atFrame: $0) }
        }
        audio = check
        return event
    }

    // MARK: Recording

    private func record(
        _ first: Int64, _ reports: [(trace: VoiceTrace, report: VoiceReport)],
        _ boundaries: inout [(Boundary.Kind, LineKey, Double)]
    ) {
        var trace = PeriodTrace(firstFrame: first, count: Self.format.periodFrames)
        for (voice, report) in reports {
            countStarved(voice, report)
            guard let key = voice.key, !voice.hasEnded else { continue }
            switch report.state {
            case .idle, .armed: continue
            case .starved:
                voice.lastEnd = report.itemFrame
                continue
            case .stopped, .ended: voice.hasEnded = true
            case .playing: break
            }
            let nominal = voice.sampleRate * key.change.rate / Double(Self.format.sampleRate)
            let expected = nominal * (1 + report.ratioPartsPerMillion * 1e-6)
            var step = expected
            var end = report.itemFrame
            if let last = voice.lastEnd {
                if voice.hasEnded {
                    // The report says where silence began; the line goes on.
                    end = last + expected * Double(trace.count)
                } else {
                    step = (end - last) / Double(trace.count)
                    if ((step - expected) * Double(trace.count)).magnitude > 1 { steps += 1 }
                }
            } else if voice.hasEnded {
                continue
            }
            let begin = end - step * Double(trace.count)
            // A line that begins between two periods is heard from the first frame on.
            let hasMissed = begin > voice.from + step
            if !voice.hasBegun {
                voice.hasBegun = true
                let frame = (end - voice.from) / step
                boundaries.append(
                    hasMissed
                        ? (.joined, key, Double(first))
                        : (.begin, key, Double(trace.endFrame) - frame))
            }
            // The voice says so once the last frame has left its filter: up to a period later.
            let reach = nominal * Self.filterReach
            if voice.hasEnded, voice.to >= begin - reach, voice.to <= end + reach {
                boundaries.append(
                    (.end, key, Double(trace.endFrame) - (end - voice.to) / step))
            }
            voice.lastEnd = end
            trace.parts.append(
                PeriodTrace.Part(
                    voice: voice, end: end, step: step,
                    heard: max(begin, voice.from)..<max(begin, voice.from, end)))
        }
        periods.append(trace)
        if periods.count > Self.remembered { periods.removeFirst() }
    }

    private func countStarved(_ voice: VoiceTrace, _ report: VoiceReport) {
        if report.starvedFrames > 0 { starvedNow[voice.id] = report.starvedFrames }
    }
}
