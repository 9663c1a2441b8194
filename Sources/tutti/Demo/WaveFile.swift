#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// PCM in a RIFF file: what every player opens.
enum WaveFile {
    /// 16-bit stereo.
    ///
    /// - Parameter samples: interleaved, −1…1; beyond is clipped.
    static func bytes(_ samples: [Float], sampleRate: Int) -> [UInt8] {
        var bytes = header(
            format: 1, bits: 16, channels: 2, sampleRate: sampleRate, count: samples.count)
        for sample in samples {
            let value = Int((max(-1, min(1, sample)) * 32_767).rounded())
            bytes.append(UInt8(truncatingIfNeeded: value))
            bytes.append(UInt8(truncatingIfNeeded: value >> 8))
        }
        return bytes
    }

    /// 32-bit float: exactly what a virtual card has recorded.
    static func floatBytes(_ samples: [Float], channels: Int, sampleRate: Int) -> [UInt8] {
        var bytes = header(
            format: 3, bits: 32, channels: channels, sampleRate: sampleRate, count: samples.count)
        for sample in samples {
            let bits = sample.bitPattern
            for shift in [0, 8, 16, 24] { bytes.append(UInt8(truncatingIfNeeded: bits >> shift)) }
        }
        return bytes
    }

    private static func header(
        format: Int, bits: Int, channels: Int, sampleRate: Int, count: Int
    ) -> [UInt8] {
        let dataSize = count * bits / 8
        var bytes: [UInt8] = []
        bytes.reserveCapacity(44 + dataSize)
        func text(_ text: String) { bytes += Array(text.utf8) }
        func number(_ value: Int, _ size: Int) {
            for byte in 0..<size { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * byte))) }
        }
        text("RIFF")
        number(36 + dataSize, 4)
        text("WAVEfmt ")
        number(16, 4)
        number(format, 2)
        number(channels, 2)
        number(sampleRate, 4)
        number(sampleRate * channels * bits / 8, 4)
        number(channels * bits / 8, 2)
        number(bits, 2)
        text("data")
        number(dataSize, 4)
        return bytes
    }

    static func write(_ samples: [Float], sampleRate: Int, to path: String) throws(CommandError) {
        try writeFile(bytes(samples, sampleRate: sampleRate), to: path)
    }
}

/// Writes a whole file.
func writeFile(_ bytes: [UInt8], to path: String) throws(CommandError) {
    do {
        try Data(bytes).write(to: URL(filePath: path))
    } catch {
        throw CommandError(
            "\(path): cannot be written; check the folder, its permissions and the space left")
    }
}

func readFile(_ path: String) throws(CommandError) -> String {
    guard let data = FileManager.default.contents(atPath: path) else {
        throw CommandError("\(path): cannot be read")
    }
    return String(decoding: data, as: UTF8.self)
}

/// Makes a folder, and those above it, unless it is there.
func makeFolder(_ path: String) throws(CommandError) {
    do {
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true)
    } catch {
        throw CommandError("\(path): this folder cannot be made; choose another for --record")
    }
}
