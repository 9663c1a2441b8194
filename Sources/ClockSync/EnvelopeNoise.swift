import func Glibc.sqrt

/// How far an edge that was found may lie from the true one, judged by the samples next to it.
///
/// Two kinds of path:
///
/// - Jitter that thins out towards the floor. The mean distance of the six lowest samples of a
///   direction from each other is the scale; nothing else is to be had.
/// - A floor that a share of all packets meets exactly, as on idle air. Then a few samples lie
///   within microseconds of the edge and the next a thousand times higher, and the edge is as
///   sharp as the few are close. Only: any line under the samples touches three of them, whatever
///   is true (two heights and a slope), two of one direction and one of the other. Those are no
///   evidence, and each further sample is, the more the closer it lies: if the samples near an edge
///   come at random, the k-th gap is shorter than `sure[k]⁻¹` of what it should be in one case of
///   fifty. Each direction must show its own: that one has met its floor says nothing of the other.
///   (Where a few samples of both counted together, one of a hundred rooms that joined on simulated
///   busy air, `em-busy`, was half a millisecond off and knew of 0.04.)
enum EnvelopeNoise {
    /// Residuals kept of each direction.
    static let kept = 10
    /// Those of them whose distance is the scale of smooth jitter.
    private static let smoothCount = 6
    /// The sharp judgement counts where it is so much better than the other: in between, the gaps
    /// of smooth jitter would be taken for a floor.
    private static let sharpness = 0.15
    /// 2⁄5 of the mean of five gaps is the common scale; the same confidence for one gap, two, …
    private static let sure = [15.3, 1.42, 0.54, 0.3, 0.2, 0.15, 0.12, 0.1, 0.085]
    /// Nothing is known of the scatter of a single sample: assume much. Seconds.
    private static let unknown = 50e-6

    /// - Parameters:
    ///   - forward, backward: the lowest residuals of each direction, ascending; seconds.
    static func scatter(_ forward: [Double], _ backward: [Double]) -> Double {
        let smooth = both(spacing(forward), spacing(backward))
        // Either direction may have been the one that gave the slope.
        let sharp = min(
            both(sharpScatter(forward, beyond: 2), sharpScatter(backward, beyond: 1)),
            both(sharpScatter(forward, beyond: 1), sharpScatter(backward, beyond: 2)))
        return sharp < sharpness * smooth ? sharp : smooth
    }

    private static func both(_ forward: Double, _ backward: Double) -> Double {
        sqrt(forward * forward + backward * backward)
    }

    private static func spacing(_ lowest: [Double]) -> Double {
        let last = min(lowest.count, smoothCount) - 1
        return last > 0 ? (lowest[last] - lowest[0]) / Double(last) : unknown
    }

    /// How sharp an edge is by what lies next to it, but for the first `contacts`; infinite without
    /// any evidence.
    private static func sharpScatter(_ lowest: [Double], beyond contacts: Int) -> Double {
        var best = Double.infinity
        for (gaps, residual) in lowest.dropFirst(contacts).prefix(sure.count).enumerated() {
            best = min(best, (residual - lowest[0]) * sure[gaps])
        }
        return best
    }
}
