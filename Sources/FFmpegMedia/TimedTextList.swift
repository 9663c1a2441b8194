import TuttiPlayout
import TuttiTiming

/// Gathers the cues of a track, within bounds, and puts them in order.
struct TimedTextList {
    /// What a track may hold; beyond that it is no text for people, or would take the memory of a
    /// small machine.
    struct Limits {
        /// A film has two thousand; one whose songs are lettered syllable by syllable, 50 000.
        var cues = 200_000
        /// Bytes of one cue, styles included: a screen of letters is less than two thousand.
        var cueBytes = 1 << 17
        /// Bytes of all of them.
        var bytes = 32 << 20
        /// Bytes of a packet. Drawings are long, and come to nothing.
        var packetBytes = 4 << 20

        static let usual = Limits()
    }

    struct Excess: Error {
        /// As the end of "has more than".
        var reason: String
    }

    /// How long is shown what does not say it, and what nothing follows: 5 s, enough to read two
    /// lines.
    static let usualDuration = MediaTime(value: 5, timescale: 1)

    private struct Cue {
        var start: MediaTime
        var end: MediaTime?
        var runs: [TimedText.Run]
        var place: TimedText.Place
    }

    private let limits: Limits
    private var cues: [Cue] = []
    private var bytes = 0

    init(_ limits: Limits) { self.limits = limits }

    /// - Parameter end: `nil` where the track does not say it: then the next cue ends it.
    mutating func add(
        _ text: DialogueText, from start: MediaTime, to end: MediaTime?
    ) throws(Excess) {
        guard start.isNumeric, text.runs.contains(where: { $0.text.showsSomething }) else { return }
        let size = text.runs.reduce(0) {
            $0 + $1.text.utf8.count + MemoryLayout<TimedText.Run>.stride
        }
        guard size <= limits.cueBytes else {
            throw Excess(reason: "\(limits.cueBytes) bytes in one cue")
        }
        guard cues.count < limits.cues else { throw Excess(reason: "\(limits.cues) cues") }
        bytes += size
        guard bytes <= limits.bytes else { throw Excess(reason: "\(limits.bytes) bytes") }
        cues.append(Cue(start: start, end: end, runs: text.runs, place: text.place))
    }

    /// - Parameter zero: item time 0 as the cues count. What is shown before is cut there.
    func inOrder(from zero: MediaTime) -> [TimedText] {
        let sorted = cues.enumerated()
            .sorted { ($0.element.start, $0.offset) < ($1.element.start, $1.offset) }
            .map(\.element)
        var next: MediaTime?
        var result: [TimedText] = []
        // From the last to the first: the next that begins later ends what has no end.
        for (index, cue) in sorted.enumerated().reversed() {
            if index + 1 < sorted.count, sorted[index + 1].start > cue.start {
                next = sorted[index + 1].start
            }
            let usual = cue.start + Self.usualDuration
            let end = cue.end ?? min(next ?? usual, usual)
            let range = TimeRange(start: max(.zero, cue.start - zero), end: end - zero)
            guard range.isValid, !range.isEmpty, range.end.isNumeric else { continue }
            result.append(TimedText(range: range, runs: cue.runs, place: cue.place))
        }
        return result.reversed()
    }
}
