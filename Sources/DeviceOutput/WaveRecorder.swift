import TuttiPlayout
import TuttiTiming

/// Writes a WAV file of 32-bit Float samples while it grows.
///
/// Time in the file is time in the room: when the card stood still, as much silence is written. The
/// header is brought up to date every round, so that a file whose writer was killed can be
/// read; RIFF counts in 32 bits, and sound beyond 4 GiB (three hours of stereo at 48 kHz) is in the
/// file but not in its header.
final class WaveRecorder: CardSink {
    private let queue: FrameQueue
    private let sampleRate: Int
    private var stoodStillAt: LocalInstant?

    /// Longest silence that an underrun is replaced by; a suspended machine is longer.
    private static let longestSilence = Nanoseconds.seconds(10)

    /// - Parameter onFailure: called once when the file cannot be written any more.
    init(
        path: String, format: OutputFormat, overwrites: Bool = false,
        onFailure: (@Sendable (OutputError) -> Void)? = nil
    ) throws(OutputError) {
        let file = try RecordFile(path, overwrites: overwrites, onFailure: onFailure)
        sampleRate = format.sampleRate
        let (rate, channels) = (format.sampleRate, format.channelCount)
        @Sendable func update(_ samples: Int64) {
            file.rewriteBeginning(
                Self.header(sampleRate: rate, channelCount: channels, sampleCount: samples))
        }
        let header = Self.header(sampleRate: rate, channelCount: channels, sampleCount: 0)
        unsafe header.withUnsafeBytes { unsafe file.write($0) }
        queue = try FrameQueue(
            file: file, headerBytes: header.count, channelCount: channels,
            eachRound: update, atEnd: update)
    }

    func append(_ frames: UnsafePointer<Float>, count: Int) {
        _ = unsafe queue.append(frames, frames: count)
    }

    func note(_ event: CardEvent) {
        switch event.kind {
        case .underrun: stoodStillAt = event.instant
        case .start:
            guard let from = stoodStillAt else { return }
            stoodStillAt = nil
            let silence = min(event.instant - from, Self.longestSilence)
            _ = unsafe queue.append(
                nil, frames: Int(Int64(saturating: silence.seconds * Double(sampleRate))))
        case .anchor, .end: break
        }
    }

    func finish() { queue.finish() }

    /// RIFF, `fmt ` (3: IEEE float), `fact`, `data`: 58 bytes.
    static func header(sampleRate: Int, channelCount: Int, sampleCount: Int64) -> [UInt8] {
        var bytes: [UInt8] = []
        func text(_ s: StaticString) {
            bytes += unsafe Array(
                UnsafeBufferPointer(start: s.utf8Start, count: s.utf8CodeUnitCount))
        }
        func word32(_ n: Int64) {
            let n = UInt32(clamping: n)
            for shift in [0, 8, 16, 24] {
                bytes.append(UInt8(truncatingIfNeeded: n >> UInt32(shift)))
            }
        }
        func word16(_ n: Int) {
            bytes += [UInt8(truncatingIfNeeded: n), UInt8(truncatingIfNeeded: n >> 8)]
        }
        text("RIFF")
        word32(50 + sampleCount * 4)
        text("WAVEfmt ")
        word32(18)
        word16(3)
        word16(channelCount)
        word32(Int64(sampleRate))
        word32(Int64(sampleRate * channelCount * 4))
        word16(channelCount * 4)
        word16(32)
        word16(0)
        text("fact")
        word32(4)
        word32(sampleCount / Int64(channelCount))
        text("data")
        word32(sampleCount * 4)
        return bytes
    }
}
