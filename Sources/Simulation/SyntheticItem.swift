import TuttiRealTime

import func Glibc.atan2
import func Glibc.cos
import func Glibc.sin

/// What simulated items consist of: a slow rotation, a cosine on the left and a sine on the right.
///
/// Its angle says which frame is heard, with its fraction, modulo ``cycle``: what left a card can
/// be compared with what an engine claims to have played. And it costs a copy.
enum SyntheticItem {
    /// Frames of one turn; 100 Hz at 48 kHz. A power of two would hide an error of ring masks.
    static let cycle = 480
    static let blockFrames = 480 * 16
    static let amplitude: Float = 0.5

    /// Two blocks, so that a copy may begin at any phase.
    nonisolated(unsafe) private static let block: UnsafeMutableBufferPointer<Float> = {
        let frames = 2 * blockFrames
        let block = UnsafeMutableBufferPointer<Float>.allocate(capacity: 2 * frames)
        for k in 0..<frames {
            let angle = 2 * Double.pi * Double(k % cycle) / Double(cycle)
            unsafe block[2 * k] = amplitude * Float(cos(angle))
            unsafe block[2 * k + 1] = amplitude * Float(sin(angle))
        }
        return unsafe block
    }()

    /// Appends the item's next frames, `count` up to ``blockFrames``, as far as they fit.
    static func write(to ring: FrameRing, atMost count: Int) {
        let phase = Int(ring.endFrame % Int64(cycle))
        let source = unsafe UnsafeBufferPointer(
            rebasing: block[2 * phase..<2 * (phase + count)])
        _ = unsafe ring.write(source)
    }

    /// Frames by which the item's position within its turn is ahead of `position`: −240 … 240.
    static func lead(left: Float, right: Float, of position: Double) -> Double {
        let heard = atan2(Double(right), Double(left)) / (2 * .pi) * Double(cycle)
        let wanted = position - Double(cycle) * Double(Int64(position / Double(cycle)))
        var lead = heard - wanted
        while lead > Double(cycle) / 2 { lead -= Double(cycle) }
        while lead < -Double(cycle) / 2 { lead += Double(cycle) }
        return lead
    }
}
