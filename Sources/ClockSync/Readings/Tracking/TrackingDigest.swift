import func Glibc.sqrt

extension TrackingFit {
    /// Older samples within so many seconds are read as one: no crystal bends in them.
    static let readingSpan = 0.15
    /// Younger samples are read one by one; seconds.
    static let freshSpan = 2.0

    /// The samples weighed at one scale, and what they themselves say of their noise.
    ///
    /// Offsets are relative to a line of the best known skew through the first sample, times to
    /// that sample.
    struct Digest {
        let slope: Double
        /// Ascending by time.
        private(set) var readings: [Reading] = []
        /// Variance of a sample of weight 1, from the differences of neighbours.
        private(set) var scatter = 0.0
        /// How different the queueing of the two directions may be, as a share of its mean.
        private(set) var asymmetry = 0.0
        /// Error of the means of blocks that independent samples would not have.
        private(set) var colour = 0.0
        private let base: Double

        /// - Parameters:
        ///   - samples: ascending by time; not empty.
        ///   - floor: smallest of their delays.
        ///   - least: smallest delay known of the path.
        ///   - scale: excess over `floor` that makes a sample's weight a quarter.
        ///   - skew: its prior.
        ///   - slope: the best known skew.
        init(
            _ samples: [OffsetSample], floor: Double, least: Double, scale: Double, skew: Double,
            slope: Double, at now: Double
        ) {
            self.slope = slope
            let oldest = samples[0]
            base = oldest.offset
            readings.reserveCapacity(min(samples.count, 512))
            let (fresh, recent) = (
                now - freshSpan - oldest.time, now - colourSpan - oldest.time
            )
            var (differences, blocks) = (Differences(), Blocks())
            for sample in samples {
                let x = (sample.delay - floor) / scale
                let root = 1 + x * x
                let inverse = root * root
                let weight = 1 / inverse
                let time = sample.time - oldest.time
                let offset = sample.offset - oldest.offset - slope * time
                let half = sample.delay / 2
                // Along the prior's line: what that is off by counts as noise.
                let loose = sample.offset - oldest.offset - skew * time
                differences.add(offset: loose, half: half, inverse: inverse)
                if time > recent { blocks.add(sample.time - now, loose, weight) }
                let queueing = weight * (half - least / 2)
                if let last = readings.indices.last, time < fresh,
                    time - readings[last].start < readingSpan
                {
                    readings[last].add(time, offset, weight, queueing: queueing)
                } else {
                    if let last = readings.indices.last { readings[last].close() }
                    readings.append(Reading(time, offset, weight, queueing: queueing))
                }
            }
            readings[readings.count - 1].close()
            (scatter, asymmetry) = (differences.scatter, differences.asymmetry)
            colour = blocks.colour
        }

        /// The line that offsets are relative to.
        func line(at time: Double) -> Double { base + slope * time }
    }

    /// One sample, or neighbours that are read as one.
    struct Reading {
        /// The time of the first sample.
        let start: Double
        /// Mean; until it is closed relative to the first sample and times ``weight``.
        private(set) var time: Double
        private(set) var offset: Double
        private(set) var weight: Double
        /// Sum of half of the excess delay, times weight.
        private(set) var queueing: Double
        private(set) var count = 1.0
        /// What it leaves of older means.
        private(set) var keep = 1 - 1 / TrackingFit.lagMemory
        private let first: Double
        /// Sums of the squares of weights: times 1, offset, offset².
        private var squares: (Double, Double, Double)

        init(_ time: Double, _ offset: Double, _ weight: Double, queueing: Double) {
            start = time
            first = offset
            (self.time, self.offset) = (0, 0)
            self.weight = weight
            self.queueing = queueing
            squares = (weight * weight, 0, 0)
        }

        mutating func add(_ time: Double, _ offset: Double, _ weight: Double, queueing: Double) {
            let value = offset - first
            let square = weight * weight
            self.time += weight * (time - start)
            self.offset += weight * value
            self.weight += weight
            self.queueing += queueing
            count += 1
            keep *= 1 - 1 / TrackingFit.lagMemory
            squares.0 += square
            squares.1 += square * value
            squares.2 += square * value * value
        }

        /// No sample comes any more.
        mutating func close() {
            let inverse = 1 / weight
            let mean = offset * inverse
            let spread = squares.2 - mean * (2 * squares.1 - mean * squares.0)
            let tilt = squares.1 - mean * squares.0
            let share = inverse * inverse
            squares = (squares.0 * share, tilt * share, max(0, spread) * share)
            time = start + time * inverse
            offset = first + mean
        }

        /// Variance of the mean when the samples' is what they themselves miss a line by.
        ///
        /// - Parameter rest: what the mean misses it by.
        func square(of rest: Double) -> Double {
            max(0, squares.2 + rest * (2 * squares.1 + rest * squares.0))
        }
    }

    /// What neighbours differ by, which no drift can inflate.
    private struct Differences {
        private var last: (offset: Double, half: Double, inverse: Double)?
        private var (sum, total, pairs) = (0.0, 0.0, 0.0)
        private var (outward, homeward) = (0.0, 0.0)

        /// - Parameters:
        ///   - half: of the delay.
        ///   - inverse: of the weight.
        mutating func add(offset: Double, half: Double, inverse: Double) {
            defer { last = (offset, half, inverse) }
            guard let last else { return }
            let step = offset - last.offset
            let stretch = half - last.half
            let weight = 1 / (last.inverse + inverse)
            let square = weight * weight
            sum += step * step * square
            total += weight
            pairs += 4 * square
            outward += (step + stretch).magnitude * square
            homeward += (stretch - step).magnitude * square
        }

        var scatter: Double {
            sum / total + EnvelopeSolver.stampNoise * EnvelopeSolver.stampNoise
        }

        var asymmetry: Double {
            let difference = (outward - homeward).magnitude / max(outward + homeward, 1e-12)
            // What so many samples cannot tell: a quarter of it is asymmetry by rights.
            let chance = 1 / sqrt(pairs)
            return min(
                0.5, leastAsymmetry + 2 * max(0, difference - chance) + unseenAsymmetry * chance)
        }
    }

    /// Means of blocks of seconds around a straight line.
    private struct Blocks {
        /// Sums over one block, or over all.
        struct Sums {
            var (w, t, y) = (0.0, 0.0, 0.0)
            var (yy, ww) = (0.0, 0.0)
        }
        private var (tt, ty) = (0.0, 0.0)
        private var closed: [Sums] = []
        private var block = Sums()
        private var end = -Double.infinity

        mutating func add(_ t: Double, _ y: Double, _ weight: Double) {
            if t >= end {
                if block.w > 0 { closed.append(block) }
                block = Sums()
                end = ((t / TrackingFit.blockSpan).rounded(.down) + 1) * TrackingFit.blockSpan
            }
            let (wt, wy) = (weight * t, weight * y)
            tt += wt * t
            ty += wy * t
            block.w += weight
            block.t += wt
            block.y += wy
            block.yy += wy * y
            block.ww += weight * weight
        }

        var colour: Double {
            let blocks = closed + [block]
            let w = blocks.reduce(0) { $0 + $1.w }
            guard blocks.count > 3, w > 0 else { return 0 }
            let t = blocks.reduce(0) { $0 + $1.t } / w
            let y = blocks.reduce(0) { $0 + $1.y } / w
            let spread = tt / w - t * t
            let slope = spread > 0 ? (ty / w - t * y) / spread : 0
            var (between, expected) = (0.0, 0.0)
            for block in blocks {
                let rest = block.y / block.w - y - slope * (block.t / block.w - t)
                let mean = block.y / block.w
                let inside = max(0, block.yy / block.w - mean * mean)
                between += block.w * rest * rest
                expected += block.w * inside * block.ww / (block.w * block.w)
            }
            // One standard deviation of a χ² more than expected passes for chance.
            let excess = between - expected * (1 + sqrt(2 / Double(blocks.count)))
            return excess > 0 ? sqrt(excess / w) : 0
        }
    }
}
