import Foundation
import TuttiPlayout

/// Tones, a chord, noise and clicks at other rates with the pitch kept, ours beside ffmpeg's; what a
/// second of it costs, and what a jump reads.

let seconds = 10
let frames = seconds * 48_000
let chord = [220, 277.18, 329.63, 440, 554.37]
let clickDistance = 12_000
let firstClick = 4_800

func recording(_ sample: (Int) -> Double) -> [Float] {
    (0..<frames).flatMap { k -> [Float] in
        let x = Float(sample(k))
        return [x, x]
    }
}

func tones(_ hertz: [Double], amplitude: Double) -> [Float] {
    recording { k in
        hertz.reduce(0) { $0 + amplitude * sin(2 * .pi * $1 / 48_000 * Double(k)) }
    }
}

func left(_ samples: [Float]) -> [Float] {
    stride(from: 0, to: samples.count, by: 2).map { samples[$0] }
}

var state: UInt64 = 1
let noise = recording { _ in
    // A linear congruential generator's upper bits (D. Knuth, MMIX).
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return 0.5 * Double(Int32(truncatingIfNeeded: state >> 32)) / 2_147_483_648
}
let clicks = recording { ($0 - firstClick) % clickDistance == 0 ? 0.9 : 0 }
let toneItems = [440, 1_234.5].map { ([$0], tones([$0], amplitude: 0.5)) }
let chordItem = tones(chord, amplitude: 0.15)

func cell(_ value: Double, _ digits: Int = 1) -> String {
    let text = value.isFinite ? String(format: "%.\(digits)f", value) : "–"
    return String(repeating: " ", count: max(0, 10 - text.count)) + text
}

func row(_ contender: Contender, _ rate: Double) throws -> String? {
    var cells = ""
    for (hertz, item) in toneItems {
        guard let output = try contender.play(item, rate) else { return nil }
        let rests = Measures.rest(beside: hertz, in: left(output), length: 1_200).sorted()
        cells += cell(rests[rests.count / 2]) + cell(rests[rests.count - 1])
    }
    guard let output = try contender.play(chordItem, rate) else { return nil }
    let rests = Measures.rest(beside: chord, in: left(output), length: 9_600).sorted()
    cells += cell(rests[rests.count / 2])
    guard let hiss = try contender.play(noise, rate) else { return nil }
    let middle = hiss.count / 10..<hiss.count * 9 / 10
    cells += cell(Measures.level(hiss[middle]) - Measures.level(noise[...]), 2)
    guard let ticks = try contender.play(clicks, rate) else { return nil }
    let found = Measures.clicks(
        every: clickDistance, first: firstClick, in: left(ticks), rate: rate)
    return cells + cell(found.spread, 2) + cell(found.height / 0.9, 2)
}

print("Rest beside tones of 440 and 1234.5 Hz, median and worst of pieces of 25 ms, and beside a")
print(
    "chord in pieces of 0.2 s, dB; level of noise, dB; clicks: largest distance from their common")
print("place, ms, and height, of 1.\n")
print(
    "rate  contender             440     worst      1234     worst     chord     noise    clicks    height"
)
for rate in [0.5, 0.75, 1.25, 1.5, 2] {
    for contender in Contender.all {
        guard let row = try row(contender, rate) else { continue }
        print(
            String(format: "%.2f  ", rate)
                + contender.name.padding(toLength: 17, withPad: " ", startingAt: 0) + row)
    }
}

print(
    "\nSeconds of sound in a second of one core; item frames that a jump reads, mean and worst.\n")
let medley = zip(chordItem, zip(noise, clicks)).map { $0 + 0.1 * $1.0 + 0.5 * $1.1 }
for algorithm in TimePitchAlgorithm.allCases {
    for rate in [-32, -1.5, -1, 0.25, 0.75, 1.5, 2, 4, 32] {
        let item = Recording(medley)
        guard
            FrameTransforms.make(
                rate: rate, algorithm: algorithm, sampleRate: 48_000,
                frameCount: Int64(frames), reader: item) != nil
        else { continue }
        let transform = Contender.transform(of: item, algorithm, rate)
        var buffer = [Float](repeating: 0, count: 2_048)
        var length: Int64 = 0
        func read(_ transform: any FrameTransform, at position: Int64) throws -> Int {
            try buffer.withUnsafeMutableBufferPointer {
                try transform.read(at: position, into: $0)
            }
        }
        let spent = try Measures.processorTime {
            while true {
                let count = try read(transform, at: length)
                if count == 0 { break }
                length += Int64(count)
            }
        }
        let jumps = try (0..<100).map { k in
            let item = Recording(medley)
            _ = try read(
                Contender.transform(of: item, algorithm, rate), at: length * Int64(k) / 100)
            return item.framesRead
        }
        print(
            "\(algorithm)".padding(toLength: 12, withPad: " ", startingAt: 0) + cell(rate, 2)
                + cell(Double(length) / 48_000 / spent, 0)
                + cell(Double(jumps.reduce(0, +)) / 100, 0) + cell(Double(jumps.max()!), 0))
    }
}
