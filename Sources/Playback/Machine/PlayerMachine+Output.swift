import TuttiPlayout
import TuttiTiming

/// From one output to another.
extension PlayerMachine {
    /// Nothing of what was got ready can be used elsewhere, and what was decided holds there too: item
    /// time goes on, by a shared clock or by the next card, and lines to come keep their moment.
    mutating func change(toOutputIn there: PlayerWorld) {
        dropJoins()
        let current = program.entry(at: reading)
        let pending = program.pending(after: reading).map { ($0, local($0.line.instant)) }
        let place = currentFrame
        for feed in feeds.keys where facts(feed).isAlive { cancel(feed) }
        prepared = nil
        kept = [:]
        emit(.changeOutput)
        var there = there
        // What is known of feeds is of those that end.
        there.feeds = world.feeds
        world = there
        deviceLead = .zero
        cuesToldTo = reading
        cardDidChange()
        guard let facts = itemFacts else { return }

        if clock != nil {
            let feed = sound(by: current.line, instead: nil, facts)
            program = Program(
                continuing: Program.Entry(item: item, line: current.line, feed: feed))
        } else {
            // Its own card's time begins anew, with the first sound; something else may come sooner.
            program = Program(stillAt: place, of: item)
            let begin = reading(at: world.now + world.latency) + Self.decodingMargin
            let next = pending.first.map { reading(at: $0.1) }
            if current.line.rate != 0, next.map({ $0 > begin }) ?? true {
                let line = Line(itemFrame: place, instant: begin, rate: current.line.rate)
                let feed = sound(by: line, instead: nil, facts)
                program.append(Program.Entry(item: item, line: line, feed: feed))
            }
        }
        for (entry, moment) in pending {
            var line = entry.line
            line.instant = reading(at: moment)
            let before = program.last.feed
            let feed = line.rate == 0 ? before : sound(by: line, instead: before, facts)
            if line.rate == 0, let before { emit(.stop(before, at: line.instant)) }
            program.append(Program.Entry(item: item, line: line, feed: feed))
        }
        askAgain()
    }

    /// A feed for a line, from its instant on in the place of another.
    private mutating func sound(
        by line: Line, instead other: FeedID?, _ facts: PlayerWorld.ItemFacts
    ) -> FeedID? {
        guard line.rate != 0, ready != nil else { return nil }
        let first = line.frame(at: max(line.instant, soon), sampleRate: facts.sampleRate)
        if isBeyondEnd(first, at: line.rate) { return nil }
        let feed = makeFeed(frame: first, rate: line.rate)
        if let other {
            emit(.stop(other, at: line.instant))
            emit(.retire(other))
        }
        start(feed, by: line, fadesIn: true)
        return feed
    }

    /// What was waited for is waited for there.
    private mutating func askAgain() {
        if let seek, case .going(_, let frame) = seek.stage {
            self.seek = Seek(id: seek.id, stage: .asked(time(of: frame)))
        }
        guard let transition else { return }
        intent = .decided
        guard seek == nil || transition.frame == nil else { return }
        takeOver(from: transition.frame, waits: transition.waits)
    }
}
