import TuttiTiming

/// How a card wants its samples, in the order in which we prefer them.
///
/// 32 bits first: a card then gets every bit that a Float has, or as many as it converts, also behind
/// ALSA's own conversions (`plug`).
/// A card that takes Float comes last, because only sound servers do and they convert once more.
@frozen
public enum SampleFormat: UInt8, Sendable, BitwiseCopyable, CaseIterable {
    /// 32-bit, little-endian.
    case signed32
    /// 24 bits in the low three bytes of 32, sign extended.
    case signed24
    /// 24 bits in three bytes.
    case signed24Packed
    case signed16
    case float32

    /// Bytes that one sample takes: 2, 3 or 4.
    public var bytesPerSample: Int {
        switch self {
        case .signed32, .signed24, .float32: 4
        case .signed24Packed: 3
        case .signed16: 2
        }
    }

    /// Bits of a sample in this format.
    var width: Int {
        switch self {
        case .signed32, .float32: 32
        case .signed24, .signed24Packed: 24
        case .signed16: 16
        }
    }
}

/// Turns rendered Float samples into what the card takes; the last step before the DAC.
///
/// Rounding to 16 or 24 bits, or to the 20 or 24 that a card converts of 32, makes an error that
/// follows the music and is heard as distortion. Adding noise of triangular density, one step to each side (TPDF: the difference of two uniform
/// numbers), makes mean and variance of the error independent of the music (Lipshitz, Wannamaker,
/// Vanderkooy, JAES 40/5, 1992). A Float has 24 significant bits, so a card that converts more than
/// 24 bits needs none.
/// A period of digital silence stays digital silence: cards may mute and idle rooms cost nothing.
///
/// The noise comes from an xorshift generator with a seed of its own; the same seed and samples
/// give the same bytes.
struct SampleEncoder {
    let format: SampleFormat
    /// Bits that are rounded to where noise is added; those below are zero.
    let significantBits: Int
    /// Steps of them from zero to full scale.
    private let steps: Double
    /// A step of them is 2^shift units of the format.
    private let shift: Int64
    private var noise: UInt64

    /// - Parameter significantBits: what the card converts of the format's bits, from the top;
    ///   `nil`: all, and so is what no card has (fewer than 8, more than the format's).
    init(
        format: SampleFormat, significantBits: Int? = nil, seed: UInt64 = 0x9E37_79B9_7F4A_7C15
    ) {
        self.format = format
        let bits = significantBits.map { (8...format.width).contains($0) ? $0 : format.width }
        self.significantBits = bits ?? format.width
        self.steps = Double(Int64(1) << Int64(self.significantBits - 1))
        self.shift = Int64(format.width - self.significantBits)
        self.noise = seed == 0 ? 1 : seed
    }

    /// - Parameters:
    ///   - source: `count` samples, −1…1; beyond is clipped, NaN is 0.
    ///   - target: room for `count × format.bytesPerSample` bytes, any alignment.
    @_noLocks @_noAllocation
    mutating func encode(
        _ source: UnsafePointer<Float>, count: Int, into target: UnsafeMutableRawPointer
    ) {
        var silent = true
        for i in 0..<count where unsafe source[i] != 0 {
            silent = false
            break
        }
        if silent {
            let bytes = unsafe target.assumingMemoryBound(to: UInt8.self)
            for i in 0..<(count * format.bytesPerSample) { unsafe bytes[i] = 0 }
            return
        }
        switch format {
        case .float32: unsafe encodeFloat(source, count: count, into: target)
        case .signed32 where significantBits <= Float.significandBitCount + 1:
            unsafe encodeWords(source, count: count, into: target)
        case .signed32: unsafe encode32(source, count: count, into: target)
        case .signed24: unsafe encodeWords(source, count: count, into: target)
        case .signed24Packed: unsafe encodePacked(source, count: count, into: target)
        case .signed16: unsafe encode16(source, count: count, into: target)
        }
    }

    @_noLocks @_noAllocation
    private func encodeFloat(
        _ source: UnsafePointer<Float>, count: Int, into target: UnsafeMutableRawPointer
    ) {
        for i in 0..<count {
            let x = unsafe source[i]
            let clipped: Float = x != x ? 0 : (x > 1 ? 1 : (x < -1 ? -1 : x))
            unsafe target.storeBytes(
                of: clipped.bitPattern.littleEndian, toByteOffset: i &* 4, as: UInt32.self)
        }
    }

    @_noLocks @_noAllocation
    private func encode32(
        _ source: UnsafePointer<Float>, count: Int, into target: UnsafeMutableRawPointer
    ) {
        for i in 0..<count {
            let value = unsafe Self.nearest(
                source[i], scale: 2_147_483_648, low: -2_147_483_648, high: 2_147_483_647, noise: 0)
            unsafe target.storeBytes(
                of: Int32(truncatingIfNeeded: value).littleEndian, toByteOffset: i &* 4,
                as: Int32.self)
        }
    }

    @_noLocks @_noAllocation
    private mutating func encodeWords(
        _ source: UnsafePointer<Float>, count: Int, into target: UnsafeMutableRawPointer
    ) {
        for i in 0..<count {
            let value = unsafe dithered(source[i])
            unsafe target.storeBytes(
                of: Int32(truncatingIfNeeded: value).littleEndian, toByteOffset: i &* 4,
                as: Int32.self)
        }
    }

    @_noLocks @_noAllocation
    private mutating func encodePacked(
        _ source: UnsafePointer<Float>, count: Int, into target: UnsafeMutableRawPointer
    ) {
        let bytes = unsafe target.assumingMemoryBound(to: UInt8.self)
        for i in 0..<count {
            let value = unsafe dithered(source[i])
            unsafe bytes[3 &* i] = UInt8(truncatingIfNeeded: value)
            unsafe bytes[3 &* i &+ 1] = UInt8(truncatingIfNeeded: value >> 8)
            unsafe bytes[3 &* i &+ 2] = UInt8(truncatingIfNeeded: value >> 16)
        }
    }

    @_noLocks @_noAllocation
    private mutating func encode16(
        _ source: UnsafePointer<Float>, count: Int, into target: UnsafeMutableRawPointer
    ) {
        for i in 0..<count {
            let value = unsafe dithered(source[i])
            unsafe target.storeBytes(
                of: Int16(truncatingIfNeeded: value).littleEndian, toByteOffset: i &* 2,
                as: Int16.self)
        }
    }

    /// In units of the format.
    @_noLocks @_noAllocation @inline(__always)
    private mutating func dithered(_ x: Float) -> Int64 {
        let step = Self.nearest(
            x, scale: steps, low: -steps, high: steps - 1, noise: triangular())
        return step &<< shift
    }

    /// `x × scale + noise` as the nearest whole number in `low…high`, of two as near the even one; NaN
    /// is 0.
    @_noLocks @_noAllocation @inline(__always)
    private static func nearest(
        _ x: Float, scale: Double, low: Double, high: Double, noise: Double
    ) -> Int64 {
        let wanted = x != x ? 0 : Double(x) * scale + noise
        let clipped = wanted > high ? high : (wanted < low ? low : wanted)
        // Beside 1.5 · 2⁵² a double keeps whole numbers only: the sum's last bits are the nearest one,
        // found without the traps of `Int64(_:)`, so several at once.
        return Int64(bitPattern: (clipped + Self.wholeBits).bitPattern &- Self.wholeBits.bitPattern)
    }

    private static var wholeBits: Double {
        @_noLocks @_noAllocation @inline(__always) get { 6_755_399_441_055_744 }
    }

    /// The difference of two uniform numbers: −1…1, density 1 − |x|, variance 1/6.
    @_noLocks @_noAllocation @inline(__always)
    private mutating func triangular() -> Double {
        noise ^= noise << 13
        noise ^= noise >> 7
        noise ^= noise << 17
        let bits = noise &* 0x2545_F491_4F6C_DD1D
        let a = Int64(bits >> 32)
        let b = Int64(bits & 0xFFFF_FFFF)
        return Double(a &- b) * (1 / 4_294_967_296)
    }
}
