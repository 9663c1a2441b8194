import CTuttiFFmpeg
import TuttiPlayout

/// The last packet of a file, whose end may be missing: it says how long its sound is and then
/// yields none. That sound is no part of the item, or the next one would begin after silence.
///
/// Only of codings whose packets are decoded alone, or not at all.
struct LastPacket {
    private let kept: PacketHistory?
    private var frames: Int64 = 0

    init(_ rule: PacketLength.Rule) {
        switch rule {
        case .flac, .alac: kept = PacketHistory(capacity: 1)
        case .fixed, .bytesPerFrame, .opus, .vorbis, .decoded: kept = nil
        }
    }

    mutating func take(_ packet: UnsafeMutablePointer<AVPacket>, frames: Int64) {
        guard let kept else { return }
        unsafe kept.append(packet)
        self.frames = frames
    }

    /// - Parameter settings: what the decoder was told before it.
    /// - Returns: its frames when it yields none of them, else 0.
    func lostFrames(
        _ decoder: AudioDecoder, _ stream: UnsafeMutablePointer<AVStream>,
        settings: [UInt8]? = nil
    ) -> Int64 {
        guard let kept, kept.count > 0 else { return 0 }
        do {
            unsafe try decoder.restart(for: stream, settings: settings)
            unsafe try decoder.decode(kept.packet(0))
            // Some decoders hand out what they have only at the end.
            if decoder.outputCount == 0 { unsafe try decoder.decode(nil) }
        } catch {
            // It has another rate than those before: there is sound in it.
            return 0
        }
        return decoder.outputCount == 0 ? frames : 0
    }
}
