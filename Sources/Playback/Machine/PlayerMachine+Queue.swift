import TuttiPlayout
import TuttiTiming

/// What follows the item: a join is an entry of the program like any other, at the instant at which the
/// item before it ends.
///
/// It is arranged some seconds ahead, and anew whenever the line before it is another: a join is where
/// the program says that the item ends, whatever was asked for since.
extension PlayerMachine {
    /// How long before its beginning an item is decoded ahead.
    static let joinLead = Nanoseconds.seconds(10)
    /// The same of those behind the next one, which may be shorter than what the output holds.
    static let furtherLead = Nanoseconds.seconds(1)
    /// Joins at a time: each has a voice.
    static let mostJoins = 8

    // MARK: Editing

    mutating func insert(_ item: ItemID, after place: ItemID?) {
        if self.item == nil, queue.isEmpty {
            begin(item)
        } else if let place, place == self.item {
            queue.insert(item, at: 0)
        } else if let place, let index = queue.firstIndex(of: place) {
            queue.insert(item, at: index + 1)
        } else {
            queue.append(item)
        }
    }

    mutating func remove(_ item: ItemID) {
        if item == self.item { return leaveItem(isOver: false) }
        guard let index = queue.firstIndex(of: item) else { return }
        queue.remove(at: index)
        dropJoins(from: item)
        release(item)
    }

    mutating func removeAll() {
        let all = queue
        queue = []
        dropJoins()
        for item in all { release(item) }
        replace(with: nil)
    }

    /// The item is done with: the next one plays on, or none is there.
    mutating func leaveItem(isOver: Bool) {
        guard item != nil || !queue.isEmpty else { return }
        let old = item
        let next = queue.isEmpty ? nil : queue.removeFirst()
        if next == nil, isOver { setRate(0, .itemEnded) }
        begin(next)
        if let old { release(old) }
        if next == nil { announce(.itemStatusDidChange(nil)) }
    }

    // MARK: Joining

    /// Items that follow, as far as anything is known of them: a queue may be long. One that cannot be
    /// played is passed over when it comes to its turn.
    var nextItems: [ItemID] {
        queue.prefix(Self.mostJoins).filter { id in
            if case .failed = world.items[id]?.state { false } else { true }
        }
    }

    /// Whether another item will be playing by then.
    func hasJoins(before instant: GroupInstant) -> Bool {
        guard joinLines == nil else {
            return program.pending(after: reading).contains {
                $0.item != item && $0.line.instant < instant
            }
        }
        guard actionAtItemEnd == .advance, !nextItems.isEmpty, let end = endInstant else {
            return false
        }
        return instant > end
    }

    /// Forgets the joins; their feeds wait for what is decided instead.
    ///
    /// - Parameter count: as many stay.
    mutating func dropJoins(behind count: Int = 0) {
        for entry in program.dropOthers(than: item, after: reading, behind: count) {
            if let feed = entry.feed { emit(.stop(feed, at: nil)) }
        }
    }

    /// Forgets the join of an item and those behind it; what is right before it is not told again.
    mutating func dropJoins(from item: ItemID) {
        let joins = program.pending(after: reading).filter { $0.item != self.item }
        if let first = joins.firstIndex(where: { $0.item == item }) { dropJoins(behind: first) }
    }

    /// Makes the joins be what the program and the queue say.
    mutating func arrangeJoins() {
        loadNext()
        guard actionAtItemEnd == .advance, rate != 0, intent == .decided, item != nil,
            decided.line.rate > 0
        else { return dropJoins() }
        let old = program.pending(after: reading).filter { $0.item != item }
        let wanted = joins()
        let same = zip(old, wanted).prefix { $0.item == $1.item && $0.line == $1.line }.count
        if same == old.count, same == wanted.count { return }
        // Those that are right already are not told again.
        if same < old.count { dropJoins(behind: same) }
        for entry in wanted.dropFirst(same) { join(entry) }
    }

    /// The next item is loaded ahead of its turn, and those behind it as far as they begin soon.
    private mutating func loadNext() {
        var begin = endInstant
        for next in nextItems {
            switch world.items[next]?.state {
            case .unknown?: return loading[next] == nil ? load(next) : ()
            case .ready?: break
            case .failed?, nil: return
            }
            guard let known = begin, known - reading <= Self.joinLead else { return }
            begin = end(of: next, by: Line(itemFrame: 0, instant: known, rate: rate))
        }
    }

    private func joins() -> [Program.Entry] {
        var entries: [Program.Entry] = []
        var end = endInstant
        for next in nextItems.prefix(Self.mostJoins) {
            // An item without a frame begins and ends at one instant: the next one begins there.
            if world.items[next]?.facts?.endFrame == 0 { continue }
            let lead = entries.isEmpty ? Self.joinLead : Self.furtherLead
            guard let begin = end, case .ready? = world.items[next]?.state,
                let line = joinLine(of: next, at: begin, lead: lead)
            else { break }
            entries.append(Program.Entry(item: next, line: line, feed: nil))
            end = self.end(of: next, by: line)
        }
        return entries
    }

    /// The line of an item where the one before it ends at `begin`; `nil`: that is not yet arranged.
    private func joinLine(of item: ItemID, at begin: GroupInstant, lead: Nanoseconds) -> Line? {
        if let endsAt, begin >= endsAt { return nil }
        if let joinLines { return joinLines[item].flatMap { agrees($0, begin) ? $0 : nil } }
        return begin - reading <= lead ? Line(itemFrame: 0, instant: begin, rate: rate) : nil
    }

    /// When an item that plays by a line will have been played to its end.
    func end(of item: ItemID, by line: Line) -> GroupInstant? {
        guard line.rate > 0, let facts = world.items[item]?.facts, let frames = facts.endFrame
        else { return nil }
        let seconds = (Double(frames) - line.itemFrame) / (line.rate * Double(facts.sampleRate))
        return line.instant + Nanoseconds(seconds: seconds)
    }

    /// The same of the one that plays.
    var endInstant: GroupInstant? {
        let line = decided.line
        guard let end = item.flatMap({ end(of: $0, by: line) }) else { return nil }
        // Who begins at the end hears that from the feed.
        return end > line.instant ? end : nil
    }

    private mutating func join(_ entry: Program.Entry) {
        guard let item = entry.item, let facts = world.items[item]?.facts else { return }
        var feed = kept[item]
        if let known = feed, !reaches(known, 0, rate: rate, of: item) {
            cancel(known)
            feed = nil
        }
        let joining = feed ?? makeFeed(of: item, facts, frame: 0, rate: rate)
        kept[item] = joining
        // As it was mastered: nothing fades at a join.
        start(joining, by: entry.line, fadesIn: false)
        if let endsAt { stop(joining, of: item, by: entry.line, at: endsAt) }
        program.append(Program.Entry(item: item, line: entry.line, feed: joining))
    }

    /// The items whose beginning has come are the current ones, one after the other.
    mutating func passJoins() {
        while let old = item,
            let join = program.entries.first(where: {
                $0.item != old && $0.line.instant <= reading
            }), let next = join.item, let index = queue.firstIndex(of: next)
        {
            passCues(to: join.line.instant)
            emit(.playedToEnd(old))
            for passed in queue[..<index] {
                if case .failed(let error)? = world.items[passed]?.state {
                    emit(.itemFailed(passed, error))
                }
                release(passed)
            }
            queue.removeSubrange(...index)
            kept[next] = nil
            joinLines?[next] = nil
            item = next
            toldStatus = nil
            // It is of the item that has ended.
            dropPrepared()
            program.forget(before: join.line.instant)
            endSeek(finished: false)
            emit(.itemChanged(item))
            release(old)
            tellStatus()
            hasJumped = true
        }
        endLastItem()
        passCues(to: reading)
    }

    /// When a join has to be arranged, or passes.
    var joinDeadline: LocalInstant? {
        let arranged = program.pending(after: reading).filter { $0.item != item }
        let next = arranged.first.map { $0.line.instant }
        return [next, arrangement(behind: arranged)].compactMap(\.self).min().map {
            local($0) + .microseconds(1)
        }
    }

    /// When the first join that is not arranged yet comes near enough.
    private func arrangement(behind arranged: [Program.Entry]) -> GroupInstant? {
        guard joinLines == nil, actionAtItemEnd == .advance, rate != 0, intent == .decided,
            arranged.count < Self.mostJoins, nextItems.count > arranged.count
        else { return nil }
        let begin =
            if let last = arranged.last, let item = last.item {
                end(of: item, by: last.line)
            } else {
                endInstant
            }
        let lead = arranged.isEmpty ? Self.joinLead : Self.furtherLead
        return begin.flatMap { $0 - reading > lead ? $0 - lead : nil }
    }
}
