import Testing
import TuttiPlayout

@Suite struct ExcerptTests {
    /// Frame n is n, left and right.
    private final class Counting: MediaSource {
        let format = MediaFormat(sampleRate: 48_000, channelCount: 2, frameCount: 1_000)
        private var position: Int64 = 0

        func seek(toFrame frame: Int64) throws(MediaError) { position = frame }

        func read(into buffer: UnsafeMutableBufferPointer<Float>) throws(MediaError) -> Int {
            // Less at once than is wanted, as decoders do.
            let count = min(buffer.count / 2, 64, Int(1_000 - position))
            for frame in 0..<max(0, count) {
                buffer[2 * frame] = Float(position) + Float(frame)
                buffer[2 * frame + 1] = Float(position) + Float(frame)
            }
            position += Int64(max(0, count))
            return max(0, count)
        }
    }

    private func frames(_ source: Excerpt, atOnce: Int) throws -> [Int] {
        var frames: [Int] = []
        var buffer = [Float](repeating: -1, count: 2 * atOnce)
        while true {
            let count = try buffer.withUnsafeMutableBufferPointer { try source.read(into: $0) }
            if count == 0 { return frames }
            frames += (0..<count).map { Int(buffer[2 * $0]) }
        }
    }

    @Test(arguments: [1, 7, 64, 500])
    func `an excerpt is the frames from its first to its last`(atOnce: Int) throws {
        let excerpt = try Excerpt(of: Counting(), first: 300, count: 200)
        #expect(excerpt.format.frameCount == 200)
        #expect(try frames(excerpt, atOnce: atOnce) == Array(300..<500))
        try excerpt.seek(toFrame: 150)
        #expect(try frames(excerpt, atOnce: atOnce) == Array(450..<500))
        try excerpt.seek(toFrame: 0)
        #expect(try frames(excerpt, atOnce: atOnce) == Array(300..<500))
        try excerpt.seek(toFrame: 999)
        #expect(try frames(excerpt, atOnce: atOnce).isEmpty)
    }

    @Test func `a file that is shorter than was said ends where it ends`() throws {
        let excerpt = try Excerpt(of: Counting(), first: 900, count: 200)
        #expect(try frames(excerpt, atOnce: 64) == Array(900..<1_000))
    }
}
