import Testing
import TuttiChance

@testable import TuttiTrust

@Suite struct `QR symbols` {
    private static let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:")

    /// The example that most tutorials compute by hand: version 1, level M.
    @Test func `the codewords of HELLO WORLD are the known ones`() throws {
        let data = QRText.codewords(try QRText.values(of: "HELLO WORLD"), count: 16)
        #expect(
            data == [32, 91, 11, 120, 209, 114, 220, 77, 67, 64, 236, 17, 236, 17, 236, 17])
        #expect(
            ReedSolomon.checks(of: data, count: 10)
                == [196, 35, 39, 119, 235, 215, 231, 226, 93, 23])
    }

    /// The example of ISO/IEC 18004, annex I: 01234567 in numeric mode, version 1, level M.
    @Test func `the check codewords of the standard's example are its own`() {
        let data: [UInt8] = [
            0x10, 0x20, 0x0C, 0x56, 0x61, 0x80, 0xEC, 0x11, 0xEC, 0x11, 0xEC, 0x11, 0xEC, 0x11,
            0xEC, 0x11,
        ]
        #expect(
            ReedSolomon.checks(of: data, count: 10)
                == [0xA5, 0x24, 0xD4, 0xC1, 0xED, 0x36, 0xC7, 0x87, 0x2C, 0x55])
    }

    /// ISO/IEC 18004, table C.1, the eight rows of level M.
    @Test func `the format bits are those of the standard's table`() {
        let table = [0x5412, 0x5125, 0x5E7C, 0x5B4B, 0x45F9, 0x40CE, 0x4F97, 0x4AA0]
        #expect((0..<8).map { QRMatrix.formatBits(mask: $0) } == table)
    }

    @Test(arguments: 1...30 as ClosedRange<UInt64>)
    func `a reader finds the text again, under the mask that the symbol says`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let count = Int(seed * 5) + Int.random(in: 0...4, using: &random)
        let text = String((0..<count).map { _ in Self.alphabet.randomElement(using: &random)! })
        let symbol = try QRSymbol(text)
        #expect(symbol.size == 4 * symbol.version + 17)
        let reader = try #require(QRReader(symbol.modules))
        #expect(reader.mask == symbol.mask)
        #expect(reader.text == text)
    }

    @Test func `each version takes as much as the standard says, and the least one is taken`()
        throws
    {
        // ISO/IEC 18004, table 7: alphanumeric characters at level M.
        for (version, most) in zip(1..., [20, 38, 61, 90, 122, 154]) {
            #expect(try QRSymbol(String(repeating: "A", count: most)).version == version)
            if version < 6 {
                let more = try QRSymbol(String(repeating: "A", count: most + 1))
                #expect(more.version == version + 1)
            }
        }
        #expect(throws: TrustError.self) { try QRSymbol(String(repeating: "A", count: 155)) }
        #expect(throws: TrustError.self) { try QRSymbol(String(repeating: "A", count: 1 << 20)) }
        #expect(throws: TrustError.self) { try QRSymbol("small") }
        #expect(throws: TrustError.self) { try QRSymbol("Ü") }
        #expect(try QRReader(QRSymbol("").modules)?.text == "")
    }

    @Test func `an invite fits version 2`() throws {
        let invite = try Invite(secret: Array(0..<16))
        let symbol = try QRSymbol(invite.symbolText)
        #expect(symbol.version == 2)
        let read = try #require(QRReader(symbol.modules)?.text)
        #expect(try Invite(read) == invite)
    }

    /// Made once by another encoder (segno 1.6.6) under the same mask.
    @Test func `the symbol of a known invite is the one that others draw`() throws {
        let invite = try Invite(secret: Array(0..<16))
        let drawn = """
            #######.#..##...#.#######
            #.....#.##....##..#.....#
            #.###.#..#.##.#.#.#.###.#
            #.###.#.#..#......#.###.#
            #.###.#..#...##...#.###.#
            #.....#..##.####..#.....#
            #######.#.#.#.#.#.#######
            ........#.#..............
            #.##.###..#.##..#.#..#.##
            .####....##....##.##..#..
            .#.#.##..#....###.##.....
            .#..#..#.#####..#..###..#
            .....##..#####.##.#......
            .##..#.#.###...#.#.###..#
            .#..###.##...##...#.####.
            #.###...##.#......#.####.
            ..#..##.#.#.#########..#.
            ........##...#.##...#.##.
            #######.##.##.#.#.#.##.##
            #.....#.####..#.#...#...#
            #.###.#...#..#..#####....
            #.###.#.###.#.##..#..#.##
            #.###.#.#.##...#.#..#..#.
            #.....#..####.#..#.#..#.#
            #######.###.##.##....#..#
            """
        let symbol = try QRSymbol(invite.symbolText)
        #expect(
            symbol.modules.map { String($0.map { $0 ? "#" : "." }) }.joined(separator: "\n")
                == drawn)
    }

    @Test func `every mask can be read, and the one with the least penalty is taken`() throws {
        let text = "TUTTI:0123456789"
        let layout = QRLayout(version: 1)
        let codewords = layout.interleaved(
            QRText.codewords(try QRText.values(of: text), count: layout.dataCount))
        var penalties: [Int] = []
        for mask in 0..<8 {
            let matrix = QRMatrix(layout, codewords, mask: mask)
            let reader = try #require(QRReader(matrix.modules))
            #expect(reader.mask == mask && reader.text == text)
            penalties.append(QRPenalty.of(matrix.modules))
        }
        let symbol = try QRSymbol(text)
        #expect(penalties[symbol.mask] == penalties.min())
        #expect(Set(penalties).count > 1)
    }

    @Test(arguments: [
        ("....#.###.#....#.#.#.", 40), ("#.###.#.#.#..........", 40), ("...........#.#.###.#.", 40),
        ("#.#.###.#....#.#.#..#", 40), ("#....#.###.#.####...#", 40), ("#.###.#....#.###.#...", 80),
        ("#.#.###.#.#.....#....", 0), ("#....#.####.#....#...", 0), (".....................", 0),
    ])
    func `what looks like a corner beside light costs forty, once`(line: String, points: Int) {
        #expect(QRPenalty.falseFinders(line.map { $0 == "#" }) == points)
    }

    /// By hand: each of the 21 lines of one colour costs 3 + 16, twice, each of 400 squares 3, and
    /// all dark is ten times 5 % from one half.
    @Test func `the penalty of a dark square is what the rules say`() {
        let square = Array(repeating: Array(repeating: true, count: 21), count: 21)
        #expect(QRPenalty.of(square) == 2 * 21 * 19 + 400 * 3 + 100)
    }

    @Test func `in a terminal it is the same modules, with four light ones around`() throws {
        let symbol = try QRSymbol("TUTTI")
        for isDark in [true, false] {
            let lines = symbol.lines(onDark: isDark)
            #expect(lines.allSatisfy { $0.count == symbol.size + 8 })
            #expect(lines.count == (symbol.size + 8 + 1) / 2)
            for row in -4..<symbol.size + 4 {
                for column in -4..<symbol.size + 4 {
                    let character = Array(lines[(row + 4) / 2])[column + 4]
                    let inked: Set<Character> = (row + 4) % 2 == 0 ? ["█", "▀"] : ["█", "▄"]
                    let isInside =
                        (0..<symbol.size).contains(row) && (0..<symbol.size).contains(column)
                    let isDarkModule = isInside && symbol.modules[row][column]
                    #expect(inked.contains(character) == (isDarkModule != isDark))
                }
            }
        }
    }
}

/// Reads a symbol by the standard, with nothing of ours but the table of its blocks: format, mask,
/// data modules, blocks without an error, text.
struct QRReader {
    var mask: Int
    var text: String

    init?(_ modules: [[Bool]]) {
        let size = modules.count
        let version = (size - 17) / 4
        func bit(_ x: Int, _ y: Int) -> Int { modules[y][x] ? 1 : 0 }
        // Around the upper left corner, from the lowest bit on.
        let places =
            (0...5).map { (8, $0) } + [(8, 7), (8, 8), (7, 8)] + (9...14).map { (14 - $0, 8) }
        var format = 0
        for (shift, place) in places.enumerated() { format |= bit(place.0, place.1) << shift }
        let second =
            (0...7).map { (size - 1 - $0, 8) } + (8...14).map { (8, size - 15 + $0) }
        for (shift, place) in second.enumerated()
        where bit(place.0, place.1) != format >> shift & 1 {
            return nil
        }
        format ^= 0x5412
        guard format >> 13 == 0, bit(8, size - 8) == 1 else { return nil }
        mask = format >> 10 & 7
        let codewords = Self.codewords(modules, version, mask)
        guard let data = Self.data(codewords, version), let text = Self.text(data) else {
            return nil
        }
        self.text = text
    }

    private static func isFunction(_ x: Int, _ y: Int, _ size: Int, _ version: Int) -> Bool {
        if x == 6 || y == 6 { return true }
        if x <= 8 && y <= 8 || x <= 8 && y >= size - 8 || x >= size - 8 && y <= 8 { return true }
        let centre = size - 7
        return version > 1 && abs(x - centre) <= 2 && abs(y - centre) <= 2
    }

    private static func codewords(_ modules: [[Bool]], _ version: Int, _ mask: Int) -> [UInt8] {
        let size = modules.count
        let masks: [(Int, Int) -> Bool] = [
            { ($0 + $1) % 2 == 0 }, { i, _ in i % 2 == 0 }, { _, j in j % 3 == 0 },
            { ($0 + $1) % 3 == 0 }, { ($0 / 2 + $1 / 3) % 2 == 0 },
            { $0 * $1 % 2 + $0 * $1 % 3 == 0 }, { ($0 * $1 % 2 + $0 * $1 % 3) % 2 == 0 },
            { (($0 + $1) % 2 + $0 * $1 % 3) % 2 == 0 },
        ]
        var bits: [UInt8] = []
        var (x, isUp) = (size - 1, true)
        while x > 0 {
            if x == 6 { x -= 1 }
            for y in isUp ? Array((0..<size).reversed()) : Array(0..<size) {
                for x in [x, x - 1] where !isFunction(x, y, size, version) {
                    bits.append(modules[y][x] != masks[mask](y, x) ? 1 : 0)
                }
            }
            isUp.toggle()
            x -= 2
        }
        return stride(from: 0, to: bits.count - bits.count % 8, by: 8).map { start in
            bits[start..<start + 8].reduce(0) { $0 << 1 | $1 }
        }
    }

    /// `nil` where a block has an error: its polynomial is not zero at every root.
    private static func data(_ codewords: [UInt8], _ version: Int) -> [UInt8]? {
        let (blocks, checks) = [(1, 10), (1, 16), (1, 26), (2, 18), (2, 24), (4, 16)][version - 1]
        var data: [UInt8] = []
        for block in 0..<blocks {
            let own = stride(from: block, to: codewords.count, by: blocks).map { codewords[$0] }
            guard own.count == codewords.count / blocks else { return nil }
            var root = 1
            for _ in 0..<checks {
                var value = 0
                for codeword in own { value = times(value, root) ^ Int(codeword) }
                guard value == 0 else { return nil }
                root = times(root, 2)
            }
            data += own.dropLast(checks)
        }
        return data
    }

    /// Multiplies in GF(256) bit by bit, reduced at the end.
    private static func times(_ a: Int, _ b: Int) -> Int {
        var product = 0
        for bit in 0..<8 where b >> bit & 1 == 1 { product ^= a << bit }
        for bit in (8..<16).reversed() where product >> bit & 1 == 1 {
            product ^= 0x11D << (bit - 8)
        }
        return product
    }

    private static func text(_ data: [UInt8]) -> String? {
        var bits = data.flatMap { byte in (0..<8).map { Int(byte >> UInt8(7 - $0) & 1) } }[...]
        func take(_ count: Int) -> Int {
            defer { bits = bits.dropFirst(count) }
            return bits.prefix(count).reduce(0) { $0 << 1 | $1 }
        }
        guard take(4) == 2 else { return nil }
        let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:")
        var rest = take(9)
        var text = ""
        while rest > 1 {
            let pair = take(11)
            guard pair < 45 * 45 else { return nil }
            text.append(alphabet[pair / 45])
            text.append(alphabet[pair % 45])
            rest -= 2
        }
        if rest == 1 { text.append(alphabet[take(6)]) }
        return text
    }
}
