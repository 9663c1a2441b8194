import Timing

/// Finds out, on the first silence, whether a card counts frame by frame or in jumps.
///
/// Some cards move their pointer with every frame; others by a burst, by a millisecond (USB) or
/// only at a period's interrupt. A pointer that jumps is right just after the jump and late ever
/// after, never early. So the two want to be read at different moments: the fine one anywhere, so
/// that its rounding is noise; the coarse one at once when the card wakes us. A pair of looks
/// some frames apart tells: a fine pointer has moved by the time in between, a coarse one has not,
/// or by too much.
struct PointerProbe {
    enum Verdict { case probing, fine, coarse }

    private(set) var verdict = Verdict.probing
    private var looks = 0
    private var fineLooks = 0

    private static let looksNeeded = 12
    /// A preempted look or two do not make a card coarse.
    private static let fineLooksNeeded = 8
    /// Both counts are whole frames, and a plug-in reads them up to a frame apart from the stamp.
    private static let tolerance = 2.0
    /// Between the two looks: ten frames at 48 kHz, and no burst of 16 passes for them.
    static let pause = Nanoseconds.microseconds(210)

    /// Two looks at a running card: how far it came, in which time.
    mutating func observe(framesMoved: Int, in time: Nanoseconds, sampleRate: Int) {
        guard verdict == .probing else { return }
        let expected = time.seconds * Double(sampleRate)
        looks += 1
        if abs(Double(framesMoved) - expected) <= Self.tolerance { fineLooks += 1 }
        if looks == Self.looksNeeded {
            verdict = fineLooks >= Self.fineLooksNeeded ? .fine : .coarse
        }
    }
}
