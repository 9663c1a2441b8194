import Foundation
import Synchronization
import Testing
import TuttiChance
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// A container with a coding in it, as the `ffmpeg` program writes them.
struct CorpusKind: Sendable, CustomTestStringConvertible {
    /// What comes out of what went in.
    enum Promise: Sendable {
        /// Every sample of 16 bits.
        case samples
        /// The same, and a few silent ones where the container fills up its last word.
        case padded(upTo: Int)
        /// As many frames, of other values; of less than a few packets there may be some more, since
        /// encoders that end with their first packets say nothing of padding.
        case count
        /// So many fewer or more: whole packets, delays that nothing tells, and ends that the encoder
        /// keeps to itself.
        case about(Int)
    }

    /// Ends a file's name.
    let name: String
    let promise: Promise
    /// Frames of a packet.
    let packet: CorpusPacket
    let rates: [Int]
    let channels: [Int]
    let options: [String]

    var testDescription: String { name }

    /// Whether it is a row of packets with nothing around: a few alone are not told from chance.
    var isBare: Bool {
        ["mp2", "mp3", "aac", "ac3", "eac3", "dts", "latm", "thd", "mlp"].contains {
            name.hasSuffix("." + $0)
        }
    }

    /// Every rate with every number of channels.
    var shapes: [CorpusShape] {
        rates.flatMap { rate in channels.map { CorpusShape(rate: rate, channels: $0) } }
    }
}

enum CorpusPacket: Sendable {
    case frames(Int)
    /// The largest block of FLAC's table within 105 ms.
    case flac
    /// TTA has 256 / 245 s.
    case trueAudio
    /// WavPack has a second, or halves or several of it: 40 000 to 150 000 samples.
    case wavPack

    func length(_ shape: CorpusShape) -> Int {
        switch self {
        case .frames(let count): return count
        case .flac:
            let blocks = (0..<4).map { 576 << $0 } + (0..<8).map { 256 << $0 }
            return blocks.filter { $0 <= shape.rate * 105 / 1_000 }.max() ?? 576
        case .trueAudio: return 256 * shape.rate / 245
        case .wavPack:
            var count = shape.rate
            while count * shape.channels > 150_000 { count /= 2 }
            while count * shape.channels < 40_000 { count += shape.rate }
            return count
        }
    }
}

/// Frames a second, and how many samples a frame has.
struct CorpusShape: Hashable, Sendable {
    var rate: Int
    var channels: Int
}

/// One file of the corpus.
struct CorpusFile: Sendable {
    let kind: CorpusKind
    let shape: CorpusShape
    /// That went into the encoder.
    let frames: Int
    let isTagged: Bool

    var name: String {
        "corpus-\(shape.rate)-\(shape.channels)-\(frames)\(isTagged ? "-tagged" : "").\(kind.name)"
    }
    var path: String { Fixtures.path(name) }
    private var ending: String { kind.name.split(separator: ".").last.map(String.init) ?? "" }

    /// What `ffmpeg` is told to make it.
    var output: [String] {
        let tags = isTagged ? Corpus.tags.flatMap { ["-metadata", "\($0)=\($1)"] } : []
        // Ogg's pages hold a second unless told: damage would leave nothing.
        let isPaged = frames >= 12_345 && !isTagged && ["opus", "ogg", "oga"].contains(ending)
        let pages = isPaged ? ["-page_duration", "10000"] : []
        return ["-map", "0:a", "-af", "atrim=end_sample=\(frames)"] + kind.options + tags + pages
            + ["file:" + path]
    }
}

/// Files of every container and coding that `ffmpeg` writes here and ``FFmpegSource`` opens.
///
/// Each run makes a few of each; `CORPUS_SEEDS` asks for all rates, channels and lengths, and for so
/// many seeds of damage (see CONTRIBUTING.md).
enum Corpus {
    static let seeds = max(
        0, ProcessInfo.processInfo.environment["CORPUS_SEEDS"].flatMap(Int.init) ?? 0)
    static var isWhole: Bool { seeds > 0 }

    /// Not a multiple of any packet, and at 8 kHz still several of each.
    static let longest = 24_000

    static let tags = [
        ("title", "“Æther” = 𝄞 🏳️‍🌈; \\ 100 % 'a' \u{202E}cba\u{202C} e\u{301}"),
        ("artist", String(repeating: "Ünïcødé ", count: 400) + "end"),
        ("album", "one\ntwo\t#three[]{}<&>"),
        ("comment", "\u{7F} \u{200B}\u{FEFF}"),
    ]

    /// The shape that each run tries of a kind; by chance, and the same in all runs.
    static func shape(of kind: CorpusKind) -> CorpusShape {
        var generator = chance(of: kind)
        return kind.shapes.randomElement(using: &generator)!
    }

    /// Around nothing and around a packet, and one that is a multiple of nothing; of each some in an
    /// ordinary run, and all in a long one.
    private static func lengths(of kind: CorpusKind, _ shape: CorpusShape) -> [Int] {
        let packet = kind.packet.length(shape)
        let all = [0, 1, 2, packet - 1, packet, packet + 1, 12_345].filter { $0 <= longest }
        guard !isWhole else { return all }
        var generator = chance(of: kind)
        let some = all.dropLast().shuffled(using: &generator).prefix(3)
        return some + [12_345]
    }

    private static func chance(of kind: CorpusKind) -> SplitMix64 {
        SplitMix64(seed: kind.name.utf8.reduce(UInt64(7)) { $0 &* 31 &+ UInt64($1) })
    }

    /// - Returns: the files that the test of a kind looks at, made already.
    static func files(of kind: CorpusKind) -> [CorpusFile] {
        guard isWhole else { return usual[kind.name] ?? [] }
        let files = kind.shapes.flatMap { plain(kind, $0) }
        make(files)
        return files
    }

    static func tagged(_ kind: CorpusKind) -> CorpusFile {
        _ = usual
        return CorpusFile(kind: kind, shape: shape(of: kind), frames: 12_345, isTagged: true)
    }

    static func long(_ kind: CorpusKind) -> CorpusFile {
        _ = usual
        return CorpusFile(kind: kind, shape: shape(of: kind), frames: longest, isTagged: false)
    }

    /// The same with fewer frames.
    static func shorter(_ file: CorpusFile) -> CorpusFile {
        CorpusFile(kind: file.kind, shape: file.shape, frames: 12_345, isTagged: false)
    }

    private static func plain(_ kind: CorpusKind, _ shape: CorpusShape) -> [CorpusFile] {
        lengths(of: kind, shape).map {
            CorpusFile(kind: kind, shape: shape, frames: $0, isTagged: false)
        }
    }

    /// By the kind's name: what each run looks at.
    private static let usual: [String: [CorpusFile]] = {
        let files = kinds.map { plain($0, shape(of: $0)) }
        let others = kinds.flatMap { kind in
            [(12_345, true), (longest, false)].map {
                CorpusFile(kind: kind, shape: shape(of: kind), frames: $0, isTagged: $1)
            }
        }
        make(files.flatMap { $0 } + others)
        return Dictionary(uniqueKeysWithValues: zip(kinds.map(\.name), files))
    }()

    /// One program for each shape: starting one takes longer than encoding.
    private static func make(_ files: [CorpusFile]) {
        for (shape, files) in Dictionary(grouping: files, by: \.shape) where !runs(shape, files) {
            // One that cannot be written takes the others with it.
            for file in files where !runs(shape, [file]) {
                try? FileManager.default.removeItem(atPath: file.path)
            }
        }
    }

    private static func runs(_ shape: CorpusShape, _ files: [CorpusFile]) -> Bool {
        let input = ["-v", "quiet", "-y", "-filter_threads", "1", "-i", source(shape)]
        return Fixtures.runs(input + files.flatMap(\.output))
    }

    // MARK: What goes in

    /// Noise of 16 bits, other in each channel.
    static func samples(_ shape: CorpusShape) -> [Int16] {
        var generator = SplitMix64(seed: UInt64(shape.rate * 10 + shape.channels))
        return (0..<shape.channels * longest).map { _ in generator.noise() }
    }

    /// - Returns: the path of them as WAV.
    static func source(_ shape: CorpusShape) -> String {
        let name = "corpus-\(shape.rate)-\(shape.channels).wav"
        if !FileManager.default.fileExists(atPath: Fixtures.path(name)) {
            let wave = Fixtures.wave(samples(shape), channels: shape.channels, rate: shape.rate)
            _ = try! Fixtures.write(wave, name)
        }
        return Fixtures.path(name)
    }

    /// What should be heard of it: one channel on both sides, two as they are, more mixed as they
    /// are from WAV.
    static func heard(_ shape: CorpusShape) throws -> [Float] {
        if let known = known.withLock({ $0[shape] }) { return known }
        let floats = samples(shape).map { Float($0) / 32_768 }
        let frames =
            switch shape.channels {
            case 1: floats.flatMap { [$0, $0] }
            case 2: floats
            default: try readAll(FFmpegSource(source(shape)))
            }
        known.withLock { $0[shape] = frames }
        return frames
    }

    private static let known = Mutex<[CorpusShape: [Float]]>([:])
}
