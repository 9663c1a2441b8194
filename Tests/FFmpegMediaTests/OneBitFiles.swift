import Foundation

/// Files of one-bit sound (64 × 44 100 Hz, stereo, quiet), which FFmpeg cannot write.
enum OneBitFiles {
    private static let rate = 64 * Fixtures.sampleRate
    /// Bytes of one channel, then those of the other.
    private static let block = 4_096

    /// - Parameter kind: `dsf` or `dff`.
    static func make(_ kind: String, seconds: Int) -> Data {
        let blocks = rate / 8 * seconds / block
        let sound = Data(repeating: 0x69, count: 2 * block * blocks)
        return kind == "dsf" ? dsf(sound, blocks) : dsdiff(sound)
    }

    /// DSF File Format Specification 1.01: all numbers with their lowest byte first.
    private static func dsf(_ sound: Data, _ blocks: Int) -> Data {
        var data = Data("DSD ".utf8)
        data.append(28, bytes: 8)
        data.append(28 + 52 + 12 + sound.count, bytes: 8)
        data.append(0, bytes: 8)
        data.append(Data("fmt ".utf8))
        data.append(52, bytes: 8)
        // Version, raw bits, stereo, two channels, rate, one bit a sample.
        for number in [1, 0, 2, 2, rate, 1] { data.append(number, bytes: 4) }
        data.append(block * 8 * blocks, bytes: 8)
        data.append(block, bytes: 4)
        data.append(0, bytes: 4)
        data.append(Data("data".utf8))
        data.append(12 + sound.count, bytes: 8)
        return data + sound
    }

    /// DSDIFF 1.5: chunks, all numbers with their highest byte first.
    private static func dsdiff(_ sound: Data) -> Data {
        var channels = Data()
        channels.append(2, bytes: 2, isBigEndian: true)
        channels.append(Data("SLFTSRGT".utf8))
        var compression = Data("DSD ".utf8)
        compression.append(14, bytes: 1)
        compression.append(Data("not compressed".utf8))
        compression.append(0, bytes: 1)
        var properties = Data("SND ".utf8)
        properties.append(chunk("FS  ", number(rate)))
        properties.append(chunk("CHNL", channels))
        properties.append(chunk("CMPR", compression))
        var content = Data("DSD ".utf8)
        content.append(chunk("FVER", number(0x0105_0000)))
        content.append(chunk("PROP", properties))
        content.append(chunk("DSD ", sound))
        return chunk("FRM8", content)
    }

    private static func number(_ value: Int) -> Data {
        var data = Data()
        data.append(value, bytes: 4, isBigEndian: true)
        return data
    }

    private static func chunk(_ name: String, _ content: Data) -> Data {
        var data = Data(name.utf8)
        data.append(content.count, bytes: 8, isBigEndian: true)
        return data + content
    }
}

extension Data {
    fileprivate mutating func append(_ value: Int, bytes count: Int, isBigEndian: Bool = false) {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        append(contentsOf: isBigEndian ? bytes.reversed() : bytes)
    }
}
