import Foundation
import Synchronization
import Testing
import TuttiLinuxHost
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

@testable import TuttiDeviceOutput

/// A card without a clock of its own that does what it is told: fails at a period, restarts at one.
final class ScriptedDevice: AudioOutput {
    let format: OutputFormat
    private let failure: OutputError?
    private let failsAt: Int
    private let restartsAt: Int
    private let restartsEvery: Int
    private let onClose: @Sendable () -> Void
    private var periods = 0

    static let format = OutputFormat(
        sampleRate: 48_000, channelCount: 2, periodFrames: 48, bufferFrames: 192)
    static let unplugged = OutputError(
        operation: "snd_pcm_writei", code: -ENODEV, device: "scripted", reason: "unplugged")

    init(
        format: OutputFormat = format, failsAt: Int = .max, restartsAt: Int = .max,
        restartsEvery: Int = .max, onClose: @escaping @Sendable () -> Void = {}
    ) {
        self.format = format
        self.failsAt = failsAt
        self.restartsAt = restartsAt
        self.restartsEvery = restartsEvery
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
        return periods == restartsAt || periods % restartsEvery == 0 ? .restarted : .writable
    }

    func close() { onClose() }
}

@Suite(.timeLimit(.minutes(1))) struct OutputThreadTests {
    @Test func `what is queued leaves the card before it is closed, where that is asked for`()
        throws
    {
        let path = PacedDeviceTests.path("played-out")
        let thread = try OutputThread.open(
            .virtual(VirtualCardOptions(partsPerMillion: 50, record: path)),
            bufferMilliseconds: PacedDeviceTests.buffer)
        while thread.port.report.framesWritten < 2 * Int64(thread.port.format.bufferFrames) {
            HostClock.sleep(until: HostClock.now() + .milliseconds(10))
        }
        thread.stop(playsOut: true)
        let card = try CardRecording.load(path: path)
        let end = try #require(card.segments.last?.frames.upperBound)
        #expect(Int64(end) == thread.port.report.framesWritten)
        #expect(card.underruns == 0)
    }

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
        // The card stays away until somebody has looked.
        let isBack = Mutex(false)
        let thread = try OutputThread.open(
            realTimePriority: 0, onChange: { _ = change.yield($0) }
        ) { () throws(OutputError) in
            let number = opened.withLock { count in
                count += 1
                return count
            }
            while number > 1, !isBack.withLock(\.self) {
                HostClock.sleep(until: HostClock.now() + .milliseconds(1))
            }
            return ScriptedDevice(failsAt: number == 1 ? 10 : .max) {
                closed.withLock { $0 += 1 }
            }
        }
        var seen: [OutputThread.State] = []
        for await state in states {
            seen.append(state)
            // Players learn it from the port.
            #expect(thread.port.hasCard == (state == .running))
            isBack.withLock { $0 = true }
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

    @Test func `a card that comes back with another rate plays on at that`() async throws {
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
            if !isFirst {
                format.sampleRate = 44_100
                format.periodFrames = 44
            }
            return ScriptedDevice(format: format, failsAt: isFirst ? 10 : .max)
        }
        defer { thread.stop() }
        for await state in states where state == .running { break }
        #expect(thread.port.format.sampleRate == 44_100)
        #expect(thread.cardDescription.contains("44100 Hz"))
        #expect(thread.counts.reopens == 1)
        let written = thread.port.report.framesWritten
        while thread.port.report.framesWritten < written + 440 { await Task.yield() }
    }

    /// - Parameter isMet: looked at again and again, for seconds.
    private func until(_ isMet: () -> Bool) async -> Bool {
        let end = HostClock.now() + .seconds(20)
        while !isMet() {
            if HostClock.now() > end { return false }
            try? await Task.sleep(for: .milliseconds(5))
        }
        return true
    }

    private static func line(at instant: LocalInstant) -> Line {
        Line(itemFrame: 0, instant: GroupInstant(nanoseconds: instant.nanoseconds))
    }

    @Test func `a silent card goes to the rate of the item, and stays there while it sounds`()
        async throws
    {
        let thread = try OutputThread.open(
            .virtual(VirtualCardOptions()), manner: OutputManner(followsItems: true),
            realTimePriority: 0)
        defer { thread.stop() }
        let port = thread.port
        #expect(port.format.sampleRate == 48_000)
        port.expectItem(sampleRate: 44_100)
        #expect(await until { port.isPrepared })
        #expect(port.format.sampleRate == 44_100)
        #expect(thread.cardDescription.hasPrefix("44100 Hz"))
        #expect(thread.counts.restarts == 0 && port.report.restarts == 0)
        #expect(await until { port.report.cardDecided })
        let voice = try #require(port.makeVoice(sampleRate: 44_100))
        let sound = [Float](repeating: 0.1, count: 2 * 100_000)
        _ = sound.withUnsafeBufferPointer { voice.ring.write($0) }
        voice.start(Self.line(at: HostClock.now()), clock: nil)
        #expect(await until { voice.report.state == .playing })
        // As many frames of the item as of the card: no sample is made up.
        #expect(abs(voice.report.ratioPartsPerMillion) < 1_000)
        let next = try #require(port.makeVoice(sampleRate: 96_000))
        #expect(await until { port.isPrepared })
        #expect(port.format.sampleRate == 44_100)
        #expect(voice.report.state == .playing)
        next.release()
        voice.release()
    }

    @Test func `a card is let go of in silence, and taken again before it is played on`()
        async throws
    {
        var manner = OutputManner(releasesWhenIdle: true)
        manner.idleSpan = .milliseconds(300)
        let opened = Mutex(0)
        let thread = try OutputThread.open(
            OutputWish(sampleRate: 48_000, bufferMilliseconds: 40), manner, realTimePriority: 0,
            shared: OutputLoop.Shared(onChange: nil)
        ) { wish throws(OutputError) in
            opened.withLock { $0 += 1 }
            return try VirtualDevice(
                VirtualCardOptions(), preferredSampleRate: wish.sampleRate,
                bufferMilliseconds: wish.bufferMilliseconds)
        }
        defer { thread.stop() }
        let port = thread.port
        #expect(await until { thread.state == .released })
        let voice = try #require(port.makeVoice(sampleRate: 48_000))
        let sound = [Float](repeating: 0.1, count: 2 * 100_000)
        _ = sound.withUnsafeBufferPointer { voice.ring.write($0) }
        #expect(await until { port.isPrepared && port.report.cardDecided })
        #expect(thread.state == .running)
        // As after a pause, in which the voice is kept.
        #expect(await until { thread.state == .released })
        let asked = HostClock.now()
        let line = Self.line(at: asked + OutputManner.reopening)
        voice.start(line, clock: nil)
        #expect(await until { voice.report.state == .playing })
        let report = voice.report
        let due = line.instant + Nanoseconds(seconds: report.itemFrame / 48_000)
        #expect(abs(due.nanoseconds - report.at.nanoseconds) < 1_000_000)
        #expect(opened.withLock(\.self) == 3)
        #expect(port.report.restarts == 0)
        voice.release()
    }

    @Test func `a card that runs dry again and again is opened with a longer buffer`() async throws
    {
        var manner = OutputManner()
        manner.lengthensBuffer = true
        let said = Mutex<[String]>([])
        let lengths = Mutex<[Int]>([])
        let thread = try OutputThread.open(
            OutputWish(sampleRate: 48_000, bufferMilliseconds: 80), manner, realTimePriority: 0,
            shared: OutputLoop.Shared(
                onChange: nil, onAdapt: { text in said.withLock { $0.append(text) } })
        ) { wish throws(OutputError) in
            lengths.withLock { $0.append(wish.bufferMilliseconds) }
            // Takes its frames in lumps of 300 ms.
            return ScriptedDevice(restartsEvery: wish.bufferMilliseconds < 300 ? 5 : .max)
        }
        defer { thread.stop() }
        #expect(await until { lengths.withLock(\.count) == 3 })
        #expect(lengths.withLock(\.self) == [80, 160, 320])
        let restarts = thread.port.report.restarts
        let written = thread.port.report.framesWritten
        #expect(await until { thread.port.report.framesWritten > written + 4_800 })
        #expect(thread.port.report.restarts <= restarts + 1)
        #expect(said.withLock(\.last)?.contains("320 ms") == true)
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
