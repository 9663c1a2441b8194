import Foundation
import Testing
import TuttiChance
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// A recording made from a seed, and the same in every format, written once per test run.
///
/// Noise over two tones, different in both channels: any shift by a frame or swap of sides shows.
/// 7.123 s at 44.1 kHz is not a multiple of any packet length and crosses the frame where AAC
/// decoding starts afresh.
enum Fixtures {
    static let frameCount = 314_124
    static let sampleRate = 44_100

    static let folder: String = {
        var template = Array((NSTemporaryDirectory() + "tutti-media-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { fatalError("no temporary folder") }
        let path = String(decoding: template.dropLast().map { UInt8($0) }, as: UTF8.self)
        generate(in: path)
        atexit { try? FileManager.default.removeItem(atPath: Fixtures.folder) }
        return path
    }()

    static func path(_ name: String) -> String { folder + "/" + name }

    /// 16-bit samples, interleaved stereo.
    static let samples: [Int16] = {
        var generator = SplitMix64(seed: 1)
        var samples = [Int16](repeating: 0, count: 2 * frameCount)
        var phases = (0.0, 0.0)
        for frame in 0..<frameCount {
            phases.0 += 440 * 2 * .pi / 44_100
            phases.1 += 587 * 2 * .pi / 44_100
            samples[2 * frame] = Int16(9_000 * sin(phases.0)) + generator.noise()
            samples[2 * frame + 1] = Int16(9_000 * sin(phases.1)) + generator.noise()
        }
        return samples
    }()

    static let floats = samples.map { Float($0) / 32_768 }

    private static func generate(in folder: String) {
        try! wave(samples, channels: 2, rate: sampleRate)
            .write(to: URL(fileURLWithPath: folder + "/s16.wav"))
        var arguments = ["-v", "error", "-y", "-i", folder + "/s16.wav"]
        for (name, options) in outputs { arguments += options + [folder + "/" + name] }
        run(arguments)
        run(
            ["-v", "error", "-y", "-i", folder + "/aac.m4a", "-c", "copy"]
                + ["-encryption_scheme", "cenc-aes-ctr"]
                + ["-encryption_key", "0123456789abcdef0123456789abcdef"]
                + ["-encryption_kid", "0123456789abcdef0123456789abcdef"]
                + [folder + "/encrypted.mp4"])
        run(
            ["-v", "error", "-y", "-f", "lavfi", "-i", "color=c=red:s=32x32:d=1"]
                + [folder + "/video.mp4", "-frames:v", "1", folder + "/picture.png"])
    }

    static func run(_ arguments: [String]) {
        precondition(runs(arguments), "ffmpeg \(arguments) failed: is it installed?")
    }

    /// - Returns: whether the `ffmpeg` program did what it was told.
    static func runs(_ arguments: [String]) -> Bool {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["ffmpeg", "-nostdin"] + arguments
        try! process.run()
        process.waitUntilExit()
        return process.terminationStatus == 0
    }

    /// What the `ffmpeg` program makes of a file: interleaved stereo, trimmed as it trims.
    static func decode(_ path: String) -> [Float] {
        let raw = path + ".f32"
        run(["-v", "quiet", "-y", "-i", path, "-ac", "2", "-f", "f32le", raw])
        let data = try! Data(contentsOf: URL(fileURLWithPath: raw))
        return data.withUnsafeBytes { Array($0.bindMemory(to: Float.self)) }
    }

    static func data(_ name: String) throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: path(name)))
    }

    /// - Returns: the path.
    static func write(_ data: Data, _ name: String) throws -> String {
        try data.write(to: URL(fileURLWithPath: path(name)))
        return path(name)
    }

    static func wave(_ samples: [Int16], channels: Int, rate: Int) -> Data {
        func word(_ value: Int, _ bytes: Int) -> [UInt8] {
            (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
        let size = 2 * samples.count
        var data = Data("RIFF".utf8) + word(size + 36, 4) + Data("WAVEfmt ".utf8)
        data += word(16, 4) + word(1, 2) + word(channels, 2) + word(rate, 4)
        data += word(2 * channels * rate, 4) + word(2 * channels, 2) + word(16, 2)
        data += Data("data".utf8) + word(size, 4)
        samples.withUnsafeBytes { data.append(contentsOf: $0) }
        return data
    }

    /// File name and what ffmpeg is told to make it.
    private static let outputs: [(String, [String])] = [
        ("u8.wav", ["-c:a", "pcm_u8"]), ("s24.wav", ["-c:a", "pcm_s24le"]),
        ("s32.wav", ["-c:a", "pcm_s32le"]), ("f32.wav", ["-c:a", "pcm_f32le"]),
        ("adpcm.wav", ["-c:a", "adpcm_ms"]), ("16.flac", ["-metadata", "title=Evening"]),
        ("24.flac", ["-sample_fmt", "s32", "-ar", "96000"]),
        ("alac.m4a", ["-c:a", "alac"]), ("alac.caf", ["-c:a", "alac"]), ("pcm.caf", []),
        ("pcm.aiff", []), ("flac.mkv", ["-c:a", "flac"]), ("flac.ogg", ["-c:a", "flac"]),
        ("pcm.mkv", ["-c:a", "pcm_s16le"]), ("wavpack.wv", []),
        ("cbr.mp3", ["-b:a", "128k", "-metadata", "artist=Ada", "-metadata", "album=Notes"]),
        ("vbr.mp3", ["-q:a", "4"]), ("low.mp3", ["-b:a", "8k", "-ar", "8000", "-ac", "1"]),
        ("bare.mp3", ["-b:a", "128k", "-write_xing", "0", "-id3v2_version", "0"]),
        ("bare-vbr.mp3", ["-q:a", "4", "-write_xing", "0"]), ("layer2.mp2", []),
        ("aac.m4a", ["-b:a", "160k"]), ("aac48.m4a", ["-ar", "48000"]), ("aac.aac", []),
        ("faststart.m4a", ["-movflags", "+faststart"]), ("aac.mkv", ["-c:a", "aac"]),
        ("aac.ts", ["-c:a", "aac"]), ("ac3.ac3", []), ("wma.wma", ["-c:a", "wmav2"]),
        ("wma1.wma", ["-c:a", "wmav1"]), ("sound.nut", ["-c:a", "pcm_s16le"]),
        ("low.wma", ["-c:a", "wmav2", "-b:a", "32k"]),
        ("lossless.thd", ["-c:a", "truehd", "-strict", "-2"]), ("dolby.eac3", []),
        ("sound.adx", []), ("pcm.au", []), ("pcm.avi", ["-c:a", "pcm_s16le"]), ("cbr.avi", []),
        ("sound.tta", []), ("sound.sox", []), ("sound.flv", []), ("sound.rm", []),
        ("opus.opus", ["-c:a", "libopus"]), ("opus.mkv", ["-c:a", "libopus"]),
        ("voice.opus", ["-c:a", "libopus", "-b:a", "16k", "-application", "voip"]),
        ("vorbis.ogg", ["-c:a", "libvorbis", "-metadata", "title=Ogg"]),
        ("vorbis.mkv", ["-c:a", "libvorbis"]),
        ("8k.wav", ["-ar", "8000", "-ac", "1"]), ("192k.flac", ["-ar", "192000"]),
        ("51.flac", ["-ac", "6"]), ("71.wav", ["-ac", "8"]),
    ]

    static let names = outputs.map(\.0) + ["s16.wav"]
}

extension SplitMix64 {
    mutating func noise() -> Int16 { Int16(truncatingIfNeeded: Int64(bitPattern: next()) >> 51) }
}

/// Everything from where `source` stands.
func readAll(_ source: FFmpegSource) throws -> [Float] {
    var blocks: [[Float]] = []
    // Not a divisor of any packet length.
    while case let block = try read(source, 50_003), !block.isEmpty { blocks.append(block) }
    return [Float](unsafeUninitializedCapacity: blocks.reduce(0) { $0 + $1.count }) {
        buffer, filled in
        for block in blocks {
            block.withUnsafeBytes {
                UnsafeMutableRawPointer(buffer.baseAddress! + filled)
                    .copyMemory(from: $0.baseAddress!, byteCount: $0.count)
            }
            filled += block.count
        }
    }
}

/// `count` frames, fewer only at the end.
func read(_ source: FFmpegSource, _ count: Int) throws -> [Float] {
    try [Float](unsafeUninitializedCapacity: 2 * count) { buffer, filled in
        filled =
            2
            * (try source.read(into: UnsafeMutableBufferPointer(rebasing: buffer[..<(2 * count)])))
    }
}

/// Whether `part` is, bit for bit, what `whole` holds from element `start` on.
func isSame(_ part: [Float], _ whole: [Float], from start: Int = 0, count: Int? = nil) -> Bool {
    let count = count ?? part.count
    guard count <= part.count, start + count <= whole.count else { return false }
    return part.withUnsafeBufferPointer { part in
        whole.withUnsafeBufferPointer { whole in
            count == 0 || memcmp(part.baseAddress!, whole.baseAddress! + start, 4 * count) == 0
        }
    }
}

/// Compares seeks with a read from the start.
func expectExactSeeks(_ source: FFmpegSource, _ linear: [Float], at targets: [Int]) throws {
    for target in targets {
        try source.seek(toFrame: Int64(target))
        let frames = try read(source, 3_000)
        #expect(frames.count == 2 * max(0, min(3_000, linear.count / 2 - target)))
        let matches = isSame(frames, linear, from: 2 * target)
        #expect(matches, "after a seek to \(target) of \(linear.count / 2)")
    }
}
