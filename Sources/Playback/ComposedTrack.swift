import TuttiPlayout
import TuttiTiming

/// One track of a composition in frames.
///
/// Confined to one thread.
final class ComposedTrack: FrameReader {
    /// Segments that are one piece of an asset, or of silence.
    private struct Run {
        /// Of the composition.
        var frames: Range<Int64>
        /// `nil`: silence.
        var media: (asset: Asset, start: MediaTime)?
    }

    private let runs: [Run]
    private let number: Int
    private let sampleRate: Int
    private let shelf: SourceShelf
    /// Where it ends.
    let frameCount: Int64

    init(_ track: Composition.Track, number: Int, sampleRate: Int, shelf: SourceShelf) {
        runs = Self.runs(of: track, sampleRate: sampleRate)
        frameCount = runs.last?.frames.upperBound ?? 0
        self.number = number
        self.sampleRate = sampleRate
        self.shelf = shelf
    }

    /// Segments side by side that go on in the same asset are one run: what was parted and joined
    /// again needs no seek, and where rates differ no place between frames is rounded twice.
    private static func runs(of track: Composition.Track, sampleRate: Int) -> [Run] {
        var runs: [Run] = []
        var time = MediaTime.zero
        var last: (asset: Asset?, end: MediaTime) = (nil, .zero)
        for segment in track.segments {
            // Numbers below the longest composition: always a frame.
            let first = time.frame(atSampleRate: sampleRate) ?? 0
            time += segment.duration
            let end = time.frame(atSampleRate: sampleRate) ?? first
            var next: (asset: Asset?, end: MediaTime) = (nil, .zero)
            var run = Run(frames: first..<max(first, end), media: nil)
            if case .asset(let asset, let start) = segment.content {
                next = (asset, start + segment.duration)
                run.media = (asset, start)
                if let before = runs.last, asset === last.asset, start == last.end {
                    run.frames = before.frames.lowerBound..<run.frames.upperBound
                    run.media = before.media
                    runs.removeLast()
                }
            }
            runs.append(run)
            last = next
        }
        return runs.filter { !$0.frames.isEmpty }
    }

    /// - Returns: frames written, up to the end of a segment.
    func read(
        at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>
    ) throws(MediaError) -> Int {
        guard frame < frameCount else { return 0 }
        guard frame >= 0 else {
            return buffer.silence(atMost: Int64(0).subtracting(saturating: frame))
        }
        let run = runs[index(at: frame)]
        let left = run.frames.upperBound - frame
        guard let media = run.media else { return buffer.silence(atMost: left) }
        let part = UnsafeMutableBufferPointer(
            rebasing: buffer[..<(2 * Int(min(left, Int64(buffer.count / 2))))])
        let count: Int
        do throws(MediaError) {
            let source = try shelf.source(of: media.asset, track: number)
            let origin = media.start.frame(atSampleRate: source.format.sampleRate) ?? 0
            count = try source.read(
                at: frame - run.frames.lowerBound, convertedTo: sampleRate, from: origin,
                into: part)
        } catch {
            throw failure(error, of: media.asset, at: run.frames.lowerBound)
        }
        return count > 0 ? count : part.silence(atMost: left)
    }

    /// The run that a frame is in.
    private func index(at frame: Int64) -> Int {
        var (low, high) = (0, runs.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if frame < runs[middle].frames.upperBound { high = middle } else { low = middle + 1 }
        }
        return low
    }

    private func failure(_ error: MediaError, of asset: Asset, at frame: Int64) -> MediaError {
        let place = MediaTime(frame: frame, sampleRate: sampleRate).seconds
        let inner = error.subject == asset.location ? "" : "\(error.subject): "
        return MediaError(
            error.code, operation: error.operation, subject: asset.location,
            reason: "\(inner)\(error.reason) (in the composition from \(place) s on)")
    }
}

extension UnsafeMutableBufferPointer<Float> {
    /// Silences the first frames, as many as there are but no more than `limit`.
    ///
    /// - Returns: how many.
    func silence(atMost limit: Int64) -> Int {
        let frames = Int(Swift.min(limit, Int64(count / 2)))
        self[..<(2 * frames)].update(repeating: 0)
        return frames
    }
}
