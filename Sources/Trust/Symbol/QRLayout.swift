/// What a version has room for at level M (ISO/IEC 18004, table 9): all its blocks are alike up to 6.
struct QRLayout: Equatable, Sendable {
    let version: Int
    /// Data codewords of all blocks.
    let dataCount: Int
    let blockCount: Int
    /// Codewords for mending in each block.
    let checkCount: Int

    init(version: Int) {
        precondition(QRSymbol.versions.contains(version), "version \(version)")
        let row: (data: Int, blocks: Int, checks: Int) =
            [(16, 1, 10), (28, 1, 16), (44, 1, 26), (64, 2, 18), (86, 2, 24), (108, 4, 16)][
                version - 1]
        self.version = version
        (dataCount, blockCount, checkCount) = row
    }

    var size: Int { 4 * version + 17 }

    /// Data and check codewords in the order in which they are drawn: the first of each block, the
    /// second of each …
    func interleaved(_ data: [UInt8]) -> [UInt8] {
        let length = dataCount / blockCount
        let blocks = (0..<blockCount).map { Array(data[$0 * length..<($0 + 1) * length]) }
        let checks = blocks.map { ReedSolomon.checks(of: $0, count: checkCount) }
        return (0..<length).flatMap { place in blocks.map { $0[place] } }
            + (0..<checkCount).flatMap { place in checks.map { $0[place] } }
    }
}

/// Check codewords by polynomial division over GF(256), modulus 0x11D.
enum ReedSolomon {
    static func checks(of data: [UInt8], count: Int) -> [UInt8] {
        let divisor = generator(count)
        var remainder = [UInt8](repeating: 0, count: count)
        for byte in data {
            let factor = byte ^ remainder.removeFirst()
            remainder.append(0)
            for place in 0..<count { remainder[place] ^= product(divisor[place], factor) }
        }
        return remainder
    }

    /// (x − 2⁰)(x − 2¹)…, the highest coefficient, which is 1, left out.
    private static func generator(_ degree: Int) -> [UInt8] {
        var coefficients = [UInt8](repeating: 0, count: degree - 1) + [1]
        var root: UInt8 = 1
        for _ in 0..<degree {
            for place in 0..<degree {
                coefficients[place] = product(coefficients[place], root)
                if place + 1 < degree { coefficients[place] ^= coefficients[place + 1] }
            }
            root = product(root, 2)
        }
        return coefficients
    }

    static func product(_ a: UInt8, _ b: UInt8) -> UInt8 {
        var product: UInt8 = 0
        for bit in (0..<8).reversed() {
            product = product << 1 ^ (product >> 7) &* 0x1D
            product ^= (b >> UInt8(bit) & 1) &* a
        }
        return product
    }
}
