/// The volume of one voice: each change is a ramp of 20 ms, as the mixer's is.
struct VoiceGain: BitwiseCopyable {
    private(set) var current: Float = 1
    private var target: Float = 1
    private var step: Float = 0
    private var left = 0

    /// Whether every frame is played as it is.
    var isUnity: Bool {
        @_noLocks @_noAllocation get { left == 0 && current == 1 }
    }

    @_noLocks @_noAllocation
    init() {}

    /// - Parameter rampFrames: 0: at once, for a voice that does not sound.
    @_noLocks @_noAllocation
    mutating func set(_ gain: Float, rampFrames: Int) {
        target = gain
        left = gain == current ? 0 : rampFrames
        if left == 0 {
            current = gain
        } else {
            step = (gain - current) / Float(left)
        }
    }

    /// Of the next output frame.
    @_noLocks @_noAllocation
    mutating func next() -> Float {
        guard left > 0 else { return current }
        left -= 1
        current = left == 0 ? target : current + step
        return current
    }
}
