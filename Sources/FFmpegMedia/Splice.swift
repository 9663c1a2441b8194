import TuttiPlayout

/// Stretches of one or more recordings in a file, played one after the other as one item.
///
/// A file may be several: MP3s that were joined, recordings chained in Ogg, an MP4 whose edit list
/// takes several stretches. Each recording is opened by itself, as a range of the file's bytes, and
/// so has its own delay and padding, sample rate and ways back. What has another rate than the item
/// goes through a ``RateConverter``.
///
/// Only the recording that is being read is open. Use from one thread at a time.
@safe
final class Splice {
    struct Stretch {
        /// What to open; two neighbours that are the same are opened once.
        var location: MediaLocation
        var container: String
        /// Frames of the recording there, as it counts them.
        var frames: Range<Int64>
        var sampleRate: Int
    }

    let sampleRate: Int
    let frameCount: Int64
    private let stretches: [Stretch]
    /// Frame of the item after each stretch's last.
    private let ends: [Int64]
    private let memory: SurveyMemory
    private let cancellation: MediaCancellation

    private var source: FFmpegSource?
    /// Frame of the source that its next read begins with.
    private var sourcePosition: Int64 = 0
    private var index = 0
    private var position: Int64 = 0
    private var converter: RateConverter?

    /// - Parameter stretches: in the order of play; at least one.
    init(
        _ stretches: [Stretch], sampleRate: Int, memory: SurveyMemory,
        cancellation: MediaCancellation
    ) {
        self.stretches = stretches
        self.memory = memory
        self.sampleRate = sampleRate
        self.cancellation = cancellation
        var ends: [Int64] = []
        for stretch in stretches {
            let count = Int64(stretch.frames.count)
            let rate = Int64(stretch.sampleRate)
            let outputs = (count * Int64(sampleRate) + rate / 2) / rate
            ends.append((ends.last ?? 0) + outputs)
        }
        self.ends = ends
        frameCount = ends.last ?? 0
    }

    func seek(toFrame frame: Int64) throws(MediaError) {
        let target = max(0, min(frame, frameCount))
        position = target
        guard let found = ends.firstIndex(where: { $0 > target }) else {
            index = ends.count
            return
        }
        try enter(found)
    }

    /// - Returns: frames written; 0 only at the end.
    func read(into buffer: UnsafeMutableBufferPointer<Float>) throws(MediaError) -> Int {
        let room = buffer.count / 2
        var filled = 0
        while filled < room, position < frameCount {
            while position == ends[index] { try enter(index + 1) }
            if source == nil { try enter(index) }
            let count = min(room - filled, Int(min(ends[index] - position, 65_536)))
            let part = unsafe UnsafeMutableBufferPointer(
                rebasing: buffer[2 * filled..<2 * (filled + count)])
            unsafe try readStretch(into: part)
            filled += count
            position += Int64(count)
        }
        return filled
    }
}

extension Splice {
    private var begin: Int64 { index == 0 ? 0 : ends[index - 1] }

    /// Makes ready to read at `position`, which lies in stretch `index`.
    private func enter(_ index: Int) throws(MediaError) {
        let isOpen =
            source != nil && self.index < stretches.count
            && stretches[self.index].location == stretches[index].location
        self.index = index
        let stretch = stretches[index]
        if !isOpen {
            source = nil
            source = try FFmpegSource(
                at: stretch.location, container: stretch.container, memory: memory,
                cancellation: cancellation)
            sourcePosition = 0
        }
        let frame = position - begin
        var input = frame
        if stretch.sampleRate == sampleRate {
            converter = nil
        } else {
            let fresh = RateConverter(from: stretch.sampleRate, to: sampleRate)
            converter = fresh
            input = fresh.seek(to: frame)
        }
        try place(at: stretch.frames.lowerBound + input)
    }

    private func place(at frame: Int64) throws(MediaError) {
        guard frame != sourcePosition else { return }
        try source?.seek(toFrame: frame)
        sourcePosition = frame
    }

    /// Fills `buffer`, with silence where the recording yields less than was counted.
    private func readStretch(
        into buffer: UnsafeMutableBufferPointer<Float>
    ) throws(MediaError) {
        if let converter {
            return unsafe try converter.read(from: position - begin, into: buffer, input: take)
        }
        var filled = 0
        while filled < buffer.count {
            let got = unsafe try take(UnsafeMutableBufferPointer(rebasing: buffer[filled...]))
            if got == 0 { break }
            filled += 2 * got
        }
        unsafe UnsafeMutableBufferPointer(rebasing: buffer[filled...]).update(repeating: 0)
    }

    /// The next frames of the stretch, none behind its end.
    private func take(_ buffer: UnsafeMutableBufferPointer<Float>) throws(MediaError) -> Int {
        let left = stretches[index].frames.upperBound - sourcePosition
        let count = min(buffer.count / 2, Int(clamping: max(0, left)))
        guard count > 0, let source else { return 0 }
        let got = unsafe try source.read(
            into: UnsafeMutableBufferPointer(rebasing: buffer[..<(2 * count)]))
        sourcePosition += Int64(got)
        return got
    }
}
