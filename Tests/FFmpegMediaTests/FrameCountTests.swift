import Foundation
import Playout
import Testing

@testable import FFmpegMedia

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

    @Test func `an end that iTunes states is the end`() throws {
        let path = Fixtures.path("itunes.m4a")
        // Delay 1 024, padding 256, length 225 792: hexadecimal words, as iTunes writes them.
        let comment = " 00000000 00000400 00000100 0000000000037200 00000000"
        Fixtures.run(
            ["-v", "error", "-y", "-i", Fixtures.path("aac.m4a"), "-c", "copy"]
                + ["-movflags", "use_metadata_tags", "-metadata", "iTunSMPB=" + comment, path])
        let source = try FFmpegSource(path)
        #expect(source.format.frameCount == 225_792)
        #expect(try readAll(source).count == 2 * 225_792)
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

    @Test func `a FLAC that was cut off says how long it was, and nothing else does`() throws {
        let whole = try Data(contentsOf: URL(fileURLWithPath: Fixtures.path("16.flac")))
        for part in [0.6, 0.2] {
            let path = Fixtures.path("promise.flac")
            try whole.prefix(Int(part * Double(whole.count))).write(
                to: URL(fileURLWithPath: path))
            let info = try FFmpegSource(path).info
            #expect(info.promisedFrameCount == Int64(Fixtures.frameCount))
            #expect(info.frameCount ?? .max < Int64(Fixtures.frameCount))
        }
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
}
