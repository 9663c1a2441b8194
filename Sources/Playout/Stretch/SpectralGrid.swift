import TuttiTiming

/// Where frames of the spectrum lie: in the voice on a grid of hops, in the item where the map has
/// them.
struct SpectralGrid {
    /// Frames of the spectrum that make up each moment. Four would do for steady tones; with eight
    /// the spectrum is looked at twice as often, and attacks are placed more finely.
    static let overlap = 8

    /// Samples of a transform: the power of two from 80 ms on, and so 85 ms at 48 kHz. Half as long
    /// ones do not tell the partials of a chord in the octave below 440 Hz apart: what is then
    /// heard besides lies at −8 dB instead of −45.
    let length: Int
    /// Frames from a frame of the spectrum to the next.
    let hop: Int
    let speed: Double
    /// Hops from one anchor to the next: 1 s, or 2 s of the item where that is less. Fewer shift
    /// partials more, as the way from one chain to the other is shorter; more cost as much more
    /// after a jump.
    let anchorHops: Int64

    /// - Parameters:
    ///   - sampleRate: 1…768 000.
    ///   - anchorSeconds: other than 1 s to measure what anchors cost.
    init(sampleRate: Int, speed: Double, anchorSeconds: Double = 1) {
        var length = 64
        while Double(length) < 0.08 * Double(sampleRate) { length *= 2 }
        self.length = length
        hop = length / Self.overlap
        self.speed = speed
        // Beyond twice as fast a second of the voice is much of the item to read.
        let seconds = anchorSeconds / max(1, speed / 2)
        anchorHops = max(1, Int64(saturating: seconds * Double(sampleRate) / Double(hop)))
    }

    /// Frames of the item that are held for one frame of the spectrum.
    var window: Int { margin + length }
    /// Frames before those that are transformed: what was before an attack.
    var margin: Int { length / 2 + attackLead }
    /// How far an attack may lie before the middle of a frame and still be placed; further off, its
    /// partials go on.
    var attackLead: Int { length / 4 }

    /// The first of them, for the frame whose middle is voice frame `index · hop`.
    func place(of index: Int64) -> Int64 {
        let middle = Int64(saturating: Double(index * Int64(hop)) * speed)
        return middle - Int64(length / 2 + margin)
    }

    /// The first frame that reaches into the voice, and the first anchor.
    var first: Int64 { 1 - Int64(Self.overlap / 2) }

    /// The last anchor up to `index`.
    func anchor(upTo index: Int64) -> Int64 {
        (index - first) / anchorHops * anchorHops + first
    }

    /// Where to begin in order to have what frame `index` is.
    func beginning(for index: Int64) -> Int64 {
        max(first, anchor(upTo: index) - anchorHops)
    }
}
