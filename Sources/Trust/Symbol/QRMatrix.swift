/// The modules of a symbol under one mask.
struct QRMatrix {
    private(set) var modules: [[Bool]]
    /// Modules that are the same whatever the text.
    private var isFixed: [[Bool]]
    private let size: Int

    init(_ layout: QRLayout, _ codewords: [UInt8], mask: Int) {
        size = layout.size
        modules = Array(repeating: Array(repeating: false, count: size), count: size)
        isFixed = modules
        drawPatterns(layout.version)
        drawFormat(mask)
        drawData(codewords, mask: mask)
    }

    private mutating func set(_ row: Int, _ column: Int, _ isDark: Bool) {
        modules[row][column] = isDark
        isFixed[row][column] = true
    }

    // MARK: What is always there

    private mutating func drawPatterns(_ version: Int) {
        for place in 0..<size {
            set(6, place, place % 2 == 0)
            set(place, 6, place % 2 == 0)
        }
        for (row, column) in [(3, 3), (3, size - 4), (size - 4, 3)] {
            drawRings(row, column, radius: 4) { $0 != 2 && $0 != 4 }
        }
        // One alignment pattern from version 2 on.
        if version > 1 { drawRings(size - 7, size - 7, radius: 2) { $0 != 1 } }
    }

    /// Squares around a centre, each dark or light by its distance.
    private mutating func drawRings(
        _ row: Int, _ column: Int, radius: Int, _ isDark: (Int) -> Bool
    ) {
        for down in -radius...radius {
            for right in -radius...radius {
                let (row, column) = (row + down, column + right)
                guard (0..<size).contains(row), (0..<size).contains(column) else { continue }
                set(row, column, isDark(max(abs(down), abs(right))))
            }
        }
    }

    /// Level M (00) and the mask, with ten check bits (BCH, generator 0x537), never all zero.
    static func formatBits(mask: Int) -> Int {
        var remainder = mask << 10
        for bit in (10..<15).reversed() where remainder >> bit & 1 == 1 {
            remainder ^= 0x537 << (bit - 10)
        }
        return (mask << 10 | remainder) ^ 0x5412
    }

    /// Twice, so that one may be damaged.
    private mutating func drawFormat(_ mask: Int) {
        let bits = Self.formatBits(mask: mask)
        let near = [0, 1, 2, 3, 4, 5, 7, 8]
        for bit in 0..<15 {
            let isDark = bits >> bit & 1 == 1
            if bit < 8 {
                set(near[bit], 8, isDark)
                set(8, size - 1 - bit, isDark)
            } else {
                set(8, near[14 - bit], isDark)
                set(size - 15 + bit, 8, isDark)
            }
        }
        set(size - 8, 8, true)
    }

    // MARK: What differs

    /// In pairs of columns from the right, up and down by turns, beside the timing pattern.
    private mutating func drawData(_ codewords: [UInt8], mask: Int) {
        var bit = 0
        var goesUp = true
        for right in stride(from: size - 1, to: 0, by: -2).map({ $0 <= 6 ? $0 - 1 : $0 }) {
            for step in 0..<size {
                let row = goesUp ? size - 1 - step : step
                for column in [right, right - 1] where !isFixed[row][column] {
                    // Behind the last codeword there are up to seven light modules.
                    let isDark =
                        bit < codewords.count * 8
                        && codewords[bit / 8] >> UInt8(7 - bit % 8) & 1 == 1
                    modules[row][column] = isDark != Self.isFlipped(row, column, by: mask)
                    bit += 1
                }
            }
            goesUp.toggle()
        }
    }

    static func isFlipped(_ row: Int, _ column: Int, by mask: Int) -> Bool {
        let product = row * column
        return switch mask {
        case 0: (row + column) % 2 == 0
        case 1: row % 2 == 0
        case 2: column % 3 == 0
        case 3: (row + column) % 3 == 0
        case 4: (row / 2 + column / 3) % 2 == 0
        case 5: product % 2 + product % 3 == 0
        case 6: (product % 2 + product % 3) % 2 == 0
        default: ((row + column) % 2 + product % 3) % 2 == 0
        }
    }
}

/// What makes a symbol hard to read, in points.
enum QRPenalty {
    static func of(_ modules: [[Bool]]) -> Int {
        let size = modules.count
        let columns = (0..<size).map { column in modules.map { $0[column] } }
        var points = 0
        for line in modules + columns { points += runs(line) + falseFinders(line) }
        for row in 1..<size {
            for column in 1..<size
            where modules[row][column] == modules[row][column - 1]
                && modules[row][column] == modules[row - 1][column]
                && modules[row][column] == modules[row - 1][column - 1]
            {
                points += 3
            }
        }
        let dark = modules.reduce(0) { $0 + $1.count { $0 } }
        // Ten for each 5 % beside one half.
        points += abs(dark * 20 - size * size * 10) / (size * size) * 10
        return points
    }

    /// Five of one colour in a row: three, and one for each more.
    private static func runs(_ line: [Bool]) -> Int {
        var points = 0
        var length = 0
        for place in line.indices {
            length = place > 0 && line[place] == line[place - 1] ? length + 1 : 1
            points += length == 5 ? 3 : (length > 5 ? 1 : 0)
        }
        return points
    }

    /// What looks like a corner, with four light modules on one side: forty. Around the symbol all is
    /// light.
    static func falseFinders(_ line: [Bool]) -> Int {
        let finder = [true, false, true, true, true, false, true]
        let light = [false, false, false, false]
        let padded = light + line + light
        var points = 0
        for start in 4...line.count - 3
        where padded[start..<start + 7].elementsEqual(finder)
            && (padded[start - 4..<start].elementsEqual(light)
                || padded[start + 7..<start + 11].elementsEqual(light))
        {
            points += 40
        }
        return points
    }
}
