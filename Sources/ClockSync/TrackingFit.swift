import func Glibc.sqrt

/// A Kalman filter through the exchanges: the other way to read them.
///
/// The lower envelope needs packets that met no queue. Where jitter is like noise and nothing
/// gathers at the floor (several hops, a busy switch, emulated air), its error falls only with the
/// logarithm of the number of samples, while that of a mean falls with the root. A mean, though, is
/// wrong by half of the difference between the mean queueing of the two directions, which nobody
/// can see. So each fit carries that doubt in its error: a share of the queueing that its samples
/// met, larger when the two directions do not scatter alike, and what blocks of seconds differ by
/// more than their samples explain. On a path whose floor is often met the envelope wins by far, on
/// a noisy one the mean does; in between, samples near the smallest round trip count more (as in
/// chrony's and the minimum-delay filters of NTP), at three scales.
///
/// State: offset and skew; the skew walks at random, at one of two paces, a quiet room's and a
/// warming host's. Each solve runs through the stored samples anew, so that late packets count and
/// nothing has a memory of its own. The noise of a sample comes from the differences of neighbours,
/// which no drift can inflate; the error of the result from what was really left over (the
/// sandwich), not from what was assumed.
struct TrackingFit: Sendable {
    /// How different the queueing of two directions that look alike may be, as a share of its mean.
    static let leastAsymmetry = 0.01
    /// The share of the statistical error of that difference that counts as one.
    static let unseenAsymmetry = 0.25
    /// Seconds that are looked at for slow changes of the path (and for the typical excess). A
    /// crystal runs nearly straight as long; what it does not counts as a change.
    static let colourSpan = 60.0
    /// Blocks of seconds that are compared for it: long enough to average jitter, shorter than the
    /// floors of air stay. In the first four of them there is nothing to compare.
    static let blockSpan = 4.0
    /// Weight of a sample: (1 + (excess/scale)²)⁻²; scales in units of the median excess.
    static let scales = [0.25, 1.0, 8.0]
    /// Random walk of the skew, per √s.
    static let walks = [0.02e-6, 0.1e-6]
    /// Fewer samples say nothing about their own scatter.
    static let fewest = 12
    /// Memory of the mean left over, in samples: a lag shows there first.
    static let lagMemory = 64.0

    /// One fit per scale and walk.
    ///
    /// - Parameters:
    ///   - samples: ascending by time.
    ///   - now: same scale as the samples' time.
    ///   - skew, variance: prior of the skew.
    ///   - floor: smallest delay known of the path. Queueing that no exchange is free of still is.
    static func fits(
        _ samples: [OffsetSample], at now: Double, skew: Double, variance: Double, floor: Double
    ) -> [EnvelopeFit] {
        guard let oldest = samples.first, samples.count >= fewest, now - oldest.time > 0.05 else {
            return []
        }
        let excess = Excess(samples, since: now - colourSpan)
        var fits: [EnvelopeFit] = []
        for scale in scales {
            let scale = scale * excess.median
            let noise = noise(samples, excess.floor, scale, skew, at: now)
            for walk in walks {
                fits.append(
                    fit(
                        samples, excess.floor, least: min(floor, excess.floor), scale: scale,
                        noise: noise, walk: walk, at: now, skew: skew, variance: variance))
            }
        }
        return fits
    }

    /// Smallest and typical delay.
    private struct Excess {
        var floor: Double
        var median: Double

        init(_ samples: [OffsetSample], since start: Double) {
            var floor = Double.infinity
            var delays: [Double] = []
            // Some of many samples give the median well enough.
            let stride = max(1, samples.count / 256)
            for (index, sample) in samples.enumerated() {
                floor = min(floor, sample.delay)
                if index % stride == 0, sample.time >= start { delays.append(sample.delay) }
            }
            if delays.isEmpty { delays.append(samples[samples.count - 1].delay) }
            delays.sort()
            self.floor = floor
            self.median = max(delays[delays.count / 2] - floor, 0.5e-6)
        }
    }

    private static func weight(_ sample: OffsetSample, _ floor: Double, _ scale: Double) -> Double {
        let x = (sample.delay - floor) / scale
        let root = 1 / (1 + x * x)
        return root * root
    }

    /// What the samples themselves say of their noise.
    private struct Noise {
        /// Variance of a sample of weight 1, from the differences of neighbours.
        var scatter: Double
        /// How different the queueing of the two directions may be, as a share of its mean.
        var asymmetry: Double
        /// Error of the means of blocks that independent samples would not have.
        var colour: Double
    }

    private static func noise(
        _ samples: [OffsetSample], _ floor: Double, _ scale: Double, _ skew: Double,
        at now: Double
    ) -> Noise {
        var (sum, total, pairs) = (0.0, 0.0, 0.0)
        var (outward, homeward) = (0.0, 0.0)
        var blocks = Blocks()
        for index in samples.indices {
            let b = samples[index]
            let wb = weight(b, floor, scale)
            if b.time > now - colourSpan {
                blocks.add(b.time - now, b.offset - skew * (b.time - now), wb)
            }
            guard index > 0 else { continue }
            let a = samples[index - 1]
            let drift = skew * (b.time - a.time)
            let step = b.offset - a.offset - drift
            let spread = 1 / weight(a, floor, scale) + 1 / wb
            sum += step * step / (spread * spread)
            total += 1 / spread
            pairs += 4 / (spread * spread)
            let stretch = (b.delay - a.delay) / 2
            outward += (step + stretch).magnitude / (spread * spread)
            homeward += (stretch - step).magnitude / (spread * spread)
        }
        let stamps = EnvelopeSolver.stampNoise
        let difference = (outward - homeward).magnitude / max(outward + homeward, 1e-12)
        // What so many samples cannot tell: a quarter of it is asymmetry by rights.
        let chance = 1 / sqrt(pairs)
        let asymmetry = min(
            0.5, leastAsymmetry + 2 * max(0, difference - chance) + unseenAsymmetry * chance)
        return Noise(
            scatter: sum / total + stamps * stamps, asymmetry: asymmetry, colour: blocks.colour)
    }

    /// Means of blocks of seconds around a straight line.
    private struct Blocks {
        private var (w, wt, wtt, wy, wty) = (0.0, 0.0, 0.0, 0.0, 0.0)
        private var means: [(w: Double, t: Double, y: Double, yy: Double, ww: Double)] = []
        private var block = Int.min

        mutating func add(_ t: Double, _ y: Double, _ weight: Double) {
            w += weight
            wt += weight * t
            wtt += weight * t * t
            wy += weight * y
            wty += weight * t * y
            let number = Int((t + 1_000) / TrackingFit.blockSpan)
            if number != block {
                block = number
                means.append((0, 0, 0, 0, 0))
            }
            let last = means.count - 1
            means[last].w += weight
            means[last].t += weight * t
            means[last].y += weight * y
            means[last].yy += weight * y * y
            means[last].ww += weight * weight
        }

        var colour: Double {
            guard means.count > 3, w > 0 else { return 0 }
            let (t, y) = (wt / w, wy / w)
            let spread = wtt / w - t * t
            let slope = spread > 0 ? (wty / w - t * y) / spread : 0
            var (between, expected, count) = (0.0, 0.0, 0.0)
            for mean in means where mean.w > 0 {
                let rest = mean.y / mean.w - y - slope * (mean.t / mean.w - t)
                let inside = max(0, mean.yy / mean.w - (mean.y / mean.w) * (mean.y / mean.w))
                between += mean.w * rest * rest
                expected += mean.w * inside * mean.ww / (mean.w * mean.w)
                count += 1
            }
            // One standard deviation of a χ² more than expected passes for chance.
            let excess = between - expected * (1 + sqrt(2 / count))
            return excess > 0 ? sqrt(excess / w) : 0
        }
    }

    private static func fit(
        _ samples: [OffsetSample], _ floor: Double, least: Double, scale: Double, noise: Noise,
        walk: Double,
        at now: Double, skew: Double, variance: Double
    ) -> EnvelopeFit {
        let scatter = noise.scatter
        let oldest = samples[0]
        let span = now - oldest.time
        // Offset (relative to the prior's line through the first sample) and skew.
        var (x, s) = (0.0, 0.0)
        let prior = variance + walk * walk
        var model = DriftCovariance(offset: 1, rate: prior)
        // What was left over says how well the model's gains did.
        var actual = DriftCovariance(offset: 0, rate: prior)
        var (lag, lagWeight, queueing, weights) = (0.0, 0.0, 0.0, 0.0)
        var time = oldest.time
        for sample in samples {
            let dt = max(0, sample.time - time)
            time = max(time, sample.time)
            x += s * dt
            model.advance(by: dt, walk: walk)
            actual.advance(by: dt, walk: walk)

            let w = weight(sample, floor, scale)
            let rest = sample.offset - oldest.offset - skew * (sample.time - oldest.time) - x
            let gain = model.observe(noise: scatter / w)
            x += gain.offset * rest
            s += gain.rate * rest
            actual.observe(missed: rest * rest * (1 - gain.offset), gain: gain)

            let keep = 1 - 1 / lagMemory
            lag = lag * keep + w * rest
            lagWeight = lagWeight * keep + w
            queueing = queueing * keep + w * (sample.delay - least) / 2
            weights = weights * keep + w
        }
        let dt = now - time
        let offset = oldest.offset + skew * span + x + s * dt
        let mean = lag / lagWeight
        let meanNoise = 2 * sqrt(scatter / lagWeight)
        let behind = max(0, mean.magnitude - meanNoise)
        let doubt = noise.asymmetry * queueing / weights
        var fit = EnvelopeFit(
            window: span, span: span, offset: offset, skew: skew + s, delay: floor,
            noise: sqrt(max(0, actual.offset(after: dt))) + EnvelopeSolver.stampNoise,
            skewSpread: sqrt(max(0, actual.rate)), isPinned: false, wander: behind)
        fit.error = sqrt(
            fit.noise * fit.noise + behind * behind + doubt * doubt + noise.colour * noise.colour)
        return fit
    }
}
