/// A picture as a screen takes it: rows from the top, three bytes a pixel.
public struct Picture: Equatable, Sendable {
    /// Pixels of a row, at least 1.
    public let width: Int
    /// Rows, at least 1.
    public let height: Int
    /// Red, green and blue of each pixel, 0…255 as sRGB has them: `3 × width × height` bytes.
    public let pixels: [UInt8]

    /// A picture of pixels that are there already; traps where their number is another.
    public init(width: Int, height: Int, pixels: [UInt8]) {
        precondition(
            width > 0 && height > 0 && pixels.count == 3 * width * height,
            "\(pixels.count) bytes are no picture of \(width) × \(height) pixels")
        (self.width, self.height, self.pixels) = (width, height, pixels)
    }

    /// The largest size of the same shape within another one; at least one pixel.
    static func size(
        of width: Int, _ height: Int, fitting widthMax: Int, _ heightMax: Int
    ) -> (width: Int, height: Int) {
        let scale = min(Double(widthMax) / Double(width), Double(heightMax) / Double(height))
        func scaled(_ length: Int, _ most: Int) -> Int {
            max(1, min(most, Int((Double(length) * scale).rounded())))
        }
        return (scaled(width, widthMax), scaled(height, heightMax))
    }
}
