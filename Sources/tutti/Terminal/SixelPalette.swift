import TuttiFFmpegMedia

/// The few colours that stand for all of a picture's: median cut (Heckbert 1982).
///
/// Colours are counted in boxes of five bits each. All of them begin as one block; the block whose
/// colours are worth it most is cut where half of its pixels lie on either side, until there are
/// enough. Each block is the mean of its pixels.
struct SixelPalette {
    /// Red, green and blue, 0…255; at most as many as were asked for.
    let colours: [[Int]]
    /// Of each box, the colour that stands for it.
    private let places: [UInt8]

    private static let bits = 5
    static let most = 256

    /// - Parameter count: 1 to ``most``.
    init(for picture: Picture, count: Int) {
        precondition(1...Self.most ~= count, "a palette of \(count) colours")
        let boxes = Self.boxes(of: picture)
        var blocks = [Block(boxes)]
        while blocks.count < count,
            let widest = blocks.indices.max(by: { blocks[$0].weight < blocks[$1].weight }),
            let (low, high) = blocks[widest].halves
        {
            blocks[widest] = low
            blocks.append(high)
        }
        var places = [UInt8](repeating: 0, count: 1 << (3 * Self.bits))
        for (number, block) in blocks.enumerated() {
            for box in block.boxes { places[box.index] = UInt8(number) }
        }
        self.places = places
        colours = blocks.map(\.mean)
    }

    /// The number of the colour for the pixel that begins at a byte.
    func place(of pixels: [UInt8], at byte: Int) -> Int {
        Int(places[Self.index(pixels[byte], pixels[byte + 1], pixels[byte + 2])])
    }

    private static func index(_ red: UInt8, _ green: UInt8, _ blue: UInt8) -> Int {
        Int(red >> 3) << (2 * bits) | Int(green >> 3) << bits | Int(blue >> 3)
    }

    /// Pixels whose colours agree in their upper bits.
    private struct Box {
        var index: Int
        var count = 0
        var sums = [0, 0, 0]

        func level(_ place: Int) -> Int { sums[place] / max(1, count) }
    }

    private static func boxes(of picture: Picture) -> [Box] {
        var numbers: [Int: Int] = [:]
        var boxes: [Box] = []
        let pixels = picture.pixels
        for byte in stride(from: 0, to: pixels.count, by: 3) {
            let index = index(pixels[byte], pixels[byte + 1], pixels[byte + 2])
            let number = numbers[index] ?? boxes.count
            if number == boxes.count {
                numbers[index] = number
                boxes.append(Box(index: index))
            }
            boxes[number].count += 1
            for place in 0..<3 { boxes[number].sums[place] += Int(pixels[byte + place]) }
        }
        return boxes
    }

    /// Boxes that share a colour.
    private struct Block {
        var boxes: [Box]
        private let count: Int
        /// The colour that differs most: 0 red, 1 green, 2 blue; and by how much.
        private let longest: (place: Int, length: Int)

        init(_ boxes: [Box]) {
            self.boxes = boxes
            count = boxes.reduce(0) { $0 + $1.count }
            let lengths = (0..<3).map { place in
                let levels = boxes.map { $0.level(place) }
                return (levels.max() ?? 0) - (levels.min() ?? 0)
            }
            let place = (0..<3).max { lengths[$0] < lengths[$1] } ?? 0
            longest = (place, lengths[place])
        }

        /// What an even colour for all of it spoils.
        var weight: Int { boxes.count < 2 ? 0 : count * longest.length }

        /// - Returns: `nil` for a single box.
        var halves: (Block, Block)? {
            guard boxes.count > 1 else { return nil }
            let sorted = boxes.sorted { $0.level(longest.place) < $1.level(longest.place) }
            let half = count / 2
            var (below, cut) = (0, 0)
            while cut < sorted.count - 1, cut == 0 || below + sorted[cut].count <= half {
                below += sorted[cut].count
                cut += 1
            }
            return (Block(Array(sorted[..<cut])), Block(Array(sorted[cut...])))
        }

        var mean: [Int] {
            let total = max(1, count)
            return (0..<3).map { place in
                (boxes.reduce(0) { $0 + $1.sums[place] } + total / 2) / total
            }
        }
    }
}
