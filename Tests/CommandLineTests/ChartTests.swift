import Testing

@testable import tutti

@Suite struct ChartTests {
    /// The parts of a PNG: type, data, checksum.
    static func chunks(_ bytes: [UInt8]) -> [(type: String, data: [UInt8], crc: UInt32)] {
        func number(_ at: Int) -> UInt32 { bytes[at..<(at + 4)].reduce(0) { $0 << 8 | UInt32($1) } }
        var chunks: [(String, [UInt8], UInt32)] = []
        var place = 8
        while place + 12 <= bytes.count {
            let size = Int(number(place))
            let type = String(decoding: bytes[(place + 4)..<(place + 8)], as: UTF8.self)
            chunks.append(
                (type, Array(bytes[(place + 8)..<(place + 8 + size)]), number(place + 8 + size)))
            place += 12 + size
        }
        return chunks
    }

    @Test func `checksums are those of the standards`() {
        // The check values that RFC 1950's and the PNG standard's readers use.
        #expect(PNGImage.crc(Array("123456789".utf8)) == 0xCBF4_3926)
        #expect(PNGImage.adler(Array("Wikipedia".utf8)) == 0x11E6_0398)
    }

    @Test(arguments: [(3, 2), (300, 300)])
    func `a picture can be taken apart again, pixel by pixel`(width: Int, height: Int) throws {
        var image = PNGImage(
            width: width, height: height,
            palette: [.init(red: 255, green: 255, blue: 255), .init(red: 0, green: 0, blue: 0)])
        image.line(from: (0, 0), to: (width - 1, height - 1), 1)
        image.set(-1, 0, 1)
        let bytes = image.bytes
        #expect(Array(bytes[..<8]) == [0x89, 0x50, 0x4E, 0x47, 13, 10, 26, 10])
        let chunks = Self.chunks(bytes)
        #expect(chunks.map(\.type) == ["IHDR", "PLTE", "IDAT", "IEND"])
        for chunk in chunks {
            #expect(PNGImage.crc(Array(chunk.type.utf8) + chunk.data) == chunk.crc)
        }
        // Stored blocks: five bytes of header each, then the rows with a filter byte.
        var rows: [UInt8] = []
        let stream = chunks[2].data
        var place = 2
        var isLast = false
        while !isLast {
            isLast = stream[place] == 1
            let size = Int(stream[place + 1]) | Int(stream[place + 2]) << 8
            #expect(Int(stream[place + 3]) | Int(stream[place + 4]) << 8 == ~size & 0xFFFF)
            rows += stream[(place + 5)..<(place + 5 + size)]
            place += 5 + size
        }
        #expect(rows.count == (width + 1) * height)
        var pixels: [UInt8] = []
        for row in 0..<height {
            let start = row * (width + 1) + 1
            pixels += rows[start..<(start + width)]
        }
        #expect(pixels == image.pixels)
        #expect(place + 4 == stream.count)
    }

    @Test func `marks on the axes are round numbers`() {
        #expect(SkewChart.niceStep(0.7) == 1)
        #expect(SkewChart.niceStep(1.2) == 2)
        #expect(SkewChart.niceStep(23) == 50)
        #expect(SkewChart.niceStep(0) == 1)
    }

    @Test func `the chart draws a line for each pair and a mark for each dropout`() {
        var result = Lockstep(
            rooms: ["a", "b", "c"], pairs: [(0, 1), (0, 2), (1, 2)], points: [],
            startSkewMicroseconds: 0, dropouts: [], programmeSeconds: 20)
        for pair in 0..<3 {
            for step in 0..<20 {
                result.points.append(
                    .init(
                        pair: pair, seconds: Double(step), skewMicroseconds: Double(pair * 10 - 9)))
            }
        }
        let plain = SkewChart(result: result, title: "t").image()
        #expect(Set(plain.pixels).isSuperset(of: [0, 1, 2, 4, 5, 6]))
        #expect(!plain.pixels.contains(3))
        result.dropouts = [.init(room: 0, kind: .gap, seconds: 7, milliseconds: 3)]
        #expect(SkewChart(result: result, title: "t").image().pixels.contains(3))
    }
}
