import CSampleRate
import CSoxr
import Glibc

/// Tones at −1 dBFS through every resampler, 300 ppm off and wandering, and what is left beside the
/// tone; the gain at 20 kHz; what a stereo frame costs.

let amplitude = 0.891_250_938  // −1 dBFS
let periods = 260
let inputFrames = (periods + 12) * periodFrames
let tones = [997.0, 6_000, 15_000, 19_000]

/// Interleaved stereo; the right channel is turned over, so that a channel mixed up would show.
func tone(_ hertz: Double) -> [Float] {
    (0..<inputFrames).flatMap { k -> [Float] in
        let x = Float(amplitude * sin(2 * .pi * hertz * Double(k) / 48_000))
        return [x, -x]
    }
}

let constant = [Double](repeating: 1 + 300e-6, count: periods + 1)
/// 300 ppm, and ±5 ppm around it once a second.
let wandering = (0...periods).map { k in
    1 + 300e-6 + 5e-6 * sin(2 * .pi * Double(k * periodFrames) / 48_000)
}

func spectrum(_ contender: inout any Contender, _ hertz: Double, _ ratios: [Double]) -> Spectrum? {
    let input = tone(hertz)
    contender.prepare(input, firstRatio: ratios[0])
    let output = contender.convert(input, ratios: ratios)
    // Behind the beginning, where filters fill.
    let left = stride(from: 0, to: output.count, by: 2).map { output[$0] }
    guard left.count >= Spectrum.count + 16_000 else { return nil }
    return Spectrum(left[16_000..<16_000 + Spectrum.count])
}

/// Best of eight, nanoseconds of processor time per stereo frame.
func cost(_ contender: inout any Contender) -> Double {
    let input = tone(997)
    var best = Double.infinity
    for _ in 0..<8 {
        contender.prepare(input, firstRatio: constant[0])
        var begin = timespec()
        var end = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin)
        let frames = contender.convert(input, ratios: constant).count / 2
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end)
        let spent = Double(end.tv_sec - begin.tv_sec) * 1e9 + Double(end.tv_nsec - begin.tv_nsec)
        best = min(best, spent / Double(max(1, frames)))
    }
    return best
}

var contenders: [any Contender] = [
    TuttiContender(),
    SwresampleContender("swresample"),
    SwresampleContender(
        "swresample 64 linear", options: [("filter_size", 64), ("linear_interp", 1)]),
    SoxrContender("soxr VR", recipe: UInt(SOXR_HQ), follows: true),
    SoxrContender("soxr HQ (fixed)", recipe: UInt(SOXR_HQ), follows: false),
    SoxrContender("soxr VHQ (fixed)", recipe: UInt(SOXR_VHQ), follows: false),
    SampleRateContender("samplerate best", kind: SRC_SINC_BEST_QUALITY),
    SampleRateContender("samplerate medium", kind: SRC_SINC_MEDIUM_QUALITY),
    SampleRateContender("samplerate fastest", kind: SRC_SINC_FASTEST),
    LinearContender(),
    DropContender(),
]

func cell(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
}

func decimal(_ value: Double?, _ digits: Int = 1) -> String {
    guard let value, value.isFinite else { return "–" }
    let scale = pow(10, Double(digits))
    let whole = (value.magnitude * scale).rounded()
    let fraction = String(Int(whole) % Int(scale))
    return (value < 0 && whole > 0 ? "-" : "") + "\(Int(whole) / Int(scale))."
        + String(repeating: "0", count: digits - fraction.count) + fraction
}

print("THD+N in dB of a tone of −1 dBFS, 20 Hz to 20 kHz; 48 kHz both, the ratio 300 ppm off;")
print("w: it wanders by ±5 ppm, once a second. Gain at 20 kHz in dB. ns per stereo frame.\n")
let headings =
    ["1 kHz", "6 kHz", "15 kHz", "19 kHz", "w 1", "w 6", "w 15", "w 19", "20 kHz", "ns"]
print("resampler             " + headings.map { cell($0, 9) }.joined())
for i in contenders.indices {
    var cells: [String] = []
    for ratios in [constant, wandering] {
        for hertz in tones {
            let isPossible = ratios == constant || contenders[i].follows
            let spectrum = isPossible ? spectrum(&contenders[i], hertz, ratios) : nil
            cells.append(decimal(spectrum?.distortion(tone: hertz * ratios[0])))
        }
    }
    let input = tone(20_000).enumerated().filter { $0.offset % 2 == 0 }.map(\.element)
    let gain = spectrum(&contenders[i], 20_000, constant)?
        .gain(over: Spectrum(input[..<Spectrum.count]), tone: 20_000)
    cells.append(decimal(gain, 2))
    cells.append(decimal(cost(&contenders[i]), 1))
    let name = contenders[i].name
    print(name + cell("", 22 - name.count) + cells.map { cell($0, 9) }.joined())
}
