import TuttiPlayout
import TuttiTiming

/// Where playing ends in either direction, and time behind that.
extension PlayerMachine {
    /// Whether item time stands where playing in that direction ends, and nothing is on its way
    /// elsewhere: there is nothing to play.
    func isAtEnd(for rate: Double) -> Bool {
        guard self.rate == 0, seek == nil, let facts = ready?.facts, let end = facts.end(at: rate)
        else { return false }
        if rate < 0 { return actionAtEnd != .none && currentFrame <= Double(end) }
        return actionAtEnd == .pause && end > 0 && currentFrame >= Double(end)
    }

    /// What a line leads to: it ends where playing in its direction does, unless it began beyond that.
    func limited(_ frame: Double, by line: Line) -> Double {
        if actionAtItemEnd == .none {
            return line.rate > 0 ? max(min(0, line.itemFrame), frame) : frame
        }
        let place = clamped(frame)
        guard line.rate != 0, let end = itemFacts?.end(at: line.rate).map(Double.init) else {
            return place
        }
        if line.rate < 0 { return line.itemFrame < end ? place : max(place, end) }
        return line.itemFrame > end ? place : min(place, end)
    }

    /// Whether time runs on alone from a place on: with no action at its end, nothing of the item is left
    /// there.
    func isBeyondEnd(_ frame: Double, at rate: Double) -> Bool {
        guard actionAtItemEnd == .none, rate != 0, let end = itemFacts?.end(at: rate) else {
            return false
        }
        return rate < 0 ? frame < Double(end) : frame > Double(end)
    }

    /// Item time at an instant, by what is decided: within the item, or wherever it runs on to.
    func place(at instant: GroupInstant, _ facts: PlayerWorld.ItemFacts) -> Double {
        let frame = program.frame(at: instant, sampleRate: facts.sampleRate)
        return actionAtItemEnd == .none ? limited(frame, by: program.last.line) : clamped(frame)
    }

    /// Item time goes on by `line`, and nothing sounds. Who is heard to the end just now tells that.
    mutating func runOn(by line: Line) {
        dropPrepared()
        program.append(Program.Entry(item: item, line: line, feed: program.last.feed))
    }

    /// Where playing ends is elsewhere now. Item time that has come by there stops where it is.
    mutating func renewEnd() {
        guard let feed = decided.feed, let start = feeds[feed]?.start, decided.line.rate != 0,
            rate != 0, let facts = itemFacts, suits(feed, start.line.rate),
            start.endFrame != facts.end(at: start.line.rate)
        else { return }
        var line = start.line
        let place = clamped(line.frame(at: soon, sampleRate: facts.sampleRate))
        if let end = facts.end(at: line.rate).map(Double.init), line.instant < soon,
            line.rate > 0 ? place > end : place < end
        {
            line = Line(itemFrame: place, instant: soon, rate: line.rate)
            program.append(Program.Entry(item: item, line: line, feed: feed))
        }
        self.start(feed, by: line, fadesIn: start.fadesIn)
    }
}
