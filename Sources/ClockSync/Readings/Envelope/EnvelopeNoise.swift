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
///   come at random, the sum of k gaps times `sure[k]` is less than 0.3 of their mean in one case of
///   twenty. Each direction must show its own: that one has met its floor says nothing of the other.
enum EnvelopeNoise {
    /// Residuals kept of each direction.
    static let kept = sure.count + 1
    /// Those of them whose distance is the scale of smooth jitter.
    private static let smoothCount = 6
    /// The sharp judgement counts where it is so much better than the other: in between, the gaps
    /// of smooth jitter would be taken for a floor.
    private static let sharpness = 0.15
    /// For one gap, two, …: 0.307 by the twentieth of the gamma distribution of that shape.
    private static let sure = [6.0, 0.864, 0.375, 0.225, 0.156, 0.117, 0.093, 0.077, 0.065]
    /// Nothing is known of the scatter of a single sample: assume much. Seconds.
    private static let unknown = 50e-6

    /// - Parameters:
    ///   - forward, backward: the lowest residuals of each direction, ascending; seconds.
    static func scatter(_ forward: [Double], _ backward: [Double]) -> Double {
        let smooth = both(spacing(forward), spacing(backward))
        // The line lies on the second contact of the direction that gave it its slope.
        let slopeIsForward = forward.count > 1 && backward.count > 1 && forward[1] < backward[1]
        let sharp = both(
            sharpScatter(forward, beyond: slopeIsForward ? 2 : 1),
            sharpScatter(backward, beyond: slopeIsForward ? 1 : 2))
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
        for (residual, factor) in zip(lowest.dropFirst(contacts), sure) {
            best = min(best, (residual - lowest[0]) * factor)
        }
        return best
    }
}
