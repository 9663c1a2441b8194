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
/// warming host's. What was left over, and whether it lags, says which of them it is. Each solve
/// runs through the stored samples anew, so that late packets count and nothing has a memory of its
/// own. The noise of a sample comes from the differences of neighbours,
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

    /// One fit per scale, of the walk that left less.
    ///
    /// - Parameters:
    ///   - samples: ascending by time.
    ///   - now: same scale as the samples' time.
    ///   - skew, variance: prior of the skew.
    ///   - slope: the best known skew.
    ///   - floor: smallest delay known of the path. Queueing that no exchange is free of still is.
    static func fits(
        _ samples: [OffsetSample], at now: Double, skew: Double, variance: Double, slope: Double,
        floor: Double
    ) -> [ClockReading] {
        guard let oldest = samples.first, samples.count >= fewest, now - oldest.time > 0.05 else {
            return []
        }
        let excess = Excess(samples, since: now - colourSpan)
        return scales.compactMap { scale in
            let digest = Digest(
                samples, floor: excess.floor, least: min(floor, excess.floor),
                scale: scale * excess.median, skew: skew, slope: slope, at: now)
            return walks.map { walk in
                fit(
                    digest, span: now - oldest.time, delay: excess.floor, walk: walk,
                    skew: skew - slope, variance: variance)
            }.min { $0.squaredRest < $1.squaredRest }
        }
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

    /// - Parameters:
    ///   - span: from the first sample to now.
    ///   - skew, variance: prior of the skew, against the digest's slope.
    private static func fit(
        _ digest: Digest, span: Double, delay: Double, walk: Double, skew: Double, variance: Double
    ) -> ClockReading {
        let scatter = digest.scatter
        // Against the digest's line.
        var (x, s) = (0.0, skew)
        let prior = variance + walk * walk
        var model = DriftCovariance(offset: 1, rate: prior)
        // What was left over says how well the model's gains did.
        var actual = DriftCovariance(offset: 0, rate: prior)
        var (lag, lagWeight, queueing) = (0.0, 0.0, 0.0)
        var time = 0.0
        for reading in digest.readings {
            let dt = max(0, reading.time - time)
            time = max(time, reading.time)
            x += s * dt
            model.advance(by: dt, walk: walk)
            actual.advance(by: dt, walk: walk)

            let rest = reading.offset - x
            let gain = model.observe(noise: scatter / reading.weight)
            x += gain.offset * rest
            s += gain.rate * rest
            let missed = reading.square(of: rest) * (1 - gain.offset / reading.count)
            actual.observe(missed: missed, gain: gain)

            lag = lag * reading.keep + reading.weight * rest
            lagWeight = lagWeight * reading.keep + reading.weight
            queueing = queueing * reading.keep + reading.queueing
        }
        let dt = span - time
        let mean = lag / lagWeight
        let meanNoise = 2 * sqrt(scatter / lagWeight)
        let behind = max(0, mean.magnitude - meanNoise)
        let doubt = digest.asymmetry * queueing / lagWeight
        var fit = ClockReading(
            window: span, span: span, offset: digest.line(at: span) + x + s * dt,
            skew: digest.slope + s, delay: delay,
            noise: sqrt(max(0, actual.offset(after: dt))) + EnvelopeSolver.stampNoise,
            skewSpread: sqrt(max(0, actual.rate)), isPinned: false, wander: behind)
        fit.error = sqrt(
            fit.noise * fit.noise + behind * behind + doubt * doubt + digest.colour * digest.colour)
        return fit
    }
}

extension ClockReading {
    /// What the samples left over and the lag, which differ from walk to walk, without the doubts
    /// of the path, which do not; seconds².
    fileprivate var squaredRest: Double { noise * noise + wander * wander }
}
