import CTuttiFFmpeg

/// The first packet of Vorbis, which yields nothing and prepares the overlap with the second.
///
/// FFmpeg numbers the packets of a page backwards from the position that the page ends with. Not those
/// of a page that is the first and the last: these it numbers from 0 on, as if the first packet were
/// sound. What it tells of padding is too much by as many frames then.
struct VorbisPreparation {
    private var page: Int64?
    private var frames: Int64 = 0

    /// - Parameter frames: that the packet yields.
    mutating func take(
        _ packet: UnsafeMutablePointer<AVPacket>, frames: Int64, _ rule: PacketLength.Rule
    ) {
        guard page == nil else { return }
        page = unsafe packet.pointee.pos
        guard rule == .vorbis, frames == 0, unsafe packet.pointee.pts == 0 else { return }
        self.frames = unsafe max(0, packet.pointee.duration)
    }

    /// Frames by which the padding is too much.
    ///
    /// - Parameter last: position of the last page.
    func excess(lastPage last: Int64) -> Int64 { page == last ? frames : 0 }
}
