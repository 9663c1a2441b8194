import Foundation
import Testing
import Tutti

/// A recording that was cut into files, each coded by itself, and is heard as one again.
///
/// The other side of the same device plays, upside down, what is to be heard: the whole recording
/// where nothing is lost by coding it, or else what each file decodes to by itself, each begun at its
/// instant. Silence there says that every sample was, and at its place.
@Suite(.serialized, .timeLimit(.minutes(4))) struct JoinTests {
    private let sounds = Sounds()

    enum Coding: String, Sendable {
        case flac, alac, mp3, aac, opus, vorbis

        var isLossless: Bool { self == .flac || self == .alac }
        var ending: String {
            switch self {
            case .flac: "flac"
            case .alac, .aac: "m4a"
            case .mp3: "mp3"
            case .opus: "opus"
            case .vorbis: "ogg"
            }
        }
        /// With the encoder's delay and padding in a LAME header, an edit list, a pre-skip and the
        /// position of the last page.
        var options: [String] {
            switch self {
            case .flac: ["-c:a", "flac", "-sample_fmt", "s16"]
            case .alac: ["-c:a", "alac"]
            case .mp3: ["-c:a", "libmp3lame", "-b:a", "192k"]
            case .aac: ["-c:a", "aac", "-b:a", "192k"]
            case .opus: ["-c:a", "libopus", "-b:a", "192k"]
            case .vorbis: ["-c:a", "libvorbis", "-q:a", "7"]
            }
        }
    }

    struct Part: Sendable {
        var coding: Coding
        var rate = 44_100
        var frames: Int

        /// Odd places: multiples of no packet.
        static func row(_ codings: [Coding], rates: [Int]) -> [Part] {
            let lengths = [11_113, 7_001, 13_577, 6_007, 9_241, 8_839]
            return codings.indices.map {
                Part(coding: codings[$0], rate: rates[$0 % rates.count], frames: lengths[$0])
            }
        }
    }

    struct Recording: Sendable, CustomTestStringConvertible {
        var parts: [Part]
        var testDescription: String {
            parts.map { "\($0.coding.rawValue) \($0.rate)" }.joined(separator: ", ")
        }
    }

    static let recordings: [Recording] = [
        Part.row([.flac, .flac, .flac], rates: [44_100]),
        Part.row([.alac, .alac, .alac], rates: [44_100]),
        Part.row([.mp3, .mp3, .mp3], rates: [44_100]),
        Part.row([.aac, .aac, .aac], rates: [44_100]),
        Part.row([.opus, .opus, .opus], rates: [48_000]),
        Part.row([.vorbis, .vorbis, .vorbis], rates: [44_100]),
        Part.row([.flac, .alac, .flac, .alac], rates: [48_000]),
        Part.row([.mp3, .flac, .aac, .vorbis, .alac, .mp3], rates: [44_100]),
        Part.row([.flac, .alac, .flac], rates: [44_100, 48_000, 96_000]),
        Part.row(
            [.mp3, .opus, .aac, .flac, .vorbis, .mp3],
            rates: [44_100, 48_000, 32_000, 96_000, 22_050, 48_000]),
    ].map(Recording.init)

    /// Tones below every coding's limit, whose phase goes on from part to part, and noise, in which
    /// one sample beside its place is another. As 16 bits hold them, interleaved stereo.
    private func samples(of part: Part, from begin: Double, seed: UInt64) -> [Float] {
        var state = seed &* 2_862_933_555_777_941_757 &+ 3_037_000_493
        return (0..<2 * part.frames).map { index in
            let time = begin + Double(index / 2) / Double(part.rate)
            let tones = [311.0, 1_237, 3_301].map { sin(2 * .pi * ($0 + Double(index % 2)) * time) }
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let noise = Double(state >> 40) / Double(1 << 23) - 1
            return Float(Int16(32_768 * (0.07 * tones.reduce(0, +) + 0.03 * noise))) / 32_768
        }
    }

    /// Lines are told in nanoseconds, and noise and tones together rise by 6 in a millisecond at most. A
    /// sample too many, too few or beside its place makes a thousand times as much.
    private static let rounding: Float = 2 * 6e3 * 1e-9

    private struct Stretch {
        var rate: Int
        var begin: Double
        /// Interleaved stereo.
        var samples: [Float]
    }

    /// What is heard of files that follow one another: parts of one rate are one stretch.
    private func write(_ parts: [Part]) throws -> (paths: [String], due: [Stretch]) {
        var paths: [String] = []
        var due: [Stretch] = []
        var begin = 0.0
        for (number, part) in parts.enumerated() {
            let samples = samples(of: part, from: begin, seed: UInt64(number))
            let path = "\(sounds.folder)/\(UUID().uuidString).\(part.coding.ending)"
            try sounds.encode(samples, rate: part.rate, part.coding.options, as: path)
            let decoded = try sounds.decoded(path)
            #expect(decoded.samples.count == samples.count, "\(part)")
            if part.coding.isLossless {
                #expect(decoded.samples == samples, "\(part)")
            } else {
                // Delay and padding are removed to the sample.
                let changes = (-1...1).map { change(of: samples, in: decoded.samples, later: $0) }
                #expect(changes.min() == changes[1], "\(part): \(changes)")
            }
            if due.last?.rate == decoded.rate {
                due[due.count - 1].samples += decoded.samples
            } else {
                due.append(
                    Stretch(rate: decoded.rate, begin: begin, samples: decoded.samples))
            }
            begin += Double(part.frames) / Double(part.rate)
            paths.append(path)
        }
        return (paths, due)
    }

    /// What coding a sound has changed of it, if it lay so many frames later.
    private func change(of samples: [Float], in coded: [Float], later frames: Int) -> Double {
        let pairs = zip(samples.dropFirst(max(0, -2 * frames)), coded.dropFirst(max(0, 2 * frames)))
        return pairs.reduce(0.0) { $0 + pow(Double($1.0 - $1.1), 2) }
    }

    /// On the left nothing, on the right what takes away the right side of what it is.
    private func opposite(of samples: [Float]) -> [Float] {
        samples.enumerated().map { $0.offset % 2 == 0 ? 0 : -$0.element }
    }

    /// Both begin at an instant that is exact.
    private func play(
        _ paths: [String], _ due: [(path: String, begin: Double)], on device: AudioDevice
    ) async throws {
        let queue = try QueuePlayer(
            items: paths.map { PlayerItem(url: $0) }, output: device.output)
        let others = due.map { Player(url: $0.path, device: device) }
        for player in [queue] + others {
            try await player.currentItem?.ready()
            player.automaticallyWaitsToMinimizeStalling = false
            #expect(try await player.preroll(atRate: 1))
        }
        // When the frames of a device are heard is known a while after it was opened.
        try await Task.sleep(for: .milliseconds(600))
        let notices = queue.notices()
        let start = HostClock.now().nanoseconds + 300_000_000
        func instant(_ seconds: Double) -> GroupInstant {
            GroupInstant(nanoseconds: start + Int64((seconds * 1e9).rounded()))
        }
        try queue.setRate(1, time: .zero, atHostTime: instant(0))
        for (player, due) in zip(others, due) {
            try player.setRate(1, time: .zero, atHostTime: instant(due.begin))
        }
        for await notice in notices {
            if case .currentItemDidChange(nil) = notice { break }
            if case .failedToPlayToEnd(let error) = notice { throw error }
        }
        try await Task.sleep(for: .milliseconds(200))
    }

    @Test(arguments: recordings)
    func `files that were one recording are heard as one, sample for sample`(
        recording: Recording
    ) async throws {
        let (paths, stretches) = try write(recording.parts)
        let due = try stretches.enumerated().map { number, stretch in
            let path = "\(sounds.folder)/due-\(number)-\(UUID().uuidString).wav"
            try sounds.write(opposite(of: stretch.samples), rate: stretch.rate, as: path)
            return (path, stretch.begin)
        }
        let heard = try await sounds.recording { try await play(paths, due, on: $0) }
        let sound = stride(from: 0, to: heard.samples.count, by: 2).map { heard.samples[$0] }
        let rest = stride(from: 1, to: heard.samples.count, by: 2).map { heard.samples[$0] }
        let seconds = recording.parts.reduce(0) { $0 + Double($1.frames) / Double($1.rate) }
        let first = try #require(sound.firstIndex { abs($0) > 0.02 })
        let last = try #require(sound.lastIndex { abs($0) > 0.02 })
        let length = Double(last - first) / heard.rate
        #expect(abs(length - seconds) < 0.002, "\(length) s of \(seconds)")
        let worst = rest.map(abs).max() ?? 1
        #expect(worst < Self.rounding, "\(worst)")
    }
}
