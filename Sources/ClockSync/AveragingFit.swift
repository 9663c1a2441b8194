import func Glibc.sqrt

/// One exchange as a measurement of the offset.
struct OffsetSample: Equatable, Sendable {
    /// Local time of the middle, seconds from the estimator's base.
    var time: Double
    /// Leader minus local by (f − b)/2, seconds from the base.
    var offset: Double
    /// f + b: the round trip without the leader's time to answer, seconds.
    var delay: Double
}

/// The exchanges of the last seconds, for estimates that average.
struct OffsetSamples: Sendable {
    /// Bound of memory and of the cost of a solve; at 25 a second 96 s.
    static let limit = 2_400

    /// Ascending by time, but for late packets.
    private(set) var samples: [OffsetSample] = []

    mutating func insert(_ sample: OffsetSample) {
        samples.append(sample)
        var place = samples.count - 1
        while place > 0, samples[place - 1].time > samples[place].time {
            samples.swapAt(place - 1, place)
            place -= 1
        }
        let oldest = samples[samples.count - 1].time - EnvelopePoints.span
        // Dropped in blocks: moving the rest once a second is cheaper than once a sample.
        if samples.count > Self.limit + 64 || samples[0].time < oldest - 8 {
            let expired = samples.prefix { $0.time < oldest }.count
            samples.removeFirst(max(expired, samples.count - Self.limit))
        }
    }

    mutating func removeAll() { samples.removeAll(keepingCapacity: true) }
}

/// Weighted least squares through the exchanges: the other way to read them.
///
/// The lower envelope needs packets that met no queue. Where jitter is like noise and nothing
/// gathers at the floor (several hops, a busy switch, emulated air), its error falls only with the
/// logarithm of the number of samples, while that of a mean falls with the root. A mean, though, is
/// wrong by half of the difference between the mean queueing of the two directions, which nobody
/// can see. So each fit carries that doubt in its error: a fixed share of the queueing that its
/// samples met. On a path whose floor is often met the envelope wins by far, on a noisy one the
/// mean does; in between, samples near the smallest round trip count more (as in chrony's and the
/// minimum-delay filters of NTP), at three scales.
struct AveragingFit: Sendable {
    /// How different the queueing of the two directions may be, as a share of its mean. Larger
    /// trusts the envelope longer; smaller follows one-sided load.
    static let asymmetry = 0.05
    /// Weight of a sample: (1 + (excess/scale)²)⁻²; scales in units of the median excess.
    static let scales = [0.25, 1.0, 8.0]
    /// Fewer samples say nothing about their own scatter.
    static let fewest = 12

    /// One fit per window and scale.
    ///
    /// - Parameters:
    ///   - samples: ascending by time.
    ///   - now: same scale as the samples' time.
    ///   - skew, variance: prior of the skew.
    static func fits(
        _ samples: [OffsetSample], at now: Double, skew: Double, variance: Double
    ) -> [EnvelopeFit] {
        guard let oldest = samples.first, samples.count >= fewest else { return [] }
        var fits: [EnvelopeFit] = []
        var first = samples.count
        for window in EnvelopeSolver.windows {
            while first > 0, samples[first - 1].time >= now - window { first -= 1 }
            let inside = samples[first...]
            let span = min(window, now - oldest.time)
            if inside.count >= fewest, span > 0.05 {
                let excess = Excess(inside)
                for scale in scales {
                    fits.append(
                        fit(
                            inside, excess, scale: scale * excess.median, window: window,
                            span: span, at: now, skew: skew, variance: variance))
                }
            }
            if window > span { break }
        }
        return fits
    }

    /// Smallest and typical delay.
    private struct Excess {
        var floor: Double
        var median: Double

        init(_ samples: ArraySlice<OffsetSample>) {
            // Every eighth of many samples gives the median well enough.
            let stride = max(1, samples.count / 256)
            var delays: [Double] = []
            var (floor, index) = (Double.infinity, samples.startIndex)
            while index < samples.endIndex {
                floor = min(floor, samples[index].delay)
                if (index - samples.startIndex) % stride == 0 {
                    delays.append(samples[index].delay)
                }
                index += 1
            }
            delays.sort()
            self.floor = floor
            self.median = max(delays[delays.count / 2] - floor, 0.5e-6)
        }
    }

    private static func fit(
        _ samples: ArraySlice<OffsetSample>, _ excess: Excess, scale: Double, window: Double,
        span: Double, at now: Double, skew: Double, variance: Double
    ) -> EnvelopeFit {
        func weight(_ sample: OffsetSample) -> Double {
            let x = (sample.delay - excess.floor) / scale
            let root = 1 / (1 + x * x)
            return root * root
        }
        // Around the prior's slope, so that the numbers stay small.
        var (w, wu, wuu, wr, wur, queueing) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        for sample in samples {
            let k = weight(sample)
            let u = sample.time - now
            let rest = sample.offset - skew * u
            w += k
            wu += k * u
            wuu += k * u * u
            wr += k * rest
            wur += k * rest * u
            queueing += k * (sample.delay - excess.floor) / 2
        }
        let meanU = wu / w
        let meanR = wr / w
        let spread = wuu / w - meanU * meanU
        let slope = wur / w - meanU * meanR

        // Scatter of one sample, for the prior's share; then the errors by the sandwich formula.
        var scatter = 0.0
        for sample in samples {
            let rest = sample.offset - skew * (sample.time - now) - meanR
            scatter += weight(sample) * rest * rest
        }
        scatter /= w
        let prior = variance + EnvelopeSolver.windowWalk * EnvelopeSolver.windowWalk * window
        let pull = scatter / (w * prior)
        let change = slope / (spread + pull)
        let offset = meanR - change * meanU

        var (offsetVariance, slopeVariance) = (0.0, 0.0)
        for sample in samples {
            let k = weight(sample)
            let u = sample.time - now - meanU
            let rest = sample.offset - skew * (sample.time - now) - meanR - change * u
            let ofSlope = k * u / (spread + pull) / w
            let ofOffset = k / w - meanU * ofSlope
            slopeVariance += ofSlope * ofSlope * rest * rest
            offsetVariance += ofOffset * ofOffset * rest * rest
        }
        // What the prior adds where the samples leave the slope open.
        let open = pull / (spread + pull)
        slopeVariance += open * open * prior
        offsetVariance += meanU * meanU * open * open * prior

        let wander = EnvelopeSolver.ramp * span * span / 12
        let doubt = asymmetry * queueing / w
        var fit = EnvelopeFit(
            window: window, span: span, offset: offset, skew: skew + change,
            delay: excess.floor, noise: sqrt(offsetVariance) + EnvelopeSolver.stampNoise,
            skewSpread: sqrt(slopeVariance), isPinned: false, wander: wander)
        fit.error = sqrt(fit.noise * fit.noise + wander * wander + doubt * doubt)
        return fit
    }
}
