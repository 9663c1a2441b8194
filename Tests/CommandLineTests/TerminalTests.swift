import Foundation
import ArgumentParser
import Testing
import TuttiGroupControl

@testable import tutti

@Suite struct TerminalTests {
    @Test(arguments: [
        ("83.5", 83.5), ("1:23.5", 83.5), ("0:00", 0), ("90:00", 5_400), ("1:02:03", 3_723),
        ("1:02:03.25", 3_723.25), ("7", 7),
    ])
    func `a time is seconds, M:SS or H:MM:SS`(text: String, seconds: Double) {
        #expect(PositionArgument(argument: text) == .time(seconds))
        #expect(PositionArgument(argument: "+" + text) == .by(seconds))
        #expect(PositionArgument(argument: "-" + text) == .by(-seconds))
        #expect(PositionArgument(argument: "\u{2212}" + text) == .by(-seconds))
    }

    @Test(arguments: [
        "", "+", "-", "--1", "+-1", "+50%", "101%", "%", "1:00%", "1:60", "1:60:00", "1:2:3:4",
        "nan", "inf", "1e3", "0x10", ":30", "1:", "1..5",
        "١", "99999999999", " 5",
    ])
    func `what is no time is refused`(text: String) {
        #expect(PositionArgument(argument: text) == nil)
    }

    @Test func `a share of the asset is a place`() {
        #expect(PositionArgument(argument: "50%") == .share(0.5))
        #expect(PositionArgument(argument: "0%") == .share(0))
        #expect(PositionArgument(argument: "100%") == .share(1))
    }

    @Test(arguments: [
        ("40", VolumeArgument.to(40)), ("40%", .to(40)), ("+5", .by(5)), ("-5", .by(-5)),
        ("\u{2212}5%", .by(-5)), ("0", .to(0)), ("+0", .by(0)),
    ])
    func `a volume is a percentage or a change`(text: String, volume: VolumeArgument) {
        #expect(VolumeArgument(text) == volume)
    }

    @Test(arguments: ["", "+", "-", "101", "+101", "--5", "5.5", "٥", "loud"])
    func `what is no volume is refused`(text: String) {
        #expect(VolumeArgument(text) == nil)
    }

    @Test(arguments: [
        (0, "0:00.0"), (83.45, "1:23.4"), (3_723.99, "1:02:03.9"), (-4, "0:00.0"),
    ])
    func `a position is shown as it is typed`(seconds: Double, text: String) {
        #expect(PositionArgument.text(seconds) == text)
        #expect(PositionArgument.text(.nan) == "–:––")
    }

    @Test func `numbers have a fixed number of places and a real minus`() {
        #expect((1.25).text(1) == "1.3")
        #expect((-0.04).text(1) == "0.0")
        #expect((-12.345).text(2) == "−12.35")
        #expect((12.0).text(0, sign: true) == "+12")
        #expect((0.999).text(2) == "1.00")
        #expect(Double.nan.text(1) == "–")
        #expect((1e15).text(1) == "∞")
    }

    @Test func `emoji and flags take two columns, marks none`() {
        for wide in ["🚀", "🥳", "🫠", "⚡", "⌚", "🇩🇪", "👍🏽", "가", "Ａ", "𠀋", "👩‍👩‍👧‍👦"] {
            #expect(wide.columns == 2, "\(wide)")
        }
        for narrow in ["é", "e\u{30A}", "☂", "→", "█", "ﬁ", "1", "🇩", "🌶"] {
            #expect(narrow.columns == 1, "\(narrow)")
        }
        #expect("a🚀b".cut(toColumns: 2) == "a…")
    }

    /// A window that was made narrower has broken what was longer.
    @Test func `lines are found again in a narrower window`() {
        #expect(LiveScreen.rows(of: [100, 100, 40], width: 100) == 3)
        #expect(LiveScreen.rows(of: [100, 100, 40], width: 60) == 5)
        #expect(LiveScreen.rows(of: [0, 1, 61], width: 60) == 4)
        #expect(LiveScreen.rows(of: [], width: 60) == 0)
        #expect(LiveScreen.rows(of: [5], width: 0) == 5)
    }

    @Test func `columns count what a terminal shows`() {
        #expect("kitchen".columns == 7)
        #expect("厨房".columns == 4)
        #expect("\u{1B}[31mred\u{1B}[0m".columns == 3)
        #expect("kitchen".cut(toColumns: 4) == "kit…")
        #expect("厨房厨".cut(toColumns: 4).columns <= 4)
        #expect("\u{1B}[31mredder\u{1B}[0m".cut(toColumns: 3) == "\u{1B}[31mre…\u{1B}[0m")
        #expect("\u{1B}[2Jevil\r\n".printable == "[2Jevil")
        #expect("a\u{202E}b\u{200B}".printable == "ab")
    }

    @Test func `usage fits a terminal, and an option stays with its value`() throws {
        for words in [["scene", "save"], ["queue", "add"], ["seek"], ["lead"], ["volume"], []] {
            let help = #expect(throws: (any Error).self) {
                var command = try Tutti.parseAsRoot(words + ["--help"])
                try command.run()
            }
            let text = UsageLines.wrapped(Tutti.fullMessage(for: try #require(help)))
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
                .drop { !$0.hasPrefix("USAGE") }.prefix { !$0.isEmpty }
            #expect(!lines.isEmpty && lines.allSatisfy { String($0).columns <= 100 }, "\(text)")
        }
        let usage = "USAGE: tutti x " + String(repeating: "[--option <a b>] <file> ... ", count: 9)
        let lines = UsageLines.wrapped(usage + "\n\nmore").split(
            separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.suffix(2) == ["", "more"] && lines.count > 4)
        #expect(
            lines.dropLast(2).dropFirst().allSatisfy {
                $0.hasPrefix("       [--option <a b>]") || $0.hasPrefix("       <file> ...")
            })
        #expect(lines.dropLast(2).joined().count { $0 == "." } == 27)
    }

    @Test func `long lines are broken between words, below where they begin`() {
        let text = "  error     one two three four"
        #expect(text.wrapped(toColumns: 40, indent: 12) == [text])
        #expect(
            text.wrapped(toColumns: 24, indent: 12)
                == ["  error     one two", "            three four"])
        #expect(text.wrapped(toColumns: 20, indent: 12) == ["  error     one two…"])
        let long = "  a         " + String(repeating: "x", count: 30)
        #expect(long.wrapped(toColumns: 30, indent: 12).allSatisfy { $0.columns <= 30 })
    }

    /// As a leader sends it.
    static func status(rooms: Int) throws -> StatusView.Shown {
        let room = """
            "state": "playing", "bufferSeconds": 2, "clockOffsetMicroseconds": 3,
            "clockBoundMicroseconds": 12, "stamps": "kernel", "cardPartsPerMillion": -119.87,
            "ratioPartsPerMillion": 0, "errorMicroseconds": -2, "volume": 100, "muted": false,
            "dropouts": 0, "xruns": 0, "detail": "x"
            """
        let list = (0..<rooms).map { "{ \"name\": \"room \($0)\", \(room) }" }
        let text = """
            { "leader": "kitchen", "phase": "playing", "title": "Song", "index": 0, "count": 2,
              "positionSeconds": 30, "durationSeconds": 120, "rate": 1, "repeats": "off", "volume": 100, "session": "1", "sessionTerm": 1,
              "queueRevision": 1,
              "rooms": [\(list.joined(separator: ","))] }
            """
        return try JSONDecoder().decode(StatusView.Shown.self, from: Data(text.utf8))
    }

    @Test(arguments: [1, 8, 20, 40, 60, 80, 120, 200])
    func `no line of the status is wider than the terminal`(width: Int) throws {
        let view = StatusView(status: try Self.status(rooms: 3), width: width)
        #expect(view.lines.allSatisfy { $0.columns <= width })
        #expect(view.lines.count == 7)
        if width >= 40 {
            #expect(view.lines.last?.contains("room 2") == true)
            #expect(view.lines.last?.contains("playing") == true)
        }
    }

    /// A pipe has room for a long table; a bar tells no more by its length.
    @Test func `a bar may be narrower than the rest`() throws {
        let status = try Self.status(rooms: 1)
        #expect(StatusView(status: status, width: 200).progress.columns == 200)
        #expect(StatusView(status: status, width: 200, bar: 80).progress.columns == 80)
        #expect(StatusView(status: status, width: 40, bar: 80).progress.columns == 40)
        #expect(SyncView(status: status, width: 200, bar: 80).lines[1].columns == 80)
    }

    @Test func `a line of what happens names the item`() throws {
        var status = try Self.status(rooms: 1)
        #expect(Status.plainLine(status).hasPrefix("playing \"Song\" 0:30.0 · room 0 playing"))
        status.title = ""
        #expect(Status.plainLine(status).hasPrefix("playing nothing "))
    }

    @Test func `the table shows what the room reports`() throws {
        let line = try #require(
            StatusView(status: try Self.status(rooms: 1), width: 200).lines.last)
        for text in ["2.0 s", "+3.0 ± 12.0", "−119.87", "−2.0", "100 %"] {
            #expect(line.contains(text), "\(text) is missing in: \(line)")
        }
    }

    @Test(arguments: [40, 80, 120, 200])
    func `nothing that a room says of itself breaks the table`(width: Int) throws {
        var status = try Self.status(rooms: 3)
        status.rooms[1].name = String(repeating: "n", count: 256)
        status.rooms[1].detail = String(repeating: "alarm ", count: 2_000)
        (status.rooms[1].dropouts, status.rooms[1].xruns) = (.max, .max)
        status.rooms[1].bufferSeconds = -1e18
        status.rooms[1].errorMicroseconds = -.infinity
        status.rooms[1].clockBoundMicroseconds = 1e18
        status.rooms[2].detail = "\u{1B}[2J\u{202E}\nforged"
        status.positionSeconds = 1e18
        let lines = StatusView(status: status, width: width).lines
        #expect(lines.allSatisfy { $0.columns <= width })
        #expect(lines.count == 7, "a row is a line")
        let all = lines.joined(separator: "\n")
        #expect(!all.contains("\u{1B}") && !all.contains("\u{202E}"))
        #expect(!all.contains("9223372036854775807"))
        if width == 200 {
            let first = try #require(lines.first { $0.hasPrefix("room 0") })
            for text in ["2.0 s", "+3.0 ± 12.0", "−119.87", "100 %"] {
                #expect(first.contains(text), "a long name costs the others no column: \(first)")
            }
        }
    }

    @Test func `the formats of item and cards are shown`() throws {
        var status = try Self.status(rooms: 1)
        #expect(StatusView(status: status, width: 200).headline.hasSuffix("(item 1 of 2)"))
        status.sampleRate = 44_100
        var sync = SyncStatus()
        sync.cardFormat = "48000 Hz, S32_LE, 2 channels, buffer 80 ms"
        status.rooms[0].sync = sync
        let view = StatusView(status: status, width: 200)
        #expect(view.headline.contains("44100 Hz"))
        #expect(view.lines.last?.contains("48000 Hz, S32_LE") == true)
    }

    @Test func `the progress bar is as wide as asked and filled by the share played`() {
        let line = StatusView.progress(position: 30, duration: 120, width: 60)
        #expect(line.count == 60)
        let done = line.count { $0 == "━" }
        let left = line.count { $0 == "─" }
        #expect(abs(Double(done) / Double(done + left) - 0.25) < 1 / Double(done + left))
        #expect(StatusView.progress(position: 500, duration: 120, width: 60).contains("─") == false)
        #expect(StatusView.progress(position: 5, duration: 0, width: 30).hasSuffix("live"))
    }
}
