import TuttiPlayout

/// Frames in memory.
final class ArrayReader: FrameReader {
    let samples: [Float]
    private(set) var reads = 0

    /// - Parameter samples: interleaved stereo.
    init(_ samples: [Float]) { self.samples = samples }

    func read(
        at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>
    ) throws(MediaError) -> Int {
        reads += 1
        let count = min(buffer.count / 2, samples.count / 2 - Int(frame))
        guard count > 0 else { return 0 }
        for i in 0..<2 * count { buffer[i] = samples[2 * Int(frame) + i] }
        return count
    }
}

extension FrameReader {
    /// All frames from `first` on, or `count` of them, in reads of the sizes that `size` says.
    func frames(
        from first: Int64 = 0, count: Int = .max, size: () -> Int = { 4_096 }
    ) throws -> [Float] {
        var result: [Float] = []
        var buffer = [Float](repeating: .nan, count: 2 * 8_192)
        while result.count / 2 < count {
            let wanted = min(size(), count - result.count / 2)
            let read = try buffer.withUnsafeMutableBufferPointer {
                try self.read(
                    at: first + Int64(result.count / 2),
                    into: UnsafeMutableBufferPointer(rebasing: $0[..<(2 * wanted)]))
            }
            if read == 0 { break }
            result += buffer[..<(2 * read)]
        }
        return result
    }
}

/// A source read by frame, as a feed does.
final class SourceReader: FrameReader {
    let source: any MediaSource
    init(_ source: any MediaSource) { self.source = source }

    func read(
        at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>
    ) throws(MediaError) -> Int {
        try source.seek(toFrame: frame)
        return try source.read(into: buffer)
    }
}
