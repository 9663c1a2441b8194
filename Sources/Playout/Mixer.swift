/// Turns the sums of the voices into the card's channels: volume, mute, channel role.
///
/// For the first two channels all three are one 2 × 2 matrix, and each change is a ramp of its four
/// coefficients. Further pairs, which only voices of items with more than two channels play to, have
/// the volume alone; a room that plays a part of an item has none of them.
struct Mixer: BitwiseCopyable {
    /// Rows: what goes to the first and the second channel; columns: left and right of the item.
    private var current = SIMD4<Float>(1, 0, 0, 1)
    private var target = SIMD4<Float>(1, 0, 0, 1)
    private var step = SIMD4<Float>(repeating: 0)
    /// Of the pairs behind the first.
    private var further: Float = 1
    private var furtherTarget: Float = 1
    private var furtherStep: Float = 0
    private var left = 0

    /// 20 ms: no click, and still felt as at once.
    static var rampSeconds: Double {
        @_noLocks @_noAllocation get { 0.02 }
    }

    init() {}

    /// Ramps to what `settings` ask for; `isSilent`: nothing sounds, so set it at once.
    @_noLocks @_noAllocation
    mutating func set(_ settings: OutputSettings, channels: Int, rampFrames: Int, isSilent: Bool) {
        let g = settings.gain
        let wanted: SIMD4<Float> =
            switch settings.role {
            case .left: SIMD4(g, 0, g, 0)
            case .right: SIMD4(0, g, 0, g)
            case .mono: SIMD4(g / 2, g / 2, g / 2, g / 2)
            case .stereo:
                channels == 1 ? SIMD4(g / 2, g / 2, g / 2, g / 2) : SIMD4(g, 0, 0, g)
            }
        guard wanted != target else { return }
        target = wanted
        switch settings.role {
        case .stereo: furtherTarget = g
        case .left, .right, .mono: furtherTarget = 0
        }
        if isSilent {
            current = wanted
            further = furtherTarget
            left = 0
        } else {
            left = max(1, rampFrames)
            step = (wanted - current) / Float(left)
            furtherStep = (furtherTarget - further) / Float(left)
        }
    }

    /// Writes one period, interleaved; channels of pairs that nobody plays to are silent.
    ///
    /// - Parameters:
    ///   - left, right: the sums of each pair, one behind the other.
    ///   - pairs: how many of them are played to.
    @_noLocks @_noAllocation
    mutating func write(
        left sumLeft: UnsafePointer<Float>, right sumRight: UnsafePointer<Float>, count: Int,
        into output: UnsafeMutablePointer<Float>, channels: Int, pairs: Int = 1
    ) {
        let ramp = min(left, count)
        let (first, firstLeft) = (further, left)
        for i in 0..<ramp {
            left -= 1
            current = left == 0 ? target : current + step
            unsafe put(i..<i + 1, sumLeft, sumRight, output, channels)
        }
        unsafe put(ramp..<count, sumLeft, sumRight, output, channels)
        further = left == 0 ? furtherTarget : first + Float(ramp) * furtherStep
        var pair = 1
        while pair < pairs {
            for i in 0..<count {
                let isOver = i >= firstLeft
                let gain = isOver ? furtherTarget : first + Float(i &+ 1) * furtherStep
                let frame = unsafe output + i &* channels
                unsafe frame[2 &* pair] = sumLeft[pair &* count &+ i] * gain
                if 2 &* pair &+ 1 < channels {
                    unsafe frame[2 &* pair &+ 1] = sumRight[pair &* count &+ i] * gain
                }
            }
            pair &+= 1
        }
    }

    /// Frames under one matrix.
    @_noLocks @_noAllocation @inline(__always)
    private func put(
        _ frames: Range<Int>, _ sumLeft: UnsafePointer<Float>, _ sumRight: UnsafePointer<Float>,
        _ output: UnsafeMutablePointer<Float>, _ channels: Int
    ) {
        let (a, b, c, d) = (current[0], current[1], current[2], current[3])
        var i = frames.lowerBound
        if channels == 2 {
            // Most cards. Without the loop over channels below a period costs a fourteenth less
            // (`tutti bench render/1`).
            while i < frames.upperBound {
                let l = unsafe sumLeft[i]
                let r = unsafe sumRight[i]
                unsafe output[2 &* i] = l * a + r * b
                unsafe output[2 &* i &+ 1] = l * c + r * d
                i &+= 1
            }
            return
        }
        while i < frames.upperBound {
            let l = unsafe sumLeft[i]
            let r = unsafe sumRight[i]
            let frame = unsafe output + i &* channels
            unsafe frame[0] = l * a + r * b
            if channels > 1 { unsafe frame[1] = l * c + r * d }
            var channel = 2
            while channel < channels {
                unsafe frame[channel] = 0
                channel &+= 1
            }
            i &+= 1
        }
    }
}
