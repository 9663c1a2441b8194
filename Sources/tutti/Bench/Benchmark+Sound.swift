import TuttiPlayout
import TuttiRealTime
import TuttiTiming

import func Glibc.sin

/// A tone of 997 Hz, one channel; a second of it is whole cycles and can be read again and again.
private func tone(frames: Int, sampleRate: Double) -> [Float] {
    (0..<frames).map { Float(0.891 * sin(2 * .pi * 997 * Double($0) / sampleRate)) }
}

extension Benchmark {
    /// The resampler by itself, one period of 480 frames at a time, 123 ppm beside the nominal
    /// ratio: at an exact one the phases would repeat.
    static var resamplerBenchmarks: [Benchmark] {
        [(48_000, 48_000), (44_100, 48_000), (48_000, 44_100), (96_000, 48_000), (48_000, 96_000)]
            .map { input, output in
                Benchmark(
                    name: "resampler/\(kilohertz(input))-\(kilohertz(output))",
                    operation: "480 stereo frames read at a wandering ratio",
                    unitsPerOperation: 480, unit: "stereo frame"
                ) {
                    let recording = tone(frames: input, sampleRate: Double(input))
                    let resampler = OfflineResampler(
                        left: recording, right: recording, inputRate: Double(input),
                        outputRate: Double(output))
                    let step = Double(input) / Double(output) * 1.000_123
                    return { count in
                        var sum: UInt64 = 0
                        for _ in 0..<count {
                            if !resampler.read(step: step, bend: step * 1e-12) {
                                resampler.seek(to: 0)
                                _ = resampler.read(step: step, bend: step * 1e-12)
                            }
                            sum &+= UInt64(resampler.period()[479].bitPattern)
                        }
                        return sum
                    }
                }
            }
    }

    /// A period as the output thread renders it: a look at the card, the servo, voices, mix.
    static var renderBenchmarks: [Benchmark] {
        [0, 1, 2].map { voices in
            Benchmark(
                name: "render/\(voices)-voices",
                operation: "a period of 480 stereo frames at 48 kHz",
                unit: "period"
            ) {
                let stage = RenderStage(voices: voices)
                return { stage.render(periods: $0) }
            }
        }
    }

    private static func kilohertz(_ rate: Int) -> String {
        rate % 1_000 == 0 ? "\(rate / 1_000)" : "\(Double(rate) / 1_000)"
    }
}

/// An engine that plays voices for ever; the card is 100 ppm fast.
private final class RenderStage {
    private let engine: OutputEngine
    private let voices: [Voice]
    private let recording: [Float]
    private var period: [Float]
    private var now = LocalInstant(nanoseconds: 1_000_000_000)
    private var frames: Int64 = 0

    init(voices count: Int) {
        let format = OutputFormat(
            sampleRate: 48_000, channelCount: 2, periodFrames: 480, bufferFrames: 1_920)
        let engine = OutputEngine(format: format)
        self.engine = engine
        recording = tone(frames: 48_000, sampleRate: 48_000).flatMap { [$0, -$0] }
        period = [Float](repeating: 0, count: 960)
        // A shared clock of its own, so that the servo works too.
        let clock = ClockCell(
            SharedClock(
                map: ClockMap(from: now, to: GroupInstant(nanoseconds: 0), skew: 20e-6),
                uncertainty: .microseconds(5), estimatedAt: now, epoch: 1, quality: .locked))
        voices = (0..<count).compactMap { _ in engine.port.makeVoice(sampleRate: 48_000) }
        feed()
        let line = Line(itemFrame: 0, instant: GroupInstant(nanoseconds: 300_000_000))
        for voice in voices { voice.start(line, clock: clock) }
        _ = render(periods: 100)
        precondition(voices.allSatisfy { $0.report.state == .playing }, "a voice does not play")
    }

    private func feed() {
        for voice in voices where voice.ring.writableFrames >= 48_000 {
            _ = recording.withUnsafeBufferPointer { voice.ring.write($0) }
        }
    }

    func render(periods: Int) -> UInt64 {
        var sum: UInt64 = 0
        for _ in 0..<periods {
            engine.observe(CardReading(framesHeard: Double(frames), instant: now))
            period.withUnsafeMutableBufferPointer {
                if let base = $0.baseAddress { engine.render(into: base, now: now) }
            }
            sum &+= UInt64(period[959].bitPattern)
            frames += 480
            now += Nanoseconds(9_999_000)
            if frames % 24_000 == 0 { feed() }
        }
        return sum
    }
}
