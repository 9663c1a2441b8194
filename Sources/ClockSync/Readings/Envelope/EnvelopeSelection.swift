import func Glibc.sqrt

/// The smallest round trip of the last five minutes: the floor of the path.
///
/// A delay above it may be added in one direction alone, and then it shifts the offset by half.
struct DelayFloor: Sendable {
    static let memory = 300.0
    static let bucket = 5.0

    private var buckets: [(start: Double, delay: Double)] = []

    /// Smallest of the buckets; asked for at each packet.
    private(set) var delay: Double?

    mutating func observe(_ delay: Double, at now: Double) {
        if let last = buckets.last, now - last.start < Self.bucket {
            buckets[buckets.count - 1].delay = min(last.delay, delay)
        } else {
            buckets.append((now, delay))
            while let first = buckets.first, first.start < now - Self.memory {
                buckets.removeFirst()
            }
        }
        self.delay = buckets.lazy.map(\.delay).min()
    }

    mutating func removeAll() {
        buckets.removeAll()
        delay = nil
    }
}

extension EnvelopeSolver {
    /// The fit to believe.
    ///
    /// Long windows have less noise but assume a straight crystal. Their confidence intervals are
    /// intersected, shortest first; the first that contradicts the shorter ones ends the search
    /// (intersection of confidence intervals, Goldenshluger and Nemirovski). Of the rest the one
    /// with the smallest expected error wins.
    ///
    /// - Parameters:
    ///   - floor: smallest delay known of this path.
    ///   - last: the window chosen before; it gets a bonus, so that the choice does not flutter.
    static func choose(
        _ fits: [ClockReading], floor: Double, last: Double?
    ) -> ClockReading? {
        var (low, high) = (-Double.infinity, Double.infinity)
        var best: ClockReading?
        var bestScore = Double.infinity
        for var fit in fits {
            // A long window under-estimates the delay of a curved clock, so only excess counts.
            fit.excess = max(0, fit.delay - floor) / 2
            let half = 3 * fit.noise + fit.excess
            low = max(low, fit.offset - half)
            high = min(high, fit.offset + half)
            if low > high { break }
            let soft = lopsided * fit.excess
            fit.error = sqrt(
                fit.noise * fit.noise + fit.wander * fit.wander + soft * soft
                    + fit.tilt * fit.tilt)
            let score = fit.window == last ? 0.8 * fit.error : fit.error
            if score < bestScore { (best, bestScore) = (fit, score) }
        }
        return best
    }

    /// A weighted least-squares step over the samples that hug the envelope.
    ///
    /// On a quiet wire the samples near the edge are many and alike; their mean is steadier than
    /// the single lowest one. Both directions count alike, so what is added to both cancels.
    ///
    /// - Returns: the fit with offset and skew refined; unchanged where that would leave the
    ///   envelope's own confidence.
    static func refine(
        _ fit: ClockReading, forward: [EnvelopePoint], backward: [EnvelopePoint], at now: Double,
        skew: Double, variance: Double
    ) -> ClockReading {
        let prior = variance + windowWalk * windowWalk * fit.window
        var (offset, s, half) = (fit.offset, fit.skew, fit.delay / 2)
        for _ in 0..<2 {
            var system = NormalEquations()
            for (points, sign) in [(forward, 1.0), (backward, -1.0)] {
                system.add(
                    points, sign: sign, since: now - fit.window, now, offset: offset, skew: s,
                    half: half, scale: max(fit.noise / 2, 0.3e-6))
            }
            guard let change = system.solution(prior: prior, towards: skew - s) else { return fit }
            offset += change.offset
            s += change.skew
            half += change.half
        }
        let moved = offset - fit.offset
        guard moved > -2 * fit.noise, moved < 2 * fit.noise else { return fit }
        var refined = fit
        refined.offset = offset
        refined.skew = s
        return refined
    }
}

/// Weighted least squares for three unknowns: offset, skew, half the delay.
private struct NormalEquations {
    private var a = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)  // upper triangle, by rows
    private var r = (0.0, 0.0, 0.0)
    private var squares = 0.0
    private var independent = 0.0

    mutating func add(
        _ points: [EnvelopePoint], sign: Double, since: Double, _ now: Double, offset: Double,
        skew: Double, half: Double, scale: Double
    ) {
        // value = sign·(offset + skew·u) + half + rest;  each direction's weights sum to 1.
        var total = 0.0
        var (u1, u2, e0, e1, e2, w2) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        for point in points.reversed() {
            guard point.time >= since else { break }
            let u = point.time - now
            let rest = point.value - sign * (offset + skew * u) - half
            let weight = 1 / (scale * scale + rest * rest)
            total += weight
            u1 += weight * u
            u2 += weight * u * u
            e0 += weight * rest
            e1 += weight * rest * u
            e2 += weight * rest * rest
            w2 += weight * weight
        }
        guard total > 0 else { return }
        (u1, u2, e0, e1) = (u1 / total, u2 / total, e0 / total, e1 / total)
        a = (a.0 + 1, a.1 + u1, a.2 + sign, a.3 + u2, a.4 + sign * u1, a.5 + 1)
        r = (r.0 + sign * e0, r.1 + sign * e1, r.2 + e0)
        squares += e2 / total / 2
        independent += total * total / w2
    }

    func solution(
        prior: Double, towards: Double
    ) -> (offset: Double, skew: Double, half: Double)? {
        guard independent > 0 else { return nil }
        let pull = squares / (independent * prior)
        let (a00, a01, a02, a12, a22) = (a.0, a.1, a.2, a.4, a.5)
        let a11 = a.3 + pull
        let (r0, r1, r2) = (r.0, r.1 + pull * towards, r.2)
        let c00 = a11 * a22 - a12 * a12
        let c01 = a02 * a12 - a01 * a22
        let c02 = a01 * a12 - a02 * a11
        let determinant = a00 * c00 + a01 * c01 + a02 * c02
        guard determinant > 1e-12 else { return nil }
        let c11 = a00 * a22 - a02 * a02
        let c12 = a01 * a02 - a00 * a12
        let c22 = a00 * a11 - a01 * a01
        return (
            (c00 * r0 + c01 * r1 + c02 * r2) / determinant,
            (c01 * r0 + c11 * r1 + c12 * r2) / determinant,
            (c02 * r0 + c12 * r1 + c22 * r2) / determinant
        )
    }
}
