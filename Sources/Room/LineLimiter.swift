import Timing

/// Keeps a log readable, and small, whatever happens how often: lines that repeat are counted.
///
/// Two rules, each for lines of one message. A line that is the same as the one before it, word for
/// word, is counted and not said again for a while. Lines that differ in their details may come in a
/// burst, as when a house is switched on, but go on no faster than one a second. What was held back
/// is told as a number, with the last of it as an example: with the next line of that message, or
/// by itself soon after.
///
/// A value without a clock of its own; ``PlainLogHandler`` runs one, and whoever repeats something
/// elsewhere may have another.
struct LineLimiter<Line: Sendable>: Sendable {
    /// Lines of one message at once.
    static var burst: Int { 20 }
    /// Between two lines of one message in a flood.
    static var pause: Nanoseconds { .seconds(1) }
    /// The same line may be said again after this, for whoever looks at the end of a long log only.
    static var repetition: Nanoseconds { .seconds(60) }
    /// How long what was held back may go untold.
    static var patience: Nanoseconds { .seconds(5) }
    /// Messages watched at once; the one that was silent longest is forgotten.
    static var mostMessages: Int { 256 }

    enum Verdict: Equatable {
        /// - Parameter missed: how many were held back before it.
        case say(missed: Int)
        case hold
    }

    private struct Record {
        var details: String
        var saidAt: LocalInstant
        var seenAt: LocalInstant
        /// Lines that may still come at once.
        var allowance: Double
        var missed = 0
        var last: Line?
    }

    private var records: [String: Record] = [:]

    /// Whether anything is held back and not told yet.
    var owes: Bool { records.values.contains { $0.missed > 0 } }

    /// - Parameters:
    ///   - message: what is said.
    ///   - details: what may differ each time.
    ///   - line: kept as the example, when it is held back.
    mutating func judge(
        _ message: String, _ details: String, _ line: Line, at now: LocalInstant
    ) -> Verdict {
        guard var record = records[message] else {
            forgetOldest()
            records[message] = Record(
                details: details, saidAt: now, seenAt: now, allowance: Double(Self.burst - 1))
            return .say(missed: 0)
        }
        defer { records[message] = record }
        let passed = max(.zero, now - record.seenAt).seconds / Self.pause.seconds
        record.allowance = min(record.allowance + passed, Double(Self.burst))
        record.seenAt = now
        let isSame = record.details == details && now - record.saidAt < Self.repetition
        guard !isSame, record.allowance >= 1 else {
            record.missed += 1
            record.last = line
            // What comes next is the same as this, not as what was said before it.
            if record.details != details { record.details = details }
            return .hold
        }
        record.allowance -= 1
        let missed = record.missed
        record = Record(
            details: details, saidAt: now, seenAt: now, allowance: record.allowance)
        return .say(missed: missed)
    }

    /// What was held back and never told: the last of each message, and how many it stands for.
    mutating func settle() -> [(line: Line, missed: Int)] {
        var told: [(line: Line, missed: Int)] = []
        for (message, record) in records {
            guard record.missed > 0, let line = record.last else { continue }
            told.append((line, record.missed))
            records[message]?.missed = 0
            records[message]?.last = nil
        }
        return told
    }

    private mutating func forgetOldest() {
        guard records.count >= Self.mostMessages,
            let oldest = records.min(by: { $0.value.seenAt < $1.value.seenAt })
        else { return }
        records[oldest.key] = nil
    }
}
