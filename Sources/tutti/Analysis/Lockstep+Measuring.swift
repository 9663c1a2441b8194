extension Lockstep {
    /// Compares all rooms with each other.
    ///
    /// - Parameters:
    ///   - takes: at least one; what left the cards.
    ///   - reference: the item itself, if at hand: finds jumps that all rooms make together.
    /// - Returns: `nil` when no room ever sounded.
    static func measure(_ takes: [Take], reference: Reference? = nil) -> Lockstep? {
        let audible = takes.map(\.audibleRange)
        guard let begin = audible.compactMap({ $0?.lowerBound }).min(),
            let lastBegin = audible.compactMap({ $0?.lowerBound }).max(),
            let end = audible.compactMap({ $0?.upperBound }).max()
        else { return nil }
        let rate = takes[0].sampleRate
        let lead = (SkewMeter.reach * 1.5) * 1e9
        let grid = TimeGrid(
            start: begin - lead, sampleRate: rate,
            count: Int((end - begin + 2 * lead) * rate / 1e9))
        let signals = takes.map { SkewMeter.Signal($0, grid: grid) }

        var result = Lockstep(
            rooms: takes.map(\.name), pairs: [], points: [], startSkewMicroseconds: .nan,
            dropouts: [], programmeSeconds: (end - begin) / 1e9)
        for first in takes.indices {
            for second in takes.indices where second > first {
                result.pairs.append((first, second))
            }
        }
        let from = grid.index(begin)
        let to = grid.index(end)
        for (number, pair) in result.pairs.enumerated() {
            let meter = SkewMeter(signals[pair.first], signals[pair.second])
            for (middle, window) in windows(meter, from: from, to: to, window: window, hop: hop) {
                let seconds = (grid.time(middle) - begin) / 1e9
                switch window {
                case .silent: break
                case .unmatched:
                    result.points.append(
                        .init(pair: number, seconds: seconds, skewMicroseconds: nil))
                case .matched(let skew):
                    result.points.append(
                        .init(pair: number, seconds: seconds, skewMicroseconds: skew * 1e6))
                }
            }
        }
        result.startSkewMicroseconds = startSkew(
            result.pairs.map { SkewMeter(signals[$0.first], signals[$0.second]) },
            from: grid.index(lastBegin), spread: audible.contains(nil) ? .nan : lastBegin - begin)
        result.dropouts = dropouts(
            takes: takes, signals: signals, reference: reference, begin: begin, end: end)
        return result
    }

    /// The windows of a pair that fit between two places of the grid, with their middles.
    static func windows(
        _ meter: SkewMeter, from: Int, to: Int, window: Double, hop: Double
    ) -> [(middle: Int, SkewMeter.Window)] {
        let count = Int(window * meter.a.grid.sampleRate)
        let step = Int(hop * meter.a.grid.sampleRate)
        return stride(from: from, through: to - count, by: step).map {
            ($0 + count / 2, meter.window(from: $0, count: count))
        }
    }

    /// - Parameter spread: nanoseconds between the first sound of the first and the last room.
    private static func startSkew(
        _ meters: [SkewMeter], from: Int, spread: Double
    ) -> Double {
        // Further apart than a window can tell: the first sounds themselves say by how much.
        guard spread < SkewMeter.reach * 1e9 else { return spread / 1e3 }
        var worst = meters.isEmpty ? 0 : Double.nan
        for meter in meters {
            let to = from + Int(startLength * meter.a.grid.sampleRate)
            for case (_, .matched(let skew)) in windows(
                meter, from: from, to: to, window: startWindow, hop: startHop)
            {
                worst = worst.isNaN ? abs(skew) * 1e6 : max(worst, abs(skew) * 1e6)
            }
        }
        return worst
    }
}
