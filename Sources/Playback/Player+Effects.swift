import Synchronization
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// The hands of a ``PlayerMachine``: they tell it what is so, and do what it says.
extension Player {
    static func world(of output: PlayerOutput) -> PlayerWorld {
        PlayerWorld(
            now: output.now(), latency: output.latency, hasCard: output.port.hasCard)
    }

    func world(_ state: State, on output: PlayerOutput? = nil) -> PlayerWorld {
        var world = Self.world(of: output ?? state.output)
        // Of what follows, no more than may be joined soon.
        let near =
            [state.machine.item].compactMap(\.self)
            + state.machine.queue.prefix(PlayerMachine.mostJoins)
        for id in near { world.items[id] = state.items[id]?.facts }
        for (id, clock) in state.clocks { world.clocks[id] = clock.cell.load() }
        for (id, feed) in state.feeds { world.feeds[id] = feed.facts }
        return world
    }

    /// What is so at this moment. An item that follows may have begun before the alarm has said so:
    /// whatever is asked for together is of one item.
    func now<Value: Sendable>(_ question: (State) -> Value) -> Value {
        state.withLock { state in
            let world = world(state)
            state.machine.look(world)
            return question(state)
        }
    }

    /// What the machine says of this moment.
    func looking<Value: Sendable>(_ question: (PlayerMachine) -> Value) -> Value {
        now { question($0.machine) }
    }

    // MARK: Verbs

    /// Commands that cannot fail.
    func perform(_ command: PlayerCommand) { turn { perform(command, &$0) } }

    func perform(_ command: PlayerCommand, _ state: inout State) {
        do throws(PlaybackError) { try attempt(command, &state) } catch {
            preconditionFailure("\(command): \(error)")
        }
    }

    func attempt(_ command: PlayerCommand) throws(PlaybackError) {
        try turn { state throws(PlaybackError) in try attempt(command, &state) }
    }

    func attempt(_ command: PlayerCommand, _ state: inout State) throws(PlaybackError) {
        do throws(PlaybackError) {
            carryOut(try state.machine.perform(command, in: world(state)), &state)
        } catch {
            // What was due by itself is done whatever becomes of the command.
            carryOut(state.machine.advance(in: world(state)), &state)
            throw error
        }
    }

    func receive(_ event: PlayerEvent, _ state: inout State) {
        carryOut(state.machine.receive(event, in: world(state)), &state)
    }

    /// What a feed says counts for what that feed was told last; it may have been told something
    /// newer, or replaced, by now.
    private func receive(_ event: Feed.Event, from feed: Feed, _ id: FeedID) {
        defer {
            switch event {
            case .supplied, .closed: feed.item.tellLoaded()
            case .failed, .starved, .playedToEnd, .leftBehind: break
            }
        }
        turn { state in
            func isLatest(_ order: UInt64) -> Bool { feed.orderNumber == order }
            switch event {
            case .supplied: receive(.supplied(id), &state)
            case .failed(let error): receive(.failed(id, error), &state)
            case .starved(let order): if isLatest(order) { receive(.starved(id), &state) }
            case .playedToEnd(let order): if isLatest(order) { receive(.playedToEnd(id), &state) }
            case .leftBehind(let order): if isLatest(order) { receive(.leftBehind(id), &state) }
            case .closed:
                state.feeds[id] = nil
                receive(.closed(id), &state)
                let used = Set(state.machine.feeds.values.compactMap { $0.start?.clock })
                state.clocks = state.clocks.filter {
                    $0.key == state.machine.clock || used.contains($0.key)
                }
            }
        }
    }

    /// Takes in what others report; a test may let it come late.
    func hear(_ report: @escaping @Sendable (Player) -> Void) {
        let postpone = state.withLock { $0.output.postpone }
        guard let postpone else { return report(self) }
        postpone { [weak self] in if let self { report(self) } }
    }

    func number(of clock: MediaClock, _ state: inout State) -> ClockID {
        if let known = state.clocks.first(where: { $0.value.cell === clock.cell }) {
            return known.key
        }
        state.clockCount += 1
        let id = ClockID(number: state.clockCount)
        state.clocks[id] = clock
        return id
    }

    // MARK: Effects

    private func carryOut(_ effects: [PlayerEffect], _ state: inout State) {
        for effect in effects { carryOut(effect, &state) }
        setAlarm(&state)
    }

    private func carryOut(_ effect: PlayerEffect, _ state: inout State) {
        switch effect {
        case .load(let item, let load): self.load(item, load, &state)
        case .stopLoading(let item): state.loads.removeValue(forKey: item)?.cancel()
        case .failItem(let id, let error):
            guard let item = state.items[id] else { return }
            item.fail(error)
            state.failedItems.append(item)
        case .release(let id):
            state.loads[id] = nil
            guard let item = state.items.removeValue(forKey: id) else { return }
            state.closing += item.unclaim(from: self)
            endNotices(of: id, &state)
        case .itemChanged(let id):
            announce(.currentItemDidChange(id.flatMap { state.items[$0] }), of: nil, &state)
        case .playedToEnd(let id):
            if let item = state.items[id] { announce(.didPlayToEnd(item), of: id, &state) }
        case .itemFailed(let id, let error):
            announce(.failedToPlayToEnd(error), of: id, &state)
        case .failedAhead(let id, let error): tell(.failedToPlayToEnd(error), ahead: id, &state)
        case .make(let id, let item, let frame, let recipe, let gain):
            guard let item = state.items[item] else { return }
            state.feeds[id] = makeFeed(id, item, frame, recipe, gain, state)
        case .start(let id, let start): self.start(id, start, &state)
        case .stop(let id, let instant): state.feeds[id]?.stop(at: instant)
        case .retire(let id): state.feeds[id]?.retire()
        case .cancel(let id): state.feeds[id]?.cancel()
        case .endWaiting(let id): state.feeds[id]?.endWaiting()
        case .wake(let id): state.feeds[id]?.wake()
        case .setGain(let id, let gain): state.feeds[id]?.setGain(gain)
        case .changeOutput:
            guard let output = state.nextOutput else { return }
            state.output.port.stopObservingCard(state.cardObserver)
            state.leftOutputs.append(state.output)
            (state.output, state.nextOutput) = (output, nil)
            observeCard(&state)
        case .announce(let notice, let item): announce(notice, of: item, &state)
        case .seekEnded(let id, let finished):
            state.seeks.removeValue(forKey: id)?.resume(returning: finished)
        case .tell(let id, let time):
            if id == state.text.observer { state.text.show(at: time) }
            state.timeObservers[id]?.yield(time)
        }
    }

    private func load(_ id: ItemID, _ load: Int, _ state: inout State) {
        guard let item = state.items[id] else { return }
        state.loads[id]?.cancel()
        state.loads[id] = Task(executorPreference: state.output.executor) { [weak self] in
            // The error is kept by the item.
            try? await item.ready()
            self?.hear { player in player.turn { player.receive(.itemLoaded(load), &$0) } }
        }
    }

    private func makeFeed(
        _ id: FeedID, _ item: PlayerItem, _ frame: Double, _ recipe: FeedRecipe, _ gain: Float,
        _ state: State
    ) -> Feed {
        guard let format = item.format else {
            preconditionFailure("a feed is made only for an item that is ready")
        }
        let feed = Feed(
            item: item, format: format, frame: frame, recipe: recipe, gain: gain,
            output: state.output
        ) { [weak self] feed, event in
            self?.hear { $0.receive(event, from: feed, id) }
        }
        feed.begin()
        return feed
    }

    private func start(_ id: FeedID, _ start: FeedStart, _ state: inout State) {
        let isAlive =
            state.feeds[id]?.start(
                Feed.Start(
                    line: start.line, clock: start.clock.flatMap { state.clocks[$0] },
                    endFrame: start.endFrame, fadesIn: start.fadesIn, waits: start.waits)) ?? false
        if !isAlive { receive(.refusedStart(id), &state) }
    }

    private func setAlarm(_ state: inout State) {
        let deadline = state.machine.nextDeadline
        guard deadline != state.alarm?.deadline else { return }
        state.alarm?.task.cancel()
        let output = state.output
        state.alarm = deadline.map { deadline in
            let task = Task(executorPreference: output.executor) { [weak self] in
                await output.sleep(max(.zero, deadline - output.now()))
                if !Task.isCancelled { self?.advance(at: deadline) }
            }
            return (deadline, task)
        }
    }

    private func advance(at deadline: LocalInstant) {
        turn { state in
            guard state.alarm?.deadline == deadline else { return }
            state.alarm = nil
            carryOut(state.machine.advance(in: world(state)), &state)
        }
    }
}
