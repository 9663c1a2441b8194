import CTuttiVector

import func Glibc.cos
import func Glibc.sin

/// Where in an item the output frames of one period lie: `base + offset + step·k + bend·k²`.
///
/// Exact at both ends of the period, and the step grows from frame to frame, so that a change of
/// the ratio has no edge. `base` is whole and `offset` small, so that the fraction keeps its
/// precision hours into an item.
struct FramePath: BitwiseCopyable {
    var base: Int64
    var offset: Double
    var step: Double
    var bend: Double

    @_noLocks @_noAllocation
    init(base: Int64, offset: Double, step: Double, bend: Double) {
        self.base = base
        self.offset = offset
        self.step = step
        self.bend = bend
    }

    /// Position of output frame `k`, relative to `base`.
    @_noLocks @_noAllocation
    func offset(_ k: Int) -> Double {
        let k = Double(k)
        return offset + k * (step + k * bend)
    }

    /// The first output frame in `0 ... count` whose position reaches `frame`.
    @_noLocks @_noAllocation
    func firstIndex(reaching frame: Double, count: Int) -> Int {
        let target = frame - Double(base)
        if offset(0) >= target { return 0 }
        if offset(count) < target { return count }
        var low = 0
        var high = count
        while high - low > 1 {
            let middle = (low + high) / 2
            if offset(middle) >= target { high = middle } else { low = middle }
        }
        return high
    }
}

/// Memory of the output thread, made once.
@safe struct RenderBuffers: BitwiseCopyable {
    /// Input frames that a piece of a period can need; longer ones are cut into pieces.
    static var inputFrames: Int {
        @_noLocks @_noAllocation get { 4096 }
    }

    let inputLeft: UnsafeMutablePointer<Float>
    let inputRight: UnsafeMutablePointer<Float>
    /// Sum of the voices, one period; for each pair of the output's channels one behind the other, and
    /// a last one for what has nowhere to go.
    var sumLeft: UnsafeMutablePointer<Float>
    var sumRight: UnsafeMutablePointer<Float>
    /// Fade of the voice in work, one period.
    let gains: UnsafeMutablePointer<Float>
    /// The same of its ghost, while it jumps.
    let ghostGains: UnsafeMutablePointer<Float>
    /// Raised cosine from 0 to 1, `fadeFrames + 1` values.
    let fade: UnsafeMutablePointer<Float>
    let fadeFrames: Int
    /// Rise of a cross-fade, `crossFrames + 1` values; read backwards the fall, and the sum of the
    /// squares of both is 1.
    let cross: UnsafeMutablePointer<Float>
    let crossFrames: Int
    /// Whether eight floats are multiplied and added in one instruction.
    var fusesMultiplyAdd = Self.processorFuses

    /// Whether the processor can: most x86-64 since 2013, but not all of them, and Swift compiles
    /// for all. Elsewhere it uses what there is.
    static var processorFuses: Bool {
        #if arch(x86_64)
        tutti_has_fused_multiply_add()
        #else
        false
        #endif
    }
}

extension RenderBuffers {
    init(for format: OutputFormat) {
        fadeFrames = max(1, format.sampleRate / 200)
        crossFrames = max(1, format.sampleRate * 15 / 1000)
        unsafe inputLeft = .allocate(capacity: Self.inputFrames)
        unsafe inputRight = .allocate(capacity: Self.inputFrames)
        let sums = format.periodFrames * (format.pairCount + 1)
        unsafe sumLeft = .allocate(capacity: sums)
        unsafe sumRight = .allocate(capacity: sums)
        unsafe sumLeft.initialize(repeating: 0, count: sums)
        unsafe sumRight.initialize(repeating: 0, count: sums)
        unsafe gains = .allocate(capacity: format.periodFrames)
        unsafe ghostGains = .allocate(capacity: format.periodFrames)
        unsafe fade = .allocate(capacity: fadeFrames + 1)
        unsafe cross = .allocate(capacity: crossFrames + 1)
        for i in 0...crossFrames {
            // Equal power, with no corner at either end.
            let x = 0.5 - 0.5 * cos(.pi * Double(i) / Double(crossFrames))
            unsafe (cross + i).initialize(to: Float(sin(0.5 * .pi * x)))
        }
        for i in 0...fadeFrames {
            let x = Double(i) / Double(fadeFrames)
            unsafe (fade + i).initialize(to: Float(0.5 - 0.5 * cos(.pi * x)))
        }
    }

    /// The same for another pair of the output's channels.
    @_noLocks @_noAllocation
    func pair(_ pair: Int, of count: Int) -> RenderBuffers {
        var other = self
        unsafe other.sumLeft += pair * count
        unsafe other.sumRight += pair * count
        return other
    }

    func deallocate() {
        unsafe inputLeft.deallocate()
        unsafe inputRight.deallocate()
        unsafe sumLeft.deallocate()
        unsafe sumRight.deallocate()
        unsafe gains.deallocate()
        unsafe ghostGains.deallocate()
        unsafe fade.deallocate()
        unsafe cross.deallocate()
    }
}

/// Reads `bank.taps` input frames around each position and adds the result to the sum.
enum Resampler {
    /// Rows of a filter bank between two input frames.
    static var phases: Int {
        @_noLocks @_noAllocation get { 1 << phaseBits }
    }
    private static var phaseBits: Int {
        @_noLocks @_noAllocation @inline(__always) get { 8 }
    }

    /// - Parameters:
    ///   - outputs: output frames of the period, cut so that the input fits the buffers.
    ///   - path: positions; `path.offset(k) − origin` lies within the input with half the taps on
    ///     either side.
    ///   - origin: the whole input position, relative to `path.base`, whose first tap is at index
    ///     0.
    ///   - gains: one per output frame of the period; `nil`: 1.
    @_noLocks @_noAllocation
    static func add(
        outputs: Range<Int>, path: FramePath, origin: Int, rows: UnsafePointer<SIMD8<Float>>,
        taps: Int, buffers: RenderBuffers, gains: UnsafePointer<Float>?
    ) {
        #if arch(x86_64)
        if buffers.fusesMultiplyAdd {
            return unsafe addFused(
                outputs: outputs, path: path, origin: origin, rows: rows, taps: taps,
                buffers: buffers, gains: gains)
        }
        #endif
        let vectors = taps / 8
        let left = unsafe UnsafeRawPointer(buffers.inputLeft)
        let right = unsafe UnsafeRawPointer(buffers.inputRight)
        var k = outputs.lowerBound
        while k < outputs.upperBound {
            let phase = Phase(at: path.offset(k) - Double(origin))
            let u = phase.u
            // Lagrange through the rows at −1, 0, 1, 2. Factors in common are left to the
            // optimiser: taken out here, it pairs the weights and shuffles vectors in the loop
            // below.
            let w0 = SIMD8<Float>(repeating: Float(-u * (u - 1) * (u - 2) / 6))
            let w1 = SIMD8<Float>(repeating: Float((u + 1) * (u - 1) * (u - 2) / 2))
            let w2 = SIMD8<Float>(repeating: Float(-(u + 1) * u * (u - 2) / 2))
            let w3 = SIMD8<Float>(repeating: Float((u + 1) * u * (u - 1) / 6))
            let row0 = unsafe rows + phase.row &* vectors
            let row1 = unsafe row0 + vectors
            let row2 = unsafe row1 + vectors
            let row3 = unsafe row2 + vectors
            var sumLeft = SIMD8<Float>(repeating: 0)
            var sumRight = SIMD8<Float>(repeating: 0)
            var v = 0
            var byte = 4 &* phase.frame
            while v < vectors {
                let h = unsafe row0[v] * w0 + row1[v] * w1 + (row2[v] * w2 + row3[v] * w3)
                sumLeft +=
                    unsafe left.loadUnaligned(fromByteOffset: byte, as: SIMD8<Float>.self) * h
                sumRight +=
                    unsafe right.loadUnaligned(fromByteOffset: byte, as: SIMD8<Float>.self) * h
                v &+= 1
                byte &+= 32
            }
            let gain = if let gains = unsafe gains { unsafe gains[k] } else { Float(1) }
            unsafe buffers.sumLeft[k] += total(sumLeft) * gain
            unsafe buffers.sumRight[k] += total(sumRight) * gain
            k &+= 1
        }
    }

    #if arch(x86_64)
    /// The same in less time, where the processor has eight multiply-adds at once.
    ///
    /// Near equal rates neighbours lie between the same rows, and these are read once for both.
    @_noLocks @_noAllocation
    private static func addFused(
        outputs: Range<Int>, path: FramePath, origin: Int, rows: UnsafePointer<SIMD8<Float>>,
        taps: Int, buffers: RenderBuffers, gains: UnsafePointer<Float>?
    ) {
        let stride = taps &* MemoryLayout<Float>.size
        let table = unsafe UnsafeRawPointer(rows)
        var k = outputs.lowerBound
        var phase = Phase(at: path.offset(k) - Double(origin))
        while k < outputs.upperBound {
            let row = unsafe (table + phase.row &* stride).assumingMemoryBound(to: Float.self)
            let left = unsafe buffers.inputLeft + phase.frame
            let right = unsafe buffers.inputRight + phase.frame
            let next = Phase(at: path.offset(k &+ 1) - Double(origin))
            if next.row == phase.row, k &+ 1 < outputs.upperBound {
                let pair = unsafe tutti_filter_pair(
                    row, taps, phase.u, next.u, next.frame &- phase.frame, left, right)
                unsafe mix(pair.first, at: k, buffers, gains)
                unsafe mix(pair.second, at: k &+ 1, buffers, gains)
                k &+= 2
                phase = Phase(at: path.offset(k) - Double(origin))
            } else {
                unsafe mix(tutti_filter(row, taps, phase.u, left, right), at: k, buffers, gains)
                k &+= 1
                phase = next
            }
        }
    }

    @_noLocks @_noAllocation @inline(__always)
    private static func mix(
        _ sample: tutti_stereo_sample, at k: Int, _ buffers: RenderBuffers,
        _ gains: UnsafePointer<Float>?
    ) {
        let gain = if let gains = unsafe gains { unsafe gains[k] } else { Float(1) }
        unsafe buffers.sumLeft[k] += sample.left * gain
        unsafe buffers.sumRight[k] += sample.right * gain
    }
    #endif

    /// A position between two input frames, as rows of the filter bank and their weights.
    private struct Phase {
        /// The input frame of the first tap.
        var frame: Int
        /// The first of four rows.
        var row: Int
        /// Where between the second and the third of them, 0…1.
        var u: Double

        /// - Parameter position: input frames from the first one on; not negative.
        @_noLocks @_noAllocation @inline(__always)
        init(at position: Double) {
            // Beside 1.5 · 2⁵² a double keeps whole numbers only: the sum's last bits are the row
            // below the position, found without the traps of `Int(_:)`. A position on a row may get
            // the row below, and u = 1.
            let x = position * Double(phases)
            let shifted = (x - 0.5) + Self.wholeBits
            let index = Int(truncatingIfNeeded: shifted.bitPattern &- Self.wholeBits.bitPattern)
            u = x - (shifted - Self.wholeBits)
            frame = index >> phaseBits
            row = index & (phases - 1)
        }

        /// 1.5 · 2⁵²: doubles of this size are whole, and their last bits count.
        private static var wholeBits: Double {
            @_noLocks @_noAllocation @inline(__always) get { 6_755_399_441_055_744 }
        }
    }

    @_noLocks @_noAllocation
    @inline(__always)
    private static func total(_ v: SIMD8<Float>) -> Float {
        ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]))
    }
}
