/// Two parallel lines under the one-way delays of the last minute: TICSync; Zhang, Liu and Xia.
///
/// The nearest relative of ours, without its choice of windows, its memory of the floor and its
/// line: the rate that leaves the largest residual round trip above both lower hulls.
struct DualHullFilter: ClockFilter {
    static let window = 60.0
    /// Seconds between solves.
    static let interval = 0.25
    static let rateLimit = 150e-6

    private struct Point {
        var time: Double
        var value: Double
    }

    private var forward: [Point] = []
    private var backward: [Point] = []
    private var solution: (offset: Double, rate: Double, time: Double)?

    mutating func receive(_ exchange: Exchange) {
        Self.insert(Point(time: exchange.sent, value: exchange.forward), into: &forward)
        Self.insert(Point(time: exchange.arrived, value: exchange.backward), into: &backward)
        let now = exchange.arrived
        if let solution, forward.count > 24, now - solution.time < Self.interval { return }
        solve(at: now)
    }

    private static func insert(_ point: Point, into points: inout [Point]) {
        points.append(point)
        var place = points.count - 1
        while place > 0, points[place - 1].time > points[place].time {
            points.swapAt(place - 1, place)
            place -= 1
        }
        let oldest = points[points.count - 1].time - window
        if let first = points.firstIndex(where: { $0.time >= oldest }), first > 0 {
            points.removeFirst(first)
        }
    }

    private mutating func solve(at now: Double) {
        let (under, over) = (Self.hull(forward, now), Self.hull(backward, now))
        var (low, high) = (-Self.rateLimit, Self.rateLimit)
        // The residual round trip is concave in the rate: its slope is the difference of the
        // times at which both hulls are touched.
        while high - low > 1e-9 {
            let rate = (low + high) / 2
            let rise = Self.lowest(over, -rate).time - Self.lowest(under, rate).time
            if rise > 0 { low = rate } else { high = rate }
        }
        let rate = (low + high) / 2
        let f = Self.lowest(under, rate).value
        let b = Self.lowest(over, -rate).value
        solution = ((f - b) / 2, rate, now)
    }

    /// Lower hull, times relative to `now`.
    private static func hull(_ points: [Point], _ now: Double) -> [Point] {
        var hull: [Point] = []
        for point in points {
            let new = Point(time: point.time - now, value: point.value)
            while hull.count >= 2 {
                let (a, b) = (hull[hull.count - 2], hull[hull.count - 1])
                let turn =
                    (b.time - a.time) * (new.value - a.value)
                    - (b.value - a.value) * (new.time - a.time)
                guard turn <= 0 else { break }
                hull.removeLast()
            }
            hull.append(new)
        }
        return hull
    }

    private static func lowest(_ hull: [Point], _ rate: Double) -> (value: Double, time: Double) {
        var (best, time) = (Double.infinity, 0.0)
        for point in hull {
            let value = point.value - rate * point.time
            if value < best { (best, time) = (value, point.time) }
        }
        return (best, time)
    }

    func offset(at time: Double) -> Double? {
        solution.map { $0.offset + $0.rate * (time - $0.time) }
    }
}
