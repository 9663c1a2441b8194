import TuttiTiming

/// How fast frames come, as measured: whether what is buffered will do, or there would be a stall.
struct SupplyMeter: Equatable, Sendable {
    /// What was decoded, in frames of the voice, and how long that took.
    private(set) var frames: Int64 = 0
    private(set) var span = Nanoseconds.zero

    /// What comes this much faster than it is played will do, whatever a busy machine costs now and
    /// then.
    static let margin = 1.25

    /// How many frames count, at most: a quarter of what is decoded ahead, so that a medium that becomes
    /// slow is found to be so while there is something to play on with. Of fewer, one hesitation of a disc
    /// would be all that there is.
    static let memory: Int64 = 1 << 15

    mutating func count(_ frames: Int64, in span: Nanoseconds) {
        self.frames += frames
        self.span += max(.zero, span)
        if self.frames > Self.memory {
            self.frames /= 2
            self.span = Nanoseconds(self.span.count / 2)
        }
    }

    /// Frames a second; infinite where it took no time, 0 before anything came.
    var throughput: Double {
        guard frames > 0 else { return 0 }
        return span > .zero ? Double(frames) / span.seconds : .infinity
    }

    /// Whether playing could begin now and would not have to wait again.
    ///
    /// - Parameters:
    ///   - buffered: frames at hand.
    ///   - rest: frames that are not decoded yet; `nil`: without end.
    ///   - speed: frames that are played in a second.
    func keepsUp(buffered: Int64, rest: Int64?, speed: Double) -> Bool {
        let throughput = throughput / Self.margin
        guard throughput < speed else { return true }
        guard let rest, throughput > 0 else { return rest == 0 }
        // The last frame must have come when all before it have been played.
        return Double(rest) / throughput <= Double(buffered + rest) / speed
    }
}
