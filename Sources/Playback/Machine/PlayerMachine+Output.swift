import Playout
import Timing

/// From one output to another.
extension PlayerMachine {
    mutating func change(toOutputIn there: PlayerWorld) {
        leaveOutput()
        emit(.changeOutput)
        var there = there
        // What is known of feeds is of those that end.
        there.feeds = world.feeds
        world = there
        joinOutput()
    }

    /// Nothing of what was got ready can be used elsewhere. Item time goes on by a shared clock, and
    /// stands until the next output plays without one.
    private mutating func leaveOutput() {
        dropJoins()
        for feed in feeds.keys where facts(feed).isAlive { cancel(feed) }
        prepared = nil
        kept = [:]
        if let transition {
            // There are no frames any more: as if the item were only just ready.
            intent = .awaitsItem(waits: transition.waits)
        }
        if let seek, case .going(_, let frame) = seek.stage {
            self.seek = Seek(id: seek.id, stage: .asked(time(of: frame)))
        }
        for feed in Set(program.entries.compactMap(\.feed)) { program.replace(feed, by: nil) }
        guard clock == nil else { return }
        program = Program(stillAt: currentFrame, of: item)
        deviceLead = .zero
        cuesToldTo = nil
    }

    private mutating func joinOutput() {
        cardDidChange()
        guard rate != 0, let facts = ready?.facts else { return }
        var waits = automaticallyWaits
        if case .awaitsItem(let wanted) = intent { waits = wanted }
        guard clock != nil, intent == .decided else { return takeOver(waits: waits) }
        // The lines are those of all who share the clock: each goes on where it is.
        var sounding: FeedID?
        for entry in [program.entry(at: reading)] + program.pending(after: reading) {
            let line = entry.line
            guard line.rate != 0 else {
                if let sounding { emit(.stop(sounding, at: line.instant)) }
                continue
            }
            let first = line.frame(at: max(line.instant, soon), sampleRate: facts.sampleRate)
            let feed = makeFeed(frame: first, rate: line.rate)
            if let sounding {
                emit(.stop(sounding, at: line.instant))
                emit(.retire(sounding))
            }
            start(feed, by: line, fadesIn: true)
            program.append(Program.Entry(item: entry.item, line: line, feed: feed))
            sounding = feed
        }
        if decided.line.rate != rate { takeOver(waits: waits) }
    }
}
