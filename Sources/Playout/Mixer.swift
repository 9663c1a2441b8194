/// Turns the stereo sum of the voices into the card's channels: volume, mute, channel role.
///
/// All three are one 2 × 2 matrix, and each change is a ramp of its four coefficients.
struct Mixer: BitwiseCopyable {
    /// Rows: what goes to the first and the second channel; columns: left and right of the item.
    private var current = SIMD4<Float>(1, 0, 0, 1)
    private var target = SIMD4<Float>(1, 0, 0, 1)
    private var step = SIMD4<Float>(repeating: 0)
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
        if isSilent {
            current = wanted
            left = 0
        } else {
            left = max(1, rampFrames)
            step = (wanted - current) / Float(left)
        }
    }

    /// Writes one period, interleaved; channels beyond the second are silent.
    @_noLocks @_noAllocation
    mutating func write(
        left sumLeft: UnsafePointer<Float>, right sumRight: UnsafePointer<Float>, count: Int,
        into output: UnsafeMutablePointer<Float>, channels: Int
    ) {
        var matrix = current
        var o = 0
        for i in 0..<count {
            if left > 0 {
                left -= 1
                matrix = left == 0 ? target : matrix + step
            }
            let l = unsafe sumLeft[i]
            let r = unsafe sumRight[i]
            unsafe output[o] = l * matrix[0] + r * matrix[1]
            if channels > 1 { unsafe output[o + 1] = l * matrix[2] + r * matrix[3] }
            var c = 2
            while c < channels {
                unsafe output[o + c] = 0
                c += 1
            }
            o += channels
        }
        current = matrix
    }
}
