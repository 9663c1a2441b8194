import Foundation
import TuttiChance

@testable import TuttiFFmpegMedia

/// Containers of several tracks, made from the recording of ``Fixtures`` and from another one.
enum Films {
    /// Five seconds at 48 kHz, 5.1: noise, other in each channel.
    static let second: String = {
        var generator = SplitMix64(seed: 2)
        let samples = (0..<6 * 240_000).map { _ in generator.noise() }
        let wave = Fixtures.wave(samples, channels: 6, rate: 48_000)
        return try! Fixtures.write(wave, "second.wav")
    }()

    /// Two audio tracks, with other languages, marks, rates and channels, and a picture that moves.
    ///
    /// - Parameters:
    ///   - codecs: of the sound of the first and of the second.
    ///   - offset: seconds by which one of them is late.
    /// - Returns: the path; a name is made once.
    static func make(
        _ name: String, _ codecs: (String, String), late: Int = 1, by offset: Double = 0,
        _ options: [String] = []
    ) -> String {
        let path = Fixtures.path(name)
        if FileManager.default.fileExists(atPath: path) { return path }
        func shift(_ track: Int) -> [String] { ["-itsoffset", late == track ? "\(offset)" : "0"] }
        Fixtures.run(
            ["-v", "error", "-y"] + shift(0) + ["-i", Fixtures.path("s16.wav")] + shift(1)
                + ["-i", second, "-f", "lavfi", "-i", "color=c=red:s=32x32:d=7"]
                + ["-map", "2:v", "-map", "0:a", "-map", "1:a", "-c:v", "mpeg4", "-strict", "-2"]
                + ["-c:a:0", codecs.0, "-c:a:1", codecs.1]
                + ["-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=deu"]
                + ["-disposition:a:0", "default+original", "-disposition:a:1", "comment"]
                + options + [path])
        return path
    }

    /// One stream of a file, as a file.
    static func alone(_ stream: String, of path: String, _ name: String) -> String {
        let result = Fixtures.path(name)
        Fixtures.run(["-v", "error", "-y", "-i", path, "-map", stream, "-c", "copy", result])
        return result
    }
}
