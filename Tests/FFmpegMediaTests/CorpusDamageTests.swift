import Foundation
import Testing
import TuttiChance
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// Every container and coding with something wrong in it: words, or sound within bounds.
@Suite struct CorpusDamageTests {
    enum Damage: CaseIterable {
        case cut, flipped, zeros, twice, header, foreign, garbage

        /// Whether header and tables stay as they were, where they are in front.
        var isLocal: Bool { [.cut, .flipped, .zeros, .twice].contains(self) }
    }

    private struct Damaged {
        var data: Data
        /// The first byte that is not what it was.
        var place: Int
    }

    /// Where in a file its sound is, told by a shorter one.
    private struct Spread {
        let bytesPerFrame: Double
        /// Of everything that is no sound, wherever it is.
        let head: Double

        init(_ data: Data, _ file: CorpusFile) throws {
            let shorter = try Data(contentsOf: URL(fileURLWithPath: Corpus.shorter(file).path))
            let frames = file.frames - Corpus.shorter(file).frames
            bytesPerFrame = Double(data.count - shorter.count) / Double(frames)
            head = Double(data.count) - bytesPerFrame * Double(file.frames)
        }

        func place(ofFrame frame: Double) -> Int { Int(head + bytesPerFrame * frame) }

        func frame(ofPlace place: Int) -> Int { Int((Double(place) - head) / bytesPerFrame) }
    }

    private static func damaged(
        _ data: Data, _ spread: Spread, _ damage: Damage, _ generator: inout SplitMix64
    ) -> Damaged {
        var data = data
        // In the middle: behind every header, before every index.
        let frame = Double(Corpus.longest) * generator.uniform(0.5, 0.8)
        let place = min(data.count - 2, spread.place(ofFrame: frame))
        let length = min(data.count - place, Int.random(in: 1...3_000, using: &generator))
        switch damage {
        case .cut: data = data.prefix(place)
        case .flipped: data[place] ^= UInt8.random(in: 1...255, using: &generator)
        case .zeros: data.replaceSubrange(place..<place + length, with: Data(count: length))
        case .twice: data.insert(contentsOf: data[place..<place + length], at: place)
        case .header:
            for _ in 0..<3 {
                let index = Int.random(in: 0..<min(600, data.count), using: &generator)
                data[index] ^= UInt8.random(in: 1...255, using: &generator)
            }
        case .foreign:
            let other = Corpus.long(Corpus.kinds.randomElement(using: &generator)!)
            let head = FileManager.default.contents(atPath: other.path)?.prefix(64) ?? Data()
            data.replaceSubrange(0..<min(head.count, data.count), with: head)
        case .garbage:
            let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
            data = Data(bytes) + data
        }
        return Damaged(data: data, place: damage.isLocal ? place : 0)
    }

    /// Sound is a header's word times bytes: of 24 bits as of 4, of eight channels as of one.
    private static let mostTimes = 64
    private static let canary: Float = 12_345.5

    @Test(.timeLimit(.minutes(10)), arguments: Corpus.kinds)
    func `damage is an error in words, or sound that keeps what lies before it`(
        kind: CorpusKind
    ) throws {
        let file = Corpus.long(kind)
        let data = try Data(contentsOf: URL(fileURLWithPath: file.path))
        let whole = try readAll(FFmpegSource(file.path))
        let spread = try Spread(data, file)
        for seed in 0..<UInt64(max(1, Corpus.seeds)) {
            for damage in Damage.allCases {
                var generator = SplitMix64(seed: seed)
                let part = Self.damaged(data, spread, damage, &generator)
                let path = try Fixtures.write(part.data, "damaged-" + kind.name)
                let name = "\(damage), seed \(seed)"
                do throws(MediaError) {
                    let source = try FFmpegSource(path)
                    let frames = try read(source, name)
                    try seek(source, frames, name, &generator)
                    guard damage.isLocal else { continue }
                    let sure = sureFrames(of: file, spread.frame(ofPlace: part.place))
                    let count = min(2 * sure, frames.count)
                    let matches = isSame(frames, whole, count: count)
                    #expect(matches && count == 2 * sure, "\(name): \(frames.count / 2), \(sure)")
                } catch {
                    expectClear(error, of: path)
                    #expect(damage != .flipped, "\(name): \(error)")
                }
            }
        }
    }

    /// Frames of packets that end before the one with a frame of noise, which takes as many bytes
    /// everywhere but for what encoders save up.
    private func sureFrames(of file: CorpusFile, _ frame: Int) -> Int {
        max(0, frame - 3 * file.kind.packet.length(file.shape) - 3_000)
    }

    /// Everything, into a buffer behind which nothing may be written.
    private func read(_ source: FFmpegSource, _ name: String) throws(MediaError) -> [Float] {
        let room = 3_001
        let buffer = UnsafeMutableBufferPointer<Float>.allocate(capacity: 2 * room + 64)
        defer { buffer.deallocate() }
        buffer.initialize(repeating: Self.canary)
        let portion = UnsafeMutableBufferPointer(rebasing: buffer[..<(2 * room)])
        var frames: [Float] = []
        let most = 2 * Self.mostTimes * Corpus.longest
        while case let count = try source.read(into: portion), count > 0 {
            #expect(count <= room, "\(name)")
            frames += portion[..<(2 * min(count, room))]
            guard frames.count <= most else {
                Issue.record("\(name): more than \(most / 2) frames")
                break
            }
        }
        #expect(buffer[(2 * room)...].allSatisfy { $0 == Self.canary }, "\(name)")
        #expect(frames.allSatisfy { $0.isFinite }, "\(name)")
        #expect(source.format.frameCount ?? .max == Int64(frames.count / 2), "\(name)")
        return frames
    }

    /// As many frames are left behind a place as there were.
    private func seek(
        _ source: FFmpegSource, _ frames: [Float], _ name: String, _ generator: inout SplitMix64
    ) throws(MediaError) {
        let count = frames.count / 2
        let place = Int.random(in: 0...count, using: &generator)
        try source.seek(toFrame: Int64(place))
        let rest = try read(rest: source)
        #expect(rest == count - place, "\(name): from \(place) of \(count)")
    }

    private func read(rest source: FFmpegSource) throws(MediaError) -> Int {
        let buffer = UnsafeMutableBufferPointer<Float>.allocate(capacity: 20_000)
        defer { buffer.deallocate() }
        var total = 0
        while case let count = try source.read(into: buffer), count > 0 { total += count }
        return total
    }
}
