import TuttiPlayout
import TuttiTiming

/// Joins that are another's decision too, as in a room that has a leader: what follows begins only by
/// the line that it is given, and only where that is the end of the item before it. So nothing begins
/// that was not committed, and whatever moves the end of an item keeps the next one from beginning.
extension PlayerMachine {
    /// How far a line that an item is given may be from where the item before it ends. Both are
    /// computed in whole nanoseconds, by other arithmetic; a microsecond is a twentieth of a frame,
    /// which nobody hears.
    static let joinTolerance = Nanoseconds.microseconds(1)

    /// Where items follow only by lines, one without a line is not gone on to.
    var actionAtEnd: Player.ActionAtItemEnd {
        joinLines != nil && actionAtItemEnd == .advance ? .pause : actionAtItemEnd
    }

    func agrees(_ line: Line, _ begin: GroupInstant) -> Bool {
        let span = line.instant.nanoseconds.subtracting(saturating: begin.nanoseconds)
        return line.itemFrame == 0 && line.rate == rate
            && abs(max(span, -.max)) <= Self.joinTolerance.count
    }

    /// The line by which an item of the queue begins where the one before it ends; `nil` while nothing
    /// leads there.
    func plannedJoin(of item: ItemID) -> Line? {
        guard actionAtItemEnd == .advance, rate != 0, intent == .decided, decided.line.rate > 0
        else { return nil }
        var begin = endInstant
        for next in nextItems {
            guard let instant = begin, case .ready? = world.items[next]?.state else { return nil }
            if next == item { return Line(itemFrame: 0, instant: instant, rate: rate) }
            let given = joinLines?[next].flatMap { agrees($0, instant) ? $0.instant : nil }
            begin = end(
                of: next, by: Line(itemFrame: 0, instant: given ?? instant, rate: rate))
        }
        return nil
    }

    /// Fills a feed at the beginning of an item that follows, however far ahead that is.
    mutating func prerollNext(_ item: ItemID, rate: Double) throws(PlaybackError) {
        guard queue.contains(item) else {
            throw PlaybackError(.noItem, "the item is not one that follows")
        }
        let known = world.items[item]
        if case .failed(let error)? = known?.state { throw error }
        guard case .ready? = known?.state, let facts = known?.facts else {
            throw PlaybackError(.itemNotReady, "the item that follows is not ready to play")
        }
        if let feed = kept[item] {
            if reaches(feed, 0, rate: rate, of: item) { return }
            dropJoins(from: item)
            cancel(feed)
        }
        kept[item] = makeFeed(of: item, facts, frame: 0, rate: rate)
    }

    // MARK: The end of all

    /// From `instant` on nothing sounds, whichever item plays by then: what begins before it does.
    mutating func end(at instant: GroupInstant) {
        endsAt = nil
        let last = program.pending(after: reading).last { $0.line.instant < instant }
        guard let last, last.line.rate > 0, let item = last.item, let feed = last.feed else {
            return endItem(at: instant)
        }
        endsAt = instant
        stop(feed, of: item, by: last.line, at: instant)
    }

    /// Ends the sound of an item, unless the item is over by then.
    mutating func stop(_ feed: FeedID, of item: ItemID, by line: Line, at instant: GroupInstant) {
        if let end = end(of: item, by: line), end <= instant { return }
        emit(.stop(feed, at: reading(instant, for: feed)))
    }

    /// Once all has begun that was to begin before, the end is a pause like any other.
    mutating func endLastItem() {
        guard let instant = endsAt,
            program.pending(after: reading).allSatisfy({ $0.line.instant >= instant })
        else { return }
        endsAt = nil
        endItem(at: instant)
    }

    /// When that is.
    var endDeadline: LocalInstant? {
        guard let endsAt,
            let last = program.pending(after: reading).last(where: { $0.line.instant < endsAt })
        else { return nil }
        return local(last.line.instant) + .microseconds(1)
    }

    private mutating func endItem(at instant: GroupInstant) {
        endSeek(finished: false)
        setRate(0, .setRateCalled)
        if ready == nil { dropIntent() } else { pause(at: instant, frame: nil) }
    }
}
