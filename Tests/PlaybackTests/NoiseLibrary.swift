import Synchronization
import TuttiChance
import TuttiPlayback
import TuttiPlayout

/// Assets of noise, each sample a function of its asset and its frame, and what was done to them.
final class NoiseLibrary: Sendable {
    struct State {
        var opened: [String] = []
        var living = 0
        var mostLiving = 0
        /// These cannot be opened.
        var missing: Set<String> = []
        /// Reading from this frame on fails.
        var failsAt: Int64?
        /// Where sources end, whatever they said.
        var endsAt: Int64?
        var reads = 0
    }
    let state = Mutex(State())

    func asset(_ name: String, sampleRate: Int = 1_000, frames: Int64) -> Asset {
        Asset(
            location: name,
            opener: MediaOpener { [self] location throws(MediaError) in
                let isMissing = state.withLock { $0.missing.contains(location) }
                if isMissing {
                    throw MediaError(
                        .notFound, operation: "open", subject: location, reason: "no such file")
                }
                return NoiseSource(self, name: location, sampleRate: sampleRate, frames: frames)
            })
    }

    /// −0.5 ..< 0.5.
    static func sample(_ name: String, _ frame: Int64, _ channel: Int) -> Float {
        var seed: UInt64 = 0
        for byte in name.utf8 { seed = seed &* 31 &+ UInt64(byte) }
        var random = SplitMix64(seed: seed << 32 ^ UInt64(frame) << 1 ^ UInt64(channel))
        return Float(random.next() >> 40) * 0x1p-24 - 0.5
    }

    /// Interleaved.
    static func noise(_ name: String, _ frames: Range<Int>) -> [Float] {
        frames.flatMap { frame in [0, 1].map { sample(name, Int64(frame), $0) } }
    }
}

/// Yields less at once than is wanted, as decoders do.
private final class NoiseSource: MediaSource {
    let format: MediaFormat
    private let library: NoiseLibrary
    private let name: String
    private let frames: Int64
    private var next: Int64 = 0

    init(_ library: NoiseLibrary, name: String, sampleRate: Int, frames: Int64) {
        format = MediaFormat(sampleRate: sampleRate, channelCount: 2, frameCount: frames)
        (self.library, self.name, self.frames) = (library, name, frames)
        library.state.withLock {
            $0.opened.append(name)
            $0.living += 1
            $0.mostLiving = max($0.mostLiving, $0.living)
        }
    }

    deinit { library.state.withLock { $0.living -= 1 } }

    func seek(toFrame frame: Int64) throws(MediaError) { next = frame }

    func read(into buffer: UnsafeMutableBufferPointer<Float>) throws(MediaError) -> Int {
        let (failsAt, endsAt) = library.state.withLock { state in
            state.reads += 1
            return (state.failsAt ?? .max, min(frames, state.endsAt ?? .max))
        }
        guard next < failsAt else {
            throw MediaError(.damaged, operation: "read", subject: name, reason: "scratched")
        }
        let left = min(Int64(buffer.count / 2), 37 + next % 300, endsAt - next, failsAt - next)
        let count = max(0, Int(left))
        for i in 0..<count {
            buffer[2 * i] = NoiseLibrary.sample(name, next + Int64(i), 0)
            buffer[2 * i + 1] = NoiseLibrary.sample(name, next + Int64(i), 1)
        }
        next += Int64(count)
        return count
    }
}
