/// A part of a source as a source of its own: the track of a cue sheet.
public final class Excerpt: MediaSource {
    public let format: MediaFormat
    /// Of the part, not of the whole.
    public let metadata: MediaMetadata
    public let tracks: [MediaTrack]
    public let track: Int?
    public let packetFrames: Int
    private let whole: any MediaSource
    private let first: Int64
    private let count: Int64
    private var position: Int64

    /// - Parameters:
    ///   - first: frame of `whole` that is the first here.
    ///   - count: frames, at least 1; `whole` may turn out to be shorter.
    ///   - metadata: what the part is called.
    public init(
        of whole: sending any MediaSource, first: Int64, count: Int64,
        metadata: MediaMetadata = MediaMetadata()
    ) throws(MediaError) {
        precondition(first >= 0 && count > 0, "an excerpt of \(count) frames from \(first) on")
        var format = whole.format
        format.frameCount = count
        self.format = format
        self.metadata = metadata
        (tracks, track, packetFrames) = (whole.tracks, whole.track, whole.packetFrames)
        self.whole = whole
        self.first = first
        self.count = count
        position = 0
        if first > 0 { try whole.seek(toFrame: first) }
    }

    public func seek(toFrame frame: Int64) throws(MediaError) {
        let frame = min(max(0, frame), count)
        try whole.seek(toFrame: first + frame)
        position = frame
    }

    public func read(into buffer: UnsafeMutableBufferPointer<Float>) throws(MediaError) -> Int {
        let wanted = min(buffer.count / 2, Int(count - position))
        guard wanted > 0 else { return 0 }
        let part = unsafe UnsafeMutableBufferPointer(rebasing: buffer[..<(2 * wanted)])
        let read = unsafe try whole.read(into: part)
        position += Int64(read)
        return read
    }
}
