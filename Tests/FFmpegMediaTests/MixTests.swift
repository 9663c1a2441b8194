import Foundation
import Testing
import TuttiPlayout

@testable import TuttiFFmpegMedia

@Suite struct MixTests {
    private func source(_ samples: [Int16], channels: Int, _ name: String) throws -> FFmpegSource {
        let path = Fixtures.path(name)
        try Fixtures.wave(samples, channels: channels, rate: 48_000)
            .write(to: URL(fileURLWithPath: path))
        return try FFmpegSource(path)
    }

    @Test func `a mono file sounds on both sides at the level it has`() throws {
        let samples = Fixtures.samples.prefix(5_000)
        let frames = try readAll(source(Array(samples), channels: 1, "mono.wav"))
        let expected = samples.flatMap { [Float($0) / 32_768, Float($0) / 32_768] }
        #expect(frames == expected)
    }

    @Test(arguments: [3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32])
    func `full scale in all of many channels does not exceed full scale in two`(
        channels: Int
    ) throws {
        let samples = [Int16](repeating: .max, count: 1_000 * channels)
        let source = try source(samples, channels: channels, "full-\(channels).wav")
        #expect(source.format.channelCount == channels)
        let frames = try readAll(source)
        #expect(frames.count == 2_000)
        let peak = frames.map { abs($0) }.max()!
        #expect(peak <= 1)
        #expect(peak > 0.9)
    }

    /// FFmpeg makes six channels of two by leaving them as they are.
    @Test func `what stands in the front of a surround file is as loud as in a stereo file`() throws
    {
        let frames = try readAll(FFmpegSource(Fixtures.path("51.flac")))
        let matches = isSame(frames, Fixtures.floats) && frames.count == Fixtures.floats.count
        #expect(matches)
    }

    @Test(arguments: [
        // Front left and right, centre, effects, then the surrounds: ITU-R BS.775-4, table 2.
        (0, 1, 0), (1, 0, 1), (2, 0.5.squareRoot(), 0.5.squareRoot()), (3, 0, 0),
        (4, 0.5.squareRoot(), 0), (5, 0, 0.5.squareRoot()),
    ])
    func `each channel of six has its usual level`(
        channel: Int, left: Double, right: Double
    ) throws {
        var samples = [Int16](repeating: 0, count: 600)
        for frame in 0..<100 { samples[6 * frame + channel] = 16_384 }
        let frames = try readAll(source(samples, channels: 6, "one-of-six.wav"))
        #expect(frames.count == 200)
        #expect(abs(Double(frames[100]) - left / 2) < 1e-6)
        #expect(abs(Double(frames[101]) - right / 2) < 1e-6)
    }

    @Test func `a sum beyond full scale bends without turning or moving sideways`() {
        var last: Float = 0
        for step in 0...300 {
            let level = Float(step) / 100
            var frame: [Float] = [level, -level / 2]
            frame.withUnsafeMutableBufferPointer { Downmix.limit($0.baseAddress!, frames: 1) }
            #expect(frame[0] >= last && frame[0] <= 1)
            #expect(abs(frame[0] + 2 * frame[1]) < 1e-6)
            if level <= Downmix.knee { #expect(frame[0] == level) }
            last = frame[0]
        }
    }

    @Test func `a file with more frames a second than cards play is halved until they do`() throws {
        let path = Fixtures.path("dsd256.wav")
        var samples: [Int16] = []
        for frame in 0..<40_000 {
            let value = Int16(16_000 * sin(2 * .pi * 1_000 * Double(frame) / 1_411_200))
            samples += [value, -value]
        }
        try Fixtures.wave(samples, channels: 2, rate: 1_411_200)
            .write(to: URL(fileURLWithPath: path))
        let source = try FFmpegSource(path)
        #expect(source.format.sampleRate == 352_800)
        #expect(source.format.frameCount == 10_000)
        #expect(source.info.sampleRate == 352_800)
        let frames = try readAll(source)
        #expect(frames.count == 20_000)
        for frame in 1_000..<9_000 {
            let expected = 16_000 / 32_768 * sin(2 * .pi * 1_000 * Double(frame) / 352_800)
            #expect(abs(Double(frames[2 * frame]) - expected) < 2e-4)
        }
        try expectExactSeeks(source, frames, at: [0, 1, 5_000, 9_999])
    }

    @Test func `a file of a single frame is that frame`() throws {
        let one = try source([1_000, -2_000], channels: 2, "one.wav")
        #expect(one.format.frameCount == 1)
        #expect(try readAll(one) == [1_000.0 / 32_768, -2_000.0 / 32_768])
        try one.seek(toFrame: 0)
        #expect(try readAll(one).count == 2)
    }

    @Test func `what a file says about itself is there at once`() throws {
        let flac = try FFmpegSource(Fixtures.path("16.flac")).info
        #expect(flac.title == "Evening")
        #expect(flac.codec == "flac")
        #expect(flac.container == "flac")
        #expect(flac.duration == Double(Fixtures.frameCount) / 44_100)
        let mp3 = try FFmpegSource(Fixtures.path("cbr.mp3")).info
        #expect(mp3.title == "cbr")
        #expect(mp3.artist == "Ada")
        #expect(mp3.album == "Notes")
        #expect((120_000...136_000).contains(mp3.bitRate))
        #expect(try FFmpegSource(Fixtures.path("vorbis.ogg")).info.title == "Ogg")
    }
}
