import TuttiPlayout
import TuttiTiming

/// Going to another place, and getting ready for one.
extension PlayerMachine {
    mutating func beginSeek(_ id: SeekID, to time: MediaTime) {
        endSeek(finished: false)
        guard let item, time.isNumeric || time.isInfinite else {
            emit(.seekEnded(id, finished: false))
            return
        }
        error = nil
        endsAt = nil
        seek = Seek(id: id, stage: .asked(time))
        switch itemState {
        case .ready: break
        case .unknown: if loading[item] == nil { load(item) }
        case .failed: load(item)
        }
    }

    /// The seek under way has come to an end, one way or the other.
    mutating func endSeek(finished: Bool) {
        guard let ended = seek else { return }
        seek = nil
        if let id = ended.id { emit(.seekEnded(id, finished: finished)) }
    }

    /// Whoever wanted it does not any more: what plays goes on.
    mutating func giveUpSeek() {
        guard let stage = seek?.stage else { return }
        endSeek(finished: false)
        guard case .going(let feed, _) = stage else { return }
        // It may be in force already, by another order, and have nothing to play for long.
        emit(.endWaiting(feed))
        if transition?.feed == feed { dropIntent() }
        if prepared == feed { dropPrepared() }
        // Playing was asked for as well, and the seek's own feed was to do that.
        if rate != 0, intent == .decided, decided.line.rate != rate {
            takeOver(waits: automaticallyWaits)
        }
    }

    /// Whether the seek is where it was to go, whoever got it there and by which feed.
    mutating func checkSeek() {
        setOut()
        guard case .going(let feed, _) = seek?.stage else { return }
        let known = facts(feed)
        if known.isAlive, known.supply != .enough { return }
        if transition?.feed == feed { performTransition() }
        // Until then item time is elsewhere, and whatever is asked for is about where this goes.
        if arrival != nil { return }
        endSeek(finished: true)
    }

    /// A seek sets out as soon as its item is ready.
    mutating func setOut() {
        if case .asked(let time) = seek?.stage, ready != nil { go(to: time) }
    }

    private mutating func go(to time: MediaTime) {
        guard let frame = try? frame(of: time) else { return endSeek(finished: false) }
        dropPrepared()
        if rate == 0 {
            stand(at: frame)
        } else {
            jump(to: frame, by: nil, waits: true)
        }
    }

    /// Item time jumps to `frame` while nothing plays.
    private mutating func stand(at frame: Double) {
        dropIntent()
        settle()
        // A pause may still be under way to the output: it is not undone.
        if let sounding = program.last.feed {
            emit(.stop(sounding, at: nil))
            emit(.retire(sounding))
        }
        let line = Line(itemFrame: frame, instant: reading, rate: 0)
        program.append(Program.Entry(item: item, line: line, feed: nil))
        let feed = makeFeed(frame: frame, rate: defaultRate)
        prepared = feed
        follow(feed, from: frame)
        announce(.timeJumped(to: time(of: frame)))
    }

    /// The seek under way, if there is one, is served by `feed` from now on.
    mutating func follow(_ feed: FeedID, from frame: Double) {
        seek?.stage = .going(feed, frame)
    }

    /// The entry with which item time comes to where a seek under way goes: decided, and yet to come.
    var arrival: Program.Entry? {
        guard case .going(_, let frame) = seek?.stage else { return nil }
        return program.pending(after: reading).first {
            $0.item == item && $0.line.itemFrame == frame
        }
    }

    /// Where item time is on its way to by a jump; `nil`: nowhere.
    var destination: Double? {
        switch seek?.stage {
        case .asked(let time): try? frame(of: time)
        case .going(_, let frame) where arrival != nil: frame
        case .going, nil: transition?.frame
        }
    }

    /// Whether item time is on its way elsewhere.
    var isSeeking: Bool { destination != nil }

    /// Where a seek under way is going, with what has been got ready for it: a pause, another rate or
    /// an instant is then about that place. `nil` without a seek, and for one whose place is item time
    /// already.
    mutating func takeDestination() -> (frame: Double, feed: FeedID?)? {
        switch seek?.stage {
        case nil: return nil
        case .asked(let time): return (try? frame(of: time)).map { ($0, nil) }
        case .going(let feed, let frame):
            if transition?.feed == feed, transition?.frame != nil {
                intent = .decided
                return (frame, feed)
            }
            guard let arrival else { return nil }
            // A pause takes place as it was told: the next place is gone on from behind it.
            if arrival.line.rate != 0 {
                emit(.stop(feed, at: nil))
                dropJoins()
                program.settle(at: reading)
            }
            return (frame, feed)
        }
    }

    mutating func beginPreroll(_ rate: Double, _ time: MediaTime) throws(PlaybackError) {
        _ = try readyFacts()
        guard time.isValid || self.rate == 0 else {
            throw PlaybackError(
                .alreadyPlaying, "the current time can be prerolled only while paused")
        }
        if let reason = refusal(of: rate) { throw reason }
        let frame = try time.isValid ? self.frame(of: time) : destination ?? currentFrame
        dropPrepared()
        let feed = makeFeed(frame: frame, rate: rate)
        prepared = feed
        if !time.isValid { follow(feed, from: frame) }
    }
}
