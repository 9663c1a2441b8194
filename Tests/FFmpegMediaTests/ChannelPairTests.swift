import Foundation
import Testing
import TuttiChance
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// Two channels of an output at a time, of what an item has for them.
@Suite struct ChannelPairTests {
    private func pairs(_ path: String, _ names: String) throws -> [FFmpegSource] {
        let layout = SurroundFiles.layout(names)
        return try (0..<layout.pairCount).map {
            try FFmpegSource(path, channels: ChannelPair(of: layout, $0))
        }
    }

    private func words(_ text: String) -> [String] {
        text.split(separator: " ").map(String.init)
    }

    @Test(arguments: [
        // Each to its own.
        ("FL FR FC LFE BL BR", "FL FR FC LFE BL BR SL SR", "FL>FL FR>FR FC>FC LFE>LFE BL>BL BR>BR"),
        (
            "FL FR FC LFE BL BR SL SR", "SR FC NA FL LFE BL BR SL FR",
            "FL>FL FR>FR FC>FC LFE>LFE BL>BL BR>BR SL>SL SR>SR"
        ),
        ("FL FR LFE", "FL FR BL BR FC LFE", "FL>FL FR>FR LFE>LFE"),
        // Sides and backs stand in for each other, and meet where the item has both.
        ("FL FR FC LFE SL SR", "FL FR BL BR FC LFE", "FL>FL FR>FR FC>FC LFE>LFE SL>BL SR>BR"),
        ("FL FR FC LFE BL BR", "FL FR FC LFE SL SR", "FL>FL FR>FR FC>FC LFE>LFE BL>SL BR>SR"),
        (
            "FL FR FC LFE BL BR SL SR", "FL FR BL BR FC LFE",
            "FL>FL FR>FR FC>FC LFE>LFE BL>BL BR>BR SL>BL-3 SR>BR-3"
        ),
        (
            "FL FR FC LFE BL BR SL SR", "FL FR FC LFE SL SR",
            "FL>FL FR>FR FC>FC LFE>LFE SL>SL SR>SR BL>SL-3 BR>SR-3"
        ),
        // A centre without a loudspeaker is between two.
        ("FL FR FC LFE BL BR", "FL FR BL BR", "FL>FL FR>FR FC>FL-3 FC>FR-3 BL>BL BR>BR"),
        (
            "FL FR FC LFE BC SL SR", "FL FR BL BR FC LFE",
            "FL>FL FR>FR FC>FC LFE>LFE SL>BL SR>BR BC>BL-3 BC>BR-3"
        ),
        ("FL FR FC BC", "FL FR SL SR", "FL>FL FR>FR FC>FL-3 FC>FR-3 BC>SL-3 BC>SR-3"),
        ("FL FR FC LFE BL BR", "FL FR FC BC", "FL>FL FR>FR FC>FC BL>BC-3 BR>BC-3"),
        // What is behind nowhere is in front, and effects are nowhere.
        (
            "FL FR FC LFE BL BR", "FL FR LFE",
            "FL>FL FR>FR LFE>LFE FC>FL-3 FC>FR-3 BL>FL-3 BR>FR-3"
        ),
        ("FL FR FC LFE BL BR", "FL FR BL", "FL>FL FR>FR FC>FL-3 FC>FR-3 BL>BL BR>FR-3"),
        ("FL FR FC LFE BC", "FL FR NA NA", "FL>FL FR>FR FC>FL-3 FC>FR-3 BC>FL-6 BC>FR-6"),
        ("FL FR FC LFE BL BR", "FC", "FL>FC-3 FR>FC-3 FC>FC BL>FC-6 BR>FC-6"),
        // More in front, and above.
        (
            "FL FR FC LFE BL BR FLC FRC", "FL FR BL BR FC LFE",
            "FL>FL FR>FR FC>FC LFE>LFE BL>BL BR>BR FLC>FL-3 FRC>FR-3"
        ),
        (
            "FL FR BL BR TFL TFC TFR TBL TBC TBR", "FL FR BL BR FC LFE",
            "FL>FL FR>FR BL>BL BR>BR TFL>FL-3 TFC>FC TFR>FR-3 TBL>BL-3 TBC>BL-3 TBC>BR-3 TBR>BR-3"
        ),
        // Nothing is made up for what an item does not have.
        ("FC", "FL FR BL BR FC LFE", "FC>FL FC>FR"), ("FC", "LFE FC", "FC>FC"),
        ("FL FR", "FL FR FC LFE BL BR SL SR", "FL>FL FR>FR"), ("FL FR", "BL BR LFE", ""),
        ("FL FR FC LFE BL BR", "NA NA", ""),
    ])
    func `each channel goes to its loudspeaker or to the nearest`(
        item: String, output: String, expected: String
    ) throws {
        #expect(try SurroundFiles.routes(of: item, on: output) == words(expected).sorted())
    }

    @Test(arguments: [
        (3, "FL FR FC"), (4, "FL FR BL BR"), (5, "FL FR FC BL BR"), (6, "FL FR FC LFE BL BR"),
        (7, "FL FR FC LFE BC SL SR"), (8, "FL FR FC LFE BL BR SL SR"),
    ])
    func `a file that only counts its channels has them in the usual order`(
        count: Int, names: String
    ) throws {
        let data = Fixtures.wave(SurroundFiles.steps(count), channels: count, rate: 48_000)
        let output = "FL FR BL BR FC LFE SL SR BC"
        let routes = try SurroundFiles.routes(of: data, words(names), on: output)
        #expect(routes == words(names).map { "\($0)>\($0)" }.sorted())
    }

    @Test(arguments: [9, 16, 24])
    func `tracks of a recording are in front as in two channels`(count: Int) throws {
        let data = Fixtures.wave(SurroundFiles.steps(count), channels: count, rate: 48_000)
        let path = try Fixtures.write(data, "pair-tracks-\(count).wav")
        let whole = try readAll(FFmpegSource(path))
        let parts = try pairs(path, "BL BR FL FR FC LFE").map(readAll)
        let matches = isSame(parts[1], whole)
        #expect(matches && whole.contains { $0 != 0 })
        #expect((parts[0] + parts[2]).allSatisfy { $0 == 0 })
    }

    @Test(arguments: 0..<12 as Range<UInt64>)
    func `what a loudspeaker gets does not depend on its place`(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        let names = ["FL FR FC LFE BL BR SL SR", "FL FR FC LFE BC SL SR", "FL FR FC BL BR"]
        let item = names[Int(seed) % names.count]
        let output = ChannelName.allCases.shuffled(using: &generator).prefix(Int(1 + seed % 9))
        func routes(_ channels: some Sequence<ChannelName>) throws -> [String] {
            let text = channels.map(\.rawValue).joined(separator: " ")
            return try SurroundFiles.routes(of: item, on: text)
        }
        let expected = try routes(output)
        #expect(try routes(output.shuffled(using: &generator)) == expected)
        #expect(try routes([.unknown] + output + [.unknown, .unknown]) == expected)
    }

    @Test(arguments: [
        "FL FR FC", "FL FR LFE", "FL FR FC BC", "FL FR BL BR", "FL FR FC LFE BL BR",
        "FL FR FC LFE SL SR", "FL FR FC LFE BC SL SR", "FL FR FC LFE BL BR SL SR",
        "FL FR FC LFE BL BR FLC FRC", "FL FR FC LFE BL BR TC TFL TFC TFR TBL TBC TBR",
    ])
    func `the pair of an output of two is what all channels are in two`(item: String) throws {
        let names = words(item)
        let path = try Fixtures.write(
            SurroundFiles.wave(names, SurroundFiles.steps(names.count)), "pair-two-\(item).wav")
        let whole = try readAll(FFmpegSource(path))
        let pair = try readAll(FFmpegSource(path, channels: ChannelPair(of: .stereo, 0)))
        #expect(pair.count == whole.count)
        #expect(zip(pair, whole).allSatisfy { abs($0 - $1) < 1e-7 })
    }

    @Test func `mono and stereo files are in front as they are without a choice`() throws {
        for name in ["s16.wav", "24.flac", "cbr.mp3", "8k.wav", "voice.opus", "aac.m4a"] {
            let whole = try FFmpegSource(Fixtures.path(name))
            let linear = try readAll(whole)
            let parts = try pairs(Fixtures.path(name), "FC LFE FL FR BL BR")
            #expect(parts.allSatisfy { $0.format == whole.format })
            let frames = try parts.map(readAll)
            let matches = isSame(frames[1], linear) && frames[1].count == linear.count
            #expect(matches, "\(name)")
            for silent in [frames[0], frames[2]] {
                #expect(silent.count == linear.count && silent.allSatisfy { $0 == 0 }, "\(name)")
            }
        }
    }

    @Test func `a pair that the output does not have is refused`() throws {
        let path = Fixtures.path("51.flac")
        for (layout, index) in [
            (ChannelLayout.stereo, 1), (.stereo, -1), (.stereo, .max), (.stereo, .min),
            (ChannelLayout([]), 0), (.usual(5), 3),
        ] {
            let error = #expect(throws: MediaError.self) {
                _ = try FFmpegSource(path, channels: ChannelPair(of: layout, index))
            }
            #expect(error?.code == .unsupported && error?.subject == path)
            #expect(error?.reason.contains("pair \(index)") == true)
        }
        #expect(try readAll(FFmpegSource(path, channels: ChannelPair(of: .usual(5), 2))).count > 0)
    }
}

/// What the samples of a pair are.
@Suite struct ChannelPairSampleTests {
    private static let names = ["FL", "FR", "FC", "LFE", "BL", "BR"]

    /// Noise over all values that the bytes can have, so infinities and what is no number too: these
    /// become silence.
    @Test(arguments: [
        (16, false), (24, false), (32, false), (32, true),
    ])
    func `what maps one to one keeps its bits`(bits: Int, isFloat: Bool) throws {
        for names in [Self.names, Self.names + ["SL", "SR"]] {
            var generator = SplitMix64(seed: UInt64(bits + names.count))
            let count = 3_000 * names.count
            var words = (0..<count).map { _ in Int32(truncatingIfNeeded: generator.next() >> 7) }
            // Full scale, either zero, one, infinity and no number.
            let special: [UInt32] = [
                0x7FFF_FFFF, 0x8000_0000, 0, 0x3F80_0000, 0xBF80_0000, 0x7F80_0000, 0x7FC0_0000,
            ]
            for index in 0..<special.count {
                let frame = 11 * index
                for channel in names.indices {
                    let value = special[(index + channel) % special.count]
                    words[frame * names.count + channel] = Int32(bitPattern: value)
                }
            }
            let bytes = words.flatMap { word in
                (4 - bits / 8..<4).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) }
            }
            let path = try Fixtures.write(
                SurroundFiles.wave(names, Data(bytes), bits: bits, isFloat: isFloat),
                "pair-bits-\(bits)-\(isFloat)-\(names.count).wav")
            let output = names.shuffled(using: &generator)
            let channels = try SurroundFiles.channels(
                of: path, on: SurroundFiles.layout(output.joined(separator: " ")))
            for (name, samples) in zip(output, channels) {
                let channel = try #require(names.firstIndex(of: name))
                let expected = stride(from: channel, to: count, by: names.count).map {
                    let word = (words[$0] >> (32 - bits)) << (32 - bits)
                    guard isFloat else { return Float(word) / 2_147_483_648 }
                    let value = Float(bitPattern: UInt32(bitPattern: word))
                    return value.isFinite ? value : 0
                }
                let matches = isSame(samples, expected) && samples.count == expected.count
                #expect(matches, "\(name) of \(names.count)")
            }
        }
    }

    @Test func `a sum stays within full scale, and what is none beside it stays as it is`() throws {
        let names = Self.names + ["SL", "SR"]
        let samples = [Int16](repeating: .max, count: 500 * names.count)
        let path = try Fixtures.write(SurroundFiles.wave(names, samples), "pair-loud.wav")
        let full = Float(Int16.max) / 32_768
        for (output, alone) in [
            ("FL FR FC LFE BL BR", ["FL", "FR", "FC", "LFE"]), ("FC FL BR LFE", ["FC", "LFE"]),
        ] {
            let channels = try SurroundFiles.channels(
                of: path, on: SurroundFiles.layout(output))
            for (name, samples) in zip(output.split(separator: " "), channels) {
                let isAlone = alone.contains(String(name))
                #expect(samples.count == 500)
                #expect(
                    samples.allSatisfy {
                        isAlone ? $0 == full : $0 > Downmix.knee && $0 < 1 && $0 != full
                    },
                    "\(name) of \(output)")
            }
        }
    }

    /// In the order of ``names``; effects low enough for what coders keep of them.
    private static let tones: [(hertz: Double, level: Double)] = [
        (440, 0.1), (620, 0.15), (840, 0.2), (60, 0.25), (1_100, 0.3), (1_500, 0.35),
    ]

    /// Half a second at 48 kHz.
    private static let tonesPath: String = {
        var samples: [Int16] = []
        for frame in 0..<24_000 {
            for tone in tones {
                let phase = 2 * .pi * tone.hertz * Double(frame) / 48_000
                samples.append(Int16(32_767 * tone.level * sin(phase)))
            }
        }
        return try! Fixtures.write(SurroundFiles.wave(names, samples), "pair-tones.wav")
    }()

    /// What `samples` have of a tone: all tones are whole numbers of waves in 2400 frames.
    private func level(of hertz: Double, in samples: ArraySlice<Float>) -> Double {
        var (real, imaginary) = (0.0, 0.0)
        for (index, sample) in samples.enumerated() {
            let phase = 2 * .pi * hertz * Double(index) / 48_000
            real += Double(sample) * cos(phase)
            imaginary += Double(sample) * sin(phase)
        }
        return 2 * (real * real + imaginary * imaginary).squareRoot() / Double(samples.count)
    }

    private static let half = 0.5.squareRoot()

    /// Weights of ``names`` in each channel of an output.
    ///
    /// - Parameter hasSides: whether the item calls its backs sides.
    private static func outputs(_ hasSides: Bool) -> [(names: String, weights: [[Double]])] {
        let own = (0..<6).map { channel in (0..<6).map { $0 == channel ? 1.0 : 0 } }
        let none = [Double](repeating: 0, count: 6)
        let left = [1, 0, half, 0, 0, 0]
        let right = [0, 1, half, 0, 0, 0]
        return [
            ("FL FR BL BR FC LFE", [own[0], own[1], own[4], own[5], own[2], own[3]]),
            (
                "FL FR FC LFE BL BR SL SR",
                own[..<4] + (hasSides ? [none, none] + own[4...] : own[4...] + [none, none])
            ),
            ("FL FR BL BR", [left, right, own[4], own[5]]),
            ("FL FR LFE", [[1, 0, half, 0, half, 0], [0, 1, half, 0, 0, half], own[3], none]),
        ]
    }

    /// The tolerance is a twentieth, half a decibel; the encoder of Vorbis makes effects 2 dB louder.
    @Test(arguments: [
        ("wav", 0.001), ("flac", 0.001), ("m4a", 0.05), ("ac3", 0.05), ("eac3", 0.05),
        ("opus", 0.05), ("ogg", 0.25),
    ])
    func `six tones come from where they belong, as loud as they are`(
        kind: String, tolerance: Double
    ) throws {
        let path = Fixtures.path("pair-six.\(kind)")
        Fixtures.run(["-v", "error", "-y", "-i", Self.tonesPath, "-b:a", "448k", path])
        for output in Self.outputs(kind.hasSuffix("ac3")) {
            let channels = try SurroundFiles.channels(
                of: path, on: SurroundFiles.layout(output.names))
            #expect(channels.count == output.weights.count)
            for (index, (samples, weights)) in zip(channels, output.weights).enumerated() {
                for (tone, weight) in zip(Self.tones, weights) {
                    let heard = level(of: tone.hertz, in: samples[9_600..<12_000])
                    let expected = weight * tone.level
                    #expect(
                        abs(heard - expected) < 0.002 + tolerance * expected,
                        "\(tone.hertz) Hz in \(index) of \(output.names): \(heard)")
                }
            }
        }
    }
}
