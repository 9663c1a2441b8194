/// A row of values as little bars: `▁▁▂▁▇▁`.
enum Sparkline {
    private static let bars: [Character] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]

    /// What a column shows that no value falls to.
    private static let hole: Character = "·"

    /// - Parameters:
    ///   - values: magnitudes count.
    ///   - ages: how long ago each was, seconds.
    ///   - span: of the whole row, which ends now; seconds. No column is shorter than one.
    ///   - width: most columns; each shows the largest of the values that fall to it.
    ///   - top: what fills a column; larger values do too.
    static func text(
        _ values: [Float], ages: [Float], span: Float, width: Int, top: Float
    ) -> String {
        guard !values.isEmpty, width > 0, top > 0, span > 0 else { return "" }
        let columns = min(width, max(1, Int(span.rounded(.up))))
        var peaks = [Float?](repeating: nil, count: columns)
        for (value, age) in zip(values, ages) {
            let place = ((1 - age / span) * Float(columns)).rounded(.down)
            let column = Int(min(max(place, 0), Float(columns - 1)))
            peaks[column] = max(peaks[column] ?? 0, value.magnitude)
        }
        return String(
            peaks.map { peak -> Character in
                guard let peak else { return hole }
                let step = (min(peak / top, 1) * Float(bars.count)).rounded(.up)
                return bars[max(0, min(bars.count - 1, Int(step) - 1))]
            })
    }
}
