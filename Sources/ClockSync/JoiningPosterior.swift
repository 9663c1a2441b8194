import func Glibc.exp
import func Glibc.sqrt

/// Offset and skew as far as the packets of the first seconds tell them: the mean of all that they
/// allow, each by how likely it makes them.
///
///     p(f, b | F, B, s) = Π q(fᵢ − F − s·uᵢ) · Π q(bᵢ − B + s·uᵢ)
///
/// with u the time from now and q as in ``DelayBins``, which counts places F and B alike; skews
/// count by what was known before.
///
/// The need: a room that joins knows its rate to 80 ppm only, and plays after 0.35 s. The one best
/// slope (``CrestPair``) is chosen by chance while few packets are clean, or there is none yet; here
/// all slopes that are possible have their say. In 36 joins recorded on emulated wifi the line 50 ms
/// ahead was off by 15, 12, 7.4 µs (root of the mean square) 0.2, 0.5, 1 s after it was first played
/// by, instead of 22, 17, 8.8.
struct JoiningPosterior: Sendable {
    /// Deviations of the prior that are tried, and of what was found before; to either side.
    private static let reach = (prior: 3.0, found: 4.5)
    /// Slopes to either side that are tried around what was found before.
    private static let nearSteps = 8
    /// Steps of slopes where nothing was found yet: deviations of the prior, and by so much the ends of
    /// the packets may move; seconds.
    private static let firstStep = (share: 0.1, blur: 12e-6)
    /// No steps are shorter: what a crystal does by itself in a second is more.
    private static let finest = 1e-10
    /// So much at the ends of what was tried says that more has to be: …
    private static let edgeShare = 1e-3
    /// … steps of so many times the length, …
    private static let widening = 4.0
    /// … and so many times at most that slopes are tried anew.
    private static let passes = 5

    /// So many packets of each direction, by likelihood, must have met nobody.
    ///
    /// Fewer than blocks want: nothing is known yet, and the room is missed. In 450 joins on
    /// emulated wifi lines were off by as much with three as with four, when they were first played
    /// by and later, and 5 instead of 12 were not yet good after 0.47 s. With two, some of 740 were
    /// off by 0.1 to 0.5 ms.
    static let fewestClean = 3.0

    /// Group minus local at the time asked for; seconds, and seconds².
    private(set) var offset = 0.0
    private(set) var variance = 0.0
    /// Leader's rate against ours, minus one; and its variance.
    private(set) var skew = 0.0
    private(set) var skewVariance = 0.0

    /// `nil` where nothing gathers, or too few packets came.
    ///
    /// - Parameters:
    ///   - forward, backward: all packets of both directions.
    ///   - now: same scale as the points' time.
    ///   - prior: of the skew.
    ///   - found: what an earlier look at these packets found: slopes far from it are not tried.
    init?(
        _ forward: [DelayCrest.Point], _ backward: [DelayCrest.Point], at now: Double,
        prior: (skew: Double, variance: Double), found: JoiningPosterior? = nil
    ) {
        guard min(forward.count, backward.count) >= DelayBins.fewest else { return nil }
        let sides = (
            DelayBins(forward, sign: 1, now: now, slope: prior.skew),
            DelayBins(backward, sign: -1, now: now, slope: prior.skew)
        )
        let deviation = sqrt(prior.variance)
        let span = max(now - forward[0].time, 1e-3)
        var (middle, step) = (
            prior.skew, min(Self.firstStep.share * deviation, Self.firstStep.blur / span)
        )
        var half = Int(Self.reach.prior * deviation / step)
        if let found {
            (middle, half) = (found.skew, Self.nearSteps)
            step = max(Self.finest, Self.reach.found * sqrt(found.skewVariance) / Double(half))
        }
        for _ in 0..<Self.passes {
            guard let isInside = integrate(sides, around: middle, step: step, half: half, prior)
            else { return nil }
            let isFine = skewVariance >= step * step
            if isInside && isFine { return }
            (middle, half) = (skew, Self.nearSteps)
            let wanted =
                isInside
                ? Self.reach.found * max(sqrt(skewVariance), step / 2) / Double(half)
                : step * Self.widening
            step = max(Self.finest, wanted)
        }
    }

    /// Sums over slopes.
    ///
    /// - Returns: whether hardly anything lies at the ends; `nil` where nothing gathers.
    private mutating func integrate(
        _ sides: (DelayBins, DelayBins), around middle: Double, step: Double, half: Int,
        _ prior: (skew: Double, variance: Double)
    ) -> Bool? {
        let slopes = (-half...half).map { middle + Double($0) * step }
        let places = slopes.map { (sides.0.place(along: $0), sides.1.place(along: $0)) }
        let logs = zip(slopes, places).map { slope, place in
            let distance = slope - prior.skew
            return place.0.evidence + place.1.evidence
                - distance * distance / (2 * prior.variance)
        }
        let most = logs.max() ?? 0
        let weights = logs.map { exp($0 - most) }
        let sum = weights.reduce(0, +)
        func mean(_ value: (Int) -> Double) -> Double {
            weights.indices.reduce(0) { $0 + weights[$1] * value($1) } / sum
        }
        let clean = min(mean { places[$0].0.clean }, mean { places[$0].1.clean })
        guard clean >= Self.fewestClean else { return nil }
        let (skew, offset) = (
            mean { slopes[$0] }, mean { (places[$0].0.mean - places[$0].1.mean) / 2 }
        )
        self.skew = skew
        self.offset = offset
        skewVariance = mean { (slopes[$0] - skew) * (slopes[$0] - skew) }
        variance = mean {
            let rest = (places[$0].0.mean - places[$0].1.mean) / 2 - offset
            return rest * rest + (places[$0].0.variance + places[$0].1.variance) / 4
        }
        return weights[0] + weights[weights.count - 1] <= Self.edgeShare * sum
    }
}
