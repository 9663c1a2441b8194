/// Makes a picture smaller, row by row: each pixel becomes the mean of the area that it stands for.
///
/// A row is summed up from its left end once; the mean of a part is then the difference of two sums,
/// whatever its width (Crow 1984, summed-area tables, in one dimension). Areas may begin and end
/// within a pixel, so larger pictures than the source come out as well.
struct PictureReduction {
    private let width: Int
    private let height: Int
    private let sourceWidth: Int
    private let sourceHeight: Int
    /// Means so far of all rows, three values a pixel.
    private var sums: [Double]
    /// One more value than a row has, for each colour.
    private var running: [Double]
    private var line: [Double]

    init(of sourceWidth: Int, _ sourceHeight: Int, to width: Int, _ height: Int) {
        (self.width, self.height) = (width, height)
        (self.sourceWidth, self.sourceHeight) = (sourceWidth, sourceHeight)
        sums = Array(repeating: 0, count: 3 * width * height)
        running = Array(repeating: 0, count: sourceWidth + 1)
        line = Array(repeating: 0, count: 3 * width)
    }

    /// - Parameter row: of the source, from the top; each once.
    /// - Parameter colours: red, green and blue, `sourceWidth` values 0…255 each.
    mutating func add(row: Int, _ colours: [[Float]]) {
        for (place, values) in colours.enumerated() {
            for x in 0..<sourceWidth { running[x + 1] = running[x] + Double(values[x]) }
            let step = Double(sourceWidth) / Double(width)
            var begin = 0.0
            for x in 0..<width {
                let end = sum(to: Double(x + 1) * step)
                line[3 * x + place] = (end - begin) / step
                begin = end
            }
        }
        let scale = Double(height) / Double(sourceHeight)
        let (top, bottom) = (Double(row) * scale, Double(row + 1) * scale)
        for y in Int(top)..<height where Double(y) < bottom {
            let share = min(bottom, Double(y + 1)) - max(top, Double(y))
            guard share > 0 else { continue }
            for x in 0..<3 * width { sums[3 * width * y + x] += share * line[x] }
        }
    }

    private func sum(to place: Double) -> Double {
        let whole = min(Int(place), sourceWidth)
        guard whole < sourceWidth else { return running[sourceWidth] }
        return running[whole] + (place - Double(whole)) * (running[whole + 1] - running[whole])
    }

    /// After all rows.
    var picture: Picture {
        Picture(
            width: width, height: height,
            pixels: sums.map { UInt8(min(255, max(0, $0.rounded()))) })
    }
}
