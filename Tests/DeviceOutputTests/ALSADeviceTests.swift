import Foundation
import Testing
import TuttiLinuxHost
import TuttiPlayout
import TuttiTiming

@testable import TuttiDeviceOutput

/// An ALSA configuration of our own: no card, but PCMs of the library that need none.
enum SilentCards {
    /// Sets ALSA_CONFIG_PATH for the whole process, once, before ALSA is used.
    static let folder: URL = {
        let folder = TestFolder.url
        // Where the tests are, too.
        let library = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
            .deletingLastPathComponent().path
        let text = """
            pcm.hole { type null hint { show on description "swallows all" } }
            pcm.tape { type file slave.pcm hole file "\(folder.path)/tape.raw" format "raw" }
            pcm.reel { type file slave.pcm hole file "\(folder.path)/reel.raw" format "raw" }
            pcm.tape16 { type file slave.pcm hole file "\(folder.path)/tape16.raw" format "raw" }
            pcm.float_only { type lfloat slave { pcm hole format S16_LE } }
            pcm.tape_cut { type file slave.pcm hole file "\(folder.path)/cut.raw" format "raw" }
            pcm.cut { type plug slave { pcm tape_cut format S16_LE } }
            pcm.broken { type tape_recorder }
            pcm.resampled { type rate slave { pcm hole rate 44100 } converter "linear" }
            pcm.converted { type plug slave.pcm hole }
            pcm.mixed { type dmix ipc_key 583921 slave { pcm hole rate 48000 } }
            pcm.shared { type dshare ipc_key 583922 slave { pcm hole rate 48000 } bindings { 0 0 } }
            pcm.mixed_by_plug { type plug slave.pcm mixed }
            pcm_type.tutti_card { lib "\(library)/libVirtualALSACard.so" }
            pcm.taped { type tutti_card record "\(folder.path)/taped" }
            pcm.no_card { type hw card 9 }
            pcm.pulseAudio { type pulse server "unix:\(SoundServer.Kind.pulseAudio.socket)" }
            pcm.pipeWire { type pulse server "unix:\(SoundServer.Kind.pipeWire.socket)" }
            """
        let path = folder.appendingPathComponent("asound.conf")
        try! text.write(to: path, atomically: true, encoding: .utf8)
        setenv("ALSA_CONFIG_PATH", path.path, 1)
        return folder
    }()

    static func open(
        _ name: String, rate: Int = 48_000, milliseconds: Int = 40,
        formats: [SampleFormat] = SampleFormat.allCases
    ) throws(OutputError) -> ALSADevice {
        _ = folder
        return try ALSADevice(
            ALSANegotiation(
                name: name, preferredSampleRate: rate, bufferMilliseconds: milliseconds,
                sampleFormats: formats))
    }
}

@Suite(.timeLimit(.minutes(1))) struct ALSADeviceTests {
    @Test(arguments: [8_000, 44_100, 48_000, 192_000], [10, 40, 100])
    func `a card that can do anything gives what was preferred`(
        rate: Int, milliseconds: Int
    ) throws {
        let device = try SilentCards.open("hole", rate: rate, milliseconds: milliseconds)
        defer { device.close() }
        #expect(device.sampleFormat == .signed32)
        #expect(device.format.sampleRate == rate)
        #expect(device.format.channelCount == 2)
        // A quarter of the buffer, at most 20 ms; the queue is whole periods.
        let wanted = rate * milliseconds / 1000
        #expect(device.format.periodFrames == min(rate / 50, wanted / 4))
        #expect(device.format.bufferFrames % device.format.periodFrames == 0)
        #expect(abs(device.format.bufferFrames - wanted) < device.format.periodFrames)
    }

    @Test func `all that was written is heard before a card is closed, where that is asked for`()
        throws
    {
        let device = try SilentCards.open("taped", milliseconds: PacedDeviceTests.buffer)
        // Whether its end falls on a period's or not.
        let written = try PacedDeviceTests.play(device, periods: 27)
        device.playOut()
        device.close()
        let card = try CardRecording.load(
            path: SilentCards.folder.appendingPathComponent("taped").path)
        #expect(card.samples.count == 2 * written && card.underruns == 0)
        PacedDeviceTests.expectCounting(card.samples, channels: 2)
    }

    @Test func `a card says which rates it has, and how it takes its samples`() throws {
        let device = try SilentCards.open("hole")
        defer { device.close() }
        #expect(device.sampleRates == ALSANegotiation.usualRates)
        #expect(device.sampleDescription == "S32_LE")
    }

    @Test func `a card that takes only Float gets Float`() throws {
        let device = try SilentCards.open("float_only")
        defer { device.close() }
        #expect(device.sampleFormat == .float32)
    }

    @Test func `an unknown name is refused with the names that exist`() {
        let error = #expect(throws: OutputError.self) { try SilentCards.open("hw:7,0") }
        #expect(error?.code == -ENOENT)
        #expect(error?.operation == "snd_pcm_open")
        #expect(error?.device == "alsa:hw:7,0")
        #expect(error?.reason.contains("hole") == true, "\(error?.reason ?? "")")
    }

    @Test(arguments: [
        ("snd_pcm_open", ENODEV, "no such card"), ("snd_pcm_open", ENOENT, "no PCM of that name"),
        ("snd_pcm_open", EBUSY, "stop that program"), ("snd_pcm_open", EACCES, "group"),
        ("snd_pcm_open", 524, "screen"), ("snd_pcm_writei", 524, "screen"),
        ("snd_pcm_open", EHOSTDOWN, "sound server"), ("snd_pcm_open", ECONNREFUSED, "PipeWire"),
        ("snd_pcm_status", ETIMEDOUT, "restart"), ("snd_pcm_writei", EPROTO, "cable"),
        ("snd_pcm_hw_params", ENOMEM, "--buffer-ms"),
        ("snd_pcm_writei", ENODEV, "unplugged"), ("snd_pcm_status", EBADFD, "unplugged"),
    ])
    func `an error of the library says what to do`(call: String, code: Int32, advice: String) {
        _ = SilentCards.folder
        let error = ALSAFailure.error(call, -code, pcm: "hw:1")
        #expect(error.code == -code)
        #expect(error.reason.contains(advice), "\(error)")
        #expect(!error.reason.contains("Unknown error"), "\(error)")
        // What was called is for those who ask for it.
        #expect(!error.description.contains(call))
        #expect(error.debugDescription.contains("\(call): -\(code)"))
    }

    @Test func `a definition that is not valid is an error and nothing else`() {
        #expect(throws: OutputError.self) { try SilentCards.open("broken") }
    }

    /// Mixing needs a card of the kernel under it; here there is none. One error, and it says so.
    @Test(arguments: [
        ("mixed", "hw: card"), ("shared", "hw: card"), ("mixed_by_plug", "hw: card"),
        ("no_card", "no such card"),
    ])
    func `what cannot be played without a card is one clear error`(name: String, advice: String) {
        let error = #expect(throws: OutputError.self) { try SilentCards.open(name) }
        #expect(error?.operation == "snd_pcm_open")
        #expect(error?.device == "alsa:\(name)")
        #expect(error?.reason.contains(advice) == true, "\(error?.reason ?? "")")
    }

    /// Plug-ins between us and the card: each takes what is written, at a card's pace.
    @Test(arguments: ["resampled", "converted", "float_only", "reel"])
    func `the library's own plug-ins play`(name: String) throws {
        let device = try SilentCards.open(name, milliseconds: 20)
        defer { device.close() }
        let silence = [Float](repeating: 0, count: device.format.periodFrames * 2)
        for _ in 0..<20 {
            let event = try device.wait(WaitPlan())
            #expect(event == .writable)
            if let reading = device.reading() { #expect(reading.resolution == 1) }
            #expect(try device.write(silence) == .writable)
        }
    }

    @Test func `a card without the wanted sample format says how to convert`() {
        let error = #expect(throws: OutputError.self) {
            try SilentCards.open("float_only", formats: [.signed16])
        }
        #expect(error?.reason.contains("plug") == true)
    }

    @Test func `the PCMs that ask to be shown are listed`() {
        _ = SilentCards.folder
        #expect(
            ALSADevice.availablePCMs().contains(
                ALSAName(name: "hole", description: "swallows all")))
    }

    /// `plug` takes 32 bits for a card that has 16, and drops what it cannot pass on.
    @Test func `what a plug-in cuts off is zero, and dither is above it`() throws {
        let device = try SilentCards.open("cut")
        #expect(device.sampleFormat == .signed32)
        let count = device.format.periodFrames * 2
        // Between two steps of 16 bits: only dither makes the mean right.
        let samples = [Float](repeating: 100.3 / 32_768, count: count)
        var encoder = SampleEncoder(format: .signed32, significantBits: 16)
        var wanted: [Int16] = []
        for _ in 0..<12 {
            #expect(try device.wait(WaitPlan()) == .writable)
            #expect(try device.write(samples) == .writable)
            var words = [Int32](repeating: 0, count: count)
            unsafe words.withUnsafeMutableBytes {
                unsafe encoder.encode(samples, count: count, into: $0.baseAddress!)
            }
            wanted += words.map { Int16($0 >> 16) }
        }
        device.close()
        let tape = try Data(contentsOf: SilentCards.folder.appendingPathComponent("cut.raw"))
        let heard = tape.withUnsafeBytes { bytes in
            (0..<bytes.count / 2).map {
                Int16(
                    littleEndian: unsafe bytes.loadUnaligned(
                        fromByteOffset: 2 * $0, as: Int16.self))
            }
        }
        #expect(heard == wanted)
        #expect(Set(heard).count >= 3)
    }

    @Test func `the fewest bits of all that a PCM plays through count`() {
        func bits(_ text: String) -> Int? { ALSANegotiation.significantBits(describedBy: text) }
        let plug = """
            Plug PCM: Linear conversion PCM (S24_3LE)
            Its setup is:
              format       : S32_LE
              msbits       : 32
            Slave: Hardware PCM card 0 'sound' device 0 subdevice 0
            Its setup is:
              format       : S24_3LE
              msbits       : 24
            """
        #expect(bits(plug) == 24)
        #expect(bits("  msbits       : 20\n") == 20)
        for nothing in ["", "msbits", "msbits : 0", "msbits : many", "Null PCM\n"] {
            #expect(bits(nothing) == nil)
        }
    }

    /// Frames in, bytes out: none lost, none doubled, each as the encoder makes it.
    @Test(arguments: [
        ("tape", SampleFormat.signed32), ("tape16", SampleFormat.signed16),
    ])
    func `what is written is what the card gets`(name: String, format: SampleFormat) throws {
        let device = try SilentCards.open(name, formats: [format])
        let count = device.format.periodFrames * 2
        var encoder = SampleEncoder(format: format)
        var wanted: [UInt8] = []
        for period in 0..<12 {
            let samples = (0..<count).map { Float(($0 * 7 + period * 31) % 200 - 100) / 101 }
            #expect(try device.wait(WaitPlan()) == .writable)
            #expect(try device.write(samples) == .writable)
            var bytes = [UInt8](repeating: 0, count: count * format.bytesPerSample)
            unsafe bytes.withUnsafeMutableBytes {
                unsafe encoder.encode(samples, count: count, into: $0.baseAddress!)
            }
            wanted += bytes
        }
        device.close()
        let path = SilentCards.folder.appendingPathComponent("\(name).raw")
        #expect(try [UInt8](Data(contentsOf: path)) == wanted)
    }

    @Test func `a card has no position before it is full and started`() throws {
        let device = try SilentCards.open("hole")
        defer { device.close() }
        let silence = [Float](repeating: 0, count: device.format.periodFrames * 2)
        for _ in 1..<(device.format.bufferFrames / device.format.periodFrames) {
            #expect(device.reading() == nil)
            #expect(try device.write(silence) == .writable)
        }
        #expect(device.reading() == nil)
        let before = HostClock.now()
        #expect(try device.write(silence) == .writable)
        // Then a dozen looks decide how its pointer moves.
        var readings: [CardReading] = []
        for _ in 0..<100 where readings.isEmpty {
            _ = try device.wait(WaitPlan())
            if let reading = device.reading() { readings.append(reading) }
            _ = try device.write(silence)
        }
        let reading = try #require(readings.first)
        #expect(reading.instant >= before)
        #expect(reading.instant <= HostClock.now())
        #expect(reading.framesHeard > 0)
    }

    /// `null` swallows 24 000 frames in 41 µs; a thread that is driven by it would take a whole
    /// core.
    @Test func `a card that is not paced at all is held to a card's pace`() throws {
        let device = try SilentCards.open("hole")
        defer { device.close() }
        let silence = [Float](repeating: 0, count: device.format.periodFrames * 2)
        let begin = HostClock.now()
        for _ in 0..<30 {
            _ = try device.wait(WaitPlan())
            _ = try device.write(silence)
        }
        let seconds = (HostClock.now() - begin).seconds
        // Two buffers may be ahead: what fills the card, and what it may swallow at once.
        let frames =
            30 * device.format.periodFrames - 2 * device.format.bufferFrames
            - device.format.periodFrames
        #expect(seconds >= Double(frames) / 48_000 / 1.002)
    }
}
