public import Observation
import Synchronization
import TuttiPlayout

/// Properties that change by themselves can be observed: `Observations { player.timeControlStatus }`
/// gives the present value first and then each that follows, as far as somebody reads.
extension Player: Observable {
    /// What observers of properties know.
    struct Observed: Equatable {
        var status: Status
        var error: String?
        var rate: Double
        var control: TimeControlStatus
        var reason: WaitingReason?
        var item: ItemID?
        var queue: [ItemID]
        /// In force; of the item's timebase.
        var line: Line
        var volume: Float
        var isMuted: Bool
        var hasCard: Bool
        var buffer: PlayerMachine.Buffer
        var settings: Settings

        struct Settings: Equatable {
            var defaultRate: Double
            var clock: ClockID?
            var port: ObjectIdentifier
            var waits: Bool
            var actionAtItemEnd: ActionAtItemEnd
            var actionAtOutputLoss: ActionAtOutputLoss
            var allowsExternalPlayback: Bool
            var isExternal: Bool
            var criteria: [MediaCharacteristic: MediaSelectionCriteria]
            var appliesCriteria: Bool
        }

        init(_ state: State) {
            let machine = state.machine
            status = machine.status
            error = (machine.error ?? state.item?.error)?.description
            rate = machine.rate
            control = machine.timeControlStatus
            reason = machine.waitingReason
            (item, queue) = (machine.item, machine.queue)
            line = machine.program.entry(at: machine.reading).line
            (volume, isMuted) = (state.volume, state.isMuted)
            hasCard = machine.world.hasCard
            buffer = machine.buffer
            settings = Settings(
                defaultRate: machine.defaultRate, clock: machine.clock,
                port: ObjectIdentifier(state.output.port), waits: machine.automaticallyWaits,
                actionAtItemEnd: machine.actionAtItemEnd,
                actionAtOutputLoss: machine.actionAtOutputLoss,
                allowsExternalPlayback: state.allowsExternalPlayback,
                isExternal: state.isExternalPlaybackActive, criteria: state.criteria,
                appliesCriteria: state.appliesCriteria)
        }
    }

    /// Runs `body` with the state, and says afterwards what has changed: whoever hears it may ask the
    /// player again.
    func turn<Value: Sendable, Failure: Error>(
        _ body: (inout State) throws(Failure) -> sending Value
    ) throws(Failure) -> Value {
        let (value, change, left) = try state.withLock { state throws(Failure) in
            let value = try body(&state)
            followText(&state)
            return (value, state.takeChange(), state.takeLeft())
        }
        for observer in left.observers { observer.finish() }
        withExtendedLifetime(left) {}
        if let change { tell(change) }
        return value
    }

    /// What ends outside of the lock.
    struct Left: Sendable {
        var sources: [SourcePool.Cursor]
        var outputs: [PlayerOutput]
        var observers: [Observer]
    }

    struct Change: Sendable {
        var old: Observed
        var new: Observed
        var failedItems: [PlayerItem]
        var item: PlayerItem?
        /// The one that was the current one until now.
        var leftItem: PlayerItem?
    }

    private func tell(_ change: Change) {
        let (old, new) = (change.old, change.new)
        func compare<Value: Equatable>(
            _ part: (Observed) -> Value, _ property: KeyPath<Player, some Any>
        ) {
            if part(old) != part(new) { observation.withMutation(of: self, keyPath: property) {} }
        }
        compare(\.status, \.status)
        compare(\.error, \.error)
        compare(\.rate, \.rate)
        compare(\.control, \.timeControlStatus)
        compare(\.reason, \.reasonForWaitingToPlay)
        compare(\.item, \.currentItem)
        compare(\.volume, \.volume)
        compare(\.isMuted, \.isMuted)
        compare(\.hasCard, \.isOutputAvailable)
        compare(\.settings.defaultRate, \.defaultRate)
        compare(\.settings.clock, \.sourceClock)
        compare(\.settings.port, \.output)
        compare(\.settings.waits, \.automaticallyWaitsToMinimizeStalling)
        compare(\.settings.actionAtItemEnd, \.actionAtItemEnd)
        compare(\.settings.actionAtOutputLoss, \.actionAtOutputLoss)
        compare(\.settings.allowsExternalPlayback, \.allowsExternalPlayback)
        compare(\.settings.isExternal, \.isExternalPlaybackActive)
        compare(\.settings.criteria, \.mediaSelectionCriteria)
        compare(\.settings.appliesCriteria, \.appliesMediaSelectionCriteriaAutomatically)
        let isOther = old.item != new.item
        if isOther || old.queue != new.queue {
            observation.withMutation(of: self, keyPath: \.queuedItems) {}
        }
        for item in change.failedItems { item.tellChange() }
        for item in isOther ? [change.leftItem, change.item] : [change.item] {
            if isOther || old.buffer != new.buffer { item?.tellBuffer() }
            if isOther || old.line != new.line || old.settings.clock != new.settings.clock {
                item?.tellTimebase()
            }
            if isOther { item?.tellLoaded() }
        }
    }
}

extension Player.State {
    fileprivate mutating func takeLeft() -> Player.Left {
        defer { (closing, leftOutputs, endedObservers) = ([], [], []) }
        return Player.Left(sources: closing, outputs: leftOutputs, observers: endedObservers)
    }

    fileprivate mutating func takeChange() -> Player.Change? {
        let now = Player.Observed(self)
        defer { (observed, observedItem, failedItems) = (now, item, []) }
        guard let old = observed, old != now || !failedItems.isEmpty else { return nil }
        return Player.Change(
            old: old, new: now, failedItems: failedItems, item: item, leftItem: observedItem)
    }
}
