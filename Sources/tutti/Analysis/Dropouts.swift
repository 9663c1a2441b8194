/// The item as it should sound: decoded, one channel, on no clock yet.
struct Reference: Sendable {
    var sampleRate: Double
    /// The mean of all channels, −1…1.
    var samples: [Float]

    /// On the axis of true time, its first sound where the rooms' first sound is.
    func take(begin: Double) -> Take? {
        guard let first = samples.firstIndex(where: { abs($0) > Take.audible }) else { return nil }
        let nanosecondsPerFrame = 1e9 / sampleRate
        let start = begin - Double(first) * nanosecondsPerFrame
        return Take(
            name: "reference", sampleRate: sampleRate,
            segments: [
                .init(
                    samples: samples, anchorFrames: [0, Double(samples.count)],
                    anchorTimes: [start, start + Double(samples.count) * nanosecondsPerFrame])
            ])
    }
}

extension Lockstep {
    /// Runs of exact zeros this long are holes, seconds: programme material practically never has
    /// them.
    static let gapMin = 0.001
    /// A jump of the content this large, in samples, counts as an inserted or dropped piece.
    static let stepMin = 0.5
    /// Length of the windows in which jumps are looked for, seconds.
    private static let stepWindow = 0.1
    /// Holes closer than this are one, seconds.
    private static let mergeWithin = 0.020

    static func dropouts(
        takes: [Take], signals: [SkewMeter.Signal], reference: Reference?, begin: Double,
        end: Double
    ) -> [Dropout] {
        let model = reference?.take(begin: begin).map {
            SkewMeter.Signal($0, grid: signals[0].grid)
        }
        var found: [Dropout] = []
        for room in takes.indices {
            let others = signals.indices.filter { $0 != room }.map { signals[$0] }
            let witnesses = others + [model].compactMap { $0 }
            let holes = holes(in: takes[room], begin: begin, end: end).filter { hole in
                hole.kind == .underrun || witnesses.contains { $0.sounds(during: hole.range) }
            }
            found += holes.map {
                Dropout(
                    room: room, kind: $0.kind, seconds: ($0.range.lowerBound - begin) / 1e9,
                    milliseconds: ($0.range.upperBound - $0.range.lowerBound) / 1e6)
            }
            let against = model.map { [$0] } ?? others
            if let against = against.first {
                found += steps(
                    SkewMeter(against, signals[room]), room: room, begin: begin, end: end,
                    holes: holes.map(\.range))
            }
        }
        return found.sorted { $0.seconds < $1.seconds }
    }

    private typealias Hole = (range: ClosedRange<Double>, kind: Dropout.Kind)

    /// Runs of zeros inside segments and the time between segments, within the programme.
    private static func holes(in take: Take, begin: Double, end: Double) -> [Hole] {
        var holes: [Hole] = []
        for (number, segment) in take.segments.enumerated() {
            if number > 0 {
                let gapStart = take.segments[number - 1].end
                holes.append((gapStart...max(gapStart, segment.start), .underrun))
            }
            var run = 0
            let least = Int(gapMin * take.sampleRate)
            for index in 0...segment.samples.count {
                if index < segment.samples.count, segment.samples[index] == 0 {
                    run += 1
                    continue
                }
                if run >= least {
                    let start = segment.time(ofFrame: Double(index - run))
                    holes.append((start...segment.time(ofFrame: Double(index)), .gap))
                }
                run = 0
            }
        }
        let inside = holes.filter { $0.range.upperBound > begin && $0.range.lowerBound < end }
            .filter {
                $0.kind == .underrun || ($0.range.lowerBound > begin && $0.range.upperBound < end)
            }
            .sorted { $0.range.lowerBound < $1.range.lowerBound }
        var merged: [Hole] = []
        for hole in inside {
            if let last = merged.last,
                hole.range.lowerBound - last.range.upperBound < mergeWithin * 1e9
            {
                let kind = last.kind == .underrun || hole.kind == .underrun ? .underrun : last.kind
                merged[merged.count - 1] = (
                    last.range.lowerBound...max(last.range.upperBound, hole.range.upperBound), kind
                )
            } else {
                merged.append(hole)
            }
        }
        return merged
    }

    /// Jumps of the content of a room against the reference, or else against another room.
    private static func steps(
        _ meter: SkewMeter, room: Int, begin: Double, end: Double, holes: [ClosedRange<Double>]
    ) -> [Dropout] {
        let grid = meter.a.grid
        let range = (from: grid.index(begin), to: grid.index(end))
        let known = windows(
            meter, from: range.from, to: range.to, window: Self.window, hop: Self.hop
        ).compactMap { middle, window -> (middle: Int, lag: Double)? in
            guard case .matched(let lag) = window else { return nil }
            return (middle, lag)
        }
        let count = Int(stepWindow * grid.sampleRate)
        let series = stride(from: range.from, through: range.to - count, by: count / 2).map {
            start -> (middle: Int, SkewMeter.Window) in
            let middle = start + count / 2
            let reach = Int((Self.window / 2 + Self.hop) * grid.sampleRate)
            var lags: [Double] = []
            for (place, lag) in known where abs(place - middle) <= reach {
                // Lags that the search around another covers need no search of their own.
                if !lags.contains(where: { abs($0 - lag) * grid.sampleRate < 8 }) {
                    lags.append(lag)
                }
            }
            return (middle, meter.window(from: start, count: count, near: lags))
        }
        var found: [Dropout] = []
        var lastFlagged = -10
        for index in series.indices.dropFirst(2) {
            // Two hops apart, the windows touch but do not overlap.
            guard case .matched(let before) = series[index - 2].1,
                case .matched(let after) = series[index].1
            else { continue }
            let jump = after - before
            let time = grid.time(series[index - 1].middle)
            let isExplained = holes.contains {
                time > $0.lowerBound - 2e8 && time < $0.upperBound + 2e8
            }
            guard abs(jump) * grid.sampleRate >= stepMin, !isExplained else { continue }
            if index - lastFlagged > 2 {
                found.append(
                    Dropout(
                        room: room, kind: .step, seconds: (time - begin) / 1e9,
                        milliseconds: jump * 1e3))
            }
            lastFlagged = index
        }
        return found
    }
}

extension SkewMeter.Signal {
    /// Whether anything is to be heard within a hole of another room, its edges left out.
    fileprivate func sounds(during range: ClosedRange<Double>) -> Bool {
        let middle = grid.index((range.lowerBound + range.upperBound) / 2)
        let count = max(1, Int((range.upperBound - range.lowerBound) / 2e9 * grid.sampleRate))
        return level(from: middle - count / 2, count: count) > 10 * Double(Take.audible)
    }
}
