import func Glibc.exp
import func Glibc.sqrt

/// Offset and skew as far as the packets of the first seconds tell them: the mean of all that they
/// allow, each by how likely it makes them.
///
///     p(f, b | F, B, s, c) = Π q(fᵢ − F − (s + c)·uᵢ) · Π q(bᵢ − B + (s − c)·uᵢ)
///
/// with u the time from now and q as in ``ModePosterior``, which counts places F and B alike; skews
/// s count by what was known before, drifts c of both delays by ``change``.
///
/// The need: a room that joins knows its rate to 80 ppm only, and plays after 0.35 s. While few
/// packets are clean, chance chooses the one best slope, or there is none yet.
/// Here all slopes that are possible have their say.
///
/// The drift: a host that begins to play takes longer for packets both ways, by 20 µs within a
/// second. If both delays were taken for constant, only one direction could gather along any skew,
/// and the offset would be wrong by the drift, to either side.
struct JoiningPosterior: Sendable {
    /// How far slopes are tried to either side, in deviations of the prior, and of what was found
    /// before. Less cuts off slopes that are possible; more costs time.
    private static let reach = (prior: 3.0, found: 4.5)
    /// How many slopes are tried to either side of what was found before.
    private static let nearSteps = 8
    /// The first step from slope to slope, where nothing was found yet. It is the smaller of this
    /// share of the prior's deviation and of what moves the ends of the packets by `blur` seconds:
    /// with longer steps a gathering could lie between two slopes.
    private static let firstStep = (share: 0.1, blur: 12e-6)
    /// The shortest step, 1. What a crystal does by itself in a second is more.
    private static let finest = 1e-10
    /// When the slopes at both ends have this share of the likelihood together, the range was too
    /// narrow and is tried anew.
    private static let edgeShare = 1e-3
    /// A new try has steps that are this many times as long.
    private static let widening = 4.0
    /// How often slopes are tried at most. A look that is not done by then counts as it is.
    private static let passes = 5

    /// What both directions' delays change by alike from the first packet to the last, seconds (one
    /// deviation). A smaller one believes too little in hosts that begin to play, and rooms that
    /// begin together are further off at worst; a larger one takes floors that move in one
    /// direction for such a drift. Between 5 and 8 µs joins on steady paths are read equally well.
    private static let change = 7e-6
    /// Logarithm of a share of the likelihood that is too small to add anything.
    private static let negligible = -20.0

    /// How many packets of each direction, by likelihood, must have met nobody.
    ///
    /// Blocks want one more (``ModePosterior/fewestClean``), but here nothing is known yet and the
    /// room is missed: with four, lines are no better and more rooms are late. With two, chance
    /// makes gatherings, and some lines are off by tenths of a millisecond.
    static let fewestClean = 3.0

    /// Group minus local at the time asked for; seconds, and seconds².
    private(set) var offset = 0.0
    private(set) var variance = 0.0
    /// Leader's rate against ours, minus one; and its variance.
    private(set) var skew = 0.0
    private(set) var skewVariance = 0.0
    /// Variance of the slope of the direction in which it is known less well.
    private var slopeVariance = 0.0

    /// Looks for offset and skew; `nil` where nothing gathers, or too few packets came.
    ///
    /// - Parameters:
    ///   - forward, backward: all packets of both directions.
    ///   - now: same scale as the points' time.
    ///   - prior: of the skew.
    ///   - found: what an earlier look at these packets found: slopes far from it are not tried.
    init?(
        _ forward: [ModePeak.Point], _ backward: [ModePeak.Point], at now: Double,
        prior: (skew: Double, variance: Double), found: JoiningPosterior? = nil
    ) {
        guard min(forward.count, backward.count) >= ModePosterior.fewest else { return nil }
        let sides = (
            ModePosterior(forward, sign: 1, now: now, slope: prior.skew),
            ModePosterior(backward, sign: -1, now: now, slope: prior.skew)
        )
        let deviation = sqrt(prior.variance)
        let span = max(now - forward[0].time, 1e-3)
        var (middle, step) = (
            prior.skew, min(Self.firstStep.share * deviation, Self.firstStep.blur / span)
        )
        var half = Int(Self.reach.prior * deviation / step)
        if let found {
            (middle, half) = (found.skew, Self.nearSteps)
            step = max(Self.finest, Self.reach.found * sqrt(found.slopeVariance) / Double(half))
        }
        for _ in 0..<Self.passes {
            guard
                let isInside = integrate(
                    sides, around: middle, step: step, half: half, prior,
                    drift: Self.change / span)
            else { return nil }
            let isFine = slopeVariance >= step * step
            if isInside && isFine { return }
            (middle, half) = (skew, Self.nearSteps)
            let wanted =
                isInside
                ? Self.reach.found * max(sqrt(slopeVariance), step / 2) / Double(half)
                : step * Self.widening
            step = max(Self.finest, wanted)
        }
    }

    /// Sums over the slopes of both directions.
    ///
    /// - Returns: whether hardly anything lies at the ends; `nil` where nothing gathers.
    private mutating func integrate(
        _ sides: (ModePosterior, ModePosterior), around middle: Double, step: Double, half: Int,
        _ prior: (skew: Double, variance: Double), drift: Double
    ) -> Bool? {
        let slopes = (-half...half).map { middle + Double($0) * step }
        let out = slopes.map { sides.0.place(along: $0) }
        let home = slopes.map { sides.1.place(along: $0) }
        let weights = Self.weights(
            out.map(\.evidence), home.map(\.evidence), along: slopes, prior, drift: drift)
        let (outShares, homeShares) = (weights.out, weights.home)
        let clean = min(
            Self.mean(out.map(\.clean), outShares), Self.mean(home.map(\.clean), homeShares))
        guard clean >= Self.fewestClean else { return nil }
        (skew, skewVariance) = weights.half(of: slopes, plus: slopes)
        (offset, variance) = weights.half(of: out.map(\.mean), plus: home.map { -$0.mean })
        variance +=
            (Self.mean(out.map(\.variance), outShares)
                + Self.mean(home.map(\.variance), homeShares)) / 4
        slopeVariance = [outShares, homeShares].reduce(0) { most, shares in
            let mean = Self.mean(slopes, shares)
            return max(most, Self.mean(slopes.map { ($0 - mean) * ($0 - mean) }, shares))
        }
        return [outShares, homeShares].allSatisfy {
            $0[0] + $0[$0.count - 1] <= Self.edgeShare
        }
    }

    /// How likely each pair of slopes is: their half sum is the skew, their half difference the
    /// drift.
    private static func weights(
        _ out: [Double], _ home: [Double], along slopes: [Double],
        _ prior: (skew: Double, variance: Double), drift: Double
    ) -> Weights {
        let logs = slopes.indices.flatMap { first in
            slopes.indices.map { second in
                let distance = (slopes[first] + slopes[second]) / 2 - prior.skew
                let turn = (slopes[first] - slopes[second]) / 2 / drift
                return out[first] + home[second]
                    - (distance * distance / prior.variance + turn * turn) / 2
            }
        }
        let most = logs.max() ?? 0
        return Weights(
            count: slopes.count, values: logs.map { $0 - most > negligible ? exp($0 - most) : 0 })
    }

    private static func mean(_ values: [Double], _ shares: [Double]) -> Double {
        zip(values, shares).reduce(0) { $0 + $1.0 * $1.1 }
    }

    /// Shares of the likelihood of one slope out and one home, by rows; their sum is 1.
    private struct Weights {
        private let rows: [ArraySlice<Double>]
        /// The share of each slope, whatever that of the other direction is.
        let out: [Double]
        let home: [Double]

        init(count: Int, values: [Double]) {
            let sum = values.reduce(0, +)
            let shares = values.map { $0 / sum }
            rows = (0..<count).map { shares[$0 * count..<($0 + 1) * count] }
            out = rows.map { $0.reduce(0, +) }
            home = rows.reduce(into: [Double](repeating: 0, count: count)) { sums, row in
                for (index, share) in row.enumerated() { sums[index] += share }
            }
        }

        /// Mean and variance of (a + b)/2, a of the slope out and b of that home.
        func half(of first: [Double], plus second: [Double]) -> (mean: Double, variance: Double) {
            let mean =
                (JoiningPosterior.mean(first, out) + JoiningPosterior.mean(second, home)) / 2
            var variance = 0.0
            for (first, row) in zip(first, rows) {
                for (second, share) in zip(second, row) where share > 0 {
                    let rest = (first + second) / 2 - mean
                    variance += share * rest * rest
                }
            }
            return (mean, variance)
        }
    }
}
