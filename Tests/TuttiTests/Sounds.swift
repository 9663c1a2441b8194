import Foundation
import Tutti

/// Files of tones, and what is in those that devices wrote. Gone with the test.
final class Sounds: Sendable {
    let folder =
        FileManager.default.temporaryDirectory.path + "/tutti-sounds-\(UUID().uuidString)"

    init() {
        try? FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    /// A WAV file of a steady tone, mono, 16 bits, 8000 Hz.
    func tone(_ hertz: Double, seconds: Double, as name: String) throws -> String {
        try file(as: name, frames: Int(seconds * 8_000)) { frame in
            0.25 * sin(2 * .pi * hertz * Double(frame) / 8_000)
        }
    }

    /// The same of any samples, −1…1.
    func file(as name: String, frames: Int, sample: (Int) -> Double) throws -> String {
        var samples = Data()
        for frame in 0..<frames {
            let value = Int16(32_767 * sample(frame))
            withUnsafeBytes(of: value.littleEndian) { samples.append(contentsOf: $0) }
        }
        func word(_ value: Int, _ bytes: Int) -> Data {
            Data((0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) })
        }
        var file = Data("RIFF".utf8) + word(36 + samples.count, 4) + Data("WAVEfmt ".utf8)
        for (value, bytes) in [(16, 4), (1, 2), (1, 2), (8_000, 4), (16_000, 4), (2, 2), (16, 2)] {
            file += word(value, bytes)
        }
        file += Data("data".utf8) + word(samples.count, 4) + samples
        let path = folder + "/" + name
        try file.write(to: URL(fileURLWithPath: path))
        return path
    }

    /// The left side of a WAV file that a device wrote.
    func heard(_ path: String) throws -> (samples: [Float], rate: Double) {
        let source = try FFmpegSource(path)
        var samples: [Float] = []
        var block = [Float](repeating: 0, count: 8_192)
        while case let count = try block.withUnsafeMutableBufferPointer({
            try source.read(into: $0)
        }), count > 0 {
            for frame in 0..<count { samples.append(block[2 * frame]) }
        }
        return (samples, Double(source.format.sampleRate))
    }
}
