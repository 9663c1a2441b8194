import Foundation
import TuttiPlayout

/// An item in memory that counts what is read of it.
final class Recording: FrameReader {
    let samples: [Float]
    private(set) var framesRead = 0

    /// - Parameter samples: interleaved stereo at 48 kHz.
    init(_ samples: [Float]) { self.samples = samples }

    func read(
        at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>
    ) throws(MediaError) -> Int {
        let first = 2 * Int(frame)
        let count = max(0, min(buffer.count / 2, (samples.count - first) / 2))
        _ = buffer.update(fromContentsOf: samples[first..<first + 2 * count])
        framesRead += count
        return count
    }
}

/// What plays a recording at a rate with its pitch kept.
struct Contender: Sendable {
    var name: String
    /// Interleaved stereo; `nil` where it is not there.
    var play: @Sendable ([Float], Double) throws -> [Float]?

    static let all = [
        ours("time domain", .timeDomain), ours("spectral", .spectral),
        ffmpeg("atempo", "atempo="), ffmpeg("rubberband", "rubberband=tempo="),
    ]

    private static func ours(_ name: String, _ algorithm: TimePitchAlgorithm) -> Contender {
        Contender(name: name) { samples, rate in
            let transform = transform(of: Recording(samples), algorithm, rate)
            var result: [Float] = []
            var buffer = [Float](repeating: 0, count: 8_192)
            while true {
                let position = Int64(result.count / 2)
                let count = try buffer.withUnsafeMutableBufferPointer {
                    try transform.read(at: position, into: $0)
                }
                if count == 0 { return result }
                result += buffer[..<(2 * count)]
            }
        }
    }

    static func transform(
        of recording: Recording, _ algorithm: TimePitchAlgorithm, _ rate: Double
    ) -> any FrameTransform {
        FrameTransforms.make(
            rate: rate, algorithm: algorithm, sampleRate: 48_000,
            frameCount: Int64(recording.samples.count / 2), reader: recording)!
    }

    private static func ffmpeg(_ name: String, _ filter: String) -> Contender {
        Contender(name: "ffmpeg \(name)") { samples, rate in
            let folder = FileManager.default.temporaryDirectory
                .appending(path: "stretch-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            let input = folder.appending(path: "in.f32")
            let output = folder.appending(path: "out.f32")
            try samples.withUnsafeBytes { Data($0) }.write(to: input)
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/env")
            let format = ["-f", "f32le", "-ar", "48000", "-ac", "2"]
            process.arguments =
                ["ffmpeg", "-v", "error"] + format + ["-i", input.path]
                + ["-af", "\(filter)\(rate)"] + format + [output.path]
            try process.run()
            process.waitUntilExit()
            guard process.terminationStatus == 0, let data = try? Data(contentsOf: output) else {
                return nil
            }
            return data.withUnsafeBytes { Array($0.bindMemory(to: Float.self)) }
        }
    }
}
