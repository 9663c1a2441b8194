/// What left one virtual card, on the axis of true time.
///
/// A card that ran dry starts again, so a take is a list of unbroken segments. Between the anchors
/// of a segment time counts as linear in frames; they lie so close that this is right to 0.1 ns.
struct Take: Sendable {
    var name: String
    /// Nominal frames per second.
    var sampleRate: Double
    var segments: [Segment]

    struct Segment: Sendable {
        /// One channel (the mean of all), −1…1.
        var samples: [Float]
        /// Frame numbers, rising; frame 0 is `samples[0]`.
        var anchorFrames: [Double]
        /// Nanoseconds of true time since the base of the analysis, for each anchor.
        var anchorTimes: [Double]

        /// True time in nanoseconds at which `frame` left the card.
        func time(ofFrame frame: Double) -> Double {
            Self.interpolate(frame, from: anchorFrames, to: anchorTimes)
        }

        /// The frame, with its fraction, that left the card at `time`.
        func frame(at time: Double) -> Double {
            Self.interpolate(time, from: anchorTimes, to: anchorFrames)
        }

        var start: Double { time(ofFrame: 0) }
        var end: Double { time(ofFrame: Double(samples.count)) }

        /// Piecewise linear; continued beyond the ends with the slope of the last piece there.
        private static func interpolate(_ x: Double, from: [Double], to: [Double]) -> Double {
            var low = 0
            var high = from.count - 1
            while high - low > 1 {
                let middle = (low + high) / 2
                if from[middle] <= x { low = middle } else { high = middle }
            }
            let slope = (to[high] - to[low]) / (from[high] - from[low])
            return to[low] + (x - from[low]) * slope
        }
    }

    /// The first and last instant at which more than `Take.audible` left the card.
    var audibleRange: ClosedRange<Double>? {
        var first: Double?
        var last: Double?
        for segment in segments {
            guard let a = segment.samples.firstIndex(where: { abs($0) > Self.audible }),
                let b = segment.samples.lastIndex(where: { abs($0) > Self.audible })
            else { continue }
            first = first ?? segment.time(ofFrame: Double(a))
            last = segment.time(ofFrame: Double(b))
        }
        guard let first, let last else { return nil }
        return first...last
    }

    /// −80 dB: above the dither of a 16-bit file, below anything that is meant to be heard.
    static let audible: Float = 1e-4
}

/// A range of true time cut into samples.
struct TimeGrid: Equatable, Sendable {
    /// Nanoseconds since the base of the analysis.
    var start: Double
    var sampleRate: Double
    var count: Int

    func time(_ index: Int) -> Double { start + Double(index) * 1e9 / sampleRate }
    func index(_ time: Double) -> Int { Int(((time - start) * sampleRate / 1e9).rounded()) }
}
