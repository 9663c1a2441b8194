import TuttiTiming

/// When a process lets go of memory, by what it holds: whenever that is above a ceiling, as often as
/// there are credits for it.
///
/// The start, and then fetching, opening and playing an item each touch up to 12 MB that the next
/// does not need, one after the other within seconds: that is what the credits are saved for. Who
/// needs more than the ceiling spends them, and then trims as seldom as they come back. What is in
/// use comes back within seconds of a trim, so a limit that follows from what was held then would be
/// passed again at once.
struct TrimSchedule: Equatable, Sendable {
    /// Between two looks at what is held.
    static let calmPause = Nanoseconds.milliseconds(500)
    /// The same for ``eagerLooks`` after a trim, and from the start: more is expected to come.
    static let eagerPause = Nanoseconds.milliseconds(100)
    /// Four seconds. At the end of them what is left of the opening goes, above the ceiling or not.
    static let eagerLooks = 40
    /// Bytes. A room that plays FLAC works with 23 to 26 MB.
    static let ceiling = 28_000_000
    /// Trims that may follow each other look by look. A start took two or three.
    static let mostCredits = 10
    /// Calm looks in which one comes back: ten seconds. An action (a seek, a pause and play) takes
    /// one to three.
    static let looksPerCredit = 20

    private var credits = Self.mostCredits
    private var looksToCredit = Self.looksPerCredit
    private var eagerLooksLeft = Self.eagerLooks

    /// To the next look.
    var pause: Nanoseconds { eagerLooksLeft > 0 ? Self.eagerPause : Self.calmPause }

    /// Looks, and lets go when this says so.
    ///
    /// - Parameter resident: bytes that are held.
    mutating func isTrimDue(holding resident: Int) -> Bool {
        if eagerLooksLeft == 0 { regain() }
        let isOver = resident > Self.ceiling
        let isLast = eagerLooksLeft == 1
        eagerLooksLeft = max(0, eagerLooksLeft - 1)
        guard isOver || isLast, credits > 0 else { return false }
        credits -= 1
        if isOver { eagerLooksLeft = Self.eagerLooks }
        return true
    }

    private mutating func regain() {
        guard credits < Self.mostCredits else { return }
        looksToCredit -= 1
        guard looksToCredit == 0 else { return }
        looksToCredit = Self.looksPerCredit
        credits += 1
    }
}
