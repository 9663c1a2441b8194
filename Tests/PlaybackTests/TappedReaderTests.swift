import Synchronization
import Testing
import TuttiPlayback
import TuttiPlayout

/// Taps: what they are given, and what they may do.
@Suite struct TappedReaderTests {
    /// Notes its calls, and changes samples as a closure says.
    private final class Notes: AudioTap {
        enum Call: Equatable {
            case prepare(Int, Int)
            case process(Range<Int64>, isContinuous: Bool)
            case unprepare
        }
        private let state = Mutex<[Call]>([])
        private let change: @Sendable (UnsafeMutableBufferPointer<Float>) -> Void

        init(_ change: @escaping @Sendable (UnsafeMutableBufferPointer<Float>) -> Void = { _ in }) {
            self.change = change
        }

        var calls: [Call] { state.withLock { $0 } }

        func prepare(sampleRate: Int, channelCount: Int) {
            state.withLock { $0.append(.prepare(sampleRate, channelCount)) }
        }

        func process(
            _ samples: UnsafeMutableBufferPointer<Float>, itemFrame: Int64, sampleRate: Int,
            isContinuous: Bool
        ) {
            let frames = itemFrame..<itemFrame + Int64(samples.count / 2)
            state.withLock { $0.append(.process(frames, isContinuous: isContinuous)) }
            change(samples)
        }

        func unprepare() { state.withLock { $0.append(.unprepare) } }
    }

    private static let samples = (0..<2_000).map { Float($0) * 0x1p-12 }

    private func reader(_ attachment: TapAttachment) -> TappedReader {
        TappedReader(ArrayReader(Self.samples), attachment: attachment)
    }

    @Test func `a tap sees what is read, with its frames, and every leap`() throws {
        let tap = Notes()
        do {
            let reader = reader(TapAttachment(tap, sampleRate: 44_100))
            #expect(tap.calls.isEmpty)
            var result = try reader.frames(count: 300, size: { 200 })
            result += try reader.frames(from: 700, size: { 200 })
            let isSame = result == Array(Self.samples[..<600] + Self.samples[1_400...])
            #expect(isSame)
        }
        #expect(
            tap.calls == [
                .prepare(44_100, 2), .process(0..<200, isContinuous: false),
                .process(200..<300, isContinuous: true), .process(700..<900, isContinuous: false),
                .process(900..<1_000, isContinuous: true), .unprepare,
            ])
    }

    @Test func `what a tap writes is what is read`() throws {
        let tap = Notes { samples in for i in samples.indices { samples[i] *= -2 } }
        let result = try reader(TapAttachment(tap, sampleRate: 1_000)).frames(size: { 77 })
        #expect(result == Self.samples.map { $0 * -2 })
    }

    @Test func `what is no number becomes silence, and is counted`() throws {
        let tap = Notes { samples in
            samples[0] = .nan
            samples[3] = -.infinity
        }
        let attachment = TapAttachment(tap, sampleRate: 1_000)
        let result = try reader(attachment).frames(size: { 100 })
        for (index, sample) in result.enumerated() {
            let isBad = [0, 3].contains(index % 200)
            #expect(sample == (isBad ? 0 : Self.samples[index]))
        }
        #expect(attachment.silencedSampleCount == 20)
    }

    /// A seek: the second reader goes on while the first still sounds.
    @Test func `a tap stays prepared as long as one reader is left`() throws {
        let tap = Notes()
        let attachment = TapAttachment(tap, sampleRate: 1_000)
        var first: TappedReader? = reader(attachment)
        _ = try first?.frames(count: 10)
        var second: TappedReader? = reader(attachment)
        _ = try second?.frames(from: 500, count: 10)
        first = nil
        _ = try second?.frames(from: 510, count: 10)
        #expect(!tap.calls.contains(.unprepare))
        // One that never read anything has prepared nothing.
        _ = reader(attachment)
        second = nil
        _ = try reader(attachment).frames(from: 520, count: 10)
        #expect(
            tap.calls == [
                .prepare(1_000, 2), .process(0..<10, isContinuous: false),
                .process(500..<510, isContinuous: false),
                .process(510..<520, isContinuous: true), .unprepare, .prepare(1_000, 2),
                .process(520..<530, isContinuous: false), .unprepare,
            ])
    }
}
