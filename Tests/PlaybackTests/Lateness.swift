import Synchronization
import TuttiChance
import TuttiTiming

/// Holds back what items and feeds report to their players, by amounts that follow from a seed.
///
/// What one report follows stays in front of it; anything else may overtake.
final class Lateness: Sendable {
    private struct State {
        var random: SplitMix64
        var longest: Nanoseconds
        var waiting: [(due: LocalInstant, report: @Sendable () -> Void)] = []
    }
    private let state: Mutex<State>

    init(seed: UInt64, longest: Nanoseconds) {
        state = Mutex(State(random: SplitMix64(seed: seed), longest: longest))
    }

    func postpone(_ report: @escaping @Sendable () -> Void, now: LocalInstant) {
        state.withLock { state in
            let span = Int64(state.random.below(UInt64(state.longest.count + 1)))
            let due = max(state.waiting.last?.due ?? now, now + Nanoseconds(span))
            state.waiting.append((due, report))
        }
    }

    func deliver(until now: LocalInstant) {
        let due = state.withLock { state in
            let due = state.waiting.prefix { $0.due <= now }
            state.waiting.removeFirst(due.count)
            return due
        }
        for late in due { late.report() }
    }

    var isEmpty: Bool { state.withLock { $0.waiting.isEmpty } }
}

extension SplitMix64 {
    mutating func below(_ limit: UInt64) -> UInt64 { next() % limit }

    mutating func milliseconds(_ range: Range<Int64>) -> Nanoseconds {
        .milliseconds(range.lowerBound + Int64(below(UInt64(range.count))))
    }
}
