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

    /// Interleaved stereo at 44 100 Hz that sounds like nothing in particular.
    static func noise(seconds: Int) -> [Float] {
        let count = 2 * 44_100 * seconds
        return (0..<count).map { (index: Int) in Float((index &* 7_919) % 1_000) / 5_000 }
    }

    /// A WAV file of interleaved stereo samples as they are.
    func write(_ samples: [Float], rate: Int, as path: String) throws {
        func word(_ value: Int, _ bytes: Int) -> Data {
            Data((0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) })
        }
        let size = 4 * samples.count
        var file = Data("RIFF".utf8) + word(36 + size, 4) + Data("WAVEfmt ".utf8)
        for (value, bytes) in [(16, 4), (3, 2), (2, 2), (rate, 4), (8 * rate, 4), (8, 2), (32, 2)] {
            file += word(value, bytes)
        }
        file += Data("data".utf8) + word(size, 4)
        samples.withUnsafeBytes { file.append(contentsOf: $0) }
        try file.write(to: URL(fileURLWithPath: path))
    }

    /// The same coded by the `ffmpeg` program.
    func encode(_ samples: [Float], rate: Int, _ options: [String], as path: String) throws {
        let source = path + ".wav"
        try write(samples, rate: rate, as: source)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            ["ffmpeg", "-nostdin", "-v", "error", "-y", "-i", source]
            + options + [path]
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw CocoaError(.fileWriteUnknown) }
    }

    /// All samples of a file, interleaved stereo.
    func decoded(_ path: String) throws -> (samples: [Float], rate: Int) {
        let source = try FFmpegSource(path)
        var samples: [Float] = []
        var block = [Float](repeating: 0, count: 8_192)
        while case let count = try block.withUnsafeMutableBufferPointer({
            try source.read(into: $0)
        }), count > 0 {
            samples += block.prefix(2 * count)
        }
        return (samples, source.format.sampleRate)
    }

    /// The left side of a WAV file that a device wrote.
    func heard(_ path: String) throws -> (samples: [Float], rate: Double) {
        let (samples, rate) = try decoded(path)
        return (stride(from: 0, to: samples.count, by: 2).map { samples[$0] }, Double(rate))
    }

    /// What a device wrote while `body` used it, interleaved stereo; again where the machine was too busy
    /// for it to be written in time, which is silence.
    func recording(
        _ body: (AudioDevice) async throws -> Void
    ) async throws -> (samples: [Float], rate: Double) {
        for _ in 0..<8 {
            let path = folder + "/heard-\(UUID().uuidString).wav"
            guard try await record(path, body) else { continue }
            let (samples, rate) = try decoded(path)
            return (samples, Double(rate))
        }
        throw CancellationError()
    }

    /// The file is complete when the device is gone.
    ///
    /// - Returns: whether all was written in time.
    private func record(
        _ path: String, _ body: (AudioDevice) async throws -> Void
    ) async throws -> Bool {
        let device = AudioDevice.file(path)
        try await body(device)
        let report = device.output.port.report
        return report.restarts == 0 && report.starvedFrames == 0
    }
}
