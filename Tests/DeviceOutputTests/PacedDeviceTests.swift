import Foundation
import Synchronization
import Testing
import TuttiLinuxHost
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

@testable import TuttiDeviceOutput

@Suite(.timeLimit(.minutes(1))) struct PacedDeviceTests {
    static func path(_ name: String) -> String {
        TestFolder.url.appendingPathComponent(name).path
    }

    /// Long enough that a busy machine does not starve the card by chance.
    static let buffer = 500

    /// Writes `periods` periods of samples that say where they are: frame n is n/2²⁰ on channel 0.
    static func play(
        _ device: some AudioOutput, periods: Int, from frame: Int = 0,
        look: (CardReading) -> Void = { _ in }
    ) throws -> Int {
        let channels = device.format.channelCount
        var frame = frame
        for _ in 0..<periods {
            #expect(try device.wait(WaitPlan()) == .writable)
            if let reading = device.reading() { look(reading) }
            let samples = (0..<device.format.periodFrames * channels).map { i in
                Float(frame + i / channels + 1) / 1_048_576 * Float(i % channels + 1)
            }
            #expect(try device.write(samples) == .writable)
            frame += device.format.periodFrames
        }
        return frame
    }

    static func expectCounting(_ samples: [Float], channels: Int, from frame: Int = 0) {
        for (i, sample) in samples.enumerated()
        where sample != Float(frame + i / channels + 1) / 1_048_576 * Float(i % channels + 1) {
            Issue.record("sample \(i) is \(sample)")
            return
        }
    }

    @Test(arguments: [(-800.0, 44_100), (0, 48_000), (500, 48_000)])
    func `a virtual card runs at its crystal's rate`(ppm: Double, rate: Int) throws {
        let device = try VirtualDevice(
            VirtualCardOptions(partsPerMillion: ppm, sampleRate: rate),
            bufferMilliseconds: Self.buffer)
        defer { device.close() }
        var readings: [CardReading] = []
        _ = try Self.play(device, periods: 70) { readings.append($0) }
        let first = try #require(readings.first)
        let last = try #require(readings.last)
        let seconds = (last.instant - first.instant).seconds
        let measured = (last.framesHeard - first.framesHeard) / seconds / Double(rate)
        // Instants are whole nanoseconds: two of them over the time between.
        #expect(abs(measured - 1 - ppm * 1e-6) < 2e-9 / seconds + 1e-12)
        // Paced: before a period could be written, there was room for it.
        let ahead = device.format.bufferFrames - device.format.periodFrames
        #expect(last.framesHeard >= Double(69 * device.format.periodFrames - ahead))
    }

    @Test(arguments: [1, 2, 3])
    func `a recording holds what left the card and when`(channels: Int) throws {
        let path = Self.path("card\(channels)")
        let device = try VirtualDevice(
            VirtualCardOptions(
                partsPerMillion: 300, wander: 5, seed: 3, record: path, channelCount: channels),
            bufferMilliseconds: Self.buffer)
        var readings: [CardReading] = []
        // The buffer and 250 ms, so at least two knots of the crystal.
        let written = try Self.play(device, periods: 75) { readings.append($0) }
        device.close()
        let card = try CardRecording.load(path: path)
        #expect(card.sampleRate == 48_000)
        #expect(card.channelCount == channels)
        #expect(card.underruns == 0)
        #expect(card.lostFrames == 0)
        // All but what was still queued.
        #expect(card.frameCount <= written)
        #expect(card.frameCount >= written - device.format.bufferFrames)
        Self.expectCounting(card.samples, channels: channels)
        let segment = try #require(card.segments.first)
        #expect(segment.frames.upperBound == Double(card.frameCount))
        for reading in readings where reading.framesHeard >= 0 {
            let instant = try #require(card.instant(ofFrame: reading.framesHeard))
            // Rounded to a nanosecond twice: in the file's line and in the result.
            #expect((instant - reading.instant).magnitude <= Nanoseconds(2))
            let frame = try #require(card.frame(at: reading.instant))
            #expect(abs(frame - reading.framesHeard) < 2e-9 * 48_000)
        }
        #expect(card.instant(ofFrame: -1) == nil)
        #expect(card.instant(ofFrame: Double(card.frameCount) + 1) == nil)
    }

    @Test func `a glance ends a wait at its instant, while there is no room`() throws {
        let device = try VirtualDevice(
            VirtualCardOptions(), bufferMilliseconds: Self.buffer)
        defer { device.close() }
        let silence = [Float](repeating: 0, count: device.format.periodFrames * 2)
        // A period is 10 ms; a machine that is busy for so long finds room instead, and tries
        // again.
        var glances = 0
        for _ in 0..<400 where glances < 5 {
            let glance = HostClock.now() + .milliseconds(2)
            switch device.wait(WaitPlan(glance: glance)) {
            case .glance:
                glances += 1
                #expect(HostClock.now() >= glance)
                #expect(device.reading() != nil)
            case .writable: _ = device.write(silence)
            case .restarted, .awoken, .renewed: break
            }
        }
        #expect(glances == 5)
    }

    @Test func `a starved card restarts from frame 0 and its recording goes on`() throws {
        let path = Self.path("starved")
        let device = try VirtualDevice(
            VirtualCardOptions(record: path), bufferMilliseconds: 200)
        let buffer = device.format.bufferFrames
        var frame = try Self.play(device, periods: buffer / device.format.periodFrames)
        HostClock.sleep(until: HostClock.now() + .milliseconds(250))
        #expect(device.wait(WaitPlan()) == .restarted)
        #expect(device.reading() == nil)
        // All of the first buffer was heard before the card ran dry.
        var first: CardReading?
        frame = try Self.play(device, periods: 24, from: frame) { first = first ?? $0 }
        #expect(try #require(first).framesHeard < Double(frame - buffer))
        device.close()
        let card = try CardRecording.load(path: path)
        #expect(card.underruns == 1)
        #expect(card.segments.count == 2)
        #expect(card.segments[0].frames == 0..<Double(buffer))
        #expect(card.segments[1].frames.lowerBound == Double(buffer))
        Self.expectCounting(card.samples, channels: 2)
        let gap = try #require(card.instant(ofFrame: Double(buffer) + 1))
        let edge = try #require(card.instant(ofFrame: Double(buffer) - 1))
        // It slept 250 ms with 200 ms queued.
        #expect(gap - edge > .milliseconds(50))
    }

    @Test func `a file is a WAV of what was played`() throws {
        let path = Self.path("room.wav")
        let device = try FileDevice(path: path, bufferMilliseconds: Self.buffer)
        let written = try Self.play(device, periods: 65)
        device.close()
        let bytes = try [UInt8](Data(contentsOf: URL(fileURLWithPath: path)))
        func word(_ at: Int, _ size: Int) -> Int {
            (0..<size).reduce(0) { $0 | Int(bytes[at + $1]) << (8 * $1) }
        }
        #expect(String(decoding: bytes[0..<4], as: UTF8.self) == "RIFF")
        #expect(word(4, 4) == bytes.count - 8)
        #expect(String(decoding: bytes[8..<16], as: UTF8.self) == "WAVEfmt ")
        // IEEE float, 2 channels, 48 kHz, bytes per second, bytes per frame, bits.
        let format: [Int] = [
            word(20, 2), word(22, 2), word(24, 4), word(28, 4), word(32, 2), word(34, 2),
        ]
        let wanted: [Int] = [3, 2, 48_000, 384_000, 8, 32]
        #expect(format == wanted)
        #expect(String(decoding: bytes[50..<54], as: UTF8.self) == "data")
        #expect(word(54, 4) == bytes.count - 58)
        let samples = (0..<(bytes.count - 58) / 4).map {
            Float(bitPattern: UInt32(word(58 + 4 * $0, 4)))
        }
        #expect(samples.count / 2 <= written)
        #expect(samples.count / 2 >= written - device.format.bufferFrames)
        Self.expectCounting(samples, channels: 2)
    }

    @Test func `a path that cannot be written is an error at once`() {
        for text in ["virtual:record=/nowhere/at/all/x", "file:/nowhere/at/all/x.wav"] {
            let error = #expect(throws: OutputError.self) {
                try OutputSpecification(parsing: text).makeDevice(
                    sampleRate: 48_000, bufferMilliseconds: 40)
            }
            #expect(error?.code == ENOENT)
            #expect(error?.reason.contains("folder") == true)
        }
    }

    @Test(arguments: ["file:PATH", "virtual:record=PATH"])
    func `a file that is there is written over only when that is asked for`(text: String) throws {
        let path = Self.path("kept-\(text.prefix(4))")
        let output = try OutputSpecification(parsing: text.replacing("PATH", with: path))
        let files = output == .file(path: path) ? [path] : ["\(path).f32", "\(path).times"]
        for file in files {
            for other in files { try? FileManager.default.removeItem(atPath: other) }
            try Data("precious".utf8).write(to: URL(fileURLWithPath: file))
            let error = #expect(throws: OutputError.self) {
                try output.makeDevice(sampleRate: 48_000, bufferMilliseconds: 40)
            }
            #expect(error?.code == EEXIST)
            #expect(error?.reason.contains("--force") == true)
            #expect(try Data(contentsOf: URL(fileURLWithPath: file)) == Data("precious".utf8))
        }
        let device = try output.makeDevice(
            sampleRate: 48_000, bufferMilliseconds: 40, overwrites: true)
        device.close()
        for file in files {
            #expect(try Data(contentsOf: URL(fileURLWithPath: file)) != Data("precious".utf8))
        }
    }

    @Test func `what is no file can be written to`() throws {
        let device = try OutputSpecification(parsing: "file:/dev/null").makeDevice(
            sampleRate: 48_000, bufferMilliseconds: 40)
        device.close()
    }

    @Test func `when the disk is too slow samples are lost but not their places`() throws {
        let path = Self.path("slow.f32")
        // A disk that stands still: the writer is held after its first round.
        let isHeld = LatestValue(false)
        let mayGoOn = LatestValue(false)
        let queue = try FrameQueue(
            file: RecordFile(path), headerBytes: 0, channelCount: 1,
            eachRound: { _ in
                isHeld.store(true)
                while !mayGoOn.load() { HostClock.sleep(until: HostClock.now() + .milliseconds(1)) }
            }, atEnd: { _ in })
        while !isHeld.load() { HostClock.sleep(until: HostClock.now() + .milliseconds(1)) }
        let block = [Float](repeating: 1, count: 10_001)
        for _ in 0..<60 { _ = queue.append(block, frames: block.count) }
        let lost = Int(queue.lostFrames)
        mayGoOn.store(true)
        queue.finish()
        let data = try [UInt8](Data(contentsOf: URL(fileURLWithPath: path)))
        #expect(data.count == 4 * 60 * block.count)
        // The queue holds 131 072 pairs; whole blocks are lost.
        #expect(lost == (60 - 2 * 131_072 / block.count) * block.count)
        // 1.0 is 00 00 80 3F.
        #expect(data.count { $0 == 0x3F } == 60 * block.count - lost)
    }

    @Test(arguments: ["file:/dev/full", "virtual:record=\(path("full"))"])
    func `a disk that is full ends the recording once, and not the sound`(text: String) throws {
        for end in [".f32", ".times"] where text.hasPrefix("virtual") {
            try FileManager.default.createSymbolicLink(
                atPath: Self.path("full") + end, withDestinationPath: "/dev/full")
        }
        let errors = Mutex<[OutputError]>([])
        let device = try OutputSpecification(parsing: text).makeDevice(
            sampleRate: 48_000, bufferMilliseconds: Self.buffer,
            onRecordingFailure: { error in errors.withLock { $0.append(error) } })
        _ = try Self.play(device, periods: 75)
        device.close()
        let paths = errors.withLock { $0.map(\.device) }
        #expect(errors.withLock { $0.allSatisfy { $0.code == ENOSPC } })
        #expect(Set(paths).count == paths.count)
        #expect(paths.count == (text.hasPrefix("virtual") ? 2 : 1))
    }

    static let damaged = [
        "", "TUTTI-CARD 2 rate=48000 channels=2\n", "TUTTI-CARD 1 rate=0 channels=2\n",
        "TUTTI-CARD 1 rate=48000 channels=2\nANCHOR frame=0.0 raw_ns=1.000\n",
        "TUTTI-CARD 1 rate=48000 channels=2\nSTART frame=x raw_ns=1.000\n",
        "TUTTI-CARD 1 rate=48000 channels=2\nSTART frame=0.0 raw_ns=1.000\nSTOP frame=1.0\n",
    ]

    @Test(arguments: damaged)
    func `a damaged recording is an error that shows the line`(times: String) {
        let error = #expect(throws: OutputError.self) {
            try CardRecording(times: times, data: [], path: "x")
        }
        #expect(error?.device == "x.times")
    }
}
