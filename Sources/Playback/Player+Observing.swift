import Synchronization
public import TuttiTiming

/// Watching a player. Streams have a bound: who does not read loses the oldest, never the player's
/// time.
extension Player {
    /// Notices that a slow observer may leave unread.
    static let noticeLimit = 64

    /// Everything the player says from now on; ends with the player.
    public func notices() -> AsyncStream<PlayerNotice> {
        state.withLock { notices(of: nil, &$0) }
    }

    /// The same, each with the item that it is about.
    public func itemNotices() -> AsyncStream<ItemNotice> {
        state.withLock { state in
            observe(of: nil, &state) { .itemNotices($0) }
        }
    }

    /// What the player says while an item of its queue is the current one, and that the item failed
    /// before; ends when the item leaves the player, at once where it is not the player's.
    public func notices(of item: PlayerItem) -> AsyncStream<PlayerNotice> {
        state.withLock { state in
            guard let id = state.id(of: item) else { return AsyncStream { $0.finish() } }
            return notices(of: id, &state)
        }
    }

    private func notices(of item: ItemID?, _ state: inout State) -> AsyncStream<PlayerNotice> {
        observe(of: item, &state) { .notices($0) }
    }

    private func observe<Notice>(
        of item: ItemID?, _ state: inout State,
        _ listener: (AsyncStream<Notice>.Continuation) -> Observer.Stream
    ) -> AsyncStream<Notice> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Notice.self, bufferingPolicy: .bufferingNewest(Self.noticeLimit))
        state.observerCount += 1
        let number = state.observerCount
        state.observers[number] = Observer(stream: listener(continuation), item: item)
        continuation.whenLeft { [weak self] in
            // The result is a value to be dropped outside the lock.
            _ = self?.state.withLock { $0.observers.removeValue(forKey: number) }
        }
        return stream
    }

    /// Notices that no observer got because it did not read.
    public var droppedNoticeCount: Int { state.withLock { $0.droppedNotices } }

    /// - Parameter item: what it is about.
    func announce(_ notice: PlayerNotice, of item: ItemID?, _ state: inout State) {
        for observer in state.observers.values where observer.item == nil || observer.item == item {
            tell(notice, of: item, observer, &state)
        }
    }

    /// To those alone who watch the item: the player plays on.
    func tell(_ notice: PlayerNotice, ahead item: ItemID, _ state: inout State) {
        for observer in state.observers.values where observer.item == item {
            tell(notice, of: item, observer, &state)
        }
    }

    private func tell(
        _ notice: PlayerNotice, of item: ItemID?, _ observer: Observer, _ state: inout State
    ) {
        let item = item.flatMap { state.items[$0] }
        if !observer.yield(notice, of: item) { state.droppedNotices += 1 }
    }

    func endNotices(of item: ItemID, _ state: inout State) {
        for (number, observer) in state.observers where observer.item == item {
            state.observers[number] = nil
            // Its end is told to who made it, under the lock.
            state.endedObservers.append(observer)
        }
    }

    /// Item time now, at every multiple of `interval` that is played by, and after each jump, start
    /// and stop.
    ///
    /// A consumer that is busy gets the newest when it asks again; so it is never called twice at once. Ends when the consuming task is cancelled, and with the player, which it does not keep.
    ///
    /// - Parameter interval: item time, at least 10 ms.
    public func periodicTimes(every interval: MediaTime) -> AsyncStream<MediaTime> {
        let seconds = interval.seconds
        return times(
            .periodic(seconds >= Self.leastInterval ? seconds : Self.leastInterval),
            .bufferingNewest(1))
    }

    private static let leastInterval = 0.01

    /// Each of `times` when item time passes it by playing; a jump over one does not count.
    ///
    /// Ends as ``periodicTimes(every:)`` does. A consumer may fall as far behind as 64 of them.
    public func boundaryTimes(_ times: [MediaTime]) -> AsyncStream<MediaTime> {
        self.times(
            .boundaries(times.filter(\.isNumeric).sorted()), .bufferingNewest(Self.noticeLimit))
    }

    private func times(
        _ observer: TimeObserver, _ policy: AsyncStream<MediaTime>.Continuation.BufferingPolicy
    ) -> AsyncStream<MediaTime> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: MediaTime.self, bufferingPolicy: policy)
        let id = turn { state in
            state.observerCount += 1
            let id = ObserverID(number: state.observerCount)
            state.timeObservers[id] = continuation
            perform(.observe(id, observer), &state)
            return id
        }
        continuation.whenLeft { [weak self] in
            self?.turn { state in
                state.timeObservers[id] = nil
                self?.perform(.endObserving(id), &state)
            }
        }
        return stream
    }
}

extension Player.Observer {
    /// - Returns: false where one was dropped for it.
    func yield(_ notice: PlayerNotice, of item: PlayerItem?) -> Bool {
        switch stream {
        case .notices(let continuation):
            if case .dropped = continuation.yield(notice) { return false }
        case .itemNotices(let continuation):
            let notice = ItemNotice(notice: notice, item: item)
            if case .dropped = continuation.yield(notice) { return false }
        }
        return true
    }

    func finish() {
        switch stream {
        case .notices(let continuation): continuation.finish()
        case .itemNotices(let continuation): continuation.finish()
        }
    }
}
