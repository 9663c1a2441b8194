import TuttiTiming

/// Where grains begin: in the voice on a grid of hops, in the item where the map has them.
struct GrainGrid {
    /// Hops until a new chain has taken over, at the latest: 0.29 s.
    static let handoverHops: Int64 = 12

    /// A new chain of grains begins with every so many hops: 1 s, or 2 s of the item where that is
    /// less, but not before the last one is handed over. Fewer would be heard as more
    /// uneven joints, more cost as much more after a jump.
    let anchorHops: Int64

    /// Frames from a grain to the next: 24 ms. Half of a grain.
    ///
    /// Shorter grains have more joints and cannot hold a period of a deep voice; with longer ones
    /// what is sharp is heard twice when slowed down, and whole sounds are left out when hastened.
    let hop: Int
    /// Frames by which a grain may lie off the map, to either side: 12 ms, so that it finds any
    /// phase of a tone down to 42 Hz.
    let reach: Int
    /// Frames that the coarse search takes as one: 12 kHz are enough to find a place.
    let coarseness: Int
    let speed: Double
    /// Frames of the item and of the voice, where they are known.
    private let ends: (item: Int64, voice: Int64)?

    /// - Parameters:
    ///   - sampleRate: 1…768 000.
    ///   - frameCount: of the item; at most ``PlayedFrames/positionLimit``.
    ///   - anchorSeconds: other than 1 s to measure what anchors cost.
    init(
        sampleRate: Int, speed: Double, frameCount: Int64?, anchorSeconds: Double = 1
    ) {
        let rate = Double(sampleRate)
        coarseness = max(1, sampleRate / 12_000)
        hop = 8 * coarseness * max(2, Int(0.024 * rate / Double(8 * coarseness) + 0.5))
        reach = coarseness * max(8, Int(0.012 * rate / Double(coarseness) + 0.5))
        self.speed = speed
        // Beyond twice as fast a second of the voice is much of the item to read.
        let seconds = anchorSeconds / max(1, speed / 2)
        anchorHops = max(
            Self.handoverHops + 1, Int64(saturating: seconds * rate / Double(hop)))
        ends = frameCount.map { ($0, VoiceLength.of($0, speed: speed)) }
    }

    /// Frames of the item that one grain is chosen among.
    var window: Int { 2 * (hop + reach) }

    /// Frame of the item with which grain `index` begins when nothing moves it.
    ///
    /// The grain's middle lies on the map. That of −1 is the item's first frame, so that the
    /// voice begins as the item does. The last ones lie so that the voice ends as the item does: an
    /// item that follows without a gap finds what it continues.
    func place(of index: Int64) -> Int64 {
        let begin = index * Int64(hop)
        if let ends, isLast(index) { return begin + ends.item - ends.voice }
        return Int64(saturating: Double(begin + Int64(hop)) * speed) - Int64(hop)
    }

    /// Whether grain `index` sounds at full level, or as much as it ever will, at the voice's end.
    func isLast(_ index: Int64) -> Bool {
        guard let ends else { return false }
        return (index + 2) * Int64(hop) > ends.voice
    }

    /// The last anchor up to grain `index`; −1 is the first.
    func anchor(upTo index: Int64) -> Int64 {
        (index + 1) / anchorHops * anchorHops - 1
    }

    /// Where to begin in order to have what grain `index` is.
    func beginning(for index: Int64) -> Int64 {
        let anchor = anchor(upTo: index)
        let isHandedOver = index - anchor >= Self.handoverHops
        return isHandedOver ? anchor : max(-1, anchor - anchorHops)
    }
}
