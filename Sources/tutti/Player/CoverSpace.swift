/// Where a cover stands beside the lines of the player.
struct CoverSpace: Equatable, Sendable {
    /// Of a character, where a terminal does not say: half as wide as high.
    static let usualCell = CellSize(width: 10, height: 20)!

    /// Fewer lines have no room for what is said beside it, and a smaller picture says nothing.
    static let leastRows = 6
    private static let mostRows = 12
    /// For the title and the bar.
    private static let leastText = 44
    /// Pixels a side. Kitty gets three bytes of each.
    private static let mostPixels = 480
    /// What the window still shows of what was there before.
    private static let rowsAbove = 4

    var columns: Int
    var rows: Int
    var cell: CellSize

    /// - Returns: `nil` where the window is too small.
    init?(width: Int, height: Int, cell: CellSize) {
        let most = min(
            Self.mostRows, height / 3, height - Self.rowsAbove, Self.mostPixels / cell.height)
        guard most >= Self.leastRows else { return nil }
        for rows in (Self.leastRows...most).reversed() {
            // A square.
            let columns = (rows * cell.height + cell.width - 1) / cell.width
            if width - columns >= Self.leastText {
                (self.columns, self.rows, self.cell) = (columns, rows, cell)
                return
            }
        }
        return nil
    }

    /// Pixels that a picture may have, whole bands of sixels.
    var pixels: (width: Int, height: Int) {
        let height = rows * cell.height
        return (columns * cell.width, height - height % SixelImage.bandHeight)
    }
}
