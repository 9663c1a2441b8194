import Foundation

/// A folder that is gone after the test.
struct TemporaryFolder {
    private let root: String

    init() throws {
        root = NSTemporaryDirectory() + "tutti-room-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: root, withIntermediateDirectories: true)
    }

    func path(_ name: String) -> String { root + "/" + name }

    func write(_ data: Data, as name: String) throws -> String {
        try data.write(to: URL(fileURLWithPath: path(name)))
        return path(name)
    }

    /// What files and cards of the tests have in common: low, since three rooms at 48 kHz are
    /// more than two cores resample without the optimiser.
    static let sampleRate = 16_000

    /// Writes noise as a stereo WAV file of 16 bit.
    ///
    /// Noise is like itself at no other place, so that any shift shows.
    func writeNoise(seconds: Double, seed: UInt64, as name: String) throws -> String {
        let rate = Self.sampleRate
        let frameCount = Int(seconds * Double(rate))
        var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        var samples = Data(capacity: 4 * frameCount)
        for _ in 0..<frameCount {
            // xorshift64: any generator that passes for white will do.
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            let sample = Int16(truncatingIfNeeded: state >> 40) / 4
            for _ in 0..<2 { samples.append(littleEndian: sample) }
        }
        var wave = Data("RIFF".utf8)
        wave.append(littleEndian: UInt32(36 + samples.count))
        wave.append(Data("WAVEfmt ".utf8))
        wave.append(littleEndian: UInt32(16))
        wave.append(littleEndian: UInt16(1))
        wave.append(littleEndian: UInt16(2))
        wave.append(littleEndian: UInt32(rate))
        wave.append(littleEndian: UInt32(4 * rate))
        wave.append(littleEndian: UInt16(4))
        wave.append(littleEndian: UInt16(16))
        wave.append(Data("data".utf8))
        wave.append(littleEndian: UInt32(samples.count))
        return try write(wave + samples, as: name)
    }

    func remove() { try? FileManager.default.removeItem(atPath: root) }
}

extension Data {
    fileprivate mutating func append(littleEndian value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
    }
}
