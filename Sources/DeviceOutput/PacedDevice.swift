import TuttiLinuxHost
public import TuttiPlayout
import TuttiTiming

/// A card in this process: a ring that a crystal empties at its own pace, into a sink.
///
/// To the engine it is a card like any other, with exact positions: it fills up, starts, underruns
/// and is restarted. To a test or a demonstration it is a card whose every frame's instant is
/// known.
public class PacedDevice: AudioOutput {
    public let format: OutputFormat
    public var channelLayout: ChannelLayout? { nil }
    private var card: VirtualCard
    /// A twin of the card's crystal: says when frames left after the card has forgotten.
    private var truth: Crystal
    private let truthStart: LocalInstant
    private let sink: (any CardSink)?

    private var framesWritten: Int64 = 0
    /// Tick at which frame 0 since the last restart left, and its number in the whole.
    private var startTick = 0.0
    private var startFrame: Int64 = 0
    private var nextKnot: Int64 = 0
    private var isOpen = true
    private var hasPlayedOut = false

    /// The crystal's rate is constant between multiples of this.
    private static let knot = Nanoseconds.milliseconds(100)
    private static let longestWait = Nanoseconds.seconds(1)

    init(
        format: OutputFormat, partsPerMillion: Double, wander: Double, seed: UInt64,
        sink: (any CardSink)?
    ) {
        self.format = format
        self.sink = sink
        var crystal = Crystal(
            nominalRate: format.sampleRate, partsPerMillion: partsPerMillion, wander: wander,
            seed: seed)
        truthStart = HostClock.now()
        crystal.start(at: truthStart)
        truth = crystal
        truth.reserve()
        card = VirtualCard(format: format, crystal: crystal)
    }

    deinit { close() }

    public var sampleRates: [Int] { [format.sampleRate] }

    public func wait(_ plan: WaitPlan) -> OutputEvent {
        let giveUp = HostClock.now() + Self.longestWait
        if card.isRunning, let due = plan.due {
            let buffer = Double(format.bufferFrames) / Double(format.sampleRate)
            HostClock.sleep(until: min(due, HostClock.now() + Nanoseconds(seconds: buffer)))
        }
        while true {
            if advance() == .restarted { return .restarted }
            let missing = format.periodFrames - card.writableFrames
            if !card.isRunning || missing <= 0 { return .writable }
            let frame = Double(framesWritten) - Double(card.queuedFrames - missing)
            let due = truth.instant(ofFrame: startTick + frame).instant
            if let glance = plan.glance, glance < due {
                HostClock.sleep(until: glance)
                return advance() == .restarted ? .restarted : .glance
            }
            HostClock.sleep(until: min(due + .microseconds(1), giveUp))
        }
    }

    public func reading() -> CardReading? { card.reading(at: HostClock.now()) }

    public func write(_ frames: UnsafePointer<Float>) -> OutputEvent {
        if wait(WaitPlan()) == .restarted { return .restarted }
        let wasRunning = card.isRunning
        let now = HostClock.now()
        unsafe card.write(
            UnsafeBufferPointer(
                start: frames, count: format.periodFrames * format.channelCount), now: now)
        framesWritten += Int64(format.periodFrames)
        if !wasRunning, card.isRunning {
            startTick = truth.frames(at: now)
            startFrame = card.framesEmitted
            nextKnot = (now - truthStart).count / Self.knot.count + 1
            sink?.note(CardEvent(kind: .start, frame: Double(startFrame), instant: now))
        }
        return .writable
    }

    public func playOut() {
        guard advance() == .writable, card.isRunning else { return }
        let end = truth.instant(ofFrame: startTick + Double(framesWritten)).instant
        HostClock.sleep(until: end)
        // Half a frame further it would have run dry.
        hasPlayedOut = advance(to: end + .microseconds(1)) == .writable
    }

    public func close() {
        guard isOpen else { return }
        isOpen = false
        if hasPlayedOut || advance() == .writable, card.isRunning { note(.end) }
        sink?.finish()
    }

    /// Lets the card play until now, and writes down what it did.
    private func advance() -> OutputEvent { advance(to: HostClock.now()) }

    private func advance(to now: LocalInstant) -> OutputEvent {
        guard card.isRunning else { return .writable }
        let event = card.advance(to: now) { samples, _ in
            unsafe samples.withUnsafeBufferPointer { samples in
                guard let first = samples.baseAddress else { return }
                unsafe sink?.append(first, count: samples.count / format.channelCount)
            }
        }
        noteKnots(before: now)
        if event == .restarted {
            note(.underrun)
            framesWritten = 0
        }
        return event
    }

    private func noteKnots(before now: LocalInstant) {
        guard let sink else { return }
        let played = Double(card.framesEmitted - startFrame)
        while true {
            let instant = truthStart + Self.knot * nextKnot
            guard instant <= now else { return }
            let frame = truth.frames(at: instant) - startTick
            guard frame <= played else { return }
            sink.note(
                CardEvent(kind: .anchor, frame: Double(startFrame) + frame, instant: instant))
            nextKnot += 1
        }
    }

    /// Where the last frame ended: every frame that was emitted has left.
    private func note(_ kind: CardEvent.Kind) {
        let played = Double(card.framesEmitted - startFrame)
        let (instant, fraction) = truth.instant(ofFrame: startTick + played)
        sink?.note(
            CardEvent(
                kind: kind, frame: Double(card.framesEmitted), instant: instant,
                fraction: fraction))
    }

    /// Periods of 20 ms at most, four to a buffer; a buffer is a whole number of them.
    static func format(
        sampleRate: Int, channelCount: Int, bufferMilliseconds: Int
    ) -> OutputFormat {
        precondition(
            (5...OutputThread.longestBufferMilliseconds).contains(bufferMilliseconds),
            "buffer \(bufferMilliseconds) ms")
        let wanted = sampleRate * bufferMilliseconds / 1000
        let period = max(16, min(sampleRate / 50, wanted / OutputFormat.usualPeriods))
        return OutputFormat(
            sampleRate: sampleRate, channelCount: channelCount, periodFrames: period,
            bufferFrames: max(2, wanted / period) * period)
    }
}

/// A virtual card: `virtual:ppm=80,record=/tmp/kitchen`.
public final class VirtualDevice: PacedDevice {
    /// As WAVE files order as many channels.
    public override var channelLayout: ChannelLayout? { .inFiles(format.channelCount) }

    private let isFixed: Bool

    /// One that records, or whose rate is given, has that only.
    public override var sampleRates: [Int] {
        isFixed ? super.sampleRates : ALSANegotiation.usualRates
    }

    /// - Parameters:
    ///   - overwrites: whether the recording may replace files that are there.
    ///   - onRecordingFailure: called when the recording ends early, on a thread of its own.
    /// - Throws: when the recording cannot be opened.
    public init(
        _ options: VirtualCardOptions, preferredSampleRate: Int = 48_000,
        bufferMilliseconds: Int = OutputThread.standardBufferMilliseconds,
        overwrites: Bool = false,
        onRecordingFailure: (@Sendable (OutputError) -> Void)? = nil
    ) throws(OutputError) {
        let format = Self.format(
            sampleRate: options.sampleRate ?? preferredSampleRate,
            channelCount: options.channelCount, bufferMilliseconds: bufferMilliseconds)
        var sink: (any CardSink)?
        if let path = options.record {
            sink = try CardRecorder(
                path: path, format: format, options: options, overwrites: overwrites,
                onFailure: onRecordingFailure)
        }
        isFixed = options.sampleRate != nil || options.record != nil
        super.init(
            format: format, partsPerMillion: options.partsPerMillion, wander: options.wander,
            seed: options.seed, sink: sink)
    }
}

/// A stereo WAV file as a card: paced by the local clock at exactly its nominal rate.
public final class FileDevice: PacedDevice {
    /// - Parameters:
    ///   - overwrites: whether a file that is there may be replaced.
    ///   - onRecordingFailure: called when the file ends early, on a thread of its own.
    /// - Throws: when the file cannot be opened.
    public init(
        path: String, preferredSampleRate: Int = 48_000,
        bufferMilliseconds: Int = OutputThread.standardBufferMilliseconds,
        overwrites: Bool = false,
        onRecordingFailure: (@Sendable (OutputError) -> Void)? = nil
    ) throws(OutputError) {
        let format = Self.format(
            sampleRate: preferredSampleRate, channelCount: 2,
            bufferMilliseconds: bufferMilliseconds)
        let sink = try WaveRecorder(
            path: path, format: format, overwrites: overwrites, onFailure: onRecordingFailure)
        super.init(format: format, partsPerMillion: 0, wander: 0, seed: 1, sink: sink)
    }
}

extension OutputSpecification {
    /// Whether something else than this process decides how long opening it takes.
    var mayBlock: Bool {
        switch self {
        case .alsa: true
        case .virtual, .file, .none: false
        }
    }

    /// What of it this output can do. A file, or a recording, would begin anew with each opening.
    func allowed(_ manner: OutputManner) -> OutputManner {
        switch self {
        case .alsa:
            manner.lengtheningBuffer
        case .virtual(let options) where options.record == nil: manner
        case .virtual, .file, .none: OutputManner()
        }
    }

    /// Opens what the text named.
    func makeDevice(
        sampleRate: Int, bufferMilliseconds: Int, overwrites: Bool = false,
        onRecordingFailure: (@Sendable (OutputError) -> Void)? = nil
    ) throws(OutputError) -> any AudioOutput {
        switch self {
        case .alsa(let pcm):
            return try ALSADevice(
                pcm: pcm, preferredSampleRate: sampleRate, bufferMilliseconds: bufferMilliseconds)
        case .virtual(let options):
            return try VirtualDevice(
                options, preferredSampleRate: sampleRate, bufferMilliseconds: bufferMilliseconds,
                overwrites: overwrites, onRecordingFailure: onRecordingFailure)
        case .file(let path):
            return try FileDevice(
                path: path, preferredSampleRate: sampleRate,
                bufferMilliseconds: bufferMilliseconds, overwrites: overwrites,
                onRecordingFailure: onRecordingFailure)
        case .none:
            throw OutputError(
                operation: "open", code: 0, device: "none",
                reason: "this node has no output to play on; choose alsa, virtual or file")
        }
    }
}
