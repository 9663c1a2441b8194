import func Glibc.sqrt

/// What one window of samples says about the leader's clock.
struct ClockReading: Equatable, Sendable {
    /// Length of the window, and of the samples in it if those are younger; seconds.
    var window: Double
    var span: Double
    /// Leader minus local at the moment of the solve; seconds from the base.
    var offset: Double
    /// Leader's rate against ours, minus one.
    var skew: Double
    /// Smallest sum of both delays in the window.
    var delay: Double
    /// Scale of the error that more samples would remove.
    var noise: Double
    /// How far ``skew`` may be off by what the samples say; at likelihood e⁻² of the best.
    var skewSpread: Double
    /// Whether the search ended at its limit: the prior must be wrong.
    var isPinned: Bool
    /// Scale of the error from the crystal not running straight.
    var wander: Double
    /// Age of the samples that the fit rests on: an error of the skew shifts it by that; seconds.
    var support = 0.0
    /// What the doubt of the skew adds to the error of ``offset``; seconds.
    var tilt = 0.0
    /// Half of the delay above the path's known floor: it may lie in one direction alone.
    var excess = 0.0
    /// How far ``offset`` was moved from what the window itself says: other readings have a say,
    /// but the interval of truth lies around the window's own; seconds.
    var shift = 0.0
    /// Expected error of ``offset``.
    var error = 0.0
}

/// Fits two parallel lines *under* the one-way delays of both directions, in several windows.
///
/// The need: delays have long one-sided tails, different in each direction, so everything that
/// averages is biased. The idea: queueing only adds, hence the truth is at the lower edge of each
/// direction's samples, and the edges of both directions belong to one clock with one skew `s`:
///
///     F(s) = min (fᵢ − s·uᵢ)    B(s) = min (bᵢ + s·uᵢ)    uᵢ = time of sample i − time of solve
///     s    = argmax F(s) + B(s) − w·(s − s⁰)²,    offset = (F − B)/2,    delay = F + B
///
/// For exponential queueing that is the maximum likelihood estimate with prior s⁰: the slope terms
/// of both directions cancel, and what remains is the residual round trip. The objective is
/// concave; its derivative is found on the lower convex hulls, which nest when built from the
/// newest sample to the oldest. After Moon, Skelly, Towsley (INFOCOM 1999), Zhang, Liu, Xia
/// (INFOCOM 2002) and TICSync. Left out: support vectors (Huygens), loops over several peers.
struct EnvelopeSolver: Sendable {
    static let windows = [3.0, 6, 12, 24, 48, 96]
    /// How fast a crystal's skew may change under us, per second: a thermal ramp. Larger trusts
    /// short windows only, smaller lags behind a warming host.
    static let ramp = 0.006e-6
    /// Random walk of the skew inside a window, per √s.
    static let windowWalk = 0.03e-6
    /// The share of a window's disagreement with what is known of the skew that counts as its
    /// error.
    static let mistrust = 0.5
    /// The share of half a window's delay above the path's floor that counts as error.
    static let lopsided = 0.6
    /// Floor of the noise estimate: the stamps' own granularity.
    static let stampNoise = 0.5e-6

    private var forwardHull: [EnvelopePoint] = []
    private var backwardHull: [EnvelopePoint] = []

    /// One fit a window, shortest first; stops at the window that holds all samples.
    ///
    /// - Parameters:
    ///   - forward, backward: ascending by time.
    ///   - now: same scale as the points' time.
    ///   - skew, variance: prior.
    mutating func fits(
        forward: [EnvelopePoint], backward: [EnvelopePoint], at now: Double, skew: Double,
        variance: Double
    ) -> [ClockReading] {
        guard let oldest = forward.first, !backward.isEmpty else { return [] }
        forwardHull.removeAll(keepingCapacity: true)
        backwardHull.removeAll(keepingCapacity: true)
        let queueing = meanExcess(forward, backward, now, skew)
        var (nextForward, nextBackward) = (forward.count - 1, backward.count - 1)
        var count = 0
        var fits: [ClockReading] = []
        for window in Self.windows {
            while nextForward >= 0, forward[nextForward].time >= now - window {
                count += forward[nextForward].weight
                Self.extend(&forwardHull, with: forward[nextForward], now)
                nextForward -= 1
            }
            while nextBackward >= 0, backward[nextBackward].time >= now - window {
                Self.extend(&backwardHull, with: backward[nextBackward], now)
                nextBackward -= 1
            }
            guard !forwardHull.isEmpty, !backwardHull.isEmpty else { continue }
            let prior = variance + Self.windowWalk * Self.windowWalk * window
            let weight = queueing / (2 * Double(count) * prior)
            let reach = 5 * sqrt(prior) + 0.2e-6
            let s = bestSkew(around: skew, reach: reach, weight: weight)
            let (f, forwardTime) = Self.lowest(forwardHull, slope: s)
            let (b, backwardTime) = Self.lowest(backwardHull, slope: -s)
            let scatter = EnvelopeNoise.scatter(
                Self.lowest(forward, from: nextForward + 1, now, slope: s, above: f),
                Self.lowest(backward, from: nextBackward + 1, now, slope: -s, above: b))
            let span = min(window, now - oldest.time)
            let drop = 2 * queueing / Double(count) + scatter
            let spread = skewSpread(around: s, below: f + b - drop, reach: reach)
            let support = -(forwardTime + backwardTime) / 2
            fits.append(
                ClockReading(
                    window: window, span: span, offset: (f - b) / 2, skew: s, delay: f + b,
                    noise: 2 * scatter + Self.stampNoise, skewSpread: spread,
                    isPinned: (s - skew).magnitude > 0.8 * reach,
                    wander: Self.ramp * span * span / 12,
                    support: support,
                    tilt: tilt(spread, sqrt(prior), moved: s - skew) * support))
            if window > span { break }
        }
        return fits
    }

    /// How far the skew of a window may be off.
    ///
    /// - Parameters:
    ///   - spread: ``ClockReading/skewSpread``. The likelihood falls to e⁻² at two standard
    ///     deviations.
    ///   - prior: standard deviation of the prior.
    ///   - moved: from the prior's mean. Where jitter is like noise, the few packets that an edge
    ///     touches say less than their likelihood does.
    private func tilt(_ spread: Double, _ prior: Double, moved: Double) -> Double {
        max(min(spread / 2, prior), Self.mistrust * moved.magnitude)
    }

    // MARK: - Hulls. Their points hold time relative to now.

    private static func extend(
        _ hull: inout [EnvelopePoint], with point: EnvelopePoint, _ now: Double
    ) {
        let new = EnvelopePoint(time: point.time - now, value: point.value, weight: 1)
        while let last = hull.last {
            if last.time <= new.time {
                guard new.value < last.value else { return }
                hull.removeLast()
                continue
            }
            guard hull.count >= 2 else { break }
            let before = hull[hull.count - 2]
            let turn =
                (last.time - before.time) * (new.value - before.value)
                - (last.value - before.value) * (new.time - before.time)
            // Going back in time, the lower hull turns to the right.
            guard turn >= 0 else { break }
            hull.removeLast()
        }
        hull.append(new)
    }

    /// The smallest `value − slope·time` of a hull, and where it is reached.
    private static func lowest(_ hull: [EnvelopePoint], slope: Double) -> (
        value: Double, time: Double
    ) {
        var (best, time) = (Double.infinity, 0.0)
        for point in hull {
            let value = point.value - slope * point.time
            if value < best { (best, time) = (value, point.time) }
        }
        return (best, time)
    }

    /// Bisection on the derivative of the concave objective, to 0.002 ppm.
    private func bestSkew(around prior: Double, reach: Double, weight: Double) -> Double {
        var (low, high) = (prior - reach, prior + reach)
        while high - low > 2e-9 {
            let s = (low + high) / 2
            let rise =
                Self.lowest(backwardHull, slope: -s).time - Self.lowest(forwardHull, slope: s).time
                - 2 * weight * (s - prior)
            if rise > 0 { low = s } else { high = s }
        }
        return (low + high) / 2
    }

    /// Half the width of the interval of skews whose residual round trip is above `level`.
    private func skewSpread(around best: Double, below level: Double, reach: Double) -> Double {
        func edge(_ direction: Double) -> Double {
            var (inside, outside) = (0.0, 2 * reach)
            while outside - inside > 0.1 * outside + 1e-9 {
                let middle = (inside + outside) / 2
                let s = best + direction * middle
                let delay =
                    Self.lowest(forwardHull, slope: s).value
                    + Self.lowest(backwardHull, slope: -s).value
                if delay > level { inside = middle } else { outside = middle }
            }
            return outside
        }
        return (edge(1) + edge(-1)) / 2
    }

    /// The lowest residuals above the edge, ascending.
    private static func lowest(
        _ points: [EnvelopePoint], from first: Int, _ now: Double, slope: Double, above edge: Double
    ) -> [Double] {
        var lowest = [Double]()
        lowest.reserveCapacity(EnvelopeNoise.kept + 1)
        var limit = Double.infinity
        var index = first
        while index < points.count {
            let residual = points[index].value - slope * (points[index].time - now) - edge
            index += 1
            guard residual < limit else { continue }
            var place = lowest.count
            lowest.append(residual)
            while place > 0, lowest[place - 1] > residual {
                lowest[place] = lowest[place - 1]
                place -= 1
            }
            lowest[place] = residual
            if lowest.count > EnvelopeNoise.kept { lowest.removeLast() }
            if lowest.count == EnvelopeNoise.kept { limit = lowest[EnvelopeNoise.kept - 1] }
        }
        return lowest
    }

    /// Mean of both directions' median distance from the edge; the scale of queueing.
    private func meanExcess(
        _ forward: [EnvelopePoint], _ backward: [EnvelopePoint], _ now: Double, _ skew: Double
    ) -> Double {
        func excess(_ points: [EnvelopePoint], _ slope: Double) -> Double {
            var values: [Double] = []
            for point in points.reversed() {
                guard point.time >= now - 12, values.count < 64 else { break }
                values.append(point.value - slope * (point.time - now))
            }
            guard values.count > 1 else { return 0 }
            values.sort()
            return values[values.count / 2] - values[0]
        }
        return max((excess(forward, skew) + excess(backward, -skew)) / 2, 0.2e-6)
    }
}
