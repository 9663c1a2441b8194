import func Glibc.sqrt

/// The most frequent delay of each direction.
///
/// Where a share of the packets meets nobody, their delays gather a little above the floor, as wide
/// as stamps and schedulers make them, and thin out above. The lowest, which an edge rests on, are
/// the luckiest of many; a mean is drawn up by all that queue. The crest of the gathering is where
/// most agree, and its place is known the better the more there are, as that of a mean:
///
///     s, F, B = argmax Σ k((fᵢ − s·uᵢ − F)/h) + Σ k((bᵢ + s·uᵢ − B)/h),    k(x) = 1/(1 + x²)
///     offset  = (F − B)/2                                                  uᵢ: time of sample i, from now
///
/// Slope and crests are searched for with counts in bins, and refined by weighted least squares
/// (weights (1 + x²)⁻²; S. Geman, D. McClure, 1985). How well they are known is what the sandwich
/// of an M-estimator says (P. Huber, 1967), so that few packets at the floor, or none that agree,
/// tell so themselves. What they cannot tell is whether both crests belong to the same queueing: by
/// how much one stands higher above its edge than the other does is doubt.
struct ModalFit: Sendable {
    /// How far back to look, seconds.
    static let windows = [12.0, 24, 48]
    /// Half width h of a gathering, seconds: what stamps and schedulers of two busy hosts blur a
    /// floor by. Half or twice as much made recorded rooms on emulated air worse by a half.
    static let width = 30e-6
    /// Until this age there are too few.
    static let youngest = 1.0
    /// Fewer at both crests prove nothing.
    static let fewest = 12.0
    /// Bins, of half a width, above the lowest packet.
    static let binCount = 44
    /// By how much a rival must be lower, in standard deviations of the number at the crest.
    static let clearance = 2.0
    /// Rivals lie this many bins away, or more.
    static let rivalBins = 9
    /// … or this many slopes.
    static let rivalSlopes = 6
    /// The share of a crest's height that the other direction may lack without showing.
    static let share = 0.1
    static let mostSlopes = 33.0

    private var outward: [EnvelopePoint] = []
    private var homeward: [EnvelopePoint] = []
    private var bins: [Double] = []

    /// At most one reading a window.
    ///
    /// - Parameters:
    ///   - samples: ascending by time.
    ///   - now: same scale as the samples' time.
    ///   - skew, deviation: where to look for the slope.
    ///   - floor: smallest delay known of the path.
    mutating func readings(
        _ samples: [OffsetSample], at now: Double, skew: Double, deviation: Double, floor: Double
    ) -> [EnvelopeFit] {
        var readings: [EnvelopeFit] = []
        for window in Self.windows {
            let first = samples.firstIndex { $0.time >= now - window } ?? samples.count
            let recent = samples[first...]
            guard let oldest = recent.first, now - oldest.time > Self.youngest else { break }
            let span = now - oldest.time
            // Three deviations, and a width for what a deviation does not know.
            let range = 3 * deviation + Self.width / span
            load(recent, now, skew, tilt: range * span)
            if let crests = crests(range: range, span: span),
                let line = refined(crests)
            {
                readings.append(
                    reading(
                        line, crests, window: window, span: span, skew: skew, floor: floor))
            }
            if first == samples.startIndex { break }
        }
        return readings
    }

    /// The samples as one-way values along the known skew, without those far above the lowest.
    private mutating func load(
        _ samples: ArraySlice<OffsetSample>, _ now: Double, _ skew: Double, tilt: Double
    ) {
        func values(_ sample: OffsetSample) -> (outward: Double, homeward: Double) {
            let offset = sample.offset - skew * (sample.time - now)
            return (sample.delay / 2 + offset, sample.delay / 2 - offset)
        }
        outward.removeAll(keepingCapacity: true)
        homeward.removeAll(keepingCapacity: true)
        var lowest = (outward: Double.infinity, homeward: Double.infinity)
        for sample in samples {
            let values = values(sample)
            lowest.outward = min(lowest.outward, values.outward)
            lowest.homeward = min(lowest.homeward, values.homeward)
        }
        let reach = Double(Self.binCount) * Self.width / 2 + 2 * tilt
        for sample in samples {
            let (time, values) = (sample.time - now, values(sample))
            if values.outward < lowest.outward + reach {
                outward.append(EnvelopePoint(time: time, value: values.outward, weight: 1))
            }
            if values.homeward < lowest.homeward + reach {
                homeward.append(EnvelopePoint(time: time, value: values.homeward, weight: 1))
            }
        }
    }

    // MARK: - Search

    /// The gathering of one direction along one slope.
    private struct Crest {
        /// Seconds, where the slope is now.
        var place = 0.0
        /// The fourth lowest packet: one or two are luck.
        var edge = 0.0
        /// Packets at the crest, weighed by their distance.
        var count = 0.0
        /// The same of the highest that lies elsewhere.
        var rival = 0.0

        var isClear: Bool { rival <= count - ModalFit.clearance * sqrt(count) }
    }

    private struct Crests {
        /// Above the skew that was known.
        var slope: Double
        var outward: Crest
        var homeward: Crest
        var count: Double { outward.count + homeward.count }
    }

    /// The slope along which most packets agree; `nil` where another one, or another delay, would
    /// do nearly as well.
    private mutating func crests(range: Double, span: Double) -> Crests? {
        let step = max(1.4 * Self.width / span, 2 * range / Self.mostSlopes)
        let half = Int(range / step) + 1
        var all: [Crests] = []
        for number in -half...half {
            let slope = Double(number) * step
            all.append(
                Crests(
                    slope: slope, outward: crest(outward, slope: slope),
                    homeward: crest(homeward, slope: -slope)))
        }
        guard let best = all.indices.max(by: { all[$0].count < all[$1].count }) else { return nil }
        let crests = all[best]
        let limit = crests.count - Self.clearance * sqrt(crests.count)
        let hasRival = all.indices.contains {
            ($0 - best).magnitude >= Self.rivalSlopes && all[$0].count > limit
        }
        guard crests.count >= Self.fewest, crests.outward.count >= Self.fewest / 2,
            crests.homeward.count >= Self.fewest / 2, !hasRival, crests.outward.isClear,
            crests.homeward.isClear
        else { return nil }
        return crests
    }

    private mutating func crest(_ points: [EnvelopePoint], slope: Double) -> Crest {
        var crest = Crest()
        guard points.count >= 4 else { return crest }
        var lowest = [Double](repeating: .infinity, count: 4)
        for point in points {
            let value = point.value - slope * point.time
            guard value < lowest[3] else { continue }
            var place = 3
            while place > 0, lowest[place - 1] > value {
                lowest[place] = lowest[place - 1]
                place -= 1
            }
            lowest[place] = value
        }
        crest.edge = lowest[3]
        let bin = Self.width / 2
        let start = lowest[0] - 2 * bin
        bins.removeAll(keepingCapacity: true)
        bins.append(contentsOf: repeatElement(0, count: Self.binCount))
        for point in points {
            let place = (point.value - slope * point.time - start) / bin
            if place < Double(Self.binCount) { bins[Int(place)] += 1 }
        }
        func count(_ k: Int) -> Double {
            bins[k] + 0.7 * (bins[k - 1] + bins[k + 1]) + 0.25 * (bins[k - 2] + bins[k + 2])
        }
        let inner = 2..<Self.binCount - 2
        var top = inner.lowerBound
        for k in inner where count(k) > crest.count {
            crest.count = count(k)
            top = k
        }
        for k in inner where (k - top).magnitude >= Self.rivalBins {
            crest.rival = max(crest.rival, count(k))
        }
        crest.place = start + (Double(top) + 0.5) * bin
        return crest
    }

    // MARK: - Refinement

    private struct Line {
        var slope: Double
        var outward: Double
        var homeward: Double
        /// Of half the difference of the places, and of the slope.
        var variance = 0.0
        var slopeVariance = 0.0
    }

    /// Five steps of weighted least squares, the first two with wider weights.
    private func refined(_ crests: Crests) -> Line? {
        var line = Line(
            slope: crests.slope, outward: crests.outward.place, homeward: crests.homeward.place)
        for step in 0..<5 {
            let width = step < 2 ? 2 * Self.width : Self.width
            let f = Sums(outward, slope: line.slope, place: line.outward, width: width)
            let b = Sums(homeward, slope: -line.slope, place: line.homeward, width: width)
            guard f.weight > 0, b.weight > 0, f.alongSquare + b.alongSquare > 0 else { return nil }
            let change = (f.along - b.along) / (f.alongSquare + b.alongSquare)
            line.slope += change
            line.outward += f.rest - change * f.time
            line.homeward += b.rest + change * b.time
        }
        let f = Influence(outward, slope: line.slope, place: line.outward)
        let b = Influence(homeward, slope: -line.slope, place: line.homeward)
        let curvature = f.alongCurvature + b.alongCurvature
        guard f.curvature > 0, b.curvature > 0, curvature > 0 else { return nil }
        line.slopeVariance = (f.alongSquare + b.alongSquare) / (curvature * curvature)
        let age = (f.time + b.time) / 2
        line.variance =
            (f.square / (f.curvature * f.curvature) + b.square / (b.curvature * b.curvature)) / 4
            + age * age * line.slopeVariance
        return line
    }

    /// Weighted moments of one direction around its crest.
    private struct Sums {
        var weight = 0.0
        /// Means of time and of what is left over.
        var time = 0.0
        var rest = 0.0
        /// Σ w·(u − time)², Σ w·(u − time)·rest.
        var alongSquare = 0.0
        var along = 0.0

        init(_ points: [EnvelopePoint], slope: Double, place: Double, width: Double) {
            for point in points {
                let rest = point.value - slope * point.time - place
                let root = ModalFit.weight(rest / width)
                let w = root * root
                weight += w
                time += w * point.time
                self.rest += w * rest
                alongSquare += w * point.time * point.time
                along += w * point.time * rest
            }
            guard weight > 0 else { return }
            time /= weight
            rest /= weight
            alongSquare -= weight * time * time
            along -= weight * time * rest
        }
    }

    /// What the sandwich is made of: sums of the squares of what each packet says, and of how
    /// firmly.
    private struct Influence {
        var time: Double
        var square = 0.0
        var curvature = 0.0
        var alongSquare = 0.0
        var alongCurvature = 0.0

        init(_ points: [EnvelopePoint], slope: Double, place: Double) {
            time = Sums(points, slope: slope, place: place, width: ModalFit.width).time
            for point in points {
                let rest = point.value - slope * point.time - place
                let x = rest / ModalFit.width
                let root = ModalFit.weight(x)
                let influence = rest * root * root
                let curvature = (1 - 3 * x * x) * root * root * root
                let age = point.time - time
                square += influence * influence
                self.curvature += curvature
                alongSquare += influence * influence * age * age
                alongCurvature += curvature * age * age
            }
        }
    }

    /// Root of a packet's weight, `x` half widths from the crest; none beyond four.
    private static func weight(_ x: Double) -> Double { x * x < 16 ? 1 / (1 + x * x) : 0 }

    // MARK: -

    private func reading(
        _ line: Line, _ crests: Crests, window: Double, span: Double, skew: Double, floor: Double
    ) -> EnvelopeFit {
        let heights = (
            outward: max(0, line.outward - crests.outward.edge),
            homeward: max(0, line.homeward - crests.homeward.edge)
        )
        let doubt = (heights.outward - heights.homeward) / 2
        let common = Self.share * (heights.outward + heights.homeward) / 2
        var fit = EnvelopeFit(
            window: window, span: span, offset: (line.outward - line.homeward) / 2,
            skew: skew + line.slope, delay: floor,
            noise: sqrt(line.variance) + EnvelopeSolver.stampNoise,
            skewSpread: sqrt(line.slopeVariance) + EnvelopeSolver.ramp * span / 2, isPinned: false,
            wander: EnvelopeSolver.ramp * span * span / 12)
        let excess = max(0, crests.outward.edge + crests.homeward.edge - floor) / 2
        let soft = EnvelopeSolver.lopsided * excess
        fit.error = sqrt(
            fit.noise * fit.noise + doubt * doubt + common * common + soft * soft
                + fit.wander * fit.wander)
        return fit
    }
}
