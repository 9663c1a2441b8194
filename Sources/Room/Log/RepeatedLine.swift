public import TuttiTiming

/// Decides which lines of a log are written, and counts the others.
///
/// The same line again and again fills a disk and hides what is new; so does a flood of lines that
/// differ in their figures only. Each text and each kind of line has a small allowance that is
/// refilled slowly: what is beyond it is counted, and the latest of it is written with the count
/// after ``pause``. So nothing is lost that a person needs: what was said, how often, and how it
/// stands now.
///
/// Pure: `now` comes in; the shell writes.
public struct RepeatedLine: Sendable {
    /// Times that the very same line is written at once: a room that comes, goes and comes is news.
    static let textAllowance = 2.0
    /// Lines of one kind, whatever their figures.
    static let kindAllowance = 20.0
    /// One more line of a text each …
    static let textRefill = Nanoseconds.seconds(10)
    /// … and one more of a kind.
    static let kindRefill = Nanoseconds.seconds(1)
    /// From the first line that was counted to the one that says how many they were.
    public static let pause = Nanoseconds.seconds(10)
    /// Most texts, and most kinds, that are remembered. Beyond, all are forgotten that were not
    /// said lately, or all: kinds, which are few, still hold back a flood of texts.
    static let most = 256

    /// Lines that were not written: the latest of them, and how many there were.
    public struct Counted: Equatable, Sendable {
        /// The latest of the lines.
        public var line: String
        /// How many there were.
        public var count: Int
        var since: LocalInstant
    }

    private struct Allowance {
        var left: Double
        var at: LocalInstant
    }
    private var texts: [String: Allowance] = [:]
    private var kinds: [String: Allowance] = [:]
    private var counted: [String: Counted] = [:]

    /// Has seen no line yet.
    public init() {}

    /// - Parameters:
    ///   - kind: what lines with other figures have in common.
    ///   - text: the line without its time.
    ///   - line: what is written of it.
    /// - Returns: whether to write it now; false: it was counted, and ``due(at:)`` brings it.
    public mutating func admits(
        kind: String, text: String, line: String, at now: LocalInstant
    ) -> Bool {
        guard
            Self.take(
                text, from: &texts, most: Self.textAllowance, refill: Self.textRefill, at: now)
        else {
            count(line, as: text, at: now)
            return false
        }
        let isAdmitted = Self.take(
            kind, from: &kinds, most: Self.kindAllowance, refill: Self.kindRefill, at: now)
        if !isAdmitted { count(line, as: kind, at: now) }
        return isAdmitted
    }

    /// What was counted for long enough, oldest first; it counts from 0 again.
    public mutating func due(at now: LocalInstant) -> [Counted] {
        let due = counted.filter { now >= $0.value.since + Self.pause }
        for key in due.keys { counted[key] = nil }
        return due.values.sorted { $0.since < $1.since }
    }

    /// When ``due(at:)`` has something next; `nil` while nothing is counted.
    public var nextDeadline: LocalInstant? { counted.values.map { $0.since + Self.pause }.min() }

    private mutating func count(_ line: String, as key: String, at now: LocalInstant) {
        if var known = counted[key] {
            known.count += 1
            known.line = line
            counted[key] = known
        } else if counted.count < Self.most {
            counted[key] = Counted(line: line, count: 1, since: now)
        }
    }

    private static func take(
        _ key: String, from allowances: inout [String: Allowance], most: Double,
        refill: Nanoseconds, at now: LocalInstant
    ) -> Bool {
        var allowance = allowances[key] ?? Allowance(left: most, at: now)
        let passed = max(.zero, now - allowance.at).seconds / refill.seconds
        allowance.left = min(most, allowance.left + passed)
        allowance.at = now
        if allowances[key] == nil, allowances.count >= Self.most {
            allowances = allowances.filter { now - $0.value.at < refill }
            if allowances.count >= Self.most { allowances = [:] }
        }
        defer { allowances[key] = allowance }
        guard allowance.left >= 1 else { return false }
        allowance.left -= 1
        return true
    }
}
