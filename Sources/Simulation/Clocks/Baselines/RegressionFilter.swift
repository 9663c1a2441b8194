/// Least squares over 32 exchanges behind gates on the round trip: GStreamer's network clock.
///
/// Written from its description: a round trip must be below twice the median of the last nine and
/// twice a running average (a quarter down, a sixteenth up). A new line counts when the exchange
/// lies near the old or the new one, or after five that did not; it may jump by a quarter of the
/// average round trip.
struct RegressionFilter: ClockFilter {
    static let length = 32
    static let fewest = 4
    static let skips = 5

    private struct Line {
        var offset: Double
        var rate: Double
        var time: Double

        func callAsFunction(_ time: Double) -> Double { offset + rate * (time - self.time) }
    }

    private var delays: [Double] = []
    private var average: Double?
    private var points: [(time: Double, offset: Double)] = []
    private var line: Line?
    private var skipped = 0

    mutating func receive(_ exchange: Exchange) {
        delays.append(exchange.delay)
        if delays.count > 9 { delays.removeFirst() }
        guard exchange.delay <= 2 * delays.sorted()[delays.count / 2] else { return }
        let average = average ?? exchange.delay
        self.average =
            exchange.delay < average
            ? (3 * average + exchange.delay) / 4 : (15 * average + exchange.delay) / 16
        guard exchange.delay <= 2 * average else { return }

        points.append((exchange.time, exchange.offset))
        if points.count > Self.length { points.removeFirst() }
        guard let new = regression() else {
            line = Line(offset: exchange.offset, rate: 0, time: exchange.time)
            return
        }
        let window = average / 4
        let old = line ?? new
        let isNear =
            (exchange.offset - old(exchange.time)).magnitude <= window
            || (exchange.offset - new(exchange.time)).magnitude <= window
        guard isNear || skipped >= Self.skips else {
            skipped += 1
            return
        }
        skipped = 0
        let now = exchange.arrived
        let jump = min(max(new(now) - old(now), -window), window)
        line = Line(offset: old(now) + jump, rate: new.rate, time: now)
    }

    private func regression() -> Line? {
        guard points.count >= Self.fewest else { return nil }
        let count = Double(points.count)
        let time = points.reduce(0) { $0 + $1.time } / count
        let offset = points.reduce(0) { $0 + $1.offset } / count
        var (tt, to) = (0.0, 0.0)
        for point in points {
            tt += (point.time - time) * (point.time - time)
            to += (point.time - time) * (point.offset - offset)
        }
        return Line(offset: offset, rate: tt > 0 ? to / tt : 0, time: time)
    }

    func offset(at time: Double) -> Double? { line?(time) }
}
