import Dispatch
import Glibc
import Synchronization
import TuttiLinuxHost
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// What runs on the output thread. `@safe`: the period's buffer is private and is replaced only
/// while no device holds it.
@safe
final class OutputLoop {
    typealias MakeDevice = @Sendable (OutputWish) throws(OutputError) -> any AudioOutput

    /// What the owner of the thread sees of it.
    final class Shared: Sendable {
        let stopping = LatestValue(false)
        /// Before it is closed at the end; stored before ``stopping``.
        let playsOut = LatestValue(false)
        let counts = LatestValue(OutputThread.Counts())
        let state = Mutex(OutputThread.State.running)
        /// Signalled once the state is no longer ``OutputThread/State/opening``.
        let opened = DispatchSemaphore(value: 0)
        let card = Mutex("")
        /// Since when the device has been fed without a break; `nil` before it was there.
        let awakeSince = Mutex<LocalInstant?>(nil)
        let onChange: (@Sendable (OutputThread.State) -> Void)?
        let onAdapt: (@Sendable (String) -> Void)?

        init(
            onChange: (@Sendable (OutputThread.State) -> Void)?,
            onAdapt: (@Sendable (String) -> Void)? = nil
        ) {
            self.onChange = onChange
            self.onAdapt = onAdapt
        }

        /// Only at the turns of a device's life, never between two periods.
        func enter(_ next: OutputThread.State) {
            let last = state.withLock { state in
                defer { state = next }
                return state
            }
            if last == .opening { opened.signal() }
            if last != next { onChange?(next) }
        }
    }

    private enum Ending {
        case stopped, reopen, release
    }

    private let engine: OutputEngine
    private let shared: Shared
    private let makeDevice: MakeDevice
    private var adaptation: OutputAdaptation
    private var period: UnsafeMutableBufferPointer<Float>
    private var device: (any AudioOutput)?
    /// There was one since the thread began.
    private var hasHadDevice: Bool
    /// Of the device that was open last.
    private var offered: [Int]
    private var counts = OutputThread.Counts()
    /// And has not been seen to play since.
    private var hasSlept = false

    /// Between two attempts to open a card that is not there: the first, and all others. Who plugs
    /// one in waits for it.
    static let firstBackOff = Nanoseconds.milliseconds(500)
    static let longestBackOff = Nanoseconds.seconds(1)
    /// How long a stop, or an item, may wait for a thread that has no card.
    private static let stopLatency = Nanoseconds.milliseconds(20)

    init(
        device: (any AudioOutput)?, engine: OutputEngine, shared: Shared,
        adaptation: OutputAdaptation, makeDevice: @escaping MakeDevice
    ) {
        self.device = device
        self.engine = engine
        self.shared = shared
        self.adaptation = adaptation
        self.makeDevice = makeDevice
        hasHadDevice = device != nil
        offered = device?.sampleRates ?? []
        unsafe period = Self.makePeriod(engine.format)
        guard let device else { return }
        self.adaptation.opened(with: device.format.sampleRate)
        shared.awakeSince.withLock { $0 = HostClock.now() }
        describe(device)
    }

    deinit { unsafe period.deallocate() }

    private static func makePeriod(_ format: OutputFormat) -> UnsafeMutableBufferPointer<Float> {
        let samples = UnsafeMutableBufferPointer<Float>.allocate(
            capacity: format.periodFrames * format.channelCount)
        unsafe samples.initialize(repeating: 0)
        return unsafe samples
    }

    func run() {
        if device == nil {
            device =
                shared.state.withLock(\.self) == .opening
                ? reopen(after: .zero) : reopen(after: Self.firstBackOff, isLost: true)
        }
        while !shared.stopping.load() {
            guard let device else {
                enter(.closed)
                return
            }
            do throws(OutputError) {
                switch try feed(device) {
                case .stopped: break
                case .reopen:
                    close(device)
                    self.device = reopen(after: .zero)
                case .release:
                    close(device)
                    enter(.released)
                    waitUntilWanted()
                    self.device = reopen(after: .zero)
                }
            } catch {
                close(device)
                if error.code == -EPIPE, adaptation.ranDry(at: HostClock.now(), isHopeless: true) {
                    sayLonger()
                    self.device = reopen(after: .zero)
                } else {
                    enter(.lost(error))
                    self.device = reopen(after: Self.firstBackOff, isLost: true)
                }
            }
        }
        if let device {
            if shared.playsOut.load() { device.playOut() }
            close(device)
        }
        enter(.closed)
    }

    /// Tells those who play first: they may be asked by those who watch the thread.
    private func enter(_ state: OutputThread.State) {
        switch state {
        case .running: engine.port.setHasCard(true)
        case .lost: engine.port.setHasCard(false)
        // One that was let go of is opened for the next item.
        case .opening, .released, .closed: break
        }
        shared.enter(state)
    }

    private func close(_ device: any AudioOutput) {
        device.close()
        self.device = nil
    }

    /// Until the thread is stopped, the device fails or is to be opened otherwise.
    private func feed(_ device: any AudioOutput) throws(OutputError) -> Ending {
        guard let frames = unsafe period.baseAddress else { return .stopped }
        // A card that was only just started has no position yet.
        var hasPosition = false
        while !shared.stopping.load() {
            switch try device.wait(engine.planWait(after: HostClock.now())) {
            case .restarted:
                hasPosition = false
                if ranDry() { return .reopen }
                continue
            case .awoken:
                hasPosition = false
                awoken()
                continue
            case .renewed:
                engine.renewed()
                hasPosition = false
                continue
            case .glance:
                look(device, &hasPosition, isGlance: true)
                // A card may take seconds to begin.
                if !hasPosition, let ending = adapted(device) { return ending }
                continue
            case .writable:
                look(device, &hasPosition)
            }
            unsafe engine.render(into: frames, now: HostClock.now())
            switch try unsafe device.write(frames) {
            case .restarted:
                hasPosition = false
                if ranDry() { return .reopen }
            case .awoken:
                hasPosition = false
                awoken()
            case .writable, .glance, .renewed:
                // Some frames later: its rounding is another one, and it costs no wake-up.
                if hasPosition, let reading = device.reading() { engine.observe(reading) }
            }
            if let ending = adapted(device) { return ending }
        }
        return .stopped
    }

    private func adapted(_ device: any AudioOutput) -> Ending? {
        switch adapt(device) {
        case .goOn: nil
        case .reopen: .reopen
        case .release: .release
        }
    }

    private func look(
        _ device: any AudioOutput, _ hasPosition: inout Bool, isGlance: Bool = false
    ) {
        if let reading = device.reading() {
            engine.observe(reading, isGlance: isGlance)
            hasPosition = true
            if hasSlept {
                hasSlept = false
                shared.onAdapt?("the card was asleep, and plays on")
            }
        } else if hasPosition {
            counts.lostReadings += 1
            shared.counts.store(counts)
        }
    }

    private func adapt(_ device: any AudioOutput) -> OutputAdaptation.Step {
        let before = adaptation.seenTo.serial
        let step = adaptation.step(
            at: HostClock.now(), isActive: engine.isActive, item: engine.port.expectedItem,
            rate: engine.format.sampleRate, offered: offered)
        // An item for which the card is opened anew is seen to once it is open.
        if step != .reopen, adaptation.seenTo.serial != before {
            engine.port.notePrepared(adaptation.seenTo)
        }
        return step
    }

    /// It did not run dry for want of a longer buffer, and may say several times that it is awake.
    private func awoken() {
        engine.renewed()
        hasSlept = true
    }

    private func restarted() {
        engine.restarted()
        counts.restarts += 1
        shared.counts.store(counts)
    }

    /// - Returns: whether the card is to be opened with a longer buffer.
    private func ranDry() -> Bool {
        restarted()
        guard adaptation.ranDry(at: HostClock.now()) else { return false }
        sayLonger()
        return true
    }

    private func sayLonger() {
        shared.onAdapt?(
            "the card runs dry again and again: it gets a buffer of "
                + "\(adaptation.wish.bufferMilliseconds) ms")
    }

    // MARK: Without a card

    /// Somebody wants to play, or the thread was stopped.
    private func waitUntilWanted() {
        while !shared.stopping.load() {
            engine.idle(now: HostClock.now())
            let item = engine.port.expectedItem
            if item.serial != adaptation.seenTo.serial || engine.isActive {
                return adaptation.wake(for: item, offered: offered, at: HostClock.now())
            }
            HostClock.sleep(until: HostClock.now() + Self.stopLatency)
        }
    }

    /// The device once it is open; `nil` when the thread was stopped first.
    ///
    /// - Parameter isLost: it went away by itself; voices have been heard to break off.
    private func reopen(after pause: Nanoseconds, isLost: Bool = false) -> (any AudioOutput)? {
        var isLost = isLost
        var backOff = pause
        while true {
            let next = HostClock.now() + backOff
            while HostClock.now() < next {
                if shared.stopping.load() { return nil }
                engine.idle(now: HostClock.now())
                HostClock.sleep(until: min(next, HostClock.now() + Self.stopLatency))
            }
            if shared.stopping.load() { return nil }
            backOff = min(max(Self.firstBackOff, backOff * 2), Self.longestBackOff)
            do throws(OutputError) {
                let device = try makeDevice(adaptation.wish)
                take(device, isLost: isLost)
                return device
            } catch {
                if adaptation.wish.sampleRate != engine.format.sampleRate, !isLost {
                    adaptation.refusedToOpen()
                    backOff = .zero
                }
                isLost = true
                enter(.lost(error))
            }
        }
    }

    private func take(_ device: any AudioOutput, isLost: Bool) {
        let rate = hasHadDevice ? engine.format.sampleRate : device.format.sampleRate
        // Of one that comes for the first time nothing was lost.
        if isLost, hasHadDevice { engine.restarted() }
        hasHadDevice = true
        engine.reopened(with: device.format)
        engine.port.setChannelLayout(device.channelLayout)
        unsafe period.deallocate()
        unsafe period = Self.makePeriod(device.format)
        offered = device.sampleRates
        adaptation.opened(with: device.format.sampleRate)
        describe(device)
        if isLost {
            counts.reopens += 1
            shared.counts.store(counts)
        }
        if device.format.sampleRate != rate {
            shared.onAdapt?("the card plays at \(device.format.sampleRate) Hz now")
        }
        engine.port.notePrepared(adaptation.seenTo)
        shared.awakeSince.withLock { $0 = HostClock.now() }
        enter(.running)
    }

    private func describe(_ device: any AudioOutput) {
        let format = device.format
        let samples = device.sampleDescription
        let text =
            "\(format.sampleRate) Hz, \(samples.isEmpty ? "" : samples + ", ")"
            + "\(format.channelCount) channel\(format.channelCount == 1 ? "" : "s"), "
            + "buffer \(1_000 * format.bufferFrames / format.sampleRate) ms"
        shared.card.withLock { $0 = text }
    }
}
