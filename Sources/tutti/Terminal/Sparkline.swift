/// A row of values as little bars: `▁▁▂▁▇▁`.
enum Sparkline {
    private static let bars: [Character] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]

    /// - Parameters:
    ///   - values: oldest first; magnitudes count.
    ///   - width: most columns; each shows the largest of the values that fall to it.
    ///   - top: what fills a column; larger values do too.
    static func text(_ values: [Float], width: Int, top: Float) -> String {
        guard !values.isEmpty, width > 0, top > 0 else { return "" }
        let columns = min(width, values.count)
        return String(
            (0..<columns).map { column -> Character in
                let begin = column * values.count / columns
                let end = max(begin + 1, (column + 1) * values.count / columns)
                let peak = values[begin..<end].reduce(0) { max($0, $1.magnitude) }
                let step = (min(peak / top, 1) * Float(bars.count)).rounded(.up)
                return bars[max(0, min(bars.count - 1, Int(step) - 1))]
            })
    }
}
