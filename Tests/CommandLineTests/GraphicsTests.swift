import Testing
import Tutti
import TuttiChance

@testable import tutti

/// What a terminal is asked, what it answers, and the bytes that pictures are sent as.
@Suite(.timeLimit(.minutes(5))) struct GraphicsTests {
    // MARK: What comes from a terminal

    private func inputs(_ text: String, expectsMessages: Bool = true) -> [TerminalInput] {
        var parser = TerminalInputParser()
        parser.expectsMessages = expectsMessages
        return text.utf8.compactMap { parser.take($0) }
    }

    @Test func `answers and keys are told apart, however they are mixed`() {
        let seen = inputs("n\u{1B}_Gi=31;OK\u{1B}\\p\u{1B}[6;20;10t\u{1B}[?62;4c\u{1B}[1;5Cq")
        #expect(
            seen == [
                .byte(UInt8(ascii: "n")), .message("Gi=31;OK"), .byte(UInt8(ascii: "p")),
                .control(parameters: "6;20;10", final: UInt8(ascii: "t")),
                .control(parameters: "?62;4", final: UInt8(ascii: "c")),
                .control(parameters: "1;5", final: UInt8(ascii: "C")), .byte(UInt8(ascii: "q")),
            ])
    }

    /// F1 and F4 end in letters that are keys, and have digits that are.
    @Test(arguments: [
        "\u{1B}[11~", "\u{1B}[15~", "\u{1B}OP", "\u{1B}[3~", "\u{1B}[1;2P", "\u{1B}[200~",
        "\u{1B}[<0;1;1M", "\u{1B}_Gi=31;OK\u{1B}\\", "\u{1B}[?1;2c", "\u{1B}[6;20;10t",
    ])
    func `no part of a sequence is a key`(sequence: String) {
        #expect(inputs(sequence).compactMap { PlayKey($0) } == [])
        #expect(inputs(sequence + "m").compactMap { PlayKey($0) } == [.mute])
    }

    /// Alt with an underscore begins as a message does.
    @Test func `a key that was pressed with Alt does not swallow those after it`() {
        let keys = inputs("\u{1B}_nm", expectsMessages: false).compactMap { PlayKey($0) }
        #expect(keys == [.next, .mute])
    }

    @Test func `whatever comes, the keys behind its end count`() {
        var generator = SplitMix64(seed: 3)
        for _ in 0..<300 {
            var parser = TerminalInputParser()
            parser.expectsMessages = true
            for _ in 0..<generator.next() % 200 {
                _ = parser.take(UInt8(truncatingIfNeeded: generator.next() % 128))
            }
            // Cancelled, whatever it was.
            _ = parser.take(0x18)
            #expect(parser.take(UInt8(ascii: "q")) == .byte(UInt8(ascii: "q")))
        }
        let long = "\u{1B}[" + String(repeating: "1;", count: 10_000) + "Cq"
        #expect(inputs(long).last == .byte(UInt8(ascii: "q")))
    }

    // MARK: What it can show

    private static let cell = CellSize(width: 10, height: 20)

    private func question(
        _ variables: [String: String] = ["TERM": "xterm-256color"], cell: CellSize? = cell
    ) -> GraphicsQuestion? {
        GraphicsQuestion(variable: { variables[$0] }, cell: cell)
    }

    private func outcome(_ answers: String, cell: CellSize? = cell) -> GraphicsQuestion.Outcome? {
        var question = question(cell: cell)
        for input in inputs(answers) {
            if case .known(let answer)? = question?.take(input) { return .known(answer) }
        }
        return .waiting
    }

    @Test func `a terminal is what it answers, in the order of the questions`() {
        let kitty = "\u{1B}_Gi=31;OK\u{1B}\\"
        #expect(
            outcome(kitty + "\u{1B}[?62;c")
                == .known(.init(graphics: .kitty, cell: Self.cell)))
        #expect(
            outcome("\u{1B}[?62;22;4c") == .known(.init(graphics: .sixel, cell: Self.cell)))
        #expect(
            outcome(kitty + "\u{1B}[?62;4c") == .known(.init(graphics: .kitty, cell: Self.cell)))
        #expect(outcome("\u{1B}[?1;2c") == .known(nil))
        // A VT132 is model 4; nothing about sixels.
        #expect(outcome("\u{1B}[?4;6c") == .known(nil))
        #expect(outcome("\u{1B}_Gi=31;ENOTSUPPORTED:no\u{1B}\\\u{1B}[?62c") == .known(nil))
        #expect(outcome(kitty) == .waiting, "until it has answered all")
        #expect(outcome("") == .waiting)
    }

    @Test func `the size of a cell comes from the system, or from the terminal`() {
        let size = "\u{1B}[6;36;17t"
        let large = CellSize(width: 17, height: 36)
        #expect(
            outcome(size + "\u{1B}[?62;4c", cell: nil)
                == .known(.init(graphics: .sixel, cell: large)))
        #expect(outcome("\u{1B}[?62;4c", cell: nil) == .known(nil), "sixels need one")
        #expect(
            outcome("\u{1B}_Gi=31;OK\u{1B}\\\u{1B}[?62c", cell: nil)
                == .known(.init(graphics: .kitty, cell: nil)))
        for nonsense in ["6;0;0t", "6;99999;99999t", "6;t", "6;-1;5t", "4;600;800t"] {
            #expect(outcome("\u{1B}[\(nonsense)\u{1B}[?62;4c", cell: nil) == .known(nil))
        }
        #expect(question(cell: nil)?.text.contains("\u{1B}[16t") == true)
        #expect(question()?.text.contains("\u{1B}[16t") == false)
    }

    @Test func `who would show the question is not asked it`() {
        for name in ["dumb", "linux", "", "eterm-color"] {
            #expect(question(["TERM": name]) == nil, "\(name)")
        }
        #expect(question([:]) == nil)
        let within = [
            ["TERM": "screen-256color"], ["TERM": "tmux-256color"],
            ["TERM": "xterm", "TMUX": "/tmp/tmux"], ["TERM": "xterm", "STY": "1.pts"],
            ["TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"],
        ]
        for variables in within {
            #expect(question(variables)?.text == "\u{1B}[c", "\(variables)")
        }
        let all = "\u{1B}_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\u{1B}\\\u{1B}[c"
        #expect(question()?.text == all)
    }

    // MARK: Pictures

    private static func noise(_ width: Int, _ height: Int, seed: UInt64) -> Picture {
        var generator = SplitMix64(seed: seed)
        return Picture(
            width: width, height: height,
            pixels: (0..<3 * width * height).map { _ in UInt8(generator.next() % 256) })
    }

    /// Takes kitty's words apart: what each command says, and its bytes.
    private func commands(_ text: String) -> [(keys: [String: String], payload: String)] {
        text.components(ofEscape: "\u{1B}_G").map { part in
            let halves = part.split(separator: ";", omittingEmptySubsequences: false)
            let keys = halves[0].split(separator: ",").map { $0.split(separator: "=") }
            return (
                Dictionary(uniqueKeysWithValues: keys.map { (String($0[0]), String($0[1])) }),
                halves.count > 1 ? String(halves[1]) : ""
            )
        }
    }

    @Test(arguments: [(1, 1), (7, 5), (40, 40), (64, 48)])
    func `kitty gets every byte, in parts that it takes`(width: Int, height: Int) throws {
        let picture = Self.noise(width, height, seed: 8)
        let parts = commands(KittyImage.showing(picture, number: 77, cells: nil))
        let first = try #require(parts.first?.keys)
        #expect(first["a"] == "T" && first["f"] == "24" && first["i"] == "77")
        #expect(first["s"] == "\(width)" && first["v"] == "\(height)" && first["C"] == "1")
        #expect(first["c"] == nil)
        #expect(parts.allSatisfy { $0.payload.utf8.count <= 4_096 && $0.keys["q"] == "2" })
        #expect(parts.dropLast().allSatisfy { $0.keys["m"] == "1" && $0.payload.count % 4 == 0 })
        #expect(parts.last?.keys["m"] == "0")
        #expect(parts.dropFirst().allSatisfy { Set($0.keys.keys) == ["q", "m"] })
        #expect(Self.decoded(parts.map(\.payload).joined()) == picture.pixels)
        let sized = commands(
            KittyImage.showing(picture, number: 1, cells: (columns: 3, rows: 2)))
        #expect(sized.first?.keys["c"] == "3" && sized.first?.keys["r"] == "2")
        #expect(commands(KittyImage.deleting(number: 77)).first?.keys["i"] == "77")
    }

    /// Base64, read by its definition.
    private static func decoded(_ text: String) -> [UInt8] {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        let values = Dictionary(uniqueKeysWithValues: zip(letters, 0...))
        var bytes: [UInt8] = []
        var (bits, count) = (0, 0)
        for letter in text {
            (bits, count) = (bits << 6 | values[letter]!, count + 6)
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(bits >> count & 0xFF))
                bits &= (1 << count) - 1
            }
        }
        return bytes
    }

    @Test(arguments: [(1, 1), (6, 6), (13, 7), (20, 30)])
    func `few colours come through sixels as they are`(width: Int, height: Int) throws {
        // Levels that are whole percents, so that nothing is rounded.
        let levels = [0, 51, 102, 153, 204, 255] as [UInt8]
        var generator = SplitMix64(seed: UInt64(width))
        let colours = (0..<20).map { _ in (0..<3).map { _ in levels[Int(generator.next() % 6)] } }
        let pixels = (0..<width * height).flatMap { _ in colours[Int(generator.next() % 20)] }
        let picture = Picture(width: width, height: height, pixels: pixels)
        let decoder = try #require(SixelDecoder(SixelImage.showing(picture)))
        #expect(decoder.width == width && decoder.height == height)
        #expect(decoder.pixels.map { $0 ?? -1 } == pixels.map { Int($0) })
    }

    @Test(arguments: [2, 16, 256])
    func `more colours come nearer, and no pixel is left out`(count: Int) throws {
        // A sky: two directions, two colours.
        let (width, height) = (48, 33)
        var pixels: [UInt8] = []
        for y in 0..<height {
            for x in 0..<width { pixels += [UInt8(5 * x), UInt8(7 * y), UInt8(255 - 3 * x - y)] }
        }
        let picture = Picture(width: width, height: height, pixels: pixels)
        func error(_ colours: Int) throws -> Double {
            let text = SixelImage.showing(picture, colours: colours)
            let decoder = try #require(SixelDecoder(text))
            #expect(decoder.colourCount <= colours)
            #expect(decoder.pixels.allSatisfy { $0 != nil })
            var total = 0
            for (seen, meant) in zip(decoder.pixels, pixels) {
                total += abs((seen ?? 0) - Int(meant))
            }
            return Double(total) / Double(pixels.count)
        }
        let (few, one) = (try error(count), try error(1))
        #expect(few < one / (count == 2 ? 1.2 : 3))
        if count == 256 { #expect(few < 6) }
    }

    @Test func `rows that repeat are short`() {
        let even = Picture(
            width: 400, height: 60, pixels: Array(repeating: 255, count: 3 * 400 * 60))
        #expect(SixelImage.showing(even).utf8.count < 200)
    }

    // MARK: Where it stands

    @Test func `a cover leaves room for the lines beside it, or is none`() throws {
        for width in stride(from: 1, through: 300, by: 7) {
            for height in 1...100 {
                for (cellWidth, cellHeight) in [(10, 20), (7, 14), (20, 40), (9, 9), (200, 200)] {
                    let cell = try #require(CellSize(width: cellWidth, height: cellHeight))
                    guard let space = CoverSpace(width: width, height: height, cell: cell)
                    else { continue }
                    #expect(space.rows >= CoverSpace.leastRows && space.rows <= height / 3)
                    #expect(width - space.columns >= 44)
                    #expect(space.pixels.height <= space.rows * cellHeight)
                    #expect(space.pixels.height % SixelImage.bandHeight == 0)
                    #expect(space.pixels.width >= space.pixels.height)
                }
            }
        }
        #expect(CoverSpace(width: 80, height: 24, cell: Self.cell!) != nil)
        #expect(CoverSpace(width: 50, height: 24, cell: Self.cell!) == nil)
        #expect(CoverSpace(width: 80, height: 12, cell: Self.cell!) == nil)
    }
}

extension String {
    /// What stands between an opening and `ESC \`.
    fileprivate func components(ofEscape opening: String) -> [String] {
        var parts: [String] = []
        var rest = self[...]
        while let begin = rest.firstRange(of: opening) {
            rest = rest[begin.upperBound...]
            guard let end = rest.firstRange(of: "\u{1B}\\") else { break }
            parts.append(String(rest[..<end.lowerBound]))
            rest = rest[end.upperBound...]
        }
        return parts
    }
}

/// Reads sixels as a terminal does.
private struct SixelDecoder {
    private(set) var width = 0
    private(set) var height = 0
    /// Red, green and blue of each pixel; `nil` where nothing was set.
    private(set) var pixels: [Int?] = []
    private var colours: [Int: [Int]] = [:]
    var colourCount: Int { colours.count }

    init?(_ text: String) {
        guard text.hasPrefix("\u{1B}P"), text.hasSuffix("\u{1B}\\"),
            let begin = text.firstIndex(of: "q")
        else { return nil }
        var rest = text[text.index(after: begin)...].dropLast(2)
        func numbers() -> [Int] {
            let digits = rest.prefix { $0.isNumber || $0 == ";" }
            rest = rest[digits.endIndex...]
            return digits.split(separator: ";").compactMap { Int($0) }
        }
        var (x, top, colour, count) = (0, 0, 0, 1)
        while let letter = rest.popFirst() {
            switch letter {
            case "\"":
                let raster = numbers()
                guard raster.count == 4 else { return nil }
                (width, height) = (raster[2], raster[3])
                pixels = Array(repeating: nil, count: 3 * width * height)
            case "#":
                let words = numbers()
                guard let number = words.first else { return nil }
                colour = number
                if words.count == 5 {
                    colours[number] = words.suffix(3).map { ($0 * 255 + 50) / 100 }
                }
            case "!": count = numbers().first ?? 1
            case "$": x = 0
            case "-": (x, top) = (0, top + 6)
            case "?"..."~":
                let bits = letter.asciiValue! - 0x3F
                for _ in 0..<count {
                    for line in 0..<6 where bits & 1 << line != 0 {
                        guard x < width, top + line < height, let levels = colours[colour]
                        else { return nil }
                        for place in 0..<3 {
                            pixels[3 * ((top + line) * width + x) + place] = levels[place]
                        }
                    }
                    x += 1
                }
                count = 1
            default: return nil
            }
        }
    }
}
