import func Glibc.sqrt

/// How far an edge that was found may lie from the true one, judged by the samples next to it.
///
/// Two kinds of path:
///
/// - Jitter that thins out towards the floor. The mean distance of the six lowest samples of a
///   direction from each other is the scale; nothing else is to be had.
/// - A floor that a share of all packets meets exactly, as on idle air. Then a few samples lie
///   within microseconds of the edge and the seventh a thousand times higher, and the edge is as
///   sharp as the few are close. Only: any line under the samples touches three of them, whatever
///   is true (two unknowns and a slope). So three contacts are no evidence, and each further sample
///   of either direction is, the more the closer it lies: if the samples near an edge come at
///   random, the k-th gap is shorter than `sure[k]⁻¹` of what it should be in one case of fifty.
enum EnvelopeNoise {
    /// Residuals kept of each direction.
    static let kept = 6
    /// Contacts that prove nothing.
    static let freeContacts = 3
    /// The sharp judgement counts where it is so much better than the other: in between, the gaps
    /// of smooth jitter would be taken for a floor.
    static let sharpness = 0.15
    /// 2⁄5 of the mean of five gaps is the common scale; the same confidence for one gap, two, …
    private static let sure = [15.3, 1.42, 0.54, 0.3, 0.2, 0.15, 0.12, 0.1, 0.085]
    /// Nothing is known of the scatter of a single sample: assume much. Seconds.
    private static let unknown = 50e-6

    /// - Parameters:
    ///   - forward, backward: the lowest residuals of each direction, ascending; seconds.
    static func scatter(_ forward: [Double], _ backward: [Double]) -> Double {
        let (f, b) = (spacing(forward), spacing(backward))
        let smooth = sqrt(f * f + b * b)
        let sharp = sharpScatter(forward, backward)
        return sharp < sharpness * smooth ? sharp : smooth
    }

    private static func spacing(_ lowest: [Double]) -> Double {
        guard lowest.count > 1 else { return unknown }
        return (lowest[lowest.count - 1] - lowest[0]) / Double(lowest.count - 1)
    }

    private static func sharpScatter(_ forward: [Double], _ backward: [Double]) -> Double {
        guard forward.count > 1, backward.count > 1 else { return .infinity }
        var (f, b) = (1, 1)
        var best = Double.infinity
        // Merges both, lowest first.
        while f < forward.count || b < backward.count {
            let nextForward = f < forward.count ? forward[f] - forward[0] : .infinity
            let nextBackward = b < backward.count ? backward[b] - backward[0] : .infinity
            if nextForward <= nextBackward { f += 1 } else { b += 1 }
            let gaps = f + b - freeContacts
            // Both directions must have a say.
            guard f > 1, b > 1, gaps > 0 else { continue }
            let reach = min(nextForward, nextBackward)
            best = min(best, 1.41 * reach * sure[min(gaps, sure.count) - 1])
        }
        return best
    }
}
