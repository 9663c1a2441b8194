import Foundation
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// WAV files that say where their channels are, and what becomes of each on an output.
enum SurroundFiles {
    /// The bits of a WAV file's channel mask, from the lowest.
    private static let maskNames = [
        "FL", "FR", "FC", "LFE", "BL", "BR", "FLC", "FRC", "BC", "SL", "SR", "TC", "TFL", "TFC",
        "TFR", "TBL", "TBC", "TBR",
    ]

    /// - Parameters:
    ///   - names: in the order of the mask.
    ///   - bytes: the samples.
    static func wave(_ names: [String], _ bytes: Data, bits: Int, isFloat: Bool = false) -> Data {
        func word(_ value: Int, _ bytes: Int) -> [UInt8] {
            (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
        let mask = names.reduce(0) { $0 | 1 << maskNames.firstIndex(of: $1)! }
        let frame = names.count * bits / 8
        var data = Data("RIFF".utf8) + word(bytes.count + 60, 4) + Data("WAVEfmt ".utf8)
        data += word(40, 4) + word(0xFFFE, 2) + word(names.count, 2) + word(48_000, 4)
        data += word(48_000 * frame, 4) + word(frame, 2) + word(bits, 2)
        data += word(22, 2) + word(bits, 2) + word(mask, 4)
        data += word(isFloat ? 3 : 1, 4) + word(0x10_0000, 4) + word(0xAA00_0080, 4)
        data += word(0x719B_3800, 4) + Data("data".utf8) + word(bytes.count, 4)
        return data + bytes
    }

    static func wave(_ names: [String], _ samples: [Int16]) -> Data {
        wave(names, samples.withUnsafeBytes { Data($0) }, bits: 16)
    }

    static func layout(_ names: String) -> ChannelLayout {
        ChannelLayout(names.split(separator: " ").map { ChannelName(rawValue: String($0))! })
    }

    /// What an output's channels get: one list of samples for each, in their order.
    static func channels(of path: String, on layout: ChannelLayout) throws -> [[Float]] {
        var channels: [[Float]] = []
        for index in 0..<layout.pairCount {
            let frames = try readAll(FFmpegSource(path, channels: ChannelPair(of: layout, index)))
            for side in [0, 1] {
                channels.append(stride(from: side, to: frames.count, by: 2).map { frames[$0] })
            }
        }
        return channels
    }

    /// The level at which an item's channels come out of an output's, such as `FC>FL-3 FC>FR-3`,
    /// sorted; what is not heard is not named.
    ///
    /// - Parameter data: a WAV file whose frame `n` has half of full scale in channel `n` alone.
    static func routes(
        of data: Data, _ names: [String], on output: String
    ) throws -> [String] {
        let path = try Fixtures.write(data, "routes-\(UUID()).wav")
        let layout = layout(output)
        var routes: [String] = []
        for (row, levels) in try channels(of: path, on: layout).enumerated() {
            for (name, level) in zip(names, levels) where level != 0 {
                let place = row < layout.channels.count ? layout.channels[row].rawValue : "none"
                let decibels = Int((20 * log10(level * 2)).rounded())
                routes.append("\(name)>\(place)" + (decibels == 0 ? "" : "\(decibels)"))
            }
        }
        return routes.sorted()
    }

    /// Frame `n` has half of full scale in channel `n` alone.
    static func steps(_ count: Int) -> [Int16] {
        (0..<count * count).map { $0 % count == $0 / count ? 16_384 : 0 }
    }

    static func routes(of names: String, on output: String) throws -> [String] {
        let names = names.split(separator: " ").map(String.init)
        return try routes(of: wave(names, steps(names.count)), names, on: output)
    }
}
