import Dispatch
import Foundation
import Synchronization
import Testing
import TuttiLinuxHost
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

@testable import TuttiDeviceOutput

/// Cards that are not there when a room begins.
@Suite(.timeLimit(.minutes(1))) struct AbsentCardTests {
    private static let absent = OutputError(
        operation: "snd_pcm_open", code: -ENODEV, device: "scripted", reason: "not plugged in")

    /// - Parameter isMet: looked at again and again, for seconds.
    private func until(_ isMet: () -> Bool) async -> Bool {
        let end = HostClock.now() + .seconds(20)
        while !isMet() {
            if HostClock.now() > end { return false }
            try? await Task.sleep(for: .milliseconds(5))
        }
        return true
    }

    @Test func `a file that cannot be written on is a card that is gone for good`() async throws {
        let thread = try OutputThread.attempt(.file(path: "/dev/full"), overwrites: true)
        defer { thread.stop() }
        func error() -> OutputError? {
            if case .lost(let error) = thread.state { error } else { nil }
        }
        #expect(await until { error() != nil })
        #expect(error()?.code == ENOSPC && error()?.device == "/dev/full")
        #expect(!thread.port.hasCard)
        // It is tried again by then, and would be there.
        try await Task.sleep(for: .seconds(2))
        #expect(error()?.code == ENOSPC && !thread.port.hasCard)
        #expect(thread.counts.reopens == 0)
    }

    @Test func `a virtual card sounds on without its recording, and says that`() async throws {
        let path = TestFolder.url.path + "/disk"
        for end in [".f32", ".times"] {
            try FileManager.default.createSymbolicLink(
                atPath: path + end, withDestinationPath: "/dev/full")
        }
        let recording = RecordingState()
        let thread = try OutputThread.attempt(
            .virtual(VirtualCardOptions(record: path)), overwrites: true,
            recording: recording)
        defer { thread.stop() }
        #expect(await until { recording.failure != nil })
        #expect(recording.failure?.code == ENOSPC)
        #expect(thread.state == .running && thread.port.hasCard)
    }

    @Test
    func `a card that is not there is looked for once a second, and its voices join the line`()
        async throws
    {
        let (states, change) = AsyncStream<OutputThread.State>.makeStream(
            bufferingPolicy: .bufferingNewest(8))
        let isThere = Mutex(false)
        let attempts = Mutex<[LocalInstant]>([])
        let thread = try OutputThread.open(
            OutputWish(sampleRate: 48_000, bufferMilliseconds: 80), OutputManner(),
            realTimePriority: 0, shared: OutputLoop.Shared(onChange: { _ = change.yield($0) }),
            awaits: { $0 == Self.absent }
        ) { wish throws(OutputError) in
            attempts.withLock { $0.append(HostClock.now()) }
            guard isThere.withLock(\.self) else { throw Self.absent }
            // Other than what it was taken for.
            return try VirtualDevice(
                VirtualCardOptions(channelCount: 6), preferredSampleRate: 44_100,
                bufferMilliseconds: wish.bufferMilliseconds)
        }
        defer { thread.stop() }
        let port = thread.port
        #expect(thread.state == .lost(Self.absent))
        #expect(!port.hasCard)
        #expect(await until { attempts.withLock(\.count) == 3 })
        let times = attempts.withLock { $0 }
        #expect(times[2] - times[1] >= OutputLoop.longestBackOff)
        #expect(times[2] - times[1] < OutputLoop.longestBackOff * 5)
        // Somebody plays meanwhile: two seconds are in hand.
        let voice = try #require(port.makeVoice(sampleRate: 48_000))
        let sound = [Float](repeating: 0.1, count: 2 * 100_000)
        _ = sound.withUnsafeBufferPointer { voice.ring.write($0) }
        let begun = HostClock.now()
        voice.start(
            Line(itemFrame: 0, instant: GroupInstant(nanoseconds: begun.nanoseconds)), clock: nil)
        #expect(port.report.framesWritten == 0)
        isThere.withLock { $0 = true }
        #expect(await until { voice.report.state == .playing })
        #expect(thread.state == .running && port.hasCard)
        #expect(port.format.sampleRate == 44_100 && port.format.channelCount == 6)
        let report = voice.report
        let due = begun + Nanoseconds(seconds: report.itemFrame / 48_000)
        #expect(abs(due.nanoseconds - report.at.nanoseconds) < 5_000_000)
        // Said once; and nothing broke off that had not begun.
        var seen: [OutputThread.State] = []
        for await state in states {
            seen.append(state)
            break
        }
        #expect(seen == [.running])
        #expect(port.report.restarts == 0 && thread.counts.restarts == 0)
        voice.release()
    }

    @Test func `a card that does not answer holds nobody up, and is there when it does`()
        async throws
    {
        let gate = DispatchSemaphore(value: 0)
        let thread = try OutputThread.open(
            OutputWish(sampleRate: 48_000, bufferMilliseconds: 80), OutputManner(),
            realTimePriority: 0, shared: OutputLoop.Shared(onChange: nil), opensOnThread: true
        ) { wish throws(OutputError) in
            gate.wait()
            return try VirtualDevice(
                VirtualCardOptions(), preferredSampleRate: 44_100,
                bufferMilliseconds: wish.bufferMilliseconds)
        }
        thread.awaitOpening(.milliseconds(10))
        #expect(thread.state == .opening && !thread.port.hasCard)
        gate.signal()
        thread.awaitOpening(.seconds(60))
        #expect(thread.state == .running && thread.port.hasCard)
        #expect(thread.port.format.sampleRate == 44_100)
        #expect(thread.counts.reopens == 0 && thread.port.report.restarts == 0)
        // Those who come later do not wait.
        thread.awaitOpening(.seconds(60))
    }

    @Test func `who lets a card go that does not answer is not held up`() async throws {
        let gate = DispatchSemaphore(value: 0)
        let isOver = Mutex(false)
        do {
            _ = try OutputThread.open(
                OutputWish(sampleRate: 48_000, bufferMilliseconds: 80), OutputManner(),
                realTimePriority: 0,
                shared: OutputLoop.Shared(onChange: { state in
                    if state == .closed { isOver.withLock { $0 = true } }
                }), opensOnThread: true
            ) { _ throws(OutputError) in
                gate.wait()
                throw Self.absent
            }
        }
        gate.signal()
        #expect(await until { isOver.withLock(\.self) })
    }

    @Test func `an error that does not pass is an error at once`() {
        let error = #expect(throws: OutputError.self) {
            try OutputThread.open(
                OutputWish(sampleRate: 48_000, bufferMilliseconds: 80), OutputManner(),
                realTimePriority: 0, shared: OutputLoop.Shared(onChange: nil),
                awaits: { $0 != Self.absent }
            ) { _ throws(OutputError) in throw Self.absent }
        }
        #expect(error == Self.absent)
    }

    @Test func `who waits can be stopped`() throws {
        let thread = try OutputThread.open(
            OutputWish(sampleRate: 48_000, bufferMilliseconds: 80), OutputManner(),
            realTimePriority: 0, shared: OutputLoop.Shared(onChange: nil), awaits: { _ in true }
        ) { _ throws(OutputError) in throw Self.absent }
        thread.stop()
        #expect(thread.state == .closed)
    }

    /// What the library says of names that lead to nothing here: a card, a server that does not run.
    @Test(arguments: ["no_card", "pulseAudio"])
    func `a PCM whose card or server may come is waited for`(pcm: String) throws {
        _ = SilentCards.folder
        let thread = try OutputThread.open(
            .alsa(pcm: pcm), realTimePriority: 0, awaitsCard: true)
        defer { thread.stop() }
        guard case .lost(let error) = thread.state else {
            Issue.record("\(thread.state)")
            return
        }
        #expect(error.device == "alsa:\(pcm)")
    }

    @Test(arguments: ["broken", "mixed", "hw:7,0", "plug:nonsense", "no such name"])
    func `a PCM that is wrongly written or defined is an error with the names that exist`(
        pcm: String
    ) {
        _ = SilentCards.folder
        let error = #expect(throws: OutputError.self) {
            try OutputThread.open(.alsa(pcm: pcm), realTimePriority: 0, awaitsCard: true)
        }
        #expect(error?.reason.contains("hole") == true, "\(error?.reason ?? "")")
    }

    @Test func `a file that cannot be made is an error`() {
        let path = "\(TestFolder.url.path)/no/such/folder/a.wav"
        #expect(throws: OutputError.self) {
            try OutputThread.open(.file(path: path), realTimePriority: 0, awaitsCard: true)
        }
    }
}
