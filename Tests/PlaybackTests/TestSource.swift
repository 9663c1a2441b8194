import Glibc
import Synchronization
import TuttiPlayback
import TuttiPlayout

/// Counts and steers what the sources of a test do.
final class Library: Sendable {
    struct State {
        var opened = 0
        var seeks: [Int64] = []
        var living = 0
        /// Reading from this frame on throws.
        var failsAt: Int64?
        var refuses: MediaError?
        /// Reading waits while this is set.
        var isBlocked = false
        /// Reading from this frame on waits while this is set.
        var blocksAt: Int64?
        var readsWaiting = 0
        var tags: [String: String] = [:]
    }
    let state = Mutex(State())
    /// Which of two items a sample is of.
    let sign: Float
    /// Frame that the first one of an item is called by its value: an item that goes on with another's.
    let offset: Int64

    init(sign: Float = 1, offset: Int64 = 0) {
        (self.sign, self.offset) = (sign, offset)
    }

    func opener(sampleRate: Int, frameCount: Int64) -> MediaOpener {
        MediaOpener { [self] location throws(MediaError) in
            let refusal = state.withLock {
                $0.opened += 1
                return $0.refuses
            }
            if let refusal { throw refusal }
            return TestSource(
                library: self,
                format: MediaFormat(
                    sampleRate: sampleRate, channelCount: 2, frameCount: frameCount))
        }
    }

    func asset(
        sampleRate: Int = 8_000, seconds: Double = 8, at location: String = "test.wav"
    ) -> Asset {
        Asset(
            location: location,
            opener: opener(
                sampleRate: sampleRate, frameCount: Int64(seconds * Double(sampleRate))))
    }

    /// Its pitch goes with the rate: what is heard is then a ramp at any rate.
    func item(
        sampleRate: Int = 8_000, seconds: Double = 8, at location: String = "test.wav"
    ) -> PlayerItem {
        let item = PlayerItem(
            asset: asset(sampleRate: sampleRate, seconds: seconds, at: location))
        item.audioTimePitchAlgorithm = .varispeed
        return item
    }
}

/// A ramp: the value of a sample says which frame it is.
///
/// A constant keeps even frame 0 apart from silence. The step of 2^-17 is 128 units in the last
/// place of a Float below 1: a frame can be read back with two digits of its fraction.
final class TestSource: MediaSource {
    static let step: Float = 0x1p-17
    static let base: Float = 0.25

    let format: MediaFormat
    private let library: Library
    private var next: Int64 = 0

    init(library: Library, format: MediaFormat) {
        self.library = library
        self.format = format
        library.state.withLock { $0.living += 1 }
    }

    deinit { library.state.withLock { $0.living -= 1 } }

    var metadata: MediaMetadata {
        var metadata = MediaMetadata()
        metadata.tags = library.state.withLock { $0.tags }
        return metadata
    }

    static func frame(ofValue value: Float) -> Double { Double((value - base) / step) }

    func seek(toFrame frame: Int64) throws(MediaError) {
        library.state.withLock { $0.seeks.append(frame) }
        next = frame
    }

    func read(into buffer: UnsafeMutableBufferPointer<Float>) throws(MediaError) -> Int {
        while library.state.withLock({ $0.isBlocked || next >= $0.blocksAt ?? .max }) {
            // A decoder that waits for its disc; the test decides when it comes back.
            library.state.withLock { $0.readsWaiting += 1 }
            spin()
            library.state.withLock { $0.readsWaiting -= 1 }
        }
        let failsAt = library.state.withLock { $0.failsAt } ?? .max
        if next >= failsAt {
            throw MediaError(.damaged, operation: "read", subject: "test.wav", reason: "scratched")
        }
        let count = Int(min(Int64(buffer.count / 2), format.frameCount! - next, failsAt - next))
        for i in 0..<max(0, count) {
            let value = Self.base + Float(library.offset + next + Int64(i)) * Self.step
            buffer[2 * i] = value * library.sign
            buffer[2 * i + 1] = value * library.sign
        }
        next += Int64(max(0, count))
        return max(0, count)
    }

    private func spin() { usleep(200) }
}
