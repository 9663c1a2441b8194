import TuttiPlayout
import TuttiTiming

@testable import TuttiPlayback

/// What tests of compositions say in frames, of which a second has a thousand.
protocol ComposedFrames {}

extension ComposedFrames {
    static var rate: Int { 1_000 }

    static func time(_ frame: Int) -> MediaTime {
        MediaTime(frame: Int64(frame), sampleRate: rate)
    }

    static func range(_ first: Int, _ count: Int) -> TimeRange {
        TimeRange(start: time(first), duration: time(count))
    }

    func read(_ composition: Composition) throws -> [Float] {
        try SourceReader(ComposedSource(composition)).frames()
    }
}
