import Foundation
import LinuxHost
import Playout
import Synchronization
import Testing
import Timing

@testable import DeviceOutput

/// A card without a clock of its own that does what it is told: fails at a period, restarts at one.
final class ScriptedDevice: AudioOutput {
    let format: OutputFormat
    private let failure: OutputError?
    private let failsAt: Int
    private let restartsAt: Int
    private let onClose: @Sendable () -> Void
    private var periods = 0

    static let format = OutputFormat(
        sampleRate: 48_000, channelCount: 2, periodFrames: 48, bufferFrames: 192)
    static let unplugged = OutputError(
        operation: "snd_pcm_writei", code: -ENODEV, device: "scripted", reason: "unplugged")

    init(
        format: OutputFormat = format, failsAt: Int = .max, restartsAt: Int = .max,
        onClose: @escaping @Sendable () -> Void = {}
    ) {
        self.format = format
        self.failsAt = failsAt
        self.restartsAt = restartsAt
        self.onClose = onClose
        failure = failsAt == .max ? nil : Self.unplugged
    }

    func wait(_ plan: WaitPlan) throws(OutputError) -> OutputEvent {
        HostClock.sleep(until: HostClock.now() + .milliseconds(1))
        return .writable
    }

    func reading() -> CardReading? {
        periods < 4
            ? nil
            : CardReading(framesHeard: Double((periods - 4) * 48), instant: HostClock.now())
    }

    func write(_ frames: UnsafePointer<Float>) throws(OutputError) -> OutputEvent {
        periods += 1
        if let failure, periods == failsAt { throw failure }
        return periods == restartsAt ? .restarted : .writable
    }

    func close() { onClose() }
}

@Suite(.timeLimit(.minutes(1))) struct OutputThreadTests {
    typealias States = AsyncStream<OutputThread.State>

    @Test func `a thread plays silence until it is stopped`() async throws {
        let (states, change) = States.makeStream(bufferingPolicy: .bufferingNewest(8))
        let thread = try OutputThread.open(
            .virtual(VirtualCardOptions()), bufferMilliseconds: 20, realTimePriority: 0
        ) { _ = change.yield($0) }
        #expect(thread.state == .running)
        #expect(thread.scheduling == .ordinary)
        #expect(!thread.realTimeGranted)
        let format = thread.port.format
        #expect(format.sampleRate == 48_000)
        // The report comes from the thread; a buffer and more means that the card consumes.
        while thread.port.report.framesWritten < Int64(3 * format.bufferFrames) {
            await Task.yield()
        }
        thread.stop()
        #expect(thread.state == .closed)
        #expect(await states.first { _ in true } == .closed)
        #expect(thread.counts.reopens == 0)
        thread.stop()
    }

    @Test func `a lost card is closed, said to be lost, and opened again`() async throws {
        let (states, change) = States.makeStream(bufferingPolicy: .bufferingNewest(8))
        let opened = Mutex(0)
        let closed = Mutex(0)
        let thread = try OutputThread.open(
            realTimePriority: 0, onChange: { _ = change.yield($0) }
        ) { () throws(OutputError) in
            let number = opened.withLock { count in
                count += 1
                return count
            }
            return ScriptedDevice(failsAt: number == 1 ? 10 : .max) {
                closed.withLock { $0 += 1 }
            }
        }
        var seen: [OutputThread.State] = []
        for await state in states {
            seen.append(state)
            if seen.count == 2 { break }
        }
        #expect(seen == [.lost(ScriptedDevice.unplugged), .running])
        #expect(closed.withLock(\.self) == 1)
        #expect(thread.counts.reopens == 1)
        // It plays again.
        let written = thread.port.report.framesWritten
        while thread.port.report.framesWritten < written + 480 { await Task.yield() }
        thread.stop()
        #expect(opened.withLock(\.self) == 2)
        #expect(closed.withLock(\.self) == 2)
    }

    @Test func `a card that comes back with another rate stays lost and says so`() async throws {
        let (states, change) = States.makeStream(bufferingPolicy: .bufferingNewest(8))
        let opened = Mutex(0)
        let thread = try OutputThread.open(
            realTimePriority: 0, onChange: { _ = change.yield($0) }
        ) { () throws(OutputError) in
            let isFirst = opened.withLock { count in
                count += 1
                return count == 1
            }
            var format = ScriptedDevice.format
            if !isFirst { format.sampleRate = 44_100 }
            return ScriptedDevice(format: format, failsAt: 10)
        }
        var reasons: [String] = []
        for await state in states {
            if case .lost(let error) = state { reasons.append(error.reason) }
            if reasons.count == 2 { break }
        }
        #expect(reasons.last?.contains("44100") == true)
        #expect(reasons.last?.contains("48000") == true)
        thread.stop()
        #expect(thread.counts.reopens == 0)
    }

    @Test func `a restart of the card is counted and told to the engine`() async throws {
        let thread = try OutputThread.open(realTimePriority: 0) { () throws(OutputError) in
            ScriptedDevice(restartsAt: 20)
        }
        while thread.port.report.restarts == 0 { await Task.yield() }
        #expect(thread.counts.restarts == 1)
        thread.stop()
    }

    @Test func `a device that cannot be opened is an error and leaves no thread`() {
        #expect(throws: ScriptedDevice.unplugged) {
            try OutputThread.open(realTimePriority: 0) { () throws(OutputError) in
                throw ScriptedDevice.unplugged
            }
        }
        let error = #expect(throws: OutputError.self) { try OutputThread.open(.none) }
        #expect(error?.device == "none")
    }

    @Test func `a thread that nobody holds any more ends`() async throws {
        let (closings, close) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        do {
            let thread = try OutputThread.open(realTimePriority: 0) { () throws(OutputError) in
                ScriptedDevice { _ = close.yield() }
            }
            #expect(thread.state == .running)
        }
        #expect(await closings.first { _ in true } != nil)
    }
}
