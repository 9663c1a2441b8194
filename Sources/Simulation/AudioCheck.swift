/// Holds what left a card against what the engine said it played.
///
/// The figures of a simulation come from positions that the engine reports. With the sound rendered
/// as well, the item's own angle says the position again, independently.
struct AudioCheck {
    /// Look at every so many frames; a prime, so that all phases of a period come up.
    private static let stride = 37
    /// Card frames before and behind a change in which a fade or the filter's ringing is heard.
    private static let edge = 512.0

    var isEnabled = false
    private(set) var comparedFrames = 0
    /// Largest distance of the sound from the reported position, frames of the item.
    private(set) var worstLead = 0.0
    /// Frames that were not silent although nothing was to be heard.
    private(set) var strayFrames = 0
    private var next: Int64 = 0

    mutating func take(
        _ samples: ArraySlice<Float>, firstFrame: Int64,
        sounding: (Double) -> (voice: VoiceTrace, position: Double)?
    ) {
        if firstFrame == 0 { next = 0 }
        while next < firstFrame + Int64(samples.count / 2) {
            let index = samples.startIndex + 2 * Int(next - firstFrame)
            let frame = Double(next)
            let around = [frame - Self.edge, frame, frame + Self.edge].map { sounding($0) }
            if around.allSatisfy({ $0?.voice === around[1]?.voice }) {
                compare(samples[index], samples[index + 1], around[1]?.position)
            }
            next += Int64(Self.stride)
        }
    }

    /// - Parameter position: of the item; `nil` for silence.
    private mutating func compare(_ left: Float, _ right: Float, _ position: Double?) {
        guard let position else {
            if left != 0 || right != 0 { strayFrames += 1 }
            return
        }
        comparedFrames += 1
        let lead = SyntheticItem.lead(left: left, right: right, of: position)
        worstLead = max(worstLead, lead.magnitude)
    }
}
