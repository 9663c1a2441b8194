import TuttiTiming

/// A row of volumes in frames: what an ``AudioMix`` says of one track.
struct GainCurve: Equatable, Sendable {
    /// In force from `start` on until the next one; from `end` on it holds.
    private struct Piece: Equatable, Sendable {
        var start: Int64
        var end: Int64
        var from: Double
        var to: Double

        func value(at frame: Int64) -> Double {
            guard frame < end else { return to }
            return from + (to - from) * (Double(frame - start) / Double(end - start))
        }
    }

    private let pieces: [Piece]

    init(_ mix: AudioMix, track: Int?, sampleRate: Int) {
        pieces = mix.events[track, default: []].map { event in
            // Numbers, as was checked: always a frame.
            let start = event.range.start.frame(atSampleRate: sampleRate) ?? 0
            let end = event.range.end.frame(atSampleRate: sampleRate) ?? start
            return Piece(
                start: start, end: max(start, end), from: Double(event.from), to: Double(event.to))
        }
    }

    /// Of one frame.
    func value(at frame: Int64) -> Double {
        let index = index(at: frame)
        return index < 0 ? 1 : pieces[index].value(at: frame)
    }

    /// The one value of all of these frames; `nil` where it may change.
    func constant(over frames: Range<Int64>) -> Double? {
        let index = index(at: frames.lowerBound)
        if index + 1 < pieces.count, pieces[index + 1].start < frames.upperBound { return nil }
        guard index >= 0 else { return 1 }
        let piece = pieces[index]
        return frames.lowerBound >= piece.end || piece.from == piece.to ? piece.to : nil
    }

    /// Multiplies `gains` by the values from `frame` on.
    func multiply(_ gains: inout [Double], from frame: Int64) {
        var index = index(at: frame)
        for offset in gains.indices {
            let frame = frame.adding(saturating: Int64(offset))
            while index + 1 < pieces.count, pieces[index + 1].start <= frame { index += 1 }
            if index >= 0 { gains[offset] *= pieces[index].value(at: frame) }
        }
    }

    /// The last piece that begins at a frame or before; −1 where none does.
    private func index(at frame: Int64) -> Int {
        var (low, high) = (0, pieces.count)
        while low < high {
            let middle = (low + high) / 2
            if pieces[middle].start > frame { high = middle } else { low = middle + 1 }
        }
        return low - 1
    }
}
