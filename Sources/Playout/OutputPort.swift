import Synchronization
import TuttiRealTime
public import TuttiTiming

/// The control side of one output: hands out voices, sets volume, role and latency.
///
/// Everything crosses to the output thread through a bounded queue or a latest value; no call here
/// waits for it. Calls may come from any thread.
@safe public final class OutputPort: Sendable {
    /// Voices that can be held at once: eight players, each with the voice that follows, by a seek or
    /// as the next item, and a chain of items that are over before another could be prepared. A voice
    /// that was never used costs nothing but its place here.
    public static var voiceLimit: Int { 32 }
    /// 2.7 s at 48 kHz; an eighth of it is kept behind the playing position for a resume.
    public static var ringFrames: Int { 131_072 }
    /// Commands on their way to the thread: a start, a stop, a volume and a release of every voice
    /// within one period, and as much again.
    public static var commandLimit: Int { 256 }

    /// What the card is open with; another one after a card was opened anew.
    public var format: OutputFormat { formats.load() }
    private let formats: LatestValue<OutputFormat>

    let commands = CommandRing<VoiceCommand>(capacity: OutputPort.commandLimit)
    let settings = LatestValue(OutputSettings())
    private let card = CardPresence()
    let reports = LatestValue(OutputReport())
    let voiceReports: [LatestValue<VoiceSnapshot>]
    /// Per slot: the serial of the last use that the thread has let go of.
    let acknowledgements: [LatestValue<UInt64>]

    private struct Slot: Sendable {
        enum Phase {
            case free, used
            /// Given back, but the queue to the thread was full.
            case releaseDue(fades: Bool)
            /// Given back, the thread has not acknowledged it.
            case releasing
        }
        var phase = Phase.free
        /// Counts the uses of the slot.
        var serial: UInt64 = 0
        var hasStarted = false
        var gain: Float = 1
        var sampleRate = 0
        /// The fastest that its lines will run.
        var rate = 1.0
        var pair = 0
        var ring: FrameRing?
        var bank: FilterBank?
        /// Keeps alive what the thread reads through unmanaged references.
        var clocks: [ClockCell] = []

        func isUsed(by serial: UInt64) -> Bool {
            if case .used = phase { self.serial == serial } else { false }
        }
    }
    private struct Control: Sendable {
        var slots = [Slot](repeating: Slot(), count: voiceLimit)
        var settings = OutputSettings()
        var expected = ExpectedItem()
        var layout: ChannelLayout?
    }
    private let control = Mutex(Control())

    init(format: OutputFormat) {
        formats = LatestValue(format)
        voiceReports = (0..<Self.voiceLimit).map { _ in
            LatestValue(VoiceSnapshot(report: VoiceReport()))
        }
        acknowledgements = (0..<Self.voiceLimit).map { _ in LatestValue(0) }
    }

    /// The latest snapshot from the output thread.
    public var report: OutputReport { reports.load() }

    /// Where the output's loudspeakers stand. As ALSA orders them, until whoever owns the device says
    /// otherwise.
    public var channelLayout: ChannelLayout {
        control.withLock { control in
            let count = format.channelCount
            if let layout = control.layout, layout.channels.count == count { return layout }
            return .usual(count)
        }
    }

    /// To be called by whoever owns the device; `nil`: it does not say.
    public func setChannelLayout(_ layout: ChannelLayout?) {
        control.withLock { $0.layout = layout }
    }

    /// Whether there is a card: false from when it was lost until it is back. Voices keep their lines
    /// meanwhile.
    public var hasCard: Bool { card.isThere }

    /// To be called by whoever owns the device, outside of rendering: tells those who observe.
    public func setHasCard(_ hasCard: Bool) { card.set(hasCard) }

    /// Calls `body` with each change of ``hasCard``, on the thread that noticed it: it must not wait.
    ///
    /// - Returns: what ``stopObservingCard(_:)`` wants.
    public func observeCard(_ body: @escaping @Sendable (Bool) -> Void) -> Int {
        card.observe(body)
    }

    /// Ends ``observeCard(_:)``; `number` is what that returned.
    public func stopObservingCard(_ number: Int) { card.forget(number) }

    /// Room volume, linear, 0 (muted) to 16; ramped.
    public func setGain(_ linear: Float) {
        change { $0.gain = linear >= 0 ? min(linear, 16) : 0 }
    }

    /// Which part of the item this output plays; ramped.
    public func setRole(_ role: ChannelRole) { change { $0.role = role } }

    /// Positive: sound leaves the loudspeaker this much after the card says (amplifier, DSP), so
    /// play earlier. Limited to ±5 s. While playing, up to 200 µs are slewed, more is a short fade.
    public func setLatencyOffset(_ offset: Nanoseconds) {
        let limit = Nanoseconds.seconds(5)
        change { $0.latencyOffset = max(-limit, min(limit, offset)) }
    }

    /// As set last.
    var latencyOffset: Nanoseconds { control.withLock { $0.settings.latencyOffset } }

    /// Whether a voice is about to join a line that runs: it is heard behind what is queued, so while
    /// nothing sounds less is. Not for hours: a card with a short queue runs dry sooner.
    public func setExpectsJoin(_ expectsJoin: Bool) { change { $0.expectsJoin = expectsJoin } }

    // MARK: The card before a start

    /// Somebody is about to play an item of this rate: a card that was let go of is opened again,
    /// and one that is silent goes to the rate, if it is to follow items (``OutputThread``).
    public func expectItem(sampleRate: Int) {
        control.withLock { control in expect(sampleRate, &control) }
    }

    private func expect(_ sampleRate: Int, _ control: inout Control) {
        control.expected.sampleRate = sampleRate
        control.expected.serial += 1
        expectations.store(control.expected)
    }

    /// What was expected last; on the output thread.
    public var expectedItem: ExpectedItem { expectations.load() }

    /// Whether the thread has done what it can for what was expected last.
    public var isPrepared: Bool { preparations.load() >= expectations.load().serial }

    /// Says that it has; on the output thread only.
    public func notePrepared(_ item: ExpectedItem) { preparations.store(item.serial) }

    private let expectations = LatestValue(ExpectedItem())
    private let preparations = LatestValue<UInt64>(0)

    /// The card is open with another format. No command is on its way to the thread afterwards that
    /// was made for the one before.
    func adopt(_ format: OutputFormat, takingCommands take: () -> Void) {
        control.withLock { control in
            take()
            formats.store(format)
            for index in control.slots.indices where control.slots[index].bank != nil {
                control.slots[index].bank = Self.bank(
                    control.slots[index].sampleRate, control.slots[index].rate, format)
            }
        }
    }

    /// Of a slot's use; lives as long as that and the format.
    func bank(of index: Int, _ serial: UInt64) -> (rows: UnsafePointer<SIMD8<Float>>, taps: Int)? {
        unsafe control.withLock { control in
            guard control.slots[index].serial == serial, let bank = control.slots[index].bank
            else { return nil }
            return unsafe (UnsafePointer(bank.rows), bank.taps)
        }
    }

    private static func bank(_ sampleRate: Int, _ rate: Double, _ format: OutputFormat)
        -> FilterBank
    {
        FilterBank.shared(
            inputRate: Double(sampleRate) * max(rate, 0.01), outputRate: Double(format.sampleRate))
    }

    private func change(_ body: (inout OutputSettings) -> Void) {
        control.withLock { control in
            body(&control.settings)
            settings.store(control.settings)
        }
    }

    // MARK: Voices

    /// A free voice for an item; `nil` when all are in use.
    ///
    /// - Parameters:
    ///   - sampleRate: of the item, 1 to 768 000 frames per second.
    ///   - rate: the fastest that its lines will run; decides where the filter cuts.
    ///   - pair: which two of the output's channels it plays to; 0, the first two, is where volume, role
    ///     and a mono output apply as ever. What has nowhere to go is not heard.
    public func makeVoice(sampleRate: Int, rate: Double = 1, pair: Int = 0) -> Voice? {
        precondition((1...768_000).contains(sampleRate), "item of \(sampleRate) frames per second")
        // Made before the lock is taken, which the output thread may wait for.
        _ = Self.bank(sampleRate, rate, format)
        return control.withLock { control in
            for index in control.slots.indices {
                settle(&control.slots[index], index)
                guard case .free = control.slots[index].phase else { continue }
                let ring = control.slots[index].ring ?? FrameRing(capacityFrames: Self.ringFrames)
                ring.reset(firstFrame: 0)
                control.slots[index].phase = .used
                control.slots[index].serial += 1
                control.slots[index].hasStarted = false
                control.slots[index].gain = 1
                control.slots[index].sampleRate = sampleRate
                control.slots[index].ring = ring
                control.slots[index].rate = rate
                control.slots[index].pair = pair
                control.slots[index].bank = Self.bank(sampleRate, rate, format)
                control.slots[index].clocks = []
                expect(sampleRate, &control)
                return Voice(
                    port: self, slot: index, serial: control.slots[index].serial, ring: ring)
            }
            return nil
        }
    }

    func start(
        slot index: Int, serial: UInt64, line: Line, clock: ClockCell?, endFrame: Int64?,
        fadeIn: Bool, number: UInt64, waits: Bool
    ) -> Bool {
        guard line.isPlayable else { return false }
        return control.withLock { control in
            guard control.slots[index].isUsed(by: serial),
                let ring = control.slots[index].ring, let bank = control.slots[index].bank
            else { return false }
            if let clock, !control.slots[index].clocks.contains(where: { $0 === clock }) {
                control.slots[index].clocks.append(clock)
            }
            let start = unsafe StartCommand(
                serial: serial, line: line,
                clock: clock.map { unsafe Unmanaged.passUnretained($0) },
                ring: Unmanaged.passUnretained(ring), rows: UnsafePointer(bank.rows),
                taps: bank.taps,
                sampleRate: Double(control.slots[index].sampleRate), endFrame: endFrame ?? .max,
                fadeIn: fadeIn, number: number, gain: control.slots[index].gain,
                pair: control.slots[index].pair, waits: waits)
            let sent = commands.push(VoiceCommand(slot: index, kind: .start(start)))
            if sent { control.slots[index].hasStarted = true }
            return sent
        }
    }

    func setGain(slot index: Int, serial: UInt64, _ linear: Float) -> Bool {
        let gain = linear >= 0 ? min(linear, 16) : 0
        return control.withLock { control in
            guard control.slots[index].isUsed(by: serial) else { return false }
            control.slots[index].gain = gain
            // Before the first start nobody hears it, and the start brings it along.
            guard control.slots[index].hasStarted else { return true }
            let kind = unsafe VoiceCommand.Kind.gain(serial: serial, gain)
            return commands.push(VoiceCommand(slot: index, kind: kind))
        }
    }

    func stop(slot index: Int, serial: UInt64, at instant: GroupInstant?) -> Bool {
        control.withLock { control in
            guard control.slots[index].isUsed(by: serial)
            else { return false }
            return commands.push(VoiceCommand(slot: index, kind: .stop(instant)))
        }
    }

    func release(slot index: Int, serial: UInt64, fades: Bool) {
        control.withLock { control in
            guard control.slots[index].isUsed(by: serial) else { return }
            control.slots[index].phase =
                control.slots[index].hasStarted ? .releaseDue(fades: fades) : .free
            settle(&control.slots[index], index)
        }
    }

    /// Takes a slot that was given back as far towards free as the thread allows.
    private func settle(_ slot: inout Slot, _ index: Int) {
        if case .releaseDue(let fades) = slot.phase {
            let kind = unsafe VoiceCommand.Kind.release(serial: slot.serial, fades: fades)
            if commands.push(VoiceCommand(slot: index, kind: kind)) {
                slot.phase = .releasing
            }
        }
        if case .releasing = slot.phase, acknowledgements[index].load() == slot.serial {
            slot.phase = .free
        }
    }

    func voiceReport(slot index: Int, serial: UInt64) -> VoiceReport {
        let snapshot = voiceReports[index].load()
        return snapshot.serial == serial ? snapshot.report : VoiceReport()
    }
}

/// The port as the output thread holds it: without reference counting.
///
/// The engine owns the port and with it everything referred to here.
@safe struct PortLink: BitwiseCopyable {
    let commands: Unmanaged<CommandRing<VoiceCommand>>
    let settings: Unmanaged<LatestValue<OutputSettings>>
    let report: Unmanaged<LatestValue<OutputReport>>
    /// One per slot each.
    let voiceReports: UnsafeMutablePointer<Unmanaged<LatestValue<VoiceSnapshot>>>
    let acknowledgements: UnsafeMutablePointer<Unmanaged<LatestValue<UInt64>>>

    init(_ port: OutputPort) {
        unsafe commands = .passUnretained(port.commands)
        unsafe settings = .passUnretained(port.settings)
        unsafe report = .passUnretained(port.reports)
        unsafe voiceReports = .allocate(capacity: OutputPort.voiceLimit)
        unsafe acknowledgements = .allocate(capacity: OutputPort.voiceLimit)
        for i in 0..<OutputPort.voiceLimit {
            unsafe (voiceReports + i).initialize(to: .passUnretained(port.voiceReports[i]))
            unsafe (acknowledgements + i).initialize(to: .passUnretained(port.acknowledgements[i]))
        }
    }

    func deallocate() {
        unsafe voiceReports.deallocate()
        unsafe acknowledgements.deallocate()
    }

    @_noLocks @_noAllocation
    func acknowledge(_ slot: Int, _ serial: UInt64) {
        unsafe acknowledgements[slot]._withUnsafeGuaranteedRef { $0.store(serial) }
    }
}

/// What a card is wanted for next.
public struct ExpectedItem: BitwiseCopyable, Sendable {
    /// Frames per second of the item.
    public var sampleRate = 0
    /// Counts what was expected so far.
    public var serial: UInt64 = 0

    /// Nothing is expected.
    public init() {}
}

/// What applies to the whole output.
struct OutputSettings: BitwiseCopyable, Sendable {
    var gain: Float = 1
    var role = ChannelRole.stereo
    var latencyOffset = Nanoseconds.zero
    /// A voice is about to join a line that runs.
    var expectsJoin = false
}

/// A report and whose it is: a slot's previous voice may have left one.
struct VoiceSnapshot: BitwiseCopyable, Sendable {
    var serial: UInt64
    var report: VoiceReport

    @_noLocks @_noAllocation
    init(serial: UInt64 = 0, report: VoiceReport) {
        self.serial = serial
        self.report = report
    }
}
