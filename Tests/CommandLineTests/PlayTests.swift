import ArgumentParser
import Foundation
import Synchronization
import Testing
import Tutti
import TuttiRoom

@testable import tutti

/// `tutti play` with files.
@Suite(.timeLimit(.minutes(5))) struct PlayTests {
    @Test func `keys are single letters and the arrows' three bytes`() {
        var parser = TerminalInputParser()
        func keys(_ bytes: [UInt8]) -> [PlayKey] {
            bytes.compactMap { parser.take($0) }.compactMap(PlayKey.init)
        }
        #expect(
            keys(Array(" nPq+-=m[]<>1".utf8)) == [
                .togglePause, .next, .previous, .quit, .volume(5), .volume(-5), .volume(5), .mute,
                .rate(-5), .rate(5), .rate(-5), .rate(5), .rate(nil),
            ])
        #expect(
            keys([0x1B, 0x5B, 0x41, 0x1B, 0x5B, 0x42, 0x1B, 0x4F, 0x43, 0x1B, 0x5B, 0x44]) == [
                .volume(5), .volume(-5), .seek(10), .seek(-10),
            ])
        // What is no key does nothing, and the next one counts.
        #expect(keys([0x1B, 0x5B, 0x48, 0x07, 0xC3, 0xBC] + Array("n".utf8)) == [.next])
    }

    private static func view(_ change: (inout PlayView) -> Void = { _ in }) -> PlayView {
        var view = PlayView(
            title: "Evening", artist: "Ada", number: 2, count: 12, seconds: 30, duration: 120,
            state: .playing, volume: 80, rate: 1)
        change(&view)
        return view
    }

    @Test(arguments: [20, 40, 80, 200])
    func `the lines of the player fit any terminal`(width: Int) {
        let views = [
            Self.view(), Self.view { $0.title = String(repeating: "長い", count: 200) },
            Self.view { $0.duration = nil }, Self.view { $0.seconds = 1e9 },
            Self.view { $0.state = .waiting("x\u{1B}]0;t\u{7}\nforged") },
            Self.view { $0.artist = "\u{1B}[2J\u{202E}" },
        ]
        for view in views {
            let lines = view.lines(width: width, showsColour: false)
            #expect(lines.count == 3 && lines.allSatisfy { $0.columns <= width }, "\(lines)")
            #expect(!lines.joined().contains("\u{1B}") && !lines.joined().contains("\n"))
        }
    }

    @Test(arguments: 6...12)
    func `beside a picture are as many lines as it has`(rows: Int) {
        let long = String(repeating: "long ", count: 100)
        let views = [
            Self.view(), Self.view { ($0.album, $0.chapter) = ("Notes", "Three") },
            Self.view { ($0.artist, $0.album, $0.chapter) = (nil, nil, nil) },
            Self.view { ($0.title, $0.artist, $0.album, $0.chapter) = (long, long, long, long) },
        ]
        for view in views {
            let lines = view.lines(beside: rows, width: 60, showsColour: false)
            #expect(lines.count == rows && lines.allSatisfy { $0.columns <= 60 })
            #expect(lines[0].hasSuffix("2/12") && lines[rows - 1].hasPrefix("space pause"))
            #expect(lines[rows - 2].contains("0:30.0 / 2:00.0"))
        }
        let all = views[1].lines(beside: rows, width: 60, showsColour: false)
        #expect(all[1...3] == ["  Ada", "  Notes", "  Three"])
    }

    @Test func `where nothing can be typed, no keys are shown`() {
        let lines = Self.view { $0.hasKeys = false }.lines(width: 80, showsColour: false)
        #expect(lines.count == 3 && lines[2] == "")
    }

    @Test func `the bar is as long as what was played`() {
        let lines = Self.view { $0.rate = 1.25 }.lines(width: 80, showsColour: false)
        #expect(lines[0].hasPrefix("▶ Evening — Ada") && lines[0].hasSuffix("2/12"))
        let (played, rest) = (lines[1].count { $0 == "━" }, lines[1].count { $0 == "─" })
        #expect(abs(Double(played) / Double(played + rest) - 0.25) < 0.03)
        #expect(lines[1].hasSuffix("0:30.0 / 2:00.0  80 %  × 1.25"))
        #expect(Self.view().line == "plays Evening — Ada (2 of 12, 2:00.0)")
        let muted = Self.view { $0.isMuted = true }.lines(width: 80, showsColour: false)
        #expect(muted[1].hasSuffix("muted"))
    }

    @Test(arguments: [
        (["--rate", "5", "a"], "0.25 to 4"), (["--rate", "1"], "for files"),
        (["a", "--start", "x"], "--start x"), (["a", "--start", "1", "--resume"], "choose one"),
        (["a", "--start", "+5"], "--start +5"),
        (["a", "--output", "file:"], "\"file:\": the path"),
        (["a", "--loudness", "x"], "off, track or album"),
        (["a", "--leader", "b:1"], "tutti add"), (["--no-artwork"], "for files"),
    ])
    func `what makes no sense is said`(words: [String], reason: String) {
        let error = #expect(throws: (any Error).self) { try Play.parse(words) }
        #expect(error.map { Play.message(for: $0).contains(reason) } == true)
    }

    private func tone(
        _ name: String, in folder: String, _ options: [String] = []
    ) throws -> String {
        let path = folder + "/" + name
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            ["ffmpeg", "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", "sine=d=0.3"]
            + options + [path]
        try process.run()
        process.waitUntilExit()
        return path
    }

    @Test func `a folder is played to its end, and what is missed is an error`() async throws {
        let folder =
            FileManager.default.temporaryDirectory.path + "/tutti-play-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for name in ["a.flac", "b.wav", "c.flac"] { _ = try tone(name, in: folder) }
        let files = PlayableFiles([folder])
        #expect(files.items.count == 3 && files.passedOver.isEmpty)
        try await PlayFiles(files, on: .virtual()).run(rate: 1.5, start: 0)

        let some = PlayableFiles([folder + "/a.flac", folder + "/nowhere.mp3"])
        let error = await #expect(throws: CommandError.self) {
            try await PlayFiles(some, on: .virtual()).run(rate: 1, start: 0.1)
        }
        #expect(error.map { "\($0)".contains("1 of 2") } == true)
        await #expect(throws: CommandError.self) {
            try await PlayFiles(PlayableFiles([]), on: .virtual()).run(rate: 1, start: 0)
        }
    }

    private func makeFolder() throws -> String {
        let folder =
            FileManager.default.temporaryDirectory.path + "/tutti-play-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        return folder
    }

    @Test func `a file is complete when what was played has ended`() async throws {
        let folder = try makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = try tone("a.wav", in: folder)
        let device = AudioDevice.file(folder + "/out.wav")
        try await PlayFiles(PlayableFiles([path]), on: device).run(rate: 1, start: 0)
        let played = try Self.samples(of: folder + "/out.wav")
        let first = try #require(played.firstIndex { abs($0) > 0.01 })
        let last = try #require(played.lastIndex { abs($0) > 0.01 })
        // 0.3 s; an eighth of full scale passes a hundredth within a 500th of a second.
        #expect(last - first > 14_400 - 2 * 48_000 / 500)
        withExtendedLifetime(device) {}
    }

    /// The left channel.
    private static func samples(of path: String) throws -> [Float] {
        let source = try FFmpegSource(path)
        var samples: [Float] = []
        let block = UnsafeMutableBufferPointer<Float>.allocate(capacity: 4_096)
        defer { block.deallocate() }
        while case let count = try source.read(into: block), count > 0 {
            samples += (0..<count).map { block[2 * $0] }
        }
        return samples
    }

    @Test(arguments: [
        ("file:there.wav", "there already"), ("file:nowhere/out.wav", "folder"),
        ("file:.", "is a directory; give the path of a file in it"),
        ("alsa:mistyped", "no PCM of that name"),
    ])
    func `an output that can never be there is an error`(
        output: String, reason: String
    ) async throws {
        let folder = try makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = try tone("a.wav", in: folder)
        let there = try tone("there.wav", in: folder)
        let before = try Data(contentsOf: URL(fileURLWithPath: there))
        let device = try AudioDevice(output.replacing("file:", with: "file:\(folder)/"))
        let error = await #expect(throws: CommandError.self) {
            try await PlayFiles(PlayableFiles([path]), on: device).run(rate: 1, start: 0)
        }
        #expect(error.map { "\($0)".contains(reason) } == true, "\(String(describing: error))")
        #expect(try Data(contentsOf: URL(fileURLWithPath: there)) == before)
    }

    @Test func `a card that is not in the machine is waited for`() throws {
        let device = try AudioDevice("alsa:hw:17,0")
        #expect(!device.isAvailable && device.mayCome)
    }

    /// As with `tutti lead`, which reads before it opens its output.
    @Test(arguments: [false, true])
    func `what cannot be played leaves no file, and spares the one that is there`(
        isThere: Bool
    ) async throws {
        let folder = try makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let (output, settings) = (folder + "/out.wav", folder + "/tutti.yaml")
        try Data("log-level: notice\n".utf8).write(to: URL(fileURLWithPath: settings))
        try Data("nothing".utf8).write(to: URL(fileURLWithPath: folder + "/bad.flac"))
        if isThere { _ = try tone("out.wav", in: folder) }
        let before = FileManager.default.contents(atPath: output)
        for (names, sentence) in [
            (["bad.flac"], "cannot play bad.flac"), (["nowhere.mp3"], "cannot play nowhere.mp3"),
            (["bad.flac", "nowhere.mp3"], "2 of 2 could not be played"),
        ] {
            let play = try Play.parse(
                names.map { folder + "/" + $0 }
                    + ["--output", "file:\(output)", "--force", "--config", settings])
            let error = await #expect(throws: CommandError.self) { try await play.run() }
            #expect(error?.description.contains(sentence) == true, "\(error as Any)")
            #expect(FileManager.default.contents(atPath: output) == before)
        }
    }

    @Test func `the only thing to be played is missed in one sentence, and of two each in one`()
        async throws
    {
        let folder = try makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let bad = folder + "/bad.flac"
        try Data("nothing".utf8).write(to: URL(fileURLWithPath: bad))
        for (files, sentence) in [
            ([bad], "cannot play bad.flac"), ([bad, folder + "/nowhere.mp3"], "2 of 2 could not"),
        ] {
            let error = await #expect(throws: CommandError.self) {
                try await PlayFiles(PlayableFiles(files), on: .virtual()).run(rate: 1, start: 0)
            }
            #expect(error?.description.hasPrefix(sentence) == true, "\(error as Any)")
        }
    }

    @Test func `a beginning is a time or a share, and lies within what is played`() async throws {
        let folder = try makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let plain = FirstLook(PlayableFiles([try tone("a.wav", in: folder)]))
        let album = FirstLook(
            PlayableFiles([
                try tone("b.flac", in: folder, ["-metadata", "cuesheet=\(Self.sheet)"])
            ]))
        for (look, start, seconds) in [
            (plain, "0", 0), (plain, "0.2", 0.2), (plain, "50%", 0.15), (plain, "0%", 0),
            // Of the first track, which is 0.08 s long; a time goes on through the file.
            (album, "50%", 0.04), (album, "0.29", 0.29),
        ] {
            let place = try Play.parse(["a", "--start", start]).parsedStart()
            #expect(abs(try await look.seconds(of: place) - seconds) < 1e-9, "\(start)")
        }
        for (look, start, title) in [
            (plain, "0.3", "\"a.wav\""), (plain, "5", "\"a.wav\""), (plain, "100%", "\"a.wav\""),
            (album, "1", "\"One\""),
        ] {
            let place = try Play.parse(["a", "--start", start]).parsedStart()
            let error = await #expect(throws: CommandError.self) {
                _ = try await look.seconds(of: place)
            }
            #expect(
                error?.description.hasPrefix("\(title) is 0:00.3 long") == true, "\(error as Any)")
        }
        let nothing = FirstLook(PlayableFiles([folder + "/nowhere.mp3"]))
        await #expect(throws: CommandError.self) { _ = try await nothing.seconds(of: .share(0.5)) }
        #expect(try await nothing.seconds(of: .time(5)) == 5, "the player says why")
    }

    @Test func `while an address is opened its server is named`() {
        #expect(PlayFiles.opening("/a/b.flac") == "opens it")
        #expect(PlayFiles.opening("http://nas.local:81/a?b") == "waits for nas.local:81")
        #expect(PlayFiles.opening("https://me:secret@nas.local/x") == "waits for nas.local")
    }

    @Test func `with force a file is written over`() async throws {
        let folder = try makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = try tone("a.wav", in: folder)
        let device = try AudioDevice("file:\(folder)/there.wav", overwrites: true)
        try await PlayFiles(PlayableFiles([path]), on: device).run(rate: 1, start: 0)
        let again = try AudioDevice("file:\(folder)/there.wav", overwrites: true)
        try await PlayFiles(PlayableFiles([path]), on: again).run(rate: 1, start: 0)
        #expect(try Play.parse(["a", "--force"]).force)
    }

    @Test func `each press of a key moves on from where the one before it went`() async throws {
        let folder = try makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = try tone("a.wav", in: folder, ["-af", "apad=pad_dur=60"])
        let files = PlayFiles(PlayableFiles([path]), on: .virtual())
        let run = Task { try await files.run(rate: 1, start: 0) }
        // While it plays, the old place is heard until the new one is there.
        while files.player.currentTime() == .zero { await Task.yield() }
        for _ in 0..<4 { files.do(.seek(10)) }
        files.do(.seek(-10))
        #expect(files.here.seconds >= 30)
        while files.player.currentTime().seconds < 25 { await Task.yield() }
        // And what was played before and since.
        #expect(30..<40 ~= files.player.currentTime().seconds)
        for _ in 0..<9 { files.do(.seek(10)) }
        #expect(files.here.seconds < 60.4, "no further than the end")
        run.cancel()
        _ = try? await run.value
    }

    @Test func `a file that was cut off is named once`() async throws {
        let folder = try makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let whole = try tone("a.wav", in: folder, ["-af", "aloop=loop=10:size=13230"])
        let bytes = try Data(contentsOf: URL(fileURLWithPath: whole))
        let cut = folder + "/cut.wav"
        try bytes.prefix(bytes.count / 2).write(to: URL(fileURLWithPath: cut))
        let files = PlayFiles(PlayableFiles([whole, cut, cut]), on: .virtual())
        try await files.run(rate: 4, start: 0)
        #expect(files.state.withLock { $0.saidCut } == [cut])
    }

    @Test func `what has no end has a line, too`() {
        #expect(Self.view { $0.duration = nil }.line == "plays Evening — Ada (2 of 12)")
    }

    private static let sheet = """
        TITLE "Notes"
        FILE "a.wav" WAVE
        TRACK 01 AUDIO
        TITLE "One"
        INDEX 01 00:00:00
        TRACK 02 AUDIO
        TITLE "Two"
        INDEX 01 00:00:06
        TRACK 03 AUDIO
        TITLE "Three"
        INDEX 01 00:00:12
        """

    @Test func `a beginning may lie in a later part of the file`() async throws {
        let folder =
            FileManager.default.temporaryDirectory.path + "/tutti-play-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = try tone("a.flac", in: folder, ["-metadata", "cuesheet=\(Self.sheet)"])
        let player = PlayFiles(PlayableFiles([path]), on: .virtual())
        // Each of the first two is 6/75 s long.
        for (start, place, rest) in [(0, 0, 0), (0.05, 0, 0.05), (0.09, 1, 0.01), (5, 2, 4.84)] {
            let beginning = player.beginning(at: start)
            #expect(beginning.place == place && abs(beginning.seconds - rest) < 1e-9)
        }
        #expect(player.lengthBefore(0) == nil && player.lengthBefore(3) == nil)
        #expect(player.lengthBefore(1) == 0.08)
        try await player.run(rate: 2, start: 0.09)
        let twice = PlayFiles(PlayableFiles([path, path]), on: .virtual())
        #expect(twice.beginning(at: 100).place == 2, "not in another file")
    }

    @Test func `a place in a file is found again in whichever track it is`() throws {
        let folder =
            FileManager.default.temporaryDirectory.path + "/tutti-play-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let sheet = Self.sheet.replacing("00:00:06", with: "05:00:00")
            .replacing("00:00:12", with: "08:00:00")
        let path = try tone("a.flac", in: folder, ["-metadata", "cuesheet=\(sheet)"])
        var places = ResumePlaces()
        places.leave(path, at: 400, of: 700)
        try places.save(folder: folder)
        let player = PlayFiles(
            PlayableFiles([path]), on: .virtual(), stateFolder: folder)
        #expect(player.left == 400)
        #expect(player.beginning(at: player.left).place == 1)
        #expect(player.beginning(at: player.left).seconds == 100)
    }
}
