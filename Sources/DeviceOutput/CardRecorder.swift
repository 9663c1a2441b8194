import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// Records what leaves a virtual card, with the exact instants; ``CardRecording`` reads it back.
///
/// `PATH.f32`: interleaved Float, little-endian, every frame in the order in which it left.
/// `PATH.times`: a header, then one event a line,
///
///     TUTTI-CARD 1 rate=48000 channels=2 ppm=80.0 wander=0.3 seed=1
///     START frame=0.000 raw_ns=123456789.250
///     ANCHOR frame=4800.384 raw_ns=…          the rate is constant from line to line
///     UNDERRUN frame=… raw_ns=…               nothing leaves until the next START
///     LOST frames=…                           the disk was too slow: zeros in their place
///     END frame=… raw_ns=…
///
/// `raw_ns` is the instant on CLOCK_MONOTONIC_RAW at which the frame leaves the card.
final class CardRecorder: CardSink {
    private let queue: FrameQueue
    private let events = CommandRing<CardEvent>(capacity: 1024)
    private let lost = LatestValue<Int64>(0)

    /// - Parameter onFailure: called once for each of the files that cannot be written any more.
    init(
        path: String, format: OutputFormat, options: VirtualCardOptions, overwrites: Bool = false,
        onFailure: (@Sendable (OutputError) -> Void)? = nil
    ) throws(OutputError) {
        let times = try RecordFile(
            path + ".times", overwrites: overwrites, onFailure: onFailure)
        times.write(
            "TUTTI-CARD 1 rate=\(format.sampleRate) channels=\(format.channelCount) "
                + "ppm=\(options.partsPerMillion) wander=\(options.wander) "
                + "seed=\(options.seed)\n")
        let (events, lost) = (events, lost)
        queue = try FrameQueue(
            file: try RecordFile(path + ".f32", overwrites: overwrites, onFailure: onFailure),
            headerBytes: 0,
            channelCount: format.channelCount,
            eachRound: { _ in Self.drain(events, into: times) },
            atEnd: { _ in
                Self.drain(events, into: times)
                if lost.load() > 0 { times.write("LOST frames=\(lost.load())\n") }
                times.close()
            })
    }

    func append(_ frames: UnsafePointer<Float>, count: Int) {
        if unsafe !queue.append(frames, frames: count) { lost.store(queue.lostFrames) }
    }

    /// The queue holds 100 s of events: when it is full the disk is dead and all is lost anyway.
    func note(_ event: CardEvent) { _ = events.push(event) }

    func finish() { queue.finish() }

    private static func drain(_ events: CommandRing<CardEvent>, into file: RecordFile) {
        var text = ""
        while let event = events.pop() { text += line(event) }
        if !text.isEmpty { file.write(text) }
    }

    private static func line(_ event: CardEvent) -> String {
        let name =
            switch event.kind {
            case .start: "START"
            case .anchor: "ANCHOR"
            case .underrun: "UNDERRUN"
            case .end: "END"
            }
        let thousandths = min(999, Int64(event.fraction * 1000))
        return "\(name) frame=\(decimal(event.frame)) "
            + "raw_ns=\(event.instant.nanoseconds).\(digits(thousandths))\n"
    }

    /// A thousandth of a frame is 20 ns; a millionth is finer than the clock.
    private static func decimal(_ frame: Double) -> String {
        let millionths = Int64(saturating: frame * 1e6)
        let rest = millionths % 1_000_000
        return "\(millionths / 1_000_000).\(digits(rest / 1000))\(digits(rest % 1000))"
    }

    private static func digits(_ thousandths: Int64) -> String {
        String(String(thousandths + 1000).dropFirst())
    }
}
