/// A table of text whose columns are as wide as they must be, and which gives up its least
/// important columns where the terminal is narrow.
struct Table {
    struct Column {
        var title: String
        var alignsRight = false
        /// The column with the lowest rank goes first.
        var rank: Int
        /// The least that its text may be cut to.
        var least = 4
        /// The most that one row may widen it to, whatever somebody calls a room or says of it.
        var most = 36
    }

    var columns: [Column]
    var rows: [[String]] = []

    /// The header and the rows, none wider than `width`.
    func lines(width: Int) -> [String] {
        var shown = Array(columns.indices)
        var widths = shown.map { column in
            let widest = rows.reduce(columns[column].title.columns) { max($0, $1[column].columns) }
            return min(widest, columns[column].most)
        }
        func total() -> Int { widths.reduce(0, +) + Self.gap.count * max(0, widths.count - 1) }
        while total() > width, shown.count > 1,
            let weakest = shown.indices.min(by: {
                columns[shown[$0]].rank < columns[shown[$1]].rank
            })
        {
            // Shortening the widest text loses less than losing a column.
            let widest = widths.indices.max { widths[$0] < widths[$1] } ?? 0
            let spare = widths[widest] - max(columns[shown[widest]].least, Self.readable)
            if spare > 0 && total() - spare <= width {
                widths[widest] -= total() - width
            } else {
                shown.remove(at: weakest)
                widths.remove(at: weakest)
            }
        }
        func line(_ texts: [String]) -> String {
            let cells = zip(shown, widths).map { column, width in
                texts[column].padded(to: width, right: columns[column].alignsRight)
            }
            var line = cells.joined(separator: Self.gap).cut(toColumns: width)
            while line.last == " " { line.removeLast() }
            return line
        }
        return [line(columns.map(\.title))] + rows.map(line)
    }

    private static let gap = "  "
    private static let readable = 8
}
