import func Glibc.sqrt
import TuttiTiming

/// The samples of one pair of clocks, and what they say together.
///
/// There are four kinds of reading, each with an error of its own making: the envelope
/// (``EnvelopeSolver``), the mean (``TrackingFit``), the line through the floors of many blocks
/// (``DelayBlocks``), and the places where delays gather (``ModeBlocks``). The one with the
/// smallest error says what is known of the skew and how sure it is, the envelope by preference:
/// what it says is unbiased. The offset is the mean of them all, each by the inverse square of its
/// error, which counts some times as large as it claims. One that is far surer than the rest
/// decides; where all doubt, as on air whose floors move, they err in different ways, and their
/// mean errs less than the best. On a wire most agree, and one that is far off is wrong
/// (``WeightedReading``).
///
/// Times and values are relative to the estimator's base, in seconds.
struct ReadingEnsemble: Sendable {
    /// Another reading decides on the skew when its error is less than this share of the
    /// envelope's.
    static let preference = 0.8
    /// How many times as large errors of edges and crests count beside the envelope's. Readings of
    /// one kind repeat each other, and where only one direction queues they are wrong by more than
    /// they claim. Between 2 and 2.5 the errors on steady paths are least; 1 trusts them too much,
    /// and 4 wastes them. Places on air count once: they are the mean of all that packets allow,
    /// and claim twice what they are off by.
    static let errorFactor = 2.0
    /// The same for tracks on air. They repeat each other less, since there is one for each scale.
    static let trackErrorFactor = 1.4
    /// The same for tracks on wires, where jitter is like noise and they are better than they
    /// claim. With 1, a wire that is loaded in one direction (`ho-load`) is lost to plain hulls.
    static let wireTrackErrorFactor = 1.1
    /// A round trip that is longer than the shortest known may be so in one direction, and half of
    /// it then is error. This share of that half is expected, since delay is seldom all in one
    /// direction.
    static let lopsided = 0.6
    /// Also on a path that stays as it is, the shortest round trip of minutes lies below that of
    /// the last seconds, by about as much as the six shortest of all lie apart. This many times
    /// that is taken for luck and no change.
    static let luck = 2.0
    /// The error of a window whose clock bent, as a share of the delay that it lost by bending.
    static let bend = 0.7
    /// How far back the shortest round trip is looked for that tells whether the path changed,
    /// seconds. What a path loses and finds again within it is no news.
    static let recentSpan = 10.0
    /// Until this age, seconds, an edge that is the floor looks like one of chance, for want of
    /// samples.
    static let youngSpan = 12.0
    /// The share of a young envelope's noise, squared, that is mere caution on a wire and is left
    /// out.
    static let youngCaution = 0.9
    /// While the samples are younger than ``youngSpan``, readings whose error is this many times
    /// the least have no say: they are many, of the same few packets, and would weigh too much
    /// together.
    static let relevance = 2.0

    /// What has no say, to show what it earns.
    private let withheld: Set<ReadingKind>
    private var forward = EnvelopePoints()
    private var backward = EnvelopePoints()
    private var offsets = OffsetSamples()
    private var blocks = DelayBlocks()
    private var modes = ModeBlocks()
    private var solver = EnvelopeSolver()
    /// Smallest sum of both directions' edges.
    private(set) var floor = DelayFloor()
    /// Smallest round trip of one exchange.
    private var shortestTrip = DelayFloor()

    init(withholding withheld: Set<ReadingKind> = []) { self.withheld = withheld }

    mutating func removeAll() {
        forward.removeAll()
        backward.removeAll()
        offsets.removeAll()
        blocks.removeAll()
        modes.removeAll()
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
        let trip = outward + homeward
        forward.insert(time: sent, value: outward, slope: slope)
        backward.insert(time: arrived, value: homeward, slope: -slope)
        offsets.insert(
            OffsetSample(
                time: (sent + arrived) / 2, offset: (outward - homeward) / 2,
                // The leader's time to answer is in its own seconds.
                delay: trip + slope * (arrived - sent - trip)))
        blocks.insert(forward: (sent, outward), backward: (arrived, homeward), slope: slope)
        modes.insert(forward: (sent, outward), backward: (arrived, homeward))
    }

    /// The best reading at `time`; tells the filter what it says of the skew.
    ///
    /// - Parameters:
    ///   - elapsed: seconds since the solve before.
    ///   - window: of the envelope believed then.
    mutating func solve(
        at time: Double, elapsed: Double, window: Double?, filter: inout SkewFilter
    ) -> ClockReading? {
        var fits = solver.fits(
            forward: forward.points, backward: backward.points, at: time, skew: filter.skew,
            variance: filter.variance)
        judgePrior(by: fits, &filter)
        let extremes = offsets.extremes
        observeFloor(&fits, extremes, at: time)
        guard let floor = floor.delay,
            var envelope = EnvelopeSolver.choose(fits, floor: floor, last: window)
        else { return nil }
        if envelope.error < 2e-6 {
            envelope = EnvelopeSolver.refine(
                envelope, forward: forward.points, backward: backward.points, at: time,
                skew: filter.skew, variance: filter.variance)
        }
        blocks.measure(skew: filter.skew)
        let isWire = PathKind(roundTrip: Nanoseconds(seconds: floor)) == .wire
        modes.measure(skew: filter.skew, isWire: isWire)
        let edges =
            withheld.contains(.edges)
            ? []
            : DelayBlocks.walks.compactMap {
                blocks.fit(at: time, prior: filter.prior, walk: $0, floor: floor)
            }
        let change = pathChange(extremes, at: time)
        let doubt = change * modes.lopsidedness(skew: filter.skew)
        let gatherings = modes.fits(
            at: time, prior: filter.prior, delay: floor, withholding: withheld
        )
        .map { $0.doubted(by: doubt) }
        let tracks =
            withheld.contains(.averages)
            ? [] : tracks(at: time, floor: floor, change: change, filter)
        let others =
            (Reading.all(
                tracks, errorFactor: isWire ? Self.wireTrackErrorFactor : Self.trackErrorFactor)
            + Reading.all(edges, errorFactor: Self.errorFactor)
            + Reading.all(gatherings, errorFactor: isWire ? Self.errorFactor : 1))
            .filter { envelope.admits($0.fit) }
        // The first sample is where time is counted from.
        let offset = Self.mean(
            envelope, others, isWire: isWire, isNew: time < Self.youngSpan)
        guard var best = others.map(\.fit).min(by: { $0.error < $1.error }),
            best.error < Self.preference * envelope.error
        else {
            filter.update(with: envelope, after: elapsed)
            envelope.move(to: offset)
            return envelope
        }
        filter.take(best)
        best.support = envelope.support
        best.move(to: offset)
        return best
    }

    /// The offset that all readings make together. Of few packets only those have a say which are
    /// not far worse than the best: after 0.3 s on air averages are off by hundreds of times as much
    /// as crests, and a mean of all by several times as much.
    private static func mean(
        _ envelope: ClockReading, _ others: [Reading], isWire: Bool, isNew: Bool
    ) -> Double {
        let isYoung = envelope.span < youngSpan
        let least = others.reduce(envelope.error) { min($0, $1.fit.error) }
        let limit = isNew ? relevance * least : .infinity
        // Relative to the envelope's: offsets may be large.
        var opinions = others.filter { $0.fit.error <= limit }.map {
            WeightedReading(
                value: $0.fit.offset - envelope.offset, error: $0.fit.error,
                errorFactor: $0.errorFactor)
        }
        if envelope.error <= limit {
            let caution = isYoung && isWire ? youngCaution * envelope.noise * envelope.noise : 0
            opinions.append(
                WeightedReading(value: 0, error: sqrt(envelope.error * envelope.error - caution)))
        }
        return envelope.offset + (isWire ? opinions.consensus : opinions.mean)
    }

    /// A long window that a curved clock bends makes a delay too small: by twice its wander where
    /// the crystal breathes, and by far more where it stepped. No less than the shortest round
    /// trips allow is believed, and what is missing to that is doubt.
    private mutating func observeFloor(
        _ fits: inout [ClockReading], _ extremes: (shortest: Double, spread: Double),
        at time: Double
    ) {
        let least = extremes.shortest - Self.luck * extremes.spread
        for index in fits.indices {
            floor.observe(max(least, fits[index].delay + 2 * fits[index].wander), at: time)
            let missing = least - fits[index].delay - 2 * fits[index].noise
            fits[index].wander += Self.bend * max(0, missing)
        }
    }

    /// Whether what was known of the skew can be true: the longest fit is the one that knows, and
    /// it wants to leave.
    private mutating func judgePrior(by fits: [ClockReading], _ filter: inout SkewFilter) {
        guard fits.last?.isPinned == true else { return filter.trust() }
        filter.doubt()
        // What was measured along a wrong slope is not a floor.
        floor.removeAll()
    }

    /// What averages say.
    private func tracks(
        at time: Double, floor: Double, change: Double, _ filter: SkewFilter
    ) -> [ClockReading] {
        TrackingFit.fits(
            offsets.samples, at: time, skew: filter.prior.skew, variance: filter.prior.variance,
            slope: filter.skew, floor: floor
        ).map { $0.doubted(by: change) }
    }

    /// What a path that changed may add in one direction, seconds.
    private mutating func pathChange(
        _ extremes: (shortest: Double, spread: Double), at time: Double
    ) -> Double {
        guard let oldest = offsets.samples.first else { return 0 }
        shortestTrip.observe(extremes.shortest, at: time)
        let recent = offsets.shortest(since: time - Self.recentSpan)
        let known = shortestTrip.delay ?? recent
        let longer = recent - known - Self.luck * extremes.spread
        let soft = Self.lopsided * max(0, longer) / 2
        let drift = blocks.drift(since: oldest.time)
        return sqrt(soft * soft + drift * drift)
    }
}

/// What is known beside the envelope, and how many times as large its error counts.
private struct Reading {
    var fit: ClockReading
    var errorFactor: Double

    static func all(_ fits: [ClockReading], errorFactor: Double) -> [Reading] {
        fits.map { Reading(fit: $0, errorFactor: errorFactor) }
    }
}

extension ClockReading {
    /// Other readings have a say in the offset.
    fileprivate mutating func move(to mean: Double) {
        shift = (mean - offset).magnitude
        offset = mean
    }

    /// With more of an expected error.
    fileprivate func doubted(by more: Double) -> ClockReading {
        var fit = self
        fit.error = sqrt(error * error + more * more)
        return fit
    }

    /// Whether another reading lies where negative delays are not needed to explain it.
    fileprivate func admits(_ other: ClockReading) -> Bool {
        (other.offset - offset).magnitude <= delay / 2 + 3 * noise + tilt
    }
}
