import Foundation
import Testing
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// Encoders add delay and padding; none of it belongs to the recording.
@Suite struct FrameCountTests {
    @Test(arguments: [
        "s16.wav", "u8.wav", "s24.wav", "s32.wav", "f32.wav", "16.flac", "alac.m4a", "alac.caf",
        "pcm.caf", "pcm.aiff", "flac.mkv", "flac.ogg", "pcm.mkv", "wavpack.wv", "cbr.mp3",
        "vbr.mp3", "aac.m4a", "faststart.m4a", "vorbis.ogg",
    ])
    func `an item has as many frames as were recorded`(name: String) throws {
        let source = try FFmpegSource(Fixtures.path(name))
        #expect(source.format.frameCount == Int64(Fixtures.frameCount))
        #expect(source.format.sampleRate == Fixtures.sampleRate)
    }

    @Test(arguments: ["wav", "flac"])
    func `a file written to a pipe, which does not know its length, is measured`(
        kind: String
    ) throws {
        let path = Fixtures.path("piped." + kind)
        Fixtures.run(
            ["-v", "error", "-i", Fixtures.path("s16.wav"), "-f", kind, "-flags", "bitexact"]
                + ["-seekable", "0", "-y", "file:" + path])
        let source = try FFmpegSource(path)
        #expect(source.format.frameCount == Int64(Fixtures.frameCount))
        #expect(source.info.promisedFrameCount == nil)
    }

    @Test(arguments: [
        "16.flac", "s16.wav", "pcm.aiff", "pcm.caf", "faststart.m4a", "cbr.mp3", "flac.mkv",
        "wavpack.wv", "wma.wma", "pcm.au", "pcm.avi", "cbr.avi", "sound.tta", "sound.adx",
        "sound.sox", "sound.flv", "sound.rm",
    ])
    func `a file that was cut off says how long it was`(name: String) throws {
        let whole = try Fixtures.data(name)
        let expected = Fixtures.frameCount
        for part in [0.6, 0.3] {
            let path = try Fixtures.write(
                whole.prefix(Int(part * Double(whole.count))), "promise-" + name)
            let info = try FFmpegSource(path).info
            let promised = try #require(info.promisedFrameCount)
            // Matroska and ASF count milliseconds, and WMA ends with a whole packet.
            #expect(abs(promised - Int64(expected)) < 10_000, "\(part) of \(name)")
            #expect(info.frameCount ?? .max < Int64(expected))
        }
    }

    @Test(arguments: ["dsf", "dff"])
    func `a file of one-bit sound that was cut off says how long it was`(kind: String) throws {
        let whole = OneBitFiles.make(kind, seconds: 8)
        let path = try Fixtures.write(whole, "one-bit." + kind)
        let info = try FFmpegSource(path).info
        #expect(info.promisedFrameCount == nil)
        let frames = try #require(info.frameCount)
        let part = try FFmpegSource(
            Fixtures.write(whole.prefix(whole.count / 2), "one-bit-promise." + kind)
        ).info
        let promised = try #require(part.promisedFrameCount)
        #expect(abs(promised - frames) < Int64(info.sampleRate) / 10)
        #expect(abs((part.frameCount ?? 0) - frames / 2) < Int64(info.sampleRate) / 10)
    }

    /// The packet that lost its end yields nothing; silence in its place would be heard before the
    /// next item.
    @Test(arguments: ["16.flac", "alac.m4a", "flac.mkv", "flac.ogg"])
    func `what is cut off within a packet ends before that packet`(
        name: String
    ) throws {
        let path = Fixtures.path(name.hasSuffix(".m4a") ? "begins-with-table.m4a" : name)
        if name.hasSuffix(".m4a") {
            Fixtures.run(
                ["-v", "error", "-y", "-i", Fixtures.path(name), "-c", "copy"]
                    + ["-movflags", "+faststart", path])
        }
        let whole = try Data(contentsOf: URL(fileURLWithPath: path))
        // A few places, of which most are within a packet.
        for cut in [0.51, 0.63, 0.755, 0.9] {
            let source = try FFmpegSource(
                Fixtures.write(whole.prefix(Int(cut * Double(whole.count))), "torn-" + name))
            let count = try #require(source.format.frameCount)
            let sound = try readAll(source)
            #expect(sound.count == 2 * Int(count))
            // Lossless: the recording itself to the last frame, noise among it.
            let tail = Array(sound.suffix(400))
            let isSound = isSame(tail, Fixtures.floats, from: sound.count - tail.count)
            #expect(isSound, "\(name) at \(cut)")
            try expectExactSeeks(source, sound, at: [0, Int(count) - 5_000, Int(count) - 1])
        }
    }

    @Test func `a file that is whole promises nothing more`() throws {
        for name in Fixtures.names {
            #expect(try FFmpegSource(Fixtures.path(name)).info.promisedFrameCount == nil, "\(name)")
        }
    }

    @Test(arguments: ["mp3", "m4a", "flac"])
    func `a cover picture changes nothing`(kind: String) throws {
        let path = Fixtures.path("cover." + kind)
        let codec = kind == "m4a" ? ["-c:a", "copy"] : []
        Fixtures.run(
            ["-v", "error", "-y", "-i", Fixtures.path(kind == "m4a" ? "aac.m4a" : "s16.wav")]
                + ["-i", Fixtures.path("picture.png"), "-map", "0:a", "-map", "1:v"] + codec
                + ["-c:v", "copy", "-disposition:v", "attached_pic", path])
        let source = try FFmpegSource(path)
        #expect(source.format.frameCount == Int64(Fixtures.frameCount))
    }

    @Test(arguments: ["opus.opus", "voice.opus", "opus.mkv", "aac48.m4a"])
    func `an item that was resampled has as many frames as went into the encoder`(
        name: String
    ) throws {
        let source = try FFmpegSource(Fixtures.path(name))
        // The resampler in front of the encoder may round either way.
        let expected = Double(Fixtures.frameCount) * 48_000 / 44_100
        #expect(abs(Double(source.format.frameCount!) - expected) <= 1)
    }

    @Test(arguments: [
        ("8k.wav", 8_000, 1), ("192k.flac", 192_000, 2), ("24.flac", 96_000, 2),
        ("51.flac", 44_100, 6), ("71.wav", 44_100, 8), ("low.mp3", 8_000, 1),
    ])
    func `rate and channels are those of the file`(
        name: String, rate: Int, channels: Int
    ) throws {
        let format = try FFmpegSource(Fixtures.path(name)).format
        #expect(format.sampleRate == rate)
        #expect(format.channelCount == channels)
    }

    @Test(arguments: [
        "s16.wav", "s24.wav", "s32.wav", "f32.wav", "16.flac", "alac.m4a", "alac.caf", "pcm.caf",
        "pcm.aiff", "flac.mkv", "flac.ogg", "pcm.mkv", "wavpack.wv",
    ])
    func `a lossless file yields the recorded samples, bit for bit`(name: String) throws {
        let frames = try readAll(FFmpegSource(Fixtures.path(name)))
        let matches = isSame(frames, Fixtures.floats) && frames.count == Fixtures.floats.count
        #expect(matches)
    }

    @Test(arguments: ["cbr.mp3", "vbr.mp3", "aac.m4a", "vorbis.ogg"])
    func `a lossy file is nowhere nearer to the recording than in its place`(
        name: String
    ) throws {
        let frames = try readAll(FFmpegSource(Fixtures.path(name)))
        func error(lag: Int) -> Double {
            (100_000..<104_000).reduce(0) { sum, frame in
                let difference =
                    Double(frames[2 * (frame + lag)]) - Double(Fixtures.samples[2 * frame]) / 32_768
                return sum + difference * difference
            }
        }
        let nearest = (-8...8).min { error(lag: $0) < error(lag: $1) }
        #expect(nearest == 0)
    }

    /// What only the decoder knows of a delay: two blocks of WMA, and the encoder that says its name.
    @Test(arguments: ["wma.wma", "wma1.wma", "libfaac.aac", "ac3.ac3", "layer2.mp2"])
    func `an item begins where FFmpeg lets it begin`(name: String) throws {
        if name == "libfaac.aac" { try Self.signAsFAAC("aac.aac", name) }
        let source = try FFmpegSource(Fixtures.path(name))
        let frames = try readAll(source)
        let theirs = Fixtures.decode(Fixtures.path(name))
        #expect(source.format.frameCount == Int64(theirs.count / 2))
        #expect(frames.count == theirs.count)
        let farthest = zip(frames, theirs).prefix(200_000).map { abs($0 - $1) }.max() ?? 1
        // FFmpeg's own decode of AAC does not begin its noise anew.
        #expect(farthest < (name.hasSuffix("aac") ? 0.05 : 0.001))
        let seen = name == "ac3.ac3" || name == "layer2.mp2" ? 4_096 : 1_000
        #expect(frames[..<(2 * seen)].contains { abs($0) > 0.05 })
    }

    /// Puts a fill element with the encoder's name in front of what the first ADTS frame holds.
    private static func signAsFAAC(_ from: String, _ to: String) throws {
        let text = Array("libfaac 1.28".utf8)
        // Element 6, count 15 + escape − 1; then 4 bits kind and 13 that are skipped.
        let payload = 17 + 8 * text.count
        let count = (payload + 7) / 8
        var sign: [Bool] = []
        func put(_ value: Int, _ bits: Int) {
            for bit in (0..<bits).reversed() { sign.append(value >> bit & 1 == 1) }
        }
        put(6, 3)
        put(15, 4)
        put(count - 14, 8)
        put(0, 17)
        text.forEach { put(Int($0), 8) }
        put(0, 8 * count - payload)
        let whole = try Fixtures.data(from)
        let head = Array(whole.prefix(7))
        let size = Int(head[3] & 3) << 11 | Int(head[4]) << 3 | Int(head[5] >> 5)
        var bits = sign
        for byte in whole.prefix(size).dropFirst(7) {
            for bit in (0..<8).reversed() { bits.append(byte >> UInt8(bit) & 1 == 1) }
        }
        while bits.count % 8 > 0 { bits.append(false) }
        let length = 7 + bits.count / 8
        var result = Data(head[..<3])
        result += [head[3] & 0xFC | UInt8(length >> 11), UInt8(length >> 3 & 0xFF)]
        result += [UInt8(length & 7) << 5 | head[5] & 0x1F, head[6]]
        result += stride(from: 0, to: bits.count, by: 8).map { at in
            (0..<8).reduce(UInt8(0)) { $0 << 1 | (bits[at + $1] ? 1 : 0) }
        }
        result += whole.dropFirst(size)
        _ = try Fixtures.write(result, to)
    }
}
