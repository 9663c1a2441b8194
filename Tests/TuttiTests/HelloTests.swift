import Foundation
import Synchronization
import Testing
import Tutti

/// The library as an application sees it: one import, files on a disk, devices without hardware.
@Suite(.serialized, .timeLimit(.minutes(2))) struct HelloTests {
    private let folder =
        FileManager.default.temporaryDirectory.path
        + "/tutti-hello-\(UUID().uuidString)"

    init() throws {
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
    }

    /// A WAV file of a steady tone, mono, 16 bits, 8000 Hz.
    private func tone(_ hertz: Double, seconds: Double, as name: String) throws -> String {
        let count = Int(seconds * 8_000)
        var samples = Data()
        for frame in 0..<count {
            let value = Int16(8_000 * sin(2 * .pi * hertz * Double(frame) / 8_000))
            withUnsafeBytes(of: value.littleEndian) { samples.append(contentsOf: $0) }
        }
        func word(_ value: Int, _ bytes: Int) -> Data {
            Data((0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) })
        }
        var file = Data("RIFF".utf8)
        file += word(36 + samples.count, 4)
        file += Data("WAVEfmt ".utf8)
        for (value, bytes) in [(16, 4), (1, 2), (1, 2), (8_000, 4), (16_000, 4), (2, 2), (16, 2)] {
            file += word(value, bytes)
        }
        file += Data("data".utf8) + word(samples.count, 4) + samples
        let path = folder + "/" + name
        try file.write(to: URL(fileURLWithPath: path))
        return path
    }

    private func end(of player: Player) async throws {
        for await notice in player.notices() {
            switch notice {
            case .didPlayToEnd: return
            case .failedToPlayToEnd(let error): throw error
            default: break
            }
        }
    }

    /// The left side of a WAV file that a device wrote: 16 or 32 bits or floats, as FFmpeg reads it.
    private func heard(_ path: String) throws -> (samples: [Float], rate: Double) {
        let source = try FFmpegSource(path)
        var samples: [Float] = []
        var block = [Float](repeating: 0, count: 8_192)
        while case let count = try block.withUnsafeMutableBufferPointer({
            try source.read(into: $0)
        }), count > 0 {
            for frame in 0..<count { samples.append(block[2 * frame]) }
        }
        return (samples, Double(source.format.sampleRate))
    }

    /// How much of a tone is there, as its amplitude.
    private func level(_ hertz: Double, in sound: (samples: [Float], rate: Double)) -> Double {
        var (real, imaginary) = (0.0, 0.0)
        for (frame, sample) in sound.samples.enumerated() {
            let phase = 2 * .pi * hertz * Double(frame) / sound.rate
            real += Double(sample) * cos(phase)
            imaginary += Double(sample) * sin(phase)
        }
        return 2 * (real * real + imaginary * imaginary).squareRoot()
            / Double(max(1, sound.samples.count))
    }

    @Test func `ten lines play a file`() async throws {
        let path = try tone(440, seconds: 0.5, as: "a.wav")
        let player = Player(url: path, device: .virtual())
        let notices = player.notices()
        player.play()
        for await notice in notices {
            if case .didPlayToEnd = notice { break }
            if case .failedToPlayToEnd(let error) = notice { throw error }
        }
        #expect(player.currentTime() == player.currentItem?.duration)
        #expect(player.status == .readyToPlay)
    }

    @Test func `an address of Foundation's is one, with its blanks`() async throws {
        let path = try tone(440, seconds: 0.2, as: "a b%20ü.wav")
        let player = Player(url: URL(fileURLWithPath: path), device: .virtual())
        try await player.currentItem?.ready()
        #expect(player.currentItem?.duration.seconds == 0.2)
    }

    @Test func `what cannot be opened is an error that says what and why`() async throws {
        let player = Player(url: folder + "/nowhere.mp3", device: .virtual())
        let notices = player.notices()
        player.play()
        for await notice in notices { if case .failedToPlayToEnd = notice { break } }
        #expect(player.status == .failed)
        let error = try #require(player.error)
        #expect(error.code == .mediaFailed)
        let text = (error as any Error).localizedDescription
        #expect(text.contains("nowhere.mp3") && text.contains("is not there"), "\(text)")
    }

    /// Each of eight tones is heard, by its own volume, and the muted one is not.
    @Test func `eight players sound on one device, each as loud as it is set`() async throws {
        let path = folder + "/heard.wav"
        let tones = (0..<8).map { 300 + 150 * Double($0) }
        do {
            let device = AudioDevice.file(path)
            let players = try tones.enumerated().map { place, hertz in
                let player = Player(
                    url: try tone(hertz, seconds: 2, as: "\(place).wav"), device: device)
                player.volume = place % 2 == 0 ? 0.5 : 0.25
                player.isMuted = place == 3
                return player
            }
            for player in players { try await player.currentItem?.ready() }
            await withThrowingTaskGroup { group in
                for player in players {
                    let notices = player.notices()
                    player.play()
                    group.addTask {
                        for await notice in notices { if case .didPlayToEnd = notice { return } }
                    }
                }
            }
            #expect(players.allSatisfy { $0.error == nil })
        }
        let sound = try heard(path)
        let levels = tones.map { level($0, in: sound) }
        let loud = [levels[0], levels[2], levels[4], levels[6]]
        let quiet = [levels[1], levels[5], levels[7]]
        let mean = loud.reduce(0, +) / 4
        for value in loud { #expect(abs(value / mean - 1) < 0.2, "\(levels)") }
        for value in quiet { #expect(abs(value / mean - 0.5) < 0.1, "\(levels)") }
        #expect(levels[3] < mean / 20, "\(levels)")
    }

    @Test func `a player goes to another device while it plays`() async throws {
        let (first, second) = (folder + "/first.wav", folder + "/second.wav")
        do {
            let player = Player(
                url: try tone(500, seconds: 2, as: "a.wav"), device: .file(first))
            let notices = player.notices()
            player.play()
            for await time in player.periodicTimes(every: MediaTime(value: 1, timescale: 2))
            where time.seconds >= 0.9 { break }
            player.device = .file(second)
            for await notice in notices { if case .didPlayToEnd = notice { break } }
            #expect(player.device?.description == "file:\(second)")
        }
        let sounding = try [first, second].map { path in
            try heard(path).samples.count { abs($0) > 1e-3 }
        }
        // Together the whole item, but for what the first device still held.
        #expect(sounding[0] > 20_000 && sounding[1] > 20_000, "\(sounding)")
    }

    @Test func `a device that is not there is waited for, and says why`() async throws {
        let device = try AudioDevice("alsa:hw:17,0")
        #expect(!device.isAvailable)
        #expect("\(try #require(device.error))".contains("hw:17,0"))
        let player = Player(
            url: try tone(440, seconds: 0.5, as: "a.wav"), device: device)
        try await player.currentItem?.ready()
        player.play()
        #expect(player.timeControlStatus == .waitingToPlayAtSpecifiedRate)
        #expect(player.reasonForWaitingToPlay == .outputUnavailable)
        let notices = player.notices()
        player.device = .virtual()
        for await notice in notices { if case .didPlayToEnd = notice { break } }
        #expect(player.error == nil)
    }

    @Test func `one name is one device`() {
        let device = AudioDevice.alsa("hw:18,0")
        #expect(AudioDevice.alsa("hw:18,0") === device)
        #expect(throws: OutputSpecificationError.self) { try AudioDevice("nonsense:1") }
    }
}
