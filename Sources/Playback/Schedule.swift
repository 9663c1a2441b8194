import Playout
import Timing

/// What item time does, now and as far as it has been decided: a chain of lines, each in force from
/// its instant until the next one's. The first is also in force before its instant.
///
/// Here a line may have rate 0: item time stands.
struct Schedule: Equatable, Sendable {
    private(set) var lines: [Line]

    init(stillAt frame: Double) {
        lines = [Line(itemFrame: frame, instant: GroupInstant(nanoseconds: .min), rate: 0)]
    }

    /// One line that holds for all time.
    init(continuing line: Line) { lines = [line] }

    /// The line in force at `instant`.
    func line(at instant: GroupInstant) -> Line {
        lines.last { $0.instant <= instant } ?? lines[0]
    }

    /// Item time in frames at `instant`.
    func frame(at instant: GroupInstant, sampleRate: Int) -> Double {
        line(at: instant).frame(at: instant, sampleRate: sampleRate)
    }

    /// Forgets what was decided for after `now`, and what no longer matters.
    mutating func settle(at now: GroupInstant) {
        lines = [line(at: now)]
    }

    /// From its instant on, `line` holds; replaces whatever was to happen then or later.
    mutating func append(_ line: Line) {
        lines.removeAll { $0.instant >= line.instant }
        lines.append(line)
    }
}

extension Line {
    /// Item time in frames at `instant`, also before the line's own.
    func frame(at instant: GroupInstant, sampleRate: Int) -> Double {
        if rate == 0 { return itemFrame }
        return itemFrame + (instant - self.instant).seconds * rate * Double(sampleRate)
    }

}
