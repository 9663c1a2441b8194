import Foundation
import Testing
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// FLAC of before 2007: blocks of different lengths under the bit that says that they are alike.
@Suite struct OldFLACTests {
    /// CRC of FLAC's frame headers (8 bits, polynomial 7) and of whole frames (16 bits, 0x8005).
    private func checksum(_ bytes: some Sequence<UInt8>, _ bits: Int, _ polynomial: Int) -> Int {
        bytes.reduce(0) { sum, byte in
            (0..<8).reduce(sum ^ Int(byte) << (bits - 8)) { value, _ in
                let next = value << 1
                return (value >> (bits - 1) & 1 == 1 ? next ^ polynomial : next) & (1 << bits - 1)
            }
        }
    }

    /// As in UTF-8, of up to 36 bits.
    private func coded(_ value: Int) -> [UInt8] {
        if value < 0x80 { return [UInt8(value)] }
        let count = (2...7).first { value < 1 << (5 * $0 + 1) }!
        var bytes = (0..<count - 1).map { UInt8(0x80 | value >> (6 * $0) & 0x3F) }
        bytes.append(UInt8(truncatingIfNeeded: 0xFF00 >> count) | UInt8(value >> (6 * (count - 1))))
        return bytes.reversed()
    }

    /// Packets of a FLAC file with blocks of one length.
    private func frames(blockSize: Int, from: Int, count: Int) throws -> (Data, [Data]) {
        let wave = Fixtures.path("old-\(blockSize).wav")
        let samples = Array(Fixtures.samples[2 * from..<2 * (from + count)])
        try Fixtures.wave(samples, channels: 2, rate: 44_100).write(to: URL(fileURLWithPath: wave))
        let (path, list) = (Fixtures.path("old-\(blockSize).flac"), Fixtures.path("old.crc"))
        Fixtures.run(
            ["-v", "error", "-y", "-i", wave, "-frame_size", "\(blockSize)", path])
        Fixtures.run(["-v", "error", "-y", "-i", path, "-c", "copy", "-f", "framecrc", list])
        let sizes = try String(contentsOfFile: list, encoding: .utf8).split(separator: "\n")
            .filter { !$0.hasPrefix("#") }
            .map { Int($0.split(separator: ",")[4].trimmingCharacters(in: .whitespaces))! }
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        var rest = data.suffix(sizes.reduce(0, +))
        let packets = sizes.map { size in
            defer { rest = rest.dropFirst(size) }
            return Data(rest.prefix(size))
        }
        return (data.prefix(data.count - sizes.reduce(0, +)), packets)
    }

    /// - Parameter total: what the header says; 0: nothing.
    private func file(_ name: String, total: Int, alike: Bool) throws -> String {
        let second = 44_100
        let (header, short) = try frames(blockSize: 1_152, from: 0, count: 2 * second)
        let (_, long) = try frames(blockSize: 4_608, from: 2 * second, count: 3 * second)
        var result = Data(header.prefix(42))
        result[4] |= 0x80
        result.replaceSubrange(8..<12, with: alike ? [0x12, 0, 0x12, 0] : [4, 0x80, 0x12, 0])
        for index in 0..<5 {
            let byte = UInt8(truncatingIfNeeded: total >> (8 * (4 - index)))
            result[21 + index] = index == 0 ? result[21] & 0xF0 | byte & 15 : byte
        }
        var sample = 0
        for packet in short + long {
            let bytes = [UInt8](packet)
            let code = bytes.withUnsafeBufferPointer { PacketLength.flacFrames($0) }
            let numberLength = bytes[4] < 0x80 ? 1 : (~bytes[4]).leadingZeroBitCount
            let extra = [6: 1, 7: 2][Int(bytes[2] >> 4)] ?? 0
            var head = [0xFF, 0xF8, bytes[2], bytes[3]] + coded(sample)
            head += bytes[4 + numberLength..<4 + numberLength + extra]
            head.append(UInt8(checksum(head, 8, 7)))
            let body = bytes[(4 + numberLength + extra + 1)..<(bytes.count - 2)]
            let sum = checksum(head + body, 16, 0x8005)
            result += head + body + [UInt8(sum >> 8), UInt8(sum & 0xFF)]
            sample += code
        }
        return try Fixtures.write(result, name)
    }

    @Test(arguments: [(220_500, false), (0, false), (220_500, true), (0, true)])
    func `blocks that are numbered in samples are counted`(total: Int, alike: Bool) throws {
        let source = try FFmpegSource(file("old.flac", total: total, alike: alike))
        #expect(source.format.frameCount == 220_500)
        #expect(source.info.promisedFrameCount == nil)
        let frames = try readAll(source)
        let matches = frames.count == 441_000 && isSame(frames, Fixtures.floats, count: 441_000)
        #expect(matches)
        try expectExactSeeks(source, frames, at: [0, 1, 88_199, 88_201, 150_000, 220_000, 40_000])
    }
}
