import Testing
import TuttiDeviceOutput
import TuttiTiming

@testable import tutti

/// What left the cards of a house, against true time.
struct Hearing {
    /// A stretch without sound between the first sound and the last, in nanoseconds of true time.
    typealias Gap = ClosedRange<Double>

    /// All times count from here.
    let base: LocalInstant
    let takes: [Take]
    /// First and last sound of each room.
    let audible: [ClosedRange<Double>]
    let gaps: [[Gap]]
    /// When each room's card ran dry, heard or not.
    let dry: [[Double]]

    /// Noise is never this quiet for so long: a millisecond.
    private static let gapFrames = 48

    /// - Returns: `nil` when a room never sounded.
    init?(_ recordings: [CardRecording], names: [String]) {
        guard let base = recordings.compactMap(\.firstInstant).min() else { return nil }
        let takes = zip(recordings, names).map { Take($0, name: $1, base: base) }
        let audible = takes.compactMap(\.audibleRange)
        guard audible.count == takes.count else { return nil }
        self.base = base
        self.takes = takes
        self.audible = audible
        gaps = takes.map(Self.gaps)
        dry = recordings.map {
            $0.segments.filter(\.ranDry).map { Double(($0.end - base).count) }
        }
    }

    /// Rooms whose cards ran dry between their first sound and their last.
    ///
    /// One that runs dry before or after that is heard by nobody: it is a warning, with its time.
    func ranDry(_ sourceLocation: SourceLocation = #_sourceLocation) -> [String] {
        var rooms: [String] = []
        for (room, take) in takes.enumerated() {
            for time in dry[room] {
                let seconds = (time - audible[room].lowerBound) * 1e-9
                let span = (audible[room].upperBound - audible[room].lowerBound) * 1e-9
                let what = "\(take.name)'s card ran dry at \(seconds) s of \(span) s of sound"
                if audible[room].contains(time) {
                    rooms.append(what)
                } else {
                    Issue.record("\(what)", severity: .warning, sourceLocation: sourceLocation)
                }
            }
        }
        return rooms
    }

    private static func gaps(_ take: Take) -> [Gap] {
        var gaps: [Gap] = []
        var lastSound: Double?
        for segment in take.segments {
            var lastFrame: Int?
            for (frame, sample) in segment.samples.enumerated() where abs(sample) > Take.audible {
                if let last = lastFrame, frame - last > gapFrames {
                    gaps.append(
                        segment.time(ofFrame: Double(last))...segment.time(ofFrame: Double(frame)))
                } else if lastFrame == nil, let lastSound {
                    // Between two runs of the card.
                    gaps.append(lastSound...segment.time(ofFrame: Double(frame)))
                }
                lastFrame = frame
            }
            if let lastFrame { lastSound = segment.time(ofFrame: Double(lastFrame)) }
        }
        return gaps
    }

    /// By how much `second` plays later than `first`, in µs, in a window of 50 ms around an
    /// instant.
    ///
    /// - Returns: `nil` when what they play is not the same.
    func skew(_ first: Int, _ second: Int, at time: Double) -> Double? {
        Self.skew(takes[first], takes[second], at: time)
    }

    /// The same against the item itself, placed so that it begins at `start`.
    func skew(_ room: Int, against asset: NoiseAsset, from start: Double, at time: Double)
        -> Double?
    {
        let reference = Reference(
            sampleRate: Double(asset.sampleRate), samples: asset.samples)
        return reference.take(begin: start).flatMap { Self.skew($0, takes[room], at: time) }
    }

    /// Rooms that lean by 200 ppm against each other part by half a sample meanwhile. In four times
    /// as much it would be two, and noise would not be found to be the same any more.
    private static let window = 0.05

    private static func skew(_ first: Take, _ second: Take, at time: Double) -> Double? {
        // A grid of its own for each window: rendering whole takes would last minutes here.
        let margin = SkewMeter.reach * 1.2
        let rate = first.sampleRate
        let grid = TimeGrid(
            start: time - (window / 2 + margin) * 1e9, sampleRate: rate,
            count: Int((window + 2 * margin) * rate))
        let meter = SkewMeter(
            .init(first, grid: grid), .init(second, grid: grid))
        let found = meter.window(
            from: Int(margin * rate), count: Int(window * rate))
        guard case .matched(let skew) = found else { return nil }
        return skew * 1e6
    }
}
