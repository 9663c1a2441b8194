import Synchronization
public import Timing

/// Watching a player. Streams have a bound: who does not read loses the oldest, never the player's
/// time.
extension Player {
    /// Notices that a slow observer may leave unread.
    static let noticeLimit = 64

    /// Everything the player says from now on; ends with the player.
    public func notices() -> AsyncStream<PlayerNotice> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: PlayerNotice.self, bufferingPolicy: .bufferingNewest(Self.noticeLimit))
        let number = state.withLock {
            $0.observerCount += 1
            $0.observers[$0.observerCount] = continuation
            return $0.observerCount
        }
        continuation.onTermination = { [weak self] _ in
            // The result is a value to be dropped outside the lock.
            _ = self?.state.withLock { $0.observers.removeValue(forKey: number) }
        }
        return stream
    }

    /// Notices that no observer got because it did not read.
    public var droppedNoticeCount: Int { state.withLock { $0.droppedNotices } }

    func announce(_ notice: PlayerNotice, _ state: inout State) {
        for observer in state.observers.values {
            if case .dropped = observer.yield(notice) { state.droppedNotices += 1 }
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
        continuation.onTermination = { [weak self] _ in
            self?.turn { state in
                state.timeObservers[id] = nil
                self?.perform(.endObserving(id), &state)
            }
        }
        return stream
    }
}
