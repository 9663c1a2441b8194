import TuttiTiming

/// The time that only the world knows: no clock of any host shows it.
enum TrueClock {}

typealias TrueInstant = Instant<TrueClock>

/// What is going to happen, in a total order: by instant, then by the order of scheduling.
///
/// A binary heap. Two events never compare equal, so the order of a run does not depend on how
/// the heap was built.
struct EventQueue<Event> {
    private struct Entry {
        var instant: TrueInstant
        var sequence: UInt64
        var event: Event

        func isBefore(_ other: Entry) -> Bool {
            (instant, sequence) < (other.instant, other.sequence)
        }
    }

    private var heap: [Entry] = []
    private var scheduled: UInt64 = 0

    var count: Int { heap.count }

    mutating func schedule(_ event: Event, at instant: TrueInstant) {
        heap.append(Entry(instant: instant, sequence: scheduled, event: event))
        scheduled += 1
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].isBefore(heap[parent]) else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// Takes out the first event not after `limit`.
    mutating func next(until limit: TrueInstant) -> (instant: TrueInstant, event: Event)? {
        guard let first = heap.first, first.instant <= limit else { return nil }
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var parent = 0
        while true {
            var child = 2 * parent + 1
            guard child < heap.count else { break }
            if child + 1 < heap.count, heap[child + 1].isBefore(heap[child]) { child += 1 }
            guard heap[child].isBefore(heap[parent]) else { break }
            heap.swapAt(child, parent)
            parent = child
        }
        return (first.instant, first.event)
    }
}
