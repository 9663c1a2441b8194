import TuttiRealTime
public import TuttiTiming

/// Renders the periods of one card: all voices, each at its place on its line, summed and mixed.
///
/// Confined to the output thread (or to a simulation). The thread calls, again and again,
/// ``observe(_:)`` with each look at the card, then ``render(into:now:)`` for the next period, and
/// ``restarted()`` when the card has broken off. No call locks, allocates or waits.
///
/// Frame 0 of the card is the first frame rendered after `init` or `restarted()`: frames that a
/// shell writes by itself must not be counted in the readings.
@safe public final class OutputEngine {
    /// Whether sound is computed: a simulation of many rooms needs the positions only.
    public enum Fidelity: Sendable { case audio, positionsOnly }

    /// Without any reading from the card this long, assume that it plays at the nominal rate.
    private let patienceSeconds = 0.3
    /// Looks between two periods at a settled card: 300 a second whatever the period.
    private var glanceLimit: Int {
        @_noLocks @_noAllocation get { hasLongPeriods ? 5 : 2 }
    }
    /// Between two looks at a settled card with short periods, seconds: 2 a period would cost more
    /// than the sound.
    private let glanceSpacing = 2e-3
    /// Longer than this, in seconds, there is time for more looks between two periods.
    private let longPeriod = 15e-3
    /// Between two looks at a card that is not known yet, seconds.
    private let probingSpacing = 1e-3
    /// A look so short before a period is due would only delay it.
    private let glanceMargin = Nanoseconds.microseconds(200)

    /// What the card is open with; the card that comes next may have another.
    public private(set) var format: OutputFormat
    /// Its control side, for every other thread.
    public let port: OutputPort
    private let fidelity: Fidelity
    private let link: PortLink
    private var buffers: RenderBuffers
    private let voiceCount = OutputPort.voiceLimit
    private let voices: UnsafeMutablePointer<VoiceKernel>
    private var card: CardClock
    private var mixer = Mixer()
    private var settings = OutputSettings()
    /// Since the last restart: the number of the next frame.
    private var nextFrame: Int64 = 0
    private var framesBefore: Int64 = 0
    /// Frames between the ring and the ear: the most that was seen lately. Too much only wakes the
    /// thread before there is room; too little, and the ring runs dry.
    private var framesAhead = 0.0
    private var restarts = 0
    private var glances = 0
    /// Of the last plan.
    private var glance: LocalInstant?
    private var wakeFloor = WakeFloor()
    private var scatter = 0.0
    /// Every other wait is for the card itself, or for nothing: the second period of a pair is due
    /// with the first.
    private var isOtherTurn = false

    /// An engine for a card of that format; traps where no card can have it.
    public init(format: OutputFormat, fidelity: Fidelity = .audio) {
        Self.check(format)
        self.format = format
        self.fidelity = fidelity
        port = OutputPort(format: format)
        link = PortLink(port)
        card = CardClock(sampleRate: format.sampleRate, periodFrames: format.periodFrames)
        buffers = RenderBuffers(for: format)
        unsafe voices = .allocate(capacity: OutputPort.voiceLimit)
        unsafe voices.initialize(repeating: VoiceKernel(), count: OutputPort.voiceLimit)
    }

    private static func check(_ format: OutputFormat) {
        precondition(
            (1_000...768_000).contains(format.sampleRate) && (1...64).contains(format.channelCount)
                && (1...65_536).contains(format.periodFrames), "not a playable format: \(format)")
    }

    deinit {
        buffers.deallocate()
        unsafe voices.deallocate()
        link.deallocate()
    }

    // MARK: The card

    /// Takes in one look at the card. Several per period are welcome.
    ///
    /// - Parameter isGlance: whether the thread has slept until the glance of the last plan, and
    ///   was not woken by the card.
    @_noLocks @_noAllocation
    public func observe(_ reading: CardReading, isGlance: Bool = false) {
        let anchors = card.anchors
        card.observe(reading)
        if isGlance, let glance { wakeFloor.take(reading.instant - glance) }
        // Both are right together only: as long as the line is that of a longer way to the ear, it
        // says when there is room by that length.
        let isNew = card.anchors != anchors
        let least = isNew ? reading.framesAhead : framesAhead - aheadDecay
        framesAhead = max(reading.framesAhead, least)
    }

    /// By how much less is believed from reading to reading, frames: ways that change by the packet
    /// come back to their longest.
    private var aheadDecay: Double {
        @_noLocks @_noAllocation get { 4 }
    }

    /// When the thread should run next: to render, or only to look at the card.
    ///
    /// A pointer that moves in large steps is right just after a step only. A step is met when the
    /// card wakes the thread, and by looking at scattered moments between two periods. A card
    /// that is not known yet is looked at every millisecond or so. The distances come from a
    /// golden-ratio sequence, which never falls into the card's rhythm.
    @_noLocks @_noAllocation
    public func planWait(after now: LocalInstant) -> WaitPlan {
        let plan = makePlan(after: now)
        glance = plan.glance
        return plan
    }

    @_noLocks @_noAllocation
    private func makePlan(after now: LocalInstant) -> WaitPlan {
        guard card.isAnchored else { return WaitPlan() }
        scatter += 0.618_033_988_749_895
        if scatter >= 1 { scatter -= 1 }
        let needed =
            Double(nextFrame - Int64(format.bufferFrames - format.periodFrames)) - framesAhead
        var spacing = probingSpacing
        if card.isWellKnown {
            switch card.cardClass {
            case .fine, .unreadable: return planFine(needed: needed, after: now)
            case .probing, .batch, .coarse: break
            }
            if glances >= glanceLimit { return WaitPlan() }
            let even = Double(format.periodFrames) / Double((glanceLimit + 1) * format.sampleRate)
            spacing = max(glanceSpacing, even)
        }
        glances += 1
        let next = now + Nanoseconds(seconds: spacing * (0.5 + scatter))
        let due = card.instant(ofFrame: needed)
        return WaitPlan(glance: next + glanceMargin < due ? next : nil)
    }

    /// The same for a pointer that counts frames, or has small steps.
    ///
    /// One that counts frames is read at a point between two of its counts that differs each time:
    /// otherwise each reading would be taken just after the count has moved, and its error would be
    /// a constant of this machine's scheduler instead of noise that is averaged out. Where four
    /// periods fit, the thread sleeps for two and renders them one after the other: half of what a
    /// period costs is waking up.
    ///
    /// With small steps, looks are spread over a whole one, and there is one more from pair to pair.
    /// That is half of the wake-ups of a look in each period and one before it; errors are the same.
    ///
    /// While nothing sounds and a voice is about to join, only half of the buffer is kept filled: it
    /// is heard behind what is queued.
    @_noLocks @_noAllocation
    private func planFine(needed: Double, after now: LocalInstant) -> WaitPlan {
        if rendersPairs, isOnTheMark {
            isOtherTurn = false
            let place = needed + Double(format.bufferFrames / 2) + 0.5 + max(1, card.step) * scatter
            return WaitPlan(due: card.instant(ofFrame: place))
        }
        let place = needed + 0.5 + max(1, card.step) * scatter
        guard rendersPairs else {
            isOtherTurn.toggle()
            // At a step, as a rule: the card wakes the thread.
            if card.usesEdge, isOtherTurn { return WaitPlan() }
            return WaitPlan(due: card.instant(ofFrame: place))
        }
        if card.usesEdge, isOtherTurn, glances == 0 {
            glances = 1
            let glance = card.instant(ofFrame: place)
            if glance > now { return WaitPlan(glance: glance) }
        }
        isOtherTurn.toggle()
        if isOtherTurn { return WaitPlan() }
        return WaitPlan(due: card.instant(ofFrame: place + Double(format.periodFrames)))
    }

    /// A queue of two short periods would be shorter than what a busy machine holds a thread up.
    private var isOnTheMark: Bool {
        @_noLocks @_noAllocation get {
            guard settings.expectsJoin, hasLongPeriods else { return false }
            return !isActive
        }
    }

    /// Whether two periods can be rendered at one wake-up, with two more queued meanwhile.
    private var rendersPairs: Bool {
        @_noLocks @_noAllocation get {
            format.bufferFrames >= OutputFormat.usualPeriods * format.periodFrames
        }
    }

    private var gainRampFrames: Int {
        @_noLocks @_noAllocation get { Int(Mixer.rampSeconds * Double(format.sampleRate)) }
    }

    private var hasLongPeriods: Bool {
        @_noLocks @_noAllocation get {
            Double(format.periodFrames) > longPeriod * Double(format.sampleRate)
        }
    }

    /// The card ran dry or was suspended: its frame count begins at 0 again. The rate is kept;
    /// voices come back on their lines, faded, once the card's phase is known (about 0.1 s).
    @_noLocks @_noAllocation
    public func restarted() {
        restarts += 1
        renewed()
    }

    /// The same of a card that had not begun to play: nothing was lost that should have sounded.
    @_noLocks @_noAllocation
    public func renewed() {
        framesBefore += nextFrame
        nextFrame = 0
        framesAhead = 0
        card.restart()
        for i in 0..<voiceCount { unsafe voices[i].interrupt() }
    }

    /// The card was closed and opened again, and may be another one.
    @_noLocks @_noAllocation
    public func replaced() {
        restarted()
        card.replace()
    }

    /// The card was closed on purpose, and is open again with this format: voices go on where their
    /// lines are then. Between two periods only; allocates where the format is another one.
    public func reopened(with format: OutputFormat) {
        Self.check(format)
        renewed()
        card = CardClock(sampleRate: format.sampleRate, periodFrames: format.periodFrames)
        let before = self.format
        self.format = format
        if format != before { port.adopt(format) { takeCommands() } }
        publish(LocalInstant(nanoseconds: 0))
        guard
            format.sampleRate != before.sampleRate || format.periodFrames != before.periodFrames
                || format.pairCount != before.pairCount
        else { return }
        buffers.deallocate()
        buffers = RenderBuffers(for: format)
        for i in 0..<voiceCount {
            if let source = unsafe voices[i].source,
                let bank = unsafe port.bank(of: i, source.serial)
            {
                unsafe voices[i].adopt(rows: bank.rows, taps: bank.taps)
            }
        }
    }

    /// Whether any voice sounds or is about to.
    public var isActive: Bool {
        @_noLocks @_noAllocation get {
            for i in 0..<voiceCount where unsafe voices[i].isActive { return true }
            return false
        }
    }

    // MARK: One period

    /// Renders the next period.
    ///
    /// - Parameters:
    ///   - output: room for `periodFrames × channelCount` samples; interleaved Float, nominally
    ///     −1…1 (a sum of voices or a gain above 1 may exceed it).
    ///   - now: the local clock.
    @_noLocks @_noAllocation
    public func render(into output: UnsafeMutablePointer<Float>, now: LocalInstant) {
        glances = 0
        takeCommands()
        var newest = settings
        unsafe link.settings._withUnsafeGuaranteedRef { newest = $0.load() }
        settings = newest
        let count = format.periodFrames
        let heard = Double(nextFrame - Int64(format.bufferFrames))
        if !card.isAnchored, heard > patienceSeconds * Double(format.sampleRate) {
            card.assume(framesHeard: heard, at: now)
        }
        let period = PeriodTimes(
            first: nextFrame, count: count, sampleRate: format.sampleRate, card: card,
            latencyOffset: settings.latencyOffset)

        var isSilent = true
        for i in 0..<voiceCount {
            if unsafe voices[i].isSounding {
                isSilent = false
                unsafe voices[i].follow(period, sibling: nil)
            }
        }
        for i in 0..<voiceCount {
            if unsafe !voices[i].isSounding {
                unsafe voices[i].follow(period, sibling: sibling(of: i))
            }
        }
        mixer.set(
            settings, channels: format.channelCount,
            rampFrames: Int(Mixer.rampSeconds * Double(format.sampleRate)), isSilent: isSilent)

        let pairs = format.pairCount
        var usesMore = false
        for i in 0..<voiceCount {
            if unsafe voices[i].source?.pair ?? 0 > 0 { usesMore = true }
        }
        let used = usesMore ? count * (pairs + 1) : count
        unsafe buffers.sumLeft.update(repeating: 0, count: used)
        unsafe buffers.sumRight.update(repeating: 0, count: used)
        for i in 0..<voiceCount {
            let serial = unsafe voices[i].serial
            // The last pair leads nowhere.
            let pair = unsafe min(voices[i].source?.pair ?? 0, pairs)
            let isGone = unsafe voices[i].render(
                period, buffers: pair == 0 ? buffers : buffers.pair(pair, of: count),
                rendersAudio: fidelity == .audio)
            if isGone { link.acknowledge(i, serial) }
        }
        unsafe mixer.write(
            left: buffers.sumLeft, right: buffers.sumRight, count: count, into: output,
            channels: format.channelCount, pairs: usesMore ? pairs : 1)
        nextFrame += Int64(count)
        publish(now)
    }

    /// For a card that is closed: commands are taken and reports are made without a period.
    @_noLocks @_noAllocation
    public func idle(now: LocalInstant) {
        takeCommands()
        publish(now)
    }

    @_noLocks @_noAllocation
    private func takeCommands() {
        while true {
            var popped: VoiceCommand?
            unsafe link.commands._withUnsafeGuaranteedRef { popped = $0.pop() }
            guard let command = popped else { return }
            let slot = command.slot
            switch command.kind {
            case .start(let start): unsafe voices[slot].start(start)
            case .stop(let instant): unsafe voices[slot].stop(at: instant)
            case .gain(let serial, let linear):
                unsafe voices[slot].setGain(linear, serial: serial, rampFrames: gainRampFrames)
            case .release(let serial, let fades):
                if unsafe voices[slot].release(fades: fades) {
                    link.acknowledge(slot, serial)
                }
            }
        }
    }

    /// The timeline of a sounding voice that follows the clock of voice `index`.
    @_noLocks @_noAllocation
    private func sibling(of index: Int) -> Timeline? {
        guard let own = unsafe voices[index].source else { return nil }
        for i in 0..<voiceCount where i != index {
            guard unsafe voices[i].leads, let other = unsafe voices[i].source else { continue }
            if other.clockAddress == own.clockAddress {
                return unsafe voices[i].timeline
            }
        }
        return nil
    }

    @_noLocks @_noAllocation
    private func publish(_ now: LocalInstant) {
        var worst: VoiceReport?
        var starved: Int64 = 0
        for i in 0..<voiceCount {
            let report = unsafe voices[i].report()
            let snapshot = unsafe VoiceSnapshot(serial: voices[i].serial, report: report)
            unsafe link.voiceReports[i]._withUnsafeGuaranteedRef { $0.store(snapshot) }
            starved += unsafe voices[i].starvedFramesEver
            if unsafe voices[i].isSounding,
                report.errorNanoseconds.magnitude > (worst?.errorNanoseconds.magnitude ?? -1)
            {
                worst = report
            }
        }
        let queued = Double(nextFrame) - card.frames(at: now)
        let report = OutputReport(
            framesWritten: framesBefore + nextFrame, cardPartsPerMillion: card.skew * 1e6,
            cardUncertainty: Nanoseconds(seconds: card.promisedUncertainty),
            cardLateness: card.usesEdge ? wakeFloor.lateness : Nanoseconds(0),
            cardSettled: card.isSettled,
            error: Nanoseconds(Int64(saturating: worst?.errorNanoseconds ?? 0)),
            ratioPartsPerMillion: worst?.ratioPartsPerMillion ?? 0, restarts: restarts,
            starvedFrames: starved,
            queuedFrames: card.isAnchored ? Int(max(-1e9, min(1e9, queued))) : 0, at: now,
            cardClass: card.cardClass, pointerStep: Int(card.step), cardDecided: card.isDecided,
            framesAhead: Int(max(0, min(1e9, framesAhead))))
        unsafe link.report._withUnsafeGuaranteedRef { $0.store(report) }
    }

    // MARK: For simulations and tests

    /// Where in its item a voice is at the end of the last rendered period: the resampler's exact
    /// input position. `nil` while it does not sound.
    public func position(of voice: Voice) -> Double? {
        let report = voice.report
        return report.state == .playing || report.state == .starved ? report.itemFrame : nil
    }

    /// The card model's opinion: when frame `n` since the last restart leaves the card.
    public func instant(ofFrame n: Double) -> LocalInstant { card.instant(ofFrame: n) }
}
