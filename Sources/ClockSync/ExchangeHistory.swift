import func Glibc.sqrt

/// The samples of one pair of clocks, and what they say together.
///
/// Three readings compete, each with an error of its own making: the envelope
/// (``EnvelopeSolver``), the mean (``TrackingFit``), and the line through the floors of many blocks
/// (``DelayBlocks``). The smallest error wins, the envelope by preference: what it says is unbiased.
///
/// Times and values are relative to the estimator's base, in seconds.
struct ExchangeHistory: Sendable {
    /// Another reading must be better by this than the envelope.
    static let preference = 0.8
    /// A round trip that is longer than the shortest known may be so in one direction; half of it
    /// then is error. Where in between is drawn at random.
    static let lopsided = 0.6
    /// … but for luck: also on a path that stays as it is, the shortest round trip of five minutes
    /// lies below that of the last one or two. By as much, about, as the six shortest of those lie
    /// apart (both grow with the logarithm of a number near five); this many times that is allowed.
    static let luck = 2.0

    private var forward = EnvelopePoints()
    private var backward = EnvelopePoints()
    private var offsets = OffsetSamples()
    private var blocks = DelayBlocks()
    private var solver = EnvelopeSolver()
    /// Smallest sum of both directions' edges.
    private(set) var floor = DelayFloor()
    /// Smallest round trip of one exchange.
    private var shortestTrip = DelayFloor()

    mutating func removeAll() {
        forward.removeAll()
        backward.removeAll()
        offsets.removeAll()
        blocks.removeAll()
        floor.removeAll()
        shortestTrip.removeAll()
    }

    /// - Parameters:
    ///   - sent, arrived: t1 and t4.
    ///   - outward, homeward: t2 − t1 and t4 − t3.
    ///   - slope: the best known skew.
    mutating func insert(
        sent: Double, outward: Double, arrived: Double, homeward: Double, slope: Double
    ) {
        forward.insert(time: sent, value: outward, slope: slope)
        backward.insert(time: arrived, value: homeward, slope: -slope)
        offsets.insert(
            OffsetSample(
                time: (sent + arrived) / 2, offset: (outward - homeward) / 2,
                delay: outward + homeward))
        blocks.insert(forward: (sent, outward), backward: (arrived, homeward), slope: slope)
    }

    /// The best reading at `time`; tells the filter what it says of the skew.
    ///
    /// - Parameters:
    ///   - elapsed: seconds since the solve before.
    ///   - window: of the envelope believed then.
    mutating func solve(
        at time: Double, elapsed: Double, window: Double?, filter: inout SkewFilter
    ) -> EnvelopeFit? {
        let fits = solver.fits(
            forward: forward.points, backward: backward.points, at: time, skew: filter.skew,
            variance: filter.variance)
        judgePrior(by: fits, &filter)
        // A curved clock makes a long window's delay too small; twice its wander makes up for it.
        for fit in fits { floor.observe(fit.delay + 2 * fit.wander, at: time) }
        guard let floor = floor.delay,
            var fit = EnvelopeSolver.choose(fits, floor: floor, last: window)
        else { return nil }
        if fit.error < 2e-6 {
            fit = EnvelopeSolver.refine(
                fit, forward: forward.points, backward: backward.points, at: time,
                skew: filter.skew, variance: filter.variance)
        }
        guard var other = otherReading(at: time, envelope: fit, floor: floor, filter),
            other.error < Self.preference * fit.error
        else {
            filter.update(with: fit, after: elapsed)
            return fit
        }
        other.support = fit.support
        filter.take(other)
        return other
    }

    /// Whether what was known of the skew can be true: the longest fit is the one that knows, and
    /// it wants to leave.
    private mutating func judgePrior(by fits: [EnvelopeFit], _ filter: inout SkewFilter) {
        guard fits.last?.isPinned == true else { return filter.trust() }
        filter.doubt()
        // What was measured along a wrong slope is not a floor.
        floor.removeAll()
    }

    private mutating func otherReading(
        at time: Double, envelope: EnvelopeFit, floor: Double, _ filter: SkewFilter
    ) -> EnvelopeFit? {
        var best: EnvelopeFit?
        let chance = Self.luck * offsets.extremeSpread
        func offer(_ fit: EnvelopeFit) {
            if fit.error < best?.error ?? .infinity { best = fit }
        }
        for var track in TrackingFit.fits(
            offsets.samples, at: time, skew: filter.prior.skew, variance: filter.prior.variance,
            floor: floor)
        {
            shortestTrip.observe(track.delay, at: time)
            let longer = max(0, track.delay - (shortestTrip.delay ?? 0) - chance) / 2
            let soft = Self.lopsided * longer
            track.error = sqrt(track.error * track.error + soft * soft)
            if envelope.admits(track) { offer(track) }
        }
        for walk in TrackingFit.walks {
            if let line = blocks.fit(
                at: time, skew: filter.skew, prior: filter.prior, walk: walk),
                envelope.admits(line)
            {
                offer(line)
            }
        }
        return best
    }
}

extension EnvelopeFit {
    /// Whether another reading lies where negative delays are not needed to explain it.
    fileprivate func admits(_ other: EnvelopeFit) -> Bool {
        (other.offset - offset).magnitude <= delay / 2 + 3 * noise + tilt
    }
}
