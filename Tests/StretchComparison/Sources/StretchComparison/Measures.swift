import Foundation

/// Numbers that say how something sounds.
enum Measures {
    /// Root mean square, decibels.
    static func level(_ samples: ArraySlice<Float>) -> Double {
        let power = samples.reduce(0.0) { $0 + Double($1) * Double($1) }
        return 10 * log10(power / Double(max(1, samples.count)) + 1e-30)
    }

    /// What is left beside tones near `hertz` in pieces of `length` samples, decibels against them.
    ///
    /// Each tone's frequency may be off by a hertz: it is found in the whole piece, so that a shift of
    /// pitch too slow to be heard is not taken for noise.
    static func rest(beside hertz: [Double], in samples: [Float], length: Int) -> [Double] {
        stride(from: 14_400, to: samples.count - 14_400 - length, by: 2 * length).map { start in
            let piece = samples[start..<start + length].map(Double.init)
            var found = hertz
            var best = rest(beside: found, in: piece)
            for step in [1, 0.3, 0.1, 0.03, 0.01, 0.003] {
                for _ in 0..<6 {
                    let before = best
                    for k in found.indices {
                        for change in [-step, step] {
                            var other = found
                            other[k] += change
                            let value = rest(beside: other, in: piece)
                            if value < best { (best, found) = (value, other) }
                        }
                    }
                    if best == before { break }
                }
            }
            return best
        }
    }

    private static func rest(beside hertz: [Double], in piece: [Double]) -> Double {
        // Least squares on an orthogonal basis (Gram and Schmidt).
        var basis: [[Double]] = []
        var rest = piece
        for f in hertz {
            for phase in [0, Double.pi / 2] {
                var v = piece.indices.map { sin(2 * .pi * f / 48_000 * Double($0) + phase) }
                for b in basis { subtract(b, from: &v) }
                let norm = v.reduce(0) { $0 + $1 * $1 }.squareRoot()
                v = v.map { $0 / norm }
                subtract(v, from: &rest)
                basis.append(v)
            }
        }
        let left = rest.reduce(0) { $0 + $1 * $1 }
        let all = piece.reduce(0) { $0 + $1 * $1 }
        return 10 * log10(left / (all - left) + 1e-20)
    }

    private static func subtract(_ b: [Double], from v: inout [Double]) {
        let part = zip(b, v).reduce(0) { $0 + $1.0 * $1.1 }
        for i in v.indices { v[i] -= part * b[i] }
    }

    /// Where clicks are heard, milliseconds from where they should be, and how high.
    ///
    /// Contenders may be late by a constant: the median is taken off.
    static func clicks(
        every distance: Int, first: Int, in samples: [Float], rate: Double
    ) -> (spread: Double, height: Double) {
        var offsets: [Double] = []
        var heights: [Float] = []
        var click = first
        while Double(click + distance / 2) / rate < Double(samples.count) {
            let low = max(0, Int(Double(click - distance / 2) / rate))
            let high = Int(Double(click + distance / 2) / rate)
            let peak = (low..<high).max { samples[$0].magnitude < samples[$1].magnitude }!
            heights.append(samples[peak].magnitude)
            if samples[peak].magnitude > 0.02 {
                offsets.append((Double(peak) - Double(click) / rate) / 48)
            }
            click += distance
        }
        let median = offsets.sorted()[offsets.count / 2]
        let spread = offsets.map { ($0 - median).magnitude }.max()!
        return (spread, Double(heights.reduce(0, +)) / Double(heights.count))
    }

    /// Processor time of this thread, seconds.
    static func processorTime(_ body: () throws -> Void) rethrows -> Double {
        var begin = timespec()
        var end = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin)
        try body()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end)
        return Double(end.tv_sec - begin.tv_sec) + Double(end.tv_nsec - begin.tv_nsec) * 1e-9
    }
}
