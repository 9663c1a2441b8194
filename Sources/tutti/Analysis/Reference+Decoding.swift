import TuttiFFmpegMedia
import TuttiPlayout

extension Reference {
    /// Decodes the beginning of a file.
    ///
    /// - Parameter seconds: no more than this.
    static func decode(_ path: String, seconds: Double) throws(MediaError) -> Reference {
        let source = try FFmpegSource(path)
        let rate = Double(source.format.sampleRate)
        let limit = Int(seconds * rate)
        var samples: [Float] = []
        let block = UnsafeMutableBufferPointer<Float>.allocate(capacity: 2 * 8_192)
        defer { block.deallocate() }
        while samples.count < limit {
            let count = try source.read(into: block)
            if count == 0 { break }
            for frame in 0..<count { samples.append((block[2 * frame] + block[2 * frame + 1]) / 2) }
        }
        return Reference(sampleRate: rate, samples: samples)
    }
}
