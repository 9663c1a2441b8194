import Synchronization

import func Glibc.sin

/// Impulse responses for reading a band-limited signal between its samples.
///
/// A sinc at the cut-off frequency under a Kaiser window, sampled at 256 phases between two input
/// frames; the phase in between is interpolated by a cubic through four neighbouring rows. With β =
/// 14 the window's side lobes lie at −137 dB, and the cubic's error below that. When the output is
/// slower than the input, cut-off and length scale with it, so that nothing folds back.
///
/// Immutable: built on the control side, shared by all voices of the same ratio.
/// `@unchecked Sendable`: the table is written in `init` only.
@safe final class FilterBank: @unchecked Sendable {
    static var phases: Int { Resampler.phases }
    private static let beta = 14.0

    /// Input frames that one output frame is made of; a multiple of 8.
    let taps: Int
    /// Rows for phases −1 … 258, each `taps / 8` vectors.
    let rows: UnsafeMutablePointer<SIMD8<Float>>

    /// - Parameters:
    ///   - taps: at full band; more are taken when `scale` is below 1. Multiple of 8.
    ///   - cutoff: −6 dB point, in units of half the input rate.
    ///   - scale: output rate by input rate where that is below 1, else 1.
    init(taps baseTaps: Int, cutoff: Double, scale: Double) {
        let wanted = Double(baseTaps) / scale / 8
        taps = 8 * min(128, max(1, Int(wanted) + (wanted > Double(Int(wanted)) ? 1 : 0)))
        let count = (Self.phases + 3) * taps
        unsafe rows = .allocate(capacity: count / 8)
        let table = unsafe UnsafeMutableRawPointer(rows).bindMemory(to: Float.self, capacity: count)

        // One side of the response, at every phase; both sides of all rows are taken from it.
        let reach = taps / 2 * Self.phases
        let edge = Self.bessel(Self.beta)
        let side = (0...reach).map { j in
            let t = Double(j) / Double(Self.phases)
            let u = Double(j) / Double(reach)
            let x = .pi * cutoff * scale * t
            return (j == 0 ? 1 : sin(x) / x) * Self.bessel(Self.beta * (1 - u * u).squareRoot())
                / edge
        }
        var row = [Double](repeating: 0, count: taps)
        for p in 0..<Self.phases + 3 {
            var sum = 0.0
            for k in 0..<taps {
                let j = ((k - taps / 2 + 1) * Self.phases - (p - 1)).magnitude
                row[k] = j <= reach ? side[Int(j)] : 0
                sum += row[k]
            }
            for k in 0..<taps { unsafe table[p * taps + k] = Float(row[k] / sum) }
        }
    }

    deinit { unsafe rows.deallocate() }

    /// Modified Bessel function of the first kind, order 0, by its power series.
    private static func bessel(_ x: Double) -> Double {
        var term = 1.0
        var sum = 1.0
        var n = 1.0
        let quarter = x * x / 4
        while term > sum * 1e-17 {
            term *= quarter / (n * n)
            sum += term
            n += 1
        }
        return sum
    }

    // MARK: Sharing

    private struct Key: Hashable { var taps: Int, cutoff: Double, scale: Double }
    private static let cache = Mutex<[Key: FilterBank]>([:])
    private static let cacheLimit = 16

    /// The bank for a pair of rates, made at first use and kept.
    ///
    /// Within 0.2 % of equal rates 64 taps suffice: above 0.9 of the band images are not wholly
    /// kept out, but they fall back on where they came from. Otherwise they would be heard
    /// elsewhere, and 128 taps keep a steeper edge: flat to 0.9 of the smaller band, −130 dB from
    /// 1.03 on.
    static func shared(inputRate: Double, outputRate: Double) -> FilterBank {
        let ratio = outputRate / inputRate
        let nearUnity = ratio > 0.998 && ratio < 1.002
        let scale = nearUnity ? 1 : min(1, ratio)
        let key = Key(
            taps: nearUnity ? 64 : 128, cutoff: 0.96,
            scale: Double(Int(scale * 10_000)) / 10_000)
        return cache.withLock { cache in
            if let bank = cache[key] { return bank }
            let bank = FilterBank(taps: key.taps, cutoff: key.cutoff, scale: max(key.scale, 1e-4))
            if cache.count >= cacheLimit { cache.removeAll() }
            cache[key] = bank
            return bank
        }
    }
}
