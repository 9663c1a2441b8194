import func Glibc.sqrt

/// The most frequent delay of both directions and the skew between the clocks, all at once: what a
/// room that has just joined can know.
///
///     F, B, s = argmax Σ k((fᵢ − F − s·uᵢ)/h) + Σ k((bᵢ − B + s·uᵢ)/h) − (s − s₀)²/2σ₀²
///
/// with u the time from now and k as in ``ModePeak``. Crests of single blocks want a slope that
/// is known, and a line through them wants several blocks; here a second of packets says both. Two
/// ordinary crystals that differ by 100 ppm blur half a second by 50 µs, but both directions by the
/// same in opposite ways, and only along the true slope do both gather. Found by trying slopes,
/// then by weighted least squares (weights (1 + x²)⁻²); what it is worth is what the influence of
/// each packet says (P. Huber, 1967).
struct JointModeFit: Sendable {
    /// How many packets must lie at a crest, weighed by their distance. That is more than where the
    /// slope is known (``ModePeak/fewest``), since who tries many slopes finds one that gathers
    /// some. With fewer, crests of chance are believed; with more, a room that joins waits longer.
    static let fewest = 9.0
    /// The step from slope to slope moves the ends of the packets by this share of a width.
    static let slopeStep = 0.5
    /// How far from the prior slopes are tried, in its deviations.
    static let reach = 3.0
    /// How many steps to either side are tried where the slope is known already.
    static let nearSteps = 3
    /// How many steps of weighted least squares follow.
    static let steps = 12
    /// How many of them, the first ones, have twice the width.
    static let wideSteps = 4
    /// Spread of the packets that count, in widths.
    static let spread = 0.6

    /// Group minus local at `now`; seconds, and seconds².
    private(set) var offset = 0.0
    private(set) var variance = 0.0
    /// Leader's rate against ours, minus one; and its variance.
    private(set) var skew: Double
    private(set) var skewVariance = 0.0
    /// Half of what one crest stands higher above its edge than the other.
    private(set) var lean = 0.0

    /// `nil` where either direction does not gather.
    ///
    /// - Parameters:
    ///   - forward, backward: some seconds of both directions.
    ///   - now: same scale as the points' time; not before them.
    ///   - prior: of the skew.
    ///   - known: the skew that most of these packets said already; slopes far from it are not tried.
    init?(
        _ forward: [ModePeak.Point], _ backward: [ModePeak.Point], at now: Double,
        prior: (skew: Double, variance: Double), known: Double? = nil
    ) {
        guard let start = forward.first?.time, now > start else { return nil }
        var sides = (Side(forward, sign: 1, now: now), Side(backward, sign: -1, now: now))
        let step = Self.slopeStep * ModePeak.width / (now - start)
        let last = Int(Self.reach * sqrt(prior.variance) / step)
        var tried = -last...last
        if let known {
            let middle = Int(((known - prior.skew) / step).rounded())
            tried = (middle - Self.nearSteps...middle + Self.nearSteps).clamped(to: tried)
        }
        var best = -Double.infinity
        skew = prior.skew
        for index in tried {
            let slope = prior.skew + Double(index) * step
            let distance = (slope - prior.skew) / sqrt(prior.variance)
            let score =
                sides.0.height(along: slope) + sides.1.height(along: slope)
                - distance * distance / 2
            if score > best { (best, skew) = (score, slope) }
        }
        guard sides.0.settle(along: skew), sides.1.settle(along: skew) else { return nil }
        // What a deviation of the prior weighs against packets that count.
        let blur = Self.spread * ModePeak.width
        let pull = blur * blur / prior.variance
        for step in 0..<Self.steps {
            let width = ModePeak.width * (step < Self.wideSteps ? 2 : 1)
            let (out, home) = (sides.0.moments(width, skew), sides.1.moments(width, skew))
            guard out.weight > 0, home.weight > 0 else { return nil }
            skew =
                (out.product - home.product + pull * prior.skew) / (out.square + home.square + pull)
            sides.0.place = out.value - skew * out.time
            sides.1.place = home.value + skew * home.time
        }
        offset = (sides.0.place - sides.1.place) / 2
        lean = (sides.0.crestHeight(skew) - sides.1.crestHeight(skew)) / 2
        guard judge(sides, pull: pull, prior: prior.variance) else { return nil }
    }

    /// How sure it is: the sum of the squares of what each packet moves.
    private mutating func judge(
        _ sides: (Side, Side), pull: Double, prior: Double
    ) -> Bool {
        let (out, home) = (sides.0.curvature(skew), sides.1.curvature(skew))
        let bend = out.square + home.square + pull
        guard out.weight > 0, home.weight > 0, bend > 0 else { return false }
        let middle = (out.time + home.time) / 2
        var (offsets, skews) = (0.0, 0.0)
        for (side, moments) in [(sides.0, out), (sides.1, home)] {
            side.forEachInfluence(skew) { time, influence in
                let turn = side.sign * (time - moments.time) * influence / bend
                let shift = side.sign * influence / (2 * moments.weight) - middle * turn
                offsets += shift * shift
                skews += turn * turn
            }
        }
        let known = pull * pull * prior / (bend * bend)
        variance = offsets + middle * middle * known
        skewVariance = skews + known
        return true
    }
}

/// One direction.
private struct Side {
    /// Sums over the packets, each by its weight.
    struct Moments {
        var weight = 0.0
        /// Means.
        var time = 0.0
        var value = 0.0
        /// Sums of time with itself and with the value, about the means.
        var square = 0.0
        var product = 0.0
    }

    let sign: Double
    /// Time from now, and value.
    let points: [ModePeak.Point]
    /// Place of the crest at `now`, seconds.
    var place = 0.0

    init(_ points: [ModePeak.Point], sign: Double, now: Double) {
        self.sign = sign
        self.points = points.map { ($0.time - now, $0.value) }
    }

    private func values(along slope: Double) -> [Double] {
        points.map { $0.value - sign * slope * $0.time }
    }

    /// How many gather along a slope.
    func height(along slope: Double) -> Double {
        ModePeak.search(values(along: slope))?.count ?? 0
    }

    /// Takes the highest place along a slope; whether it is clear.
    mutating func settle(along slope: Double) -> Bool {
        guard let found = ModePeak.search(values(along: slope)),
            found.isClear(fewest: JointModeFit.fewest)
        else {
            return false
        }
        place = found.place
        return true
    }

    func moments(_ width: Double, _ slope: Double) -> Moments {
        var (sum, times, values, squares, products) = (0.0, 0.0, 0.0, 0.0, 0.0)
        for point in points {
            let root = ModePeak.weight((rest(point, slope)) / width)
            let weight = root * root
            guard weight > 0 else { continue }
            sum += weight
            times += weight * point.time
            // About the crest: the values may be large.
            let value = point.value - place
            values += weight * value
            squares += weight * point.time * point.time
            products += weight * point.time * value
        }
        guard sum > 0 else { return Moments() }
        return Moments(
            weight: sum, time: times / sum, value: place + values / sum,
            square: squares - times * times / sum, product: products - times * values / sum)
    }

    /// The second derivative of the sum that is maximised, as moments.
    func curvature(_ slope: Double) -> Moments {
        var (sum, times, squares) = (0.0, 0.0, 0.0)
        for point in points {
            let x = rest(point, slope) / ModePeak.width
            let root = ModePeak.weight(x)
            let weight = (1 - 3 * x * x) * root * root * root
            sum += weight
            times += weight * point.time
            squares += weight * point.time * point.time
        }
        guard sum > 0 else { return Moments() }
        return Moments(
            weight: sum, time: times / sum, value: 0, square: squares - times * times / sum,
            product: 0)
    }

    func forEachInfluence(_ slope: Double, _ body: (_ time: Double, _ influence: Double) -> Void) {
        for point in points {
            let rest = rest(point, slope)
            let root = ModePeak.weight(rest / ModePeak.width)
            if root > 0 { body(point.time, rest * root * root) }
        }
    }

    /// By how much the crest lies above the edge.
    func crestHeight(_ slope: Double) -> Double {
        max(0, -ModePeak.lowest(points.map { rest($0, slope) })[3])
    }

    private func rest(_ point: ModePeak.Point, _ slope: Double) -> Double {
        point.value - place - sign * slope * point.time
    }
}
