import Foundation
import Synchronization
import Testing
import Tutti

/// The library as an application sees it: one import, files on a disk, devices without hardware.
@Suite(.serialized, .timeLimit(.minutes(2))) struct HelloTests {
    private let sounds = Sounds()
    private var folder: String { sounds.folder }

    private func tone(_ hertz: Double, seconds: Double, as name: String) throws -> String {
        try sounds.tone(hertz, seconds: seconds, as: name)
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

    /// The disk may have been found to be full before the player was there to hear of that.
    @Test func `a file on a full disk is a device that is gone, as its player knows`() async throws
    {
        let device = AudioDevice(.file(path: "/dev/full"), overwrites: true)
        let player = Player(url: try tone(440, seconds: 60, as: "long.wav"), device: device)
        try await player.currentItem?.ready()
        player.play()
        while device.isAvailable { try await Task.sleep(for: .milliseconds(10)) }
        #expect(device.error?.code == ENOSPC)
        #expect(player.rate == 0 || player.reasonForWaitingToPlay == .outputUnavailable)
    }

    @Test func `a queue plays on a device by itself`() async throws {
        let items = try [300.0, 500].map {
            PlayerItem(url: try tone($0, seconds: 0.3, as: "\($0).wav"))
        }
        let player = try QueuePlayer(items: items, device: .virtual())
        let notices = player.notices()
        player.play()
        for await notice in notices { if case .currentItemDidChange(nil) = notice { break } }
        #expect(player.items().isEmpty && player.error == nil)
        // One item has one player.
        let other = try QueuePlayer(items: [items[0]], device: .virtual())
        #expect(throws: PlaybackError.self) {
            try QueuePlayer(items: [items[1], items[0]], device: .virtual())
        }
        #expect(other.items().count == 1)
    }

    @Test func `a card that is known is waited for, and one that never comes is given up`()
        async throws
    {
        let player = Player(
            url: try tone(440, seconds: 2, as: "a.wav"), device: .virtual(partsPerMillion: 80))
        player.sourceClock = .host
        try await player.readyForLockstep()
        #expect(player.isReadyForLockstep)
        let missing = Player(device: .alsa("no such card"))
        let waiting = Task { try await missing.readyForLockstep() }
        waiting.cancel()
        let error = await #expect(throws: PlaybackError.self) { try await waiting.value }
        #expect(error?.code == .cancelled && !missing.isReadyForLockstep)
    }

    @Test func `a device has one clock, which is a crystal of its own`() throws {
        let device = try AudioDevice("virtual:ppm=80")
        let clock = device.clock
        #expect(device.clock === clock)
        #expect(clock.mightDrift(relativeTo: .host) && !clock.mightDrift(relativeTo: device.clock))
        let (first, second) = (clock.now(), clock.now())
        #expect(second >= first && clock.isPlayable)
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
        #expect(text.hasPrefix("mediaFailed: "), "\(text)")
        let cause = try #require(error.underlying as? MediaError)
        #expect(text.contains("\(cause)"), "\(text)")
        #expect((cause as any Error).localizedDescription == "notFound: \(cause)")
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
        let sound = try sounds.heard(path)
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
            try sounds.heard(path).samples.count { abs($0) > 1e-3 }
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

    /// The rest would come in a day.
    @Test func `an MP3 on a server sounds while it comes`() async throws {
        let path = folder + "/song.mp3"
        try sounds.encode(Sounds.noise(seconds: 60), rate: 44_100, ["-b:a", "128k"], as: path)
        let body = try Data(contentsOf: URL(fileURLWithPath: path))
        let server = WebServer(body)
        let player = Player(url: server.url("song.mp3"), device: .virtual())
        let item = try #require(player.currentItem)
        try await item.ready()
        #expect(item.duration == MediaTime(value: 60, timescale: 1))
        server.change(to: .trickles(from: 400_000))
        player.play()
        for await time in player.boundaryTimes([MediaTime(seconds: 0.5)]) {
            #expect(time.seconds == 0.5 && player.timeControlStatus == .playing)
            break
        }
    }

    @Test func `one name is one device`() {
        let device = AudioDevice.alsa("hw:18,0")
        #expect(AudioDevice.alsa("hw:18,0") === device)
        #expect(throws: OutputSpecificationError.self) { try AudioDevice("nonsense:1") }
    }

    /// Each channel has a level of its own all the time.
    private func surround(_ levels: [Float], seconds: Double, as name: String) throws -> String {
        let count = Int(seconds * 48_000)
        var samples: [Float] = []
        for _ in 0..<count { samples += levels }
        let bytes = samples.withUnsafeBytes { Data($0) }
        func word(_ value: Int, _ bytes: Int) -> Data {
            Data((0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) })
        }
        var file = Data("RIFF".utf8) + word(36 + bytes.count, 4) + Data("WAVEfmt ".utf8)
        let channels = levels.count
        for (value, width) in [
            (16, 4), (3, 2), (channels, 2), (48_000, 4), (192_000 * channels, 4),
            (4 * channels, 2), (32, 2),
        ] {
            file += word(value, width)
        }
        file += Data("data".utf8) + word(bytes.count, 4) + bytes
        let path = folder + "/" + name
        try file.write(to: URL(fileURLWithPath: path))
        return path
    }

    @Test func `six channels of a file leave a card with six, each by its loudspeaker`()
        async throws
    {
        let levels: [Float] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
        let file = try surround(levels, seconds: 1, as: "5.1.wav")
        let recording = folder + "/heard.wav"
        do {
            let device = try AudioDevice("virtual:channels=6,record=\(recording)")
            let player = Player(url: file, device: device)
            player.play()
            try await end(of: player)
        }
        let heard = try CardRecording.load(path: recording)
        for channel in 0..<6 {
            let samples = stride(from: channel, to: heard.samples.count, by: 6)
                .map { heard.samples[$0] }.filter { $0 > 0.05 }.sorted()
            // Not the ringing of the filter at the edges: what is heard most of the time.
            #expect(samples.count > 40_000)
            #expect(abs(samples[samples.count / 2] - levels[channel]) < 1e-3)
        }
    }
}
