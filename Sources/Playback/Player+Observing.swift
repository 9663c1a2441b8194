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

    /// Item time at every multiple of `interval`, and after each jump of more than that.
    ///
    /// Pull-driven: nothing runs while the consumer is busy, so it is never called twice at once.
    /// While paused it looks once an interval. Cancelling the consuming task ends it.
    ///
    /// - Parameter interval: item time, at least 10 ms.
    public func periodicTimes(every interval: MediaTime) -> PeriodicTimes {
        PeriodicTimes(player: self, interval: interval)
    }

    public struct PeriodicTimes: AsyncSequence, Sendable {
        public typealias Element = MediaTime
        let player: Player
        let interval: MediaTime

        public func makeAsyncIterator() -> Iterator {
            Iterator(player: player, interval: Swift.max(0.01, interval.seconds), last: nil)
        }

        public struct Iterator: AsyncIteratorProtocol, Sendable {
            let player: Player
            let interval: Double
            var last: Int?

            public mutating func next() async -> MediaTime? {
                while !Task.isCancelled {
                    let time = player.currentTime()
                    let step = Int((time.seconds / interval + 1e-6).rounded(.down))
                    if step != last {
                        last = step
                        return time
                    }
                    let rate = player.timeControlStatus == .playing ? player.rate : 1
                    let rest = (Double(step + 1) * interval - time.seconds) / rate
                    await player.output.sleep(Nanoseconds(seconds: Swift.max(0.001, rest)))
                }
                return nil
            }
        }
    }

    /// Each of `times` when item time passes it by playing; a jump over one does not count.
    ///
    /// Pull-driven like ``periodicTimes(every:)``; within a hundredth of a second, or a twentieth
    /// just after a start.
    public func boundaryTimes(_ times: [MediaTime]) -> BoundaryTimes {
        BoundaryTimes(player: self, times: times.filter(\.isNumeric).sorted())
    }

    public struct BoundaryTimes: AsyncSequence, Sendable {
        public typealias Element = MediaTime
        let player: Player
        let times: [MediaTime]

        public func makeAsyncIterator() -> Iterator {
            Iterator(player: player, times: times, last: player.currentTime(), due: [])
        }

        public struct Iterator: AsyncIteratorProtocol, Sendable {
            static let interval = Nanoseconds.milliseconds(10)
            let player: Player
            let times: [MediaTime]
            var last: MediaTime
            var due: [MediaTime]
            var looked: LocalInstant?

            public mutating func next() async -> MediaTime? {
                while !Task.isCancelled {
                    if !due.isEmpty { return due.removeFirst() }
                    let (now, time) = (player.output.now(), player.currentTime())
                    // Playing cannot have gone further than this since the last look.
                    let span = ((now - (looked ?? now)) + Self.interval).seconds
                    if (time - last).seconds <= span * Player.rates.upperBound {
                        due = times.filter { $0 > last && $0 <= time }
                    }
                    (last, looked) = (time, now)
                    if due.isEmpty { await player.output.sleep(pause(from: time)) }
                }
                return nil
            }

            /// Until the next boundary at the present rate, at most half a second.
            private func pause(from time: MediaTime) -> Nanoseconds {
                let half = Nanoseconds.milliseconds(500)
                guard player.timeControlStatus == .playing else { return .milliseconds(50) }
                guard let next = times.first(where: { $0 > time }) else { return half }
                let rest = Nanoseconds(seconds: (next - time).seconds / player.rate)
                return Swift.max(Self.interval, Swift.min(half, rest))
            }
        }
    }
}
