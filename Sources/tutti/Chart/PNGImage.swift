/// A picture of a few colours, and its bytes as a PNG file.
///
/// Written by hand (W3C PNG, second edition; RFC 1950 and 1951) with stored blocks: a line chart of
/// half a megabyte is no reason to depend on a compressor.
struct PNGImage {
    struct Colour: Equatable {
        var red: UInt8
        var green: UInt8
        var blue: UInt8
    }

    let width: Int
    let height: Int
    let palette: [Colour]
    /// Row by row from the top, indices into the palette.
    private(set) var pixels: [UInt8]

    /// - Parameter palette: 1 to 256 colours; the first is the background.
    init(width: Int, height: Int, palette: [Colour]) {
        precondition((1...256).contains(palette.count), "\(palette.count) colours in a palette")
        self.width = width
        self.height = height
        self.palette = palette
        pixels = [UInt8](repeating: 0, count: width * height)
    }

    /// Paints one pixel; outside the picture nothing happens.
    mutating func set(_ x: Int, _ y: Int, _ colour: Int) {
        guard x >= 0, y >= 0, x < width, y < height else { return }
        pixels[y * width + x] = UInt8(colour)
    }

    mutating func fill(x: Range<Int>, y: Range<Int>, _ colour: Int) {
        for row in y { for column in x { set(column, row, colour) } }
    }

    /// A straight line, `thickness` pixels wide (Bresenham).
    mutating func line(
        from a: (x: Int, y: Int), to b: (x: Int, y: Int), _ colour: Int, thickness: Int = 1
    ) {
        let dx = abs(b.x - a.x)
        let dy = -abs(b.y - a.y)
        let sx = a.x < b.x ? 1 : -1
        let sy = a.y < b.y ? 1 : -1
        var (x, y) = a
        var error = dx + dy
        let half = thickness / 2
        while true {
            for v in (y - half)..<(y - half + thickness) {
                for u in (x - half)..<(x - half + thickness) { set(u, v, colour) }
            }
            if x == b.x && y == b.y { return }
            let twice = 2 * error
            if twice >= dy {
                error += dy
                x += sx
            }
            if twice <= dx {
                error += dx
                y += sy
            }
        }
    }

    /// The file.
    var bytes: [UInt8] {
        var file: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        // Eight bits a pixel, palette, no interlacing.
        file += Self.chunk(
            "IHDR",
            Self.bigEndian(UInt32(width)) + Self.bigEndian(UInt32(height)) + [8, 3, 0, 0, 0])
        file += Self.chunk("PLTE", palette.flatMap { [$0.red, $0.green, $0.blue] })
        var rows: [UInt8] = []
        rows.reserveCapacity((width + 1) * height)
        for row in 0..<height {
            rows.append(0)
            rows += pixels[(row * width)..<((row + 1) * width)]
        }
        file += Self.chunk("IDAT", Self.stored(rows))
        file += Self.chunk("IEND", [])
        return file
    }

    private static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        let body = Array(type.utf8) + data
        return bigEndian(UInt32(data.count)) + body + bigEndian(crc(body))
    }

    /// A zlib stream of stored blocks, at most 65 535 bytes each.
    private static func stored(_ data: [UInt8]) -> [UInt8] {
        var stream: [UInt8] = [0x78, 0x01]
        var start = 0
        repeat {
            let count = min(65_535, data.count - start)
            let size = UInt16(count)
            let isLast: UInt8 = start + count == data.count ? 1 : 0
            stream += [
                isLast, UInt8(size & 255), UInt8(size >> 8), UInt8(~size & 255), UInt8(~size >> 8),
            ]
            stream += data[start..<(start + count)]
            start += count
        } while start < data.count
        return stream + bigEndian(adler(data))
    }

    static func adler(_ data: [UInt8]) -> UInt32 {
        var a: UInt32 = 1
        var b: UInt32 = 0
        for byte in data {
            a = (a + UInt32(byte)) % 65_521
            b = (b + a) % 65_521
        }
        return b << 16 | a
    }

    static func crc(_ data: [UInt8]) -> UInt32 {
        var crc: UInt32 = 0xFFFF_FFFF
        for byte in data {
            crc = crcTable[Int((crc ^ UInt32(byte)) & 255)] ^ (crc >> 8)
        }
        return ~crc
    }

    private static let crcTable: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in
            value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1
        }
    }

    private static func bigEndian(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
    }
}
