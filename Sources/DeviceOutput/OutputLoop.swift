import LinuxHost
import Playout
import RealTime
import Synchronization
import Timing

/// What runs on the output thread. `@safe`: the period's buffer is private and lives as long.
@safe
final class OutputLoop {
    /// What the owner of the thread sees of it.
    final class Shared: Sendable {
        let stopping = LatestValue(false)
        let counts = LatestValue(OutputThread.Counts())
        let state = Mutex(OutputThread.State.running)
        let onChange: (@Sendable (OutputThread.State) -> Void)?

        init(onChange: (@Sendable (OutputThread.State) -> Void)?) { self.onChange = onChange }

        /// Only at the turns of a device's life, never between two periods.
        func enter(_ next: OutputThread.State) {
            let changed = state.withLock { state in
                defer { state = next }
                return state != next
            }
            if changed { onChange?(next) }
        }
    }

    private let engine: OutputEngine
    private let shared: Shared
    private let makeDevice: @Sendable () throws(OutputError) -> any AudioOutput
    private let format: OutputFormat
    private let period: UnsafeMutableBufferPointer<Float>
    private var device: (any AudioOutput)?
    private var counts = OutputThread.Counts()

    /// Between two attempts to open a lost card: first and longest.
    static let firstBackOff = Nanoseconds.milliseconds(500)
    static let longestBackOff = Nanoseconds.seconds(5)
    /// How long a stop may wait for a thread that is backing off.
    private static let stopLatency = Nanoseconds.milliseconds(50)

    init(
        device: any AudioOutput, engine: OutputEngine, shared: Shared,
        makeDevice: @escaping @Sendable () throws(OutputError) -> any AudioOutput
    ) {
        self.device = device
        self.engine = engine
        self.shared = shared
        self.makeDevice = makeDevice
        format = device.format
        unsafe period = .allocate(capacity: format.periodFrames * format.channelCount)
        unsafe period.initialize(repeating: 0)
    }

    deinit { unsafe period.deallocate() }

    func run() {
        while !shared.stopping.load() {
            guard let device else {
                shared.enter(.closed)
                return
            }
            do throws(OutputError) {
                try feed(device)
            } catch {
                device.close()
                self.device = nil
                shared.enter(.lost(error))
                self.device = reopen()
            }
        }
        device?.close()
        shared.enter(.closed)
    }

    /// Until the thread is stopped or the device fails.
    private func feed(_ device: any AudioOutput) throws(OutputError) {
        guard let frames = unsafe period.baseAddress else { return }
        // A card that was only just started has no position yet.
        var hasPosition = false
        while !shared.stopping.load() {
            let event = try device.wait(engine.planWait(after: HostClock.now()))
            if event == .restarted {
                restarted()
                hasPosition = false
                continue
            }
            if let reading = device.reading() {
                engine.observe(reading)
                hasPosition = true
            } else if hasPosition {
                counts.lostReadings += 1
                shared.counts.store(counts)
            }
            if event == .glance { continue }
            unsafe engine.render(into: frames, now: HostClock.now())
            if try unsafe device.write(frames) == .restarted {
                restarted()
                hasPosition = false
            } else if hasPosition, let reading = device.reading() {
                // Some frames later: its rounding is another one, and it costs no wake-up.
                engine.observe(reading)
            }
        }
    }

    private func restarted() {
        engine.restarted()
        counts.restarts += 1
        shared.counts.store(counts)
    }

    /// The device once it is back; `nil` when the thread was stopped first.
    private func reopen() -> (any AudioOutput)? {
        var backOff = Self.firstBackOff
        while true {
            let next = HostClock.now() + backOff
            while HostClock.now() < next {
                if shared.stopping.load() { return nil }
                HostClock.sleep(until: min(next, HostClock.now() + Self.stopLatency))
            }
            backOff = min(backOff * 2, Self.longestBackOff)
            do throws(OutputError) {
                let device = try makeDevice()
                guard fits(device.format) else {
                    let came = device.format
                    device.close()
                    throw misfit(came)
                }
                engine.replaced()
                counts.reopens += 1
                shared.counts.store(counts)
                shared.enter(.running)
                return device
            } catch {
                shared.enter(.lost(error))
            }
        }
    }

    /// The engine renders periods of one size at one rate for its whole life.
    private func fits(_ other: OutputFormat) -> Bool {
        other.sampleRate == format.sampleRate && other.channelCount == format.channelCount
            && other.periodFrames == format.periodFrames
    }

    private func misfit(_ came: OutputFormat) -> OutputError {
        OutputError(
            operation: "reopen", code: 0, device: "output",
            reason: "came back with \(came.sampleRate) Hz, \(came.channelCount) channels and "
                + "periods of \(came.periodFrames) frames instead of \(format.sampleRate) Hz, "
                + "\(format.channelCount) and \(format.periodFrames); restart the room to use it")
    }
}
