import TuttiPlayout
import TuttiTiming

/// What item time does, now and as far as it has been decided: entries in the order of their instants,
/// each in force from its own until the next one's. The first is also in force before its instant.
///
/// An entry names its item and the feed that sounds by it. Here a line may have rate 0: item time
/// stands, and the feed is ready to go on.
struct Program: Equatable, Sendable {
    struct Entry: Equatable, Sendable {
        var item: ItemID?
        var line: Line
        /// `nil`: nothing sounds, or not any more.
        var feed: FeedID?
    }

    private(set) var entries: [Entry]

    /// Item time stands at `frame`, and nothing is ready to play.
    init(stillAt frame: Double, of item: ItemID? = nil) {
        let line = Line(itemFrame: frame, instant: GroupInstant(nanoseconds: .min), rate: 0)
        entries = [Entry(item: item, line: line, feed: nil)]
    }

    /// One entry that holds for all time.
    init(continuing entry: Entry) { entries = [entry] }

    /// What was decided last.
    var last: Entry { entries[entries.count - 1] }

    /// What was decided last of an item; of whichever, where nothing was.
    func last(of item: ItemID?) -> Entry { entries.last { $0.item == item } ?? last }

    /// The entry in force at `instant`.
    func entry(at instant: GroupInstant) -> Entry {
        entries[place(at: instant)]
    }

    private func place(at instant: GroupInstant) -> Int {
        entries.lastIndex { $0.line.instant <= instant } ?? 0
    }

    /// Item time in frames at `instant`.
    func frame(at instant: GroupInstant, sampleRate: Int) -> Double {
        entry(at: instant).line.frame(at: instant, sampleRate: sampleRate)
    }

    /// A line while it is in force.
    struct Stretch {
        var line: Line
        var begin: GroupInstant
        var end: GroupInstant

        /// Item time at both ends.
        func frames(sampleRate: Int) -> (begin: Double, end: Double) {
            (
                line.frame(at: begin, sampleRate: sampleRate),
                line.frame(at: end, sampleRate: sampleRate)
            )
        }
    }

    /// Lines that play between two instants, in their order.
    func stretches(from begin: GroupInstant, to end: GroupInstant) -> [Stretch] {
        let first = place(at: begin)
        return entries.indices.dropFirst(first).compactMap { index in
            let line = entries[index].line
            let start = index == first ? begin : line.instant
            let next = index + 1 < entries.count ? entries[index + 1].line.instant : end
            guard line.rate != 0, start < end else { return nil }
            return Stretch(line: line, begin: start, end: min(next, end))
        }
    }

    /// Entries whose instant is yet to come.
    func pending(after now: GroupInstant) -> [Entry] {
        Array(entries.dropFirst(place(at: now) + 1))
    }

    /// Forgets what was decided for after `now`, and what no longer matters.
    ///
    /// - Returns: what was to come.
    @discardableResult
    mutating func settle(at now: GroupInstant) -> [Entry] {
        let dropped = pending(after: now)
        entries = [entry(at: now)]
        return dropped
    }

    /// From its instant on, `entry` holds; replaces whatever was to happen then or later.
    mutating func append(_ entry: Entry) {
        entries.removeAll { $0.line.instant >= entry.line.instant }
        entries.append(entry)
    }

    /// Forgets what was decided for other items after `now`.
    ///
    /// - Returns: what was to come.
    mutating func dropOthers(
        than item: ItemID?, after now: GroupInstant, behind count: Int
    ) -> [Entry] {
        let dropped = pending(after: now).filter { $0.item != item }.dropFirst(count)
        entries.removeAll { dropped.contains($0) }
        return Array(dropped)
    }

    /// Forgets entries that were in force before that of `instant`.
    mutating func forget(before instant: GroupInstant) {
        entries.removeFirst(place(at: instant))
    }

    /// Where `old` was to sound, `new` does, or nothing.
    mutating func replace(_ old: FeedID, by new: FeedID?) {
        for index in entries.indices where entries[index].feed == old { entries[index].feed = new }
    }

    func names(_ feed: FeedID) -> Bool { entries.contains { $0.feed == feed } }

    /// When item time comes to `frame` by what has been decided, and never by a jump; `nil` while
    /// nothing leads there.
    ///
    /// - Parameter now: later than this.
    func instant(of frame: Double, after now: GroupInstant, sampleRate: Int) -> GroupInstant? {
        let current = place(at: now)
        for index in entries.indices.dropFirst(current) {
            let line = entries[index].line
            guard line.rate != 0 else { continue }
            let seconds = (frame - line.itemFrame) / (line.rate * Double(sampleRate))
            let instant = line.instant + Nanoseconds(seconds: seconds)
            let begin = index == current ? now : line.instant
            let end = index + 1 < entries.count ? entries[index + 1].line.instant : nil
            if instant > begin, instant <= end ?? instant { return instant }
        }
        return nil
    }
}

extension Line {
    /// Item time in frames at `instant`, also before the line's own.
    func frame(at instant: GroupInstant, sampleRate: Int) -> Double {
        if rate == 0 { return itemFrame }
        return itemFrame + (instant - self.instant).seconds * rate * Double(sampleRate)
    }
}
