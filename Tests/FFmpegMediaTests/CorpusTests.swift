import Foundation
import Testing
import TuttiChance
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// Every container and coding, at odd rates, numbers of channels and lengths.
@Suite struct CorpusTests {
    @Test(arguments: Corpus.kinds)
    func `what went into a container comes out of it, from any place and in any portions`(
        kind: CorpusKind
    ) throws {
        for file in Corpus.files(of: kind) {
            do throws(MediaError) {
                let source = try FFmpegSource(file.path)
                try? check(source, file)
            } catch {
                expectClear(error, of: file.path)
                #expect(mayBeNothing(file), "\(error)")
            }
            if Corpus.isWhole { try? FileManager.default.removeItem(atPath: file.path) }
        }
    }

    /// Less than three frames may be all delay.
    private func mayBeNothing(_ file: CorpusFile) -> Bool {
        file.frames <= (file.kind.isBare ? file.kind.packet.length(file.shape) + 1 : 2)
    }

    private func check(_ source: FFmpegSource, _ file: CorpusFile) throws {
        let linear = try #require(try? readAll(source), "\(file.name)")
        let count = linear.count / 2
        #expect(source.format.frameCount == Int64(count), "\(file.name)")
        #expect(source.format.sampleRate == file.shape.rate, "\(file.name)")
        #expect(source.format.channelCount == file.shape.channels, "\(file.name)")
        // Matroska counts the last packet as whole, and WavPack's may have seconds.
        if file.kind.packet.length(file.shape) < file.shape.rate {
            #expect(source.info.promisedFrameCount == nil, "\(file.name)")
        }
        expectPromise(file, linear, try Corpus.heard(file.shape))
        var generator = SplitMix64(seed: UInt64(file.frames))
        let places = (0..<3).map { _ in Int.random(in: 0...max(0, count), using: &generator) }
        try expectExactSeeks(source, linear, at: places + [max(0, count - 1)])
        try source.seek(toFrame: 0)
        try expectSamePortions(source, linear, &generator, file.name)
    }

    private func expectPromise(_ file: CorpusFile, _ linear: [Float], _ heard: [Float]) {
        let more = linear.count / 2 - file.frames
        let name = "\(file.name): \(more) more"
        switch file.kind.promise {
        case .samples:
            let matches = isSame(linear, heard)
            #expect(more == 0 && matches, "\(name)")
        case .padded(let most):
            let matches = isSame(linear, heard, count: min(linear.count, 2 * file.frames))
            let isSilent = linear.dropFirst(2 * file.frames).allSatisfy { $0 == 0 }
            #expect((0...most).contains(more) && matches && isSilent, "\(name)")
        case .count:
            let packet = file.kind.packet.length(file.shape)
            #expect((0...(file.frames > 4 * packet ? 0 : 2 * packet)).contains(more), "\(name)")
        case .about(let most):
            #expect(more.magnitude <= most, "\(name)")
        }
    }

    /// Portions of one frame, of many and of what lies between.
    private func expectSamePortions(
        _ source: FFmpegSource, _ linear: [Float], _ generator: inout SplitMix64, _ name: String
    ) throws {
        var place = 0
        while true {
            let size = 1 << Int.random(in: 0...13, using: &generator)
            let portion = try read(source, Int.random(in: 1...size, using: &generator))
            let matches = isSame(portion, linear, from: place)
            guard matches else {
                Issue.record("\(name): other frames than in one go, near \(place / 2)")
                return
            }
            place += portion.count
            if portion.isEmpty { break }
        }
        #expect(place == linear.count, "\(name)")
    }

    @Test(arguments: Corpus.kinds)
    func `strange words in tags change nothing that is heard`(kind: CorpusKind) throws {
        let file = Corpus.tagged(kind)
        let plain = try #require(Corpus.files(of: kind).last)
        let source = try FFmpegSource(file.path)
        let frames = try readAll(source)
        let matches = try isSame(frames, readAll(FFmpegSource(plain.path)))
        #expect(matches)
        try expectExactSeeks(source, frames, at: [frames.count / 5])
        // What the container has no place for is not there; what is there is no other text.
        for (name, text) in Corpus.tags {
            guard let found = source.metadata.tags[name] else { continue }
            #expect(found.showsSomething && text.hasPrefix(found), "\(name): \(found)")
        }
    }
}

/// One sentence that says what, why, and what can be done.
func expectClear(_ error: MediaError, of path: String) {
    #expect(error.subject == path)
    #expect(error.reason.count > 10 && !error.reason.contains("\n"), "\(error)")
    let isVague = ["Input/output", "Unknown error", "Error number"].contains {
        error.reason.contains($0)
    }
    #expect(!isVague, "\(error)")
}
