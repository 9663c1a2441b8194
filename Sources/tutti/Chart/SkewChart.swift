import Glibc

/// The skew between rooms over time, as a picture.
struct SkewChart {
    var result: Lockstep
    var title: String

    private static let size = (width: 1_200, height: 640)
    private static let plot = (left: 130, right: 1_170, top: 90, bottom: 560)
    private static let white = 0
    private static let black = 1
    private static let grey = 2
    private static let red = 3
    private static let firstLine = 4
    /// Told apart also by people who do not see red and green (Okabe and Ito).
    private static let palette: [PNGImage.Colour] = [
        .init(red: 255, green: 255, blue: 255), .init(red: 30, green: 30, blue: 30),
        .init(red: 222, green: 222, blue: 222), .init(red: 213, green: 20, blue: 20),
        .init(red: 0, green: 114, blue: 178), .init(red: 230, green: 159, blue: 0),
        .init(red: 0, green: 158, blue: 115), .init(red: 204, green: 121, blue: 167),
        .init(red: 86, green: 180, blue: 233), .init(red: 148, green: 94, blue: 0),
        .init(red: 90, green: 60, blue: 160), .init(red: 130, green: 130, blue: 130),
    ]

    func image() -> PNGImage {
        var image = PNGImage(
            width: Self.size.width, height: Self.size.height, palette: Self.palette)
        let duration = max(result.programmeSeconds, 1)
        let largest = result.points.compactMap(\.skewMicroseconds).map(abs).max() ?? 0
        // Never finer than a microsecond: noise must not look like a landscape.
        let step = Self.niceStep(max(largest, 1) / 4)
        let top = step * max(1, (max(largest, 1) / step).rounded(.up))
        let plot = Self.plot
        func x(_ seconds: Double) -> Int {
            plot.left + Int((seconds / duration * Double(plot.right - plot.left)).rounded())
        }
        func y(_ microseconds: Double) -> Int {
            let share = (top - microseconds) / (2 * top)
            return plot.top + Int((share * Double(plot.bottom - plot.top)).rounded())
        }

        image.write(title, x: plot.left, y: 22, Self.black, size: 2)
        drawAxes(on: &image, x: x, y: y, top: top, step: step, duration: duration)
        for dropout in result.dropouts {
            let column = x(dropout.seconds)
            image.line(from: (column, plot.top), to: (column, plot.bottom), Self.red)
        }
        for pair in result.pairs.indices { drawLine(of: pair, on: &image, x: x, y: y) }
        drawLegend(on: &image)
        return image
    }

    private func drawAxes(
        on image: inout PNGImage, x: (Double) -> Int, y: (Double) -> Int, top: Double, step: Double,
        duration: Double
    ) {
        let plot = Self.plot
        let places = step >= 1 ? 0 : step >= 0.1 ? 1 : 2
        for mark in stride(from: -top, through: top + step / 2, by: step) {
            let row = y(mark)
            image.line(from: (plot.left, row), to: (plot.right, row), Self.grey)
            let label = abs(mark) < step / 2 ? "0" : mark.text(places, sign: true)
            image.write(
                label, x: plot.left - 12 - PNGImage.width(of: label), y: row - 7, Self.black)
        }
        let seconds = Self.niceStep(duration / 8)
        for mark in stride(from: 0, through: duration + 1e-9, by: seconds) {
            let column = x(mark)
            image.line(from: (column, plot.top), to: (column, plot.bottom), Self.grey)
            let label = mark.text(seconds < 1 ? 1 : 0)
            image.write(
                label, x: column - PNGImage.width(of: label) / 2, y: plot.bottom + 10, Self.black)
        }
        image.line(from: (plot.left, y(0)), to: (plot.right, y(0)), Self.black)
        image.line(from: (plot.left, plot.top), to: (plot.left, plot.bottom), Self.black)
        image.line(from: (plot.left, plot.bottom), to: (plot.right, plot.bottom), Self.black)
        image.write("skew, µs", x: 14, y: plot.top - 34, Self.black)
        let label = "seconds since the programme began"
        image.write(
            label, x: (plot.left + plot.right - PNGImage.width(of: label)) / 2, y: plot.bottom + 40,
            Self.black)
    }

    private func drawLine(
        of pair: Int, on image: inout PNGImage, x: (Double) -> Int, y: (Double) -> Int
    ) {
        let colour = Self.colour(of: pair)
        var last: (x: Int, y: Int)?
        for point in result.points where point.pair == pair {
            let column = x(point.seconds)
            guard let skew = point.skewMicroseconds else {
                // Where two rooms did not play the same there is no skew, only a mark.
                let row = Self.plot.bottom - 8
                image.line(
                    from: (column - 5, row - 5), to: (column + 5, row + 5), Self.red, thickness: 2)
                image.line(
                    from: (column - 5, row + 5), to: (column + 5, row - 5), Self.red, thickness: 2)
                last = nil
                continue
            }
            let here = (x: column, y: y(skew))
            if let last { image.line(from: last, to: here, colour, thickness: 2) }
            image.fill(x: (here.x - 2)..<(here.x + 3), y: (here.y - 2)..<(here.y + 3), colour)
            last = here
        }
    }

    private func drawLegend(on image: inout PNGImage) {
        var x = Self.plot.left
        var y = 52
        for (number, pair) in result.pairs.enumerated() {
            let text = "\(result.rooms[pair.first]) → \(result.rooms[pair.second])"
            let width = 44 + PNGImage.width(of: text)
            if x + width > Self.plot.right {
                x = Self.plot.left
                y += 20
                // A legend of many pairs would cover the plot: the file with the numbers has all.
                if y > Self.plot.top - 18 { return }
            }
            image.fill(x: x..<(x + 24), y: (y + 5)..<(y + 9), Self.colour(of: number))
            image.write(text, x: x + 32, y: y, Self.black)
            x += width + 12
        }
    }

    private static func colour(of pair: Int) -> Int {
        firstLine + pair % (palette.count - firstLine)
    }

    /// The smallest of 1, 2, 5 times a power of ten that is at least `x`.
    static func niceStep(_ x: Double) -> Double {
        guard x > 0, x.isFinite else { return 1 }
        let power = pow(10, floor(log10(x)))
        for factor in [1.0, 2, 5] where factor * power >= x * (1 - 1e-9) { return factor * power }
        return 10 * power
    }
}
