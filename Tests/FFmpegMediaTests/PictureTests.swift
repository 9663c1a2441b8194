import Foundation
import Testing
import TuttiChance
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// Covers: decoded whatever they are stored as, and never for longer than they are worth.
@Suite(.timeLimit(.minutes(5))) struct PictureTests {
    /// Four quarters: red and green above, blue and white below.
    private static let quarters: [[Int]] = [
        [255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255],
    ]

    private static func quarter(_ x: Int, _ y: Int, _ width: Int, _ height: Int) -> [Int] {
        quarters[(2 * y / height) * 2 + 2 * x / width]
    }

    /// As FFmpeg's program writes it.
    private static func encoded(
        _ name: String, width: Int = 64, height: Int = 48, _ options: [String] = []
    ) throws -> [UInt8] {
        var text = "P3 \(width) \(height) 255\n"
        for y in 0..<height {
            for x in 0..<width {
                text += quarter(x, y, width, height).map(String.init).joined(separator: " ") + "\n"
            }
        }
        let source = try Fixtures.write(Data(text.utf8), "quarters-\(width)-\(height)-\(name).ppm")
        let path = Fixtures.path("quarters-\(width)-\(height)-" + name)
        Fixtures.run(
            ["-v", "error", "-y", "-i", source] + options + ["-frames:v", "1", path])
        return try Array(Data(contentsOf: URL(fileURLWithPath: path)))
    }

    /// The middle of each quarter, where no edge is near.
    private func expectQuarters(_ picture: Picture, within tolerance: Int, _ comment: Comment) {
        for (place, colour) in Self.quarters.enumerated() {
            let x = picture.width * (1 + 2 * (place % 2)) / 4
            let y = picture.height * (1 + 2 * (place / 2)) / 4
            let start = 3 * (y * picture.width + x)
            for (seen, meant) in zip(picture.pixels[start..<start + 3], colour) {
                #expect(abs(Int(seen) - meant) <= tolerance, comment)
            }
        }
    }

    @Test(arguments: [
        ("rgb.png", ["-pix_fmt", "rgb24"], 0), ("deep.png", ["-pix_fmt", "rgb48be"], 1),
        ("clear.png", ["-pix_fmt", "rgba"], 0), ("palette.png", ["-pix_fmt", "pal8"], 8),
        ("colour.bmp", ["-pix_fmt", "bgr24"], 0), ("short.bmp", ["-pix_fmt", "rgb555le"], 0),
        ("full.jpg", ["-pix_fmt", "yuvj444p", "-q:v", "1"], 8),
        ("halved.jpg", ["-pix_fmt", "yuvj420p", "-q:v", "1"], 8),
        ("first.gif", [], 8),
    ])
    func `a picture is the same in every format`(
        name: String, options: [String], tolerance: Int
    ) throws {
        let bytes = try Self.encoded(name, options)
        for (width, height) in [(64, 48), (16, 12), (33, 999), (128, 128)] {
            let picture = try Picture.decode(bytes, fitting: width, height)
            #expect(picture.width <= width && picture.height <= height)
            #expect(picture.width == width || picture.height == height)
            #expect(abs(picture.width * 3 - picture.height * 4) <= 4, "the shape stays")
            expectQuarters(picture, within: tolerance, "\(name) at \(width) × \(height)")
        }
    }

    @Test func `grey is grey, also where one bit holds eight pixels`() throws {
        for format in ["gray", "gray16be", "monob", "ya8"] {
            let bytes = try Self.encoded("\(format).png", ["-pix_fmt", format])
            let picture = try Picture.decode(bytes, fitting: 64, 48)
            for pixel in stride(from: 0, to: picture.pixels.count, by: 3) {
                let colours = Set(picture.pixels[pixel..<pixel + 3])
                #expect(colours.count == 1, "\(format)")
            }
            #expect(picture.pixels.suffix(3).allSatisfy { $0 > 250 }, "\(format)")
        }
    }

    /// The mean is the same whatever the size, since each source pixel counts once.
    @Test(arguments: [(1, 1), (5, 7), (16, 16), (37, 23), (64, 64)])
    func `a smaller picture is as bright as a large one`(width: Int, height: Int) {
        let (sourceWidth, sourceHeight) = (37, 23)
        var generator = SplitMix64(seed: 5)
        var reduction = PictureReduction(of: sourceWidth, sourceHeight, to: width, height)
        var total = 0.0
        for row in 0..<sourceHeight {
            let colours = (0..<3).map { _ in
                (0..<sourceWidth).map { _ in Float(generator.next() % 256) }
            }
            total += colours.joined().reduce(0) { $0 + Double($1) }
            reduction.add(row: row, colours)
        }
        let pixels = reduction.picture.pixels
        let mean = pixels.reduce(0) { $0 + Double($1) } / Double(pixels.count)
        // Rounding to whole values.
        #expect(abs(mean - total / Double(3 * sourceWidth * sourceHeight)) <= 0.5)
    }

    @Test func `at its own size a picture stays as it is`() {
        let values = (0..<12).map { Float($0 * 20) }
        var reduction = PictureReduction(of: 4, 3, to: 4, 3)
        for row in 0..<3 {
            let part = Array(values[4 * row..<4 * row + 4])
            reduction.add(row: row, [part, part.map { 255 - $0 }, part])
        }
        let expected = values.flatMap { [UInt8($0), UInt8(255 - $0), UInt8($0)] }
        #expect(reduction.picture.pixels == expected)
    }

    // MARK: Of strangers

    private func code(_ bytes: [UInt8]) -> MediaError.Code? {
        do throws(MediaError) {
            _ = try Picture.decode(bytes, fitting: 32, 32)
            return nil
        } catch {
            return error.code
        }
    }

    @Test func `what is no picture is told, and every cut of one`() throws {
        #expect(code([]) == .unsupported)
        #expect(code(Array("no picture at all".utf8)) == .unsupported)
        #expect(code([0xFF, 0xD8, 0xFF]) == .damaged)
        #expect(code([UInt8](repeating: 0xFF, count: Picture.mostBytes + 1)) == .tooLarge)
        for name in ["rgb.png", "full.jpg", "first.gif", "colour.bmp"] {
            let bytes = try Self.encoded(name)
            for length in stride(from: 0, to: bytes.count, by: max(1, bytes.count / 20)) {
                // Some show their beginning; none traps.
                _ = code(Array(bytes.prefix(length)))
            }
            #expect(code(Array(bytes.prefix(12))) != nil, "\(name)")
        }
    }

    @Test func `damage anywhere traps nothing`() throws {
        for (number, name) in ["rgb.png", "full.jpg", "first.gif", "colour.bmp"].enumerated() {
            let whole = try Self.encoded(name, width: 24, height: 16)
            var generator = SplitMix64(seed: UInt64(number))
            for _ in 0..<30 {
                var bytes = whole
                for _ in 0..<1 + generator.next() % 8 {
                    let place = Int(generator.next() % UInt64(bytes.count))
                    bytes[place] = UInt8(generator.next() % 256)
                }
                // Some still show something.
                if let picture = try? Picture.decode(bytes, fitting: 20, 20) {
                    #expect(picture.width <= 20 && picture.height <= 20)
                }
            }
        }
    }

    @Test func `a picture that claims to be huge is refused before it takes any memory`() throws {
        var png = try Self.encoded("rgb.png")
        // Width and height are the first of the first chunk; its checksum is the decoder's matter.
        png.replaceSubrange(16..<24, with: [0, 0, 0xFF, 0xFF, 0, 0, 0xFF, 0xFF])
        #expect(code(png) != nil)
        var bmp = try Self.encoded("colour.bmp")
        bmp.replaceSubrange(18..<26, with: [0xFF, 0xFF, 0, 0, 0xFF, 0xFF, 0, 0])
        #expect(code(bmp) != nil)
        var gif = try Self.encoded("first.gif")
        gif.replaceSubrange(6..<10, with: [0xFF, 0xFF, 0xFF, 0xFF])
        #expect(code(gif) != nil)
    }

    /// A scan costs a few bytes and goes through all pixels.
    @Test func `a picture of a thousand scans is refused`() throws {
        let frame: [UInt8] = [0xFF, 0xC2, 0, 17, 8, 0x0F, 0xA0, 0x0F, 0xA0, 3]
        let scan: [UInt8] = [0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0, 0]
        let many = [0xFF, 0xD8] + frame + Array(repeatElement(scan, count: 1_000).joined())
        #expect(PictureFormat.jpegWork(many) == 4_000 * 4_000 * 1_000)
        #expect(code(many) == .tooLarge)
        let honest = try Self.encoded("full.jpg")
        #expect(PictureFormat.jpegWork(honest) == 64 * 48)
    }

    @Test func `what is packed beside a picture is not unpacked`() throws {
        let plain = try Self.encoded("rgb.png")
        let note: [UInt8] = Array("zTXtnote\0\0".utf8) + [UInt8](repeating: 7, count: 100)
        let length = UInt32(note.count - 4)
        let chunk = (0..<4).map { UInt8(truncatingIfNeeded: length >> (24 - 8 * $0)) } + note
        // Behind the head: 8 bytes of mark, 25 of IHDR.
        let noted = plain[..<33] + chunk + [0, 0, 0, 0] + plain[33...]
        let kept = try #require(PictureFormat.withoutNotes(Array(noted)))
        #expect(kept == PictureFormat.withoutNotes(plain))
        #expect(!String(decoding: kept, as: UTF8.self).contains("zTXt"))
        #expect(
            try Picture.decode(Array(noted), fitting: 64, 48)
                == Picture.decode(plain, fitting: 64, 48))
        #expect(PictureFormat.withoutNotes([UInt8](plain.prefix(8))) == nil)
    }
}
