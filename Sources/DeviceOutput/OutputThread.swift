import Dispatch
import Synchronization
public import TuttiLinuxHost
public import TuttiPlayout
import TuttiRealTime
public import TuttiTiming

/// The thread that keeps one output fed: wait, read the position, render, write.
///
/// It owns the engine and the device; everybody else talks to the engine through ``port``. A card
/// that goes away is looked for once a second until it is back, and one that is not there at first
/// the same way, where its owner wants that; the engine keeps its voices meanwhile and takes them up
/// where their lines are then.
public final class OutputThread: Sendable {
    /// Whether the thread has a card.
    public enum State: Equatable, Sendable {
        /// The card is being opened for the first time, on the thread: a sound server may let that wait.
        case opening
        case running
        /// The card is gone, or has not been there yet; it is being opened again and again.
        case lost(OutputError)
        /// Nothing plays: other programs may have the card. It is opened again when an item is
        /// expected (``OutputPort/expectItem(sampleRate:)``).
        case released
        /// Stopped by ``OutputThread/stop()``.
        case closed
    }

    /// What went wrong so far.
    @frozen
    public struct Counts: Equatable, Sendable, BitwiseCopyable {
        /// Underruns and suspends after which the card was restarted.
        public var restarts = 0
        /// Times that a lost card came back.
        public var reopens = 0
        /// Periods in which a running card could not say where it was.
        public var lostReadings = 0
    }

    /// Control side of the engine: voices, volume, reports.
    public let port: OutputPort
    /// How the thread is scheduled; when real-time priority was denied, why.
    public var scheduling: RealTimeThread.Scheduling { thread.scheduling }
    /// Whether the kernel gave the thread real-time priority.
    public var realTimeGranted: Bool {
        if case .realTime = scheduling { true } else { false }
    }

    /// What the card should hold: half of it is heard while the thread sleeps, and the other half is
    /// for hosts that stall, some 20 ms now and then.
    public static let standardBufferMilliseconds = 80
    /// What a card gets that runs dry with less, in the end.
    public static let longestBufferMilliseconds = 2_000

    /// What the card is open with, for people: `48000 Hz, S32_LE, 2 channels, buffer 80 ms`.
    public var cardDescription: String { shared.card.withLock(\.self) }

    /// What is waited for before anything can be heard, for people; `nil`: nothing of the card.
    public var waiting: String? {
        let report = port.report
        guard state == .running, !report.cardDecided, report.cardClass != .unreadable else {
            return nil
        }
        return report.cardClass == .probing
            && report.framesWritten <= Int64(port.format.bufferFrames)
            ? "the card or sound server has not begun to take the sound"
            : "the card's position is being measured"
    }

    /// What it may do besides playing.
    public let manner: OutputManner
    private let thread: RealTimeThread
    private let shared: OutputLoop.Shared

    /// Whether it has a card now; may be asked from any thread.
    public var state: State { shared.state.withLock(\.self) }
    /// Since when the device that it has now has been fed, if only with silence; `nil` before there was
    /// one.
    public var awakeSince: LocalInstant? { shared.awakeSince.withLock(\.self) }
    /// What the thread has counted so far; may be asked from any thread.
    public var counts: Counts { shared.counts.load() }

    /// Opens the device and starts to play silence on it.
    ///
    /// - Parameters:
    ///   - sampleRate: preferred frames per second; the port's format says what it became.
    ///   - bufferMilliseconds: frames queued ahead of the card, and so the time from a command to
    ///     its sound; 5…1000.
    ///   - manner: what the output may do besides playing.
    ///   - realTimePriority: 1…99 for SCHED_FIFO, 0 for ordinary scheduling. A refusal is no error.
    ///   - overwrites: whether files that the output writes may replace what is there.
    ///   - awaitsCard: a card that is not there, and may come, is no error: the thread begins with
    ///     the state ``State/lost(_:)``, and a format that the card may change when it comes.
    ///   - onChange: called with each new state, on the output thread: must not wait.
    ///   - onAdapt: called with a sentence for people when the card was opened otherwise by itself.
    ///   - onRecordingFailure: called when a file that the output writes ends early, on the thread
    ///     that writes it.
    /// - Throws: why the device cannot be opened; also for `.none`, which has no thread.
    public static func open(
        _ specification: OutputSpecification, sampleRate: Int = 48_000,
        bufferMilliseconds: Int = standardBufferMilliseconds,
        manner: OutputManner = OutputManner(),
        realTimePriority: Int = RealTimeThread.usualPriority,
        overwrites: Bool = false, awaitsCard: Bool = false,
        onChange: (@Sendable (State) -> Void)? = nil,
        onAdapt: (@Sendable (String) -> Void)? = nil,
        onRecordingFailure: (@Sendable (OutputError) -> Void)? = nil
    ) throws(OutputError) -> OutputThread {
        let wish = OutputWish(sampleRate: sampleRate, bufferMilliseconds: bufferMilliseconds)
        return try open(
            wish, specification.allowed(manner), realTimePriority: realTimePriority,
            shared: OutputLoop.Shared(onChange: onChange, onAdapt: onAdapt),
            awaits: { awaitsCard && specification.mayPass($0) }
        ) { wish throws(OutputError) in
            try specification.makeDevice(
                sampleRate: wish.sampleRate, bufferMilliseconds: wish.bufferMilliseconds,
                overwrites: overwrites, onRecordingFailure: onRecordingFailure)
        }
    }

    /// The same, where nothing that is wrong with the device is an error: it is opened again and again,
    /// and ``state`` says meanwhile why it is not there. A file that cannot be written on is a card that
    /// is gone for good: to open it anew would begin it anew.
    ///
    /// A PCM of ALSA is opened on the thread, see ``State/opening`` and ``awaitOpening(_:)``: what is
    /// behind it may not answer for long. Until it is open it is a card that is not there.
    ///
    /// - Parameter recording: is told why what is recorded ends early, if it does.
    /// - Throws: when the system gives no thread.
    package static func attempt(
        _ specification: OutputSpecification, overwrites: Bool,
        recording: RecordingState = RecordingState()
    ) throws(OutputError) -> OutputThread {
        try open(
            OutputWish(sampleRate: 48_000, bufferMilliseconds: standardBufferMilliseconds),
            specification.allowed(OutputManner()), realTimePriority: RealTimeThread.usualPriority,
            shared: OutputLoop.Shared(onChange: nil), awaits: { _ in true },
            opensOnThread: specification.mayBlock
        ) { wish throws(OutputError) in
            if let error = recording.failure { throw error }
            let device = try specification.makeDevice(
                sampleRate: wish.sampleRate, bufferMilliseconds: wish.bufferMilliseconds,
                overwrites: overwrites, onRecordingFailure: { recording.fail($0) })
            guard case .file = specification else { return device }
            return RecordedDevice(device, recording)
        }
    }

    /// The same with any device: `makeDevice` is called now, and on the thread after each loss.
    public static func open(
        realTimePriority: Int, onChange: (@Sendable (State) -> Void)? = nil,
        makeDevice: @escaping @Sendable () throws(OutputError) -> any AudioOutput
    ) throws(OutputError) -> OutputThread {
        try open(
            OutputWish(sampleRate: 48_000, bufferMilliseconds: standardBufferMilliseconds),
            OutputManner(), realTimePriority: realTimePriority,
            shared: OutputLoop.Shared(onChange: onChange)
        ) { _ throws(OutputError) in try makeDevice() }
    }

    static func open(
        _ wish: OutputWish, _ manner: OutputManner, realTimePriority: Int,
        shared: OutputLoop.Shared, awaits: (OutputError) -> Bool = { _ in false },
        opensOnThread: Bool = false, makeDevice: @escaping OutputLoop.MakeDevice
    ) throws(OutputError) -> OutputThread {
        var device: (any AudioOutput)?
        if opensOnThread {
            shared.state.withLock { $0 = .opening }
        } else {
            do throws(OutputError) {
                device = try makeDevice(wish)
            } catch {
                guard awaits(error) else { throw error }
                shared.state.withLock { $0 = .lost(error) }
            }
        }
        let engine = OutputEngine(format: device?.format ?? wish.format)
        let port = engine.port
        port.setHasCard(device != nil)
        port.setChannelLayout(device?.channelLayout)
        let confined = Confined(
            OutputLoop(
                device: device, engine: engine, shared: shared,
                adaptation: OutputAdaptation(wish, manner: manner), makeDevice: makeDevice))
        let thread: RealTimeThread
        do {
            thread = try RealTimeThread.start(name: "tutti-output", priority: realTimePriority) {
                confined.loop.run()
            }
        } catch {
            device?.close()
            throw OutputError(
                operation: error.operation, code: error.code, device: "output thread",
                reason: error.description)
        }
        return OutputThread(port: port, manner: manner, thread: thread, shared: shared)
    }

    private init(
        port: OutputPort, manner: OutputManner, thread: RealTimeThread, shared: OutputLoop.Shared
    ) {
        self.port = port
        self.manner = manner
        self.thread = thread
        self.shared = shared
    }

    /// A card that does not answer is not waited for: the thread ends when it does, and closes it.
    deinit {
        if state == .opening { shared.stopping.store(true) } else { stop() }
    }

    /// Returns when the card has been opened, or could not be, or after that time.
    package func awaitOpening(_ span: Duration) {
        guard state == .opening else { return }
        let end = DispatchTime.now() + .nanoseconds(Int(span / .nanoseconds(1)))
        // Whoever waits beside this one is told by it.
        if shared.opened.wait(timeout: end) == .success { shared.opened.signal() }
    }

    /// Ends the thread and closes the device. Returns when the device is closed: within a period,
    /// or within a second if the card stands still.
    ///
    /// - Parameter playsOut: whether what is still queued is heard before, which takes that long.
    public func stop(playsOut: Bool = false) {
        if playsOut { shared.playsOut.store(true) }
        shared.stopping.store(true)
        thread.join()
    }

    /// Hands the loop to its thread.
    ///
    /// `@unchecked Sendable`: made before the thread starts and used by nobody but the thread
    /// after.
    private final class Confined: @unchecked Sendable {
        let loop: OutputLoop
        init(_ loop: OutputLoop) { self.loop = loop }
    }
}
