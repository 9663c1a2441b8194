import TuttiPlayout
import TuttiTiming

/// Making feeds, telling them what to play, and what is known of them.
extension PlayerMachine {
    /// Of a feed that was only just begun nothing is known but where it begins.
    func facts(_ feed: FeedID) -> PlayerWorld.FeedFacts {
        if let known = world.feeds[feed] { return known }
        guard let record = feeds[feed] else {
            return PlayerWorld.FeedFacts(isAlive: false)
        }
        let first = Double(record.recipe.firstFrame(for: record.frame))
        let reach = Double(record.sampleRate) * Feed.reachSeconds
        return PlayerWorld.FeedFacts(reach: record.recipe.reach(first, first + reach))
    }

    func isSupplied(_ feed: FeedID, enough: Bool) -> Bool {
        switch facts(feed).supply {
        case .nothing: false
        case .frames: !enough
        case .enough: true
        }
    }

    func reaches(_ feed: FeedID, _ frame: Double, rate: Double, of item: ItemID?) -> Bool {
        let facts = facts(feed)
        return feeds[feed]?.item == item && suits(feed, rate) && facts.isAlive
            && facts.reach?.contains(frame) == true
    }

    /// Whether it makes of its item what is wanted at a rate.
    func suits(_ feed: FeedID, _ rate: Double) -> Bool {
        guard let record = feeds[feed] else { return false }
        return record.recipe == world.items[record.item]?.facts?.recipe(at: rate)
    }

    /// How well the current item is supplied, as people see it.
    struct Buffer: Equatable, Sendable {
        var keepsUp = false
        var isEmpty = true
        var isFull = false
    }

    /// Of the feed that plays, or is to play next.
    var buffer: Buffer {
        let current = program.entry(at: reading)
        guard let feed = current.feed ?? decided.feed ?? transition?.feed ?? prepared,
            feeds[feed]?.item == item
        else { return Buffer() }
        let known = facts(feed)
        let isDry = known.report?.state == .starved
        return Buffer(
            keepsUp: known.isAlive && known.keepsUp && !isDry,
            isEmpty: known.supply == .nothing || isDry, isFull: known.isFull && !isDry)
    }

    mutating func makeFeed(frame: Double, rate: Double) -> FeedID {
        guard let (item, facts) = ready else {
            preconditionFailure("a feed is made only for an item that is ready")
        }
        return makeFeed(of: item, facts, frame: clamped(frame), rate: rate)
    }

    mutating func makeFeed(
        of item: ItemID, _ facts: PlayerWorld.ItemFacts, frame: Double, rate: Double
    ) -> FeedID {
        guard let recipe = facts.recipe(at: rate) ?? facts.recipe(at: 1) else {
            preconditionFailure("an item plays at its own rate")
        }
        lastFeed += 1
        let feed = FeedID(number: lastFeed)
        feeds[feed] = FeedRecord(
            item: item, sampleRate: facts.sampleRate, frame: frame, recipe: recipe, start: nil,
            itemGain: facts.gain)
        emit(.make(feed, item, frame: frame, recipe: recipe, gain: gain * facts.gain))
        return feed
    }

    mutating func setGains() {
        for (feed, record) in feeds {
            let itemGain = world.items[record.item]?.facts?.gain ?? record.itemGain
            feeds[feed]?.itemGain = itemGain
            emit(.setGain(feed, gain * itemGain))
        }
    }

    /// - Parameter waits: nobody else goes by this line: it begins when the output can.
    mutating func start(_ feed: FeedID, by line: Line, fadesIn: Bool, waits: Bool = false) {
        let start = FeedStart(
            line: line, clock: clock,
            endFrame: feeds[feed].flatMap { world.items[$0.item]?.facts?.end(at: line.rate) },
            fadesIn: fadesIn, waits: waits && clock == nil)
        feeds[feed]?.start = start
        feeds[feed]?.hasBegun = false
        // What it reported was about another start.
        world.feeds[feed]?.report = nil
        emit(.start(feed, start))
    }

    mutating func cancel(_ feed: FeedID?) {
        guard let feed, feeds[feed] != nil else { return }
        if world.feeds[feed] == nil { world.feeds[feed] = facts(feed) }
        world.feeds[feed]?.isAlive = false
        emit(.cancel(feed))
    }

    mutating func dropPrepared() {
        // What it was got ready for may be asked for already, and waits for it.
        if transition?.feed != prepared { cancel(prepared) }
        prepared = nil
    }

    /// Takes back what was waited for: something newer is decided.
    mutating func dropIntent() {
        let transition = transition
        intent = .decided
        if let feed = transition?.feed, !program.names(feed), feed != prepared,
            !kept.values.contains(feed)
        {
            cancel(feed)
        }
    }
}
