import func Glibc.atan2
import func Glibc.cos
import func Glibc.sin

/// By how much the phases of an item's spectrum are turned so that each partial continues itself.
///
/// A number of length 1 for every bin. One turn holds for all bins around a peak (identity phase
/// locking; J. Laroche, M. Dolson, "Improved phase vocoder time-scale modification of audio",
/// 1999): within such a region the phases stay as they are to each other in the item, and so does
/// the shape of what they make up.
@safe struct PhaseChain {
    /// Real and imaginary parts.
    let turns: StereoBuffer
    let bins: Int

    init(bins: Int) {
        self.bins = bins
        turns = StereoBuffer(capacity: bins)
        reset()
    }

    /// As the item is.
    func reset() {
        for i in 0..<bins {
            unsafe turns.left[i] = 1
            unsafe turns.right[i] = 0
        }
    }

    /// Goes on by a hop.
    ///
    /// What sounded at a peak had phase `turn · last`; a hop later it has turned further by what
    /// the item turns there within a hop: `now / before`. So the new turn is that of `turn · last /
    /// before`.
    ///
    /// - Parameter advances: for every bin, `last · conj(before)`, summed over both channels.
    func advance(by advances: StereoBuffer, regions: SpectrumRegions) {
        for index in 0..<regions.count {
            let peak = regions.peak(index)
            let turn = unsafe SIMD2(turns.left[peak], turns.right[peak])
            let advance = unsafe SIMD2(advances.left[peak], advances.right[peak])
            let next = Self.unit(Self.product(turn, advance)) ?? SIMD2(1, 0)
            set(next, region: index, of: regions)
        }
    }

    /// Turns a share of the way to those of another chain, the shorter way round. Nothing gets
    /// louder or softer on it.
    ///
    /// - Parameter share: 0…1.
    func approach(_ other: PhaseChain, share: Double, regions: SpectrumRegions) {
        for index in 0..<regions.count {
            let peak = regions.peak(index)
            let own = unsafe SIMD2(turns.left[peak], turns.right[peak])
            let wanted = unsafe SIMD2(other.turns.left[peak], other.turns.right[peak])
            let sine = own.x * wanted.y - own.y * wanted.x
            let angle = share * atan2(Double(sine), Double((own * wanted).sum()))
            let step = SIMD2(Float(cos(angle)), Float(sin(angle)))
            set(Self.product(own, step), region: index, of: regions)
        }
    }

    /// Shifts what is in `bins` as a whole, whatever was before.
    ///
    /// - Parameter turnPerBin: radians.
    func shift(_ bins: Range<Int>, turnPerBin: Double) {
        for i in bins {
            let angle = turnPerBin * Double(i)
            unsafe turns.left[i] = Float(cos(angle))
            unsafe turns.right[i] = Float(sin(angle))
        }
    }

    private func set(_ turn: SIMD2<Float>, region: Int, of regions: SpectrumRegions) {
        for i in regions.bins(region) {
            unsafe turns.left[i] = turn.x
            unsafe turns.right[i] = turn.y
        }
    }

    @inline(__always)
    private static func product(_ a: SIMD2<Float>, _ b: SIMD2<Float>) -> SIMD2<Float> {
        SIMD2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x)
    }

    /// - Returns: `nil` where there is next to nothing.
    @inline(__always)
    private static func unit(_ z: SIMD2<Float>) -> SIMD2<Float>? {
        let power = z.x * z.x + z.y * z.y
        return power > 1e-30 ? z / power.squareRoot() : nil
    }
}

/// The peaks of a spectrum and the bins that belong to each.
struct SpectrumRegions {
    private var peaks: [Int] = []
    /// The first bin of each region, and behind the last one.
    private var bounds: [Int] = []

    init(bins: Int) {
        peaks.reserveCapacity(bins)
        bounds.reserveCapacity(bins + 1)
    }

    var count: Int { peaks.count }
    func peak(_ index: Int) -> Int { peaks[index] }
    func bins(_ index: Int) -> Range<Int> { bounds[index]..<bounds[index + 1] }

    /// A peak is larger than two bins to either side of it; two regions meet at the least bin
    /// between their peaks. There is one region at least.
    mutating func find(in powers: UnsafeBufferPointer<Float>) {
        peaks.removeAll(keepingCapacity: true)
        bounds.removeAll(keepingCapacity: true)
        bounds.append(0)
        let count = powers.count
        for i in 0..<count {
            let power = unsafe powers[i]
            let isPeak =
                unsafe (i < 1 || power > powers[i - 1]) && (i < 2 || power > powers[i - 2])
                && (i + 1 >= count || power >= powers[i + 1])
                && (i + 2 >= count || power >= powers[i + 2])
            guard isPeak else { continue }
            if let last = peaks.last {
                var least = last + 1
                for k in last + 1..<i where unsafe powers[k] < powers[least] { least = k }
                bounds.append(least)
            }
            peaks.append(i)
        }
        if peaks.isEmpty { peaks.append(0) }
        bounds.append(count)
    }
}
