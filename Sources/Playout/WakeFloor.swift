import TuttiTiming

/// By how much the output thread is late at least, whenever it sleeps.
///
/// A card whose pointer moves in steps wakes the thread at a step, and the thread runs some µs
/// later. The freshest looks are all late by that, so that nothing in them tells it from the edge:
/// the card is that much ahead of its line, for good. How late a sleep of the thread's own choice
/// ends says how much it is.
struct WakeFloor: BitwiseCopyable {
    /// Nanoseconds, of the wake-ups so far, and of the many before them: a machine that is idle
    /// again is after a while as fast as it is.
    private var least = WakeFloor.unknown
    private var before = WakeFloor.unknown
    private var wakeUps = 0

    private static var unknown: Int64 {
        @_noLocks @_noAllocation get { .max }
    }
    /// Some seconds of a settled card.
    private static var most: Int {
        @_noLocks @_noAllocation get { 256 }
    }

    @_noLocks @_noAllocation
    init() {}

    /// Takes in one wake-up; one before its time was for something else.
    @_noLocks @_noAllocation
    mutating func take(_ lateness: Nanoseconds) {
        guard lateness.count >= 0 else { return }
        if lateness.count < least { least = lateness.count }
        wakeUps += 1
        guard wakeUps >= Self.most else { return }
        before = least
        least = Self.unknown
        wakeUps = 0
    }

    /// 0 where nothing is known.
    var lateness: Nanoseconds {
        @_noLocks @_noAllocation get {
            let known = before < least ? before : least
            return Nanoseconds(known == Self.unknown ? 0 : known)
        }
    }
}
