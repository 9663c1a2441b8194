import ArgumentParser
import Foundation
import Room
import Testing
import Tutti

@testable import tutti

/// `tutti play` with files.
@Suite(.timeLimit(.minutes(1))) struct PlayTests {
    @Test func `keys are single letters and the arrows' three bytes`() {
        var parser = PlayKeyParser()
        func keys(_ bytes: [UInt8]) -> [PlayKey] { bytes.compactMap { parser.take($0) } }
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
        (["--rate", "3", "a"], "0.5 to 2"), (["--rate", "1"], "for files"),
        (["a", "--start", "x"], "--start x"), (["a", "--start", "1", "--resume"], "choose one"),
        (["a", "--loudness", "x"], "off, track or album"),
        (["a", "--leader", "b:1"], "tutti add"),
    ])
    func `what makes no sense is said`(words: [String], reason: String) {
        let error = #expect(throws: (any Error).self) { try Play.parse(words) }
        #expect(error.map { Play.message(for: $0).contains(reason) } == true)
    }

    private func tone(_ name: String, in folder: String) throws -> String {
        let path = folder + "/" + name
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            ["ffmpeg", "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", "sine=d=0.3", path]
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
}
