/// When a process lets go of memory, by what it holds: each time that much was touched, and once more
/// when that is over.
///
/// The start, and then fetching, opening and playing an item each touch up to 12 MB that the next
/// does not need, so after a trim more is expected and looked for often.
struct TrimSchedule: Equatable, Sendable {
    /// Between two looks at what is held; a look takes some 20 µs.
    static let calmPause = Duration.milliseconds(500)
    /// The same after a trim.
    static let eagerPause = Duration.milliseconds(100)
    /// Eager looks after a trim, four seconds; at the end another trim, which finds what the first
    /// came too early for.
    static let eagerLooks = 40
    /// What is held may grow by this many bytes before it is trimmed again. Playing takes back up to
    /// 4 MB over a minute: a smaller limit would trim at every look.
    static let growthLimit = 5_000_000

    private var least = 0
    private var looksLeft = 0

    /// To the next look.
    var pause: Duration { looksLeft > 0 ? Self.eagerPause : Self.calmPause }

    /// Looks.
    ///
    /// - Parameter resident: bytes that are held.
    mutating func isTrimDue(holding resident: Int) -> Bool {
        if resident > least + Self.growthLimit {
            looksLeft = Self.eagerLooks
            return true
        }
        guard looksLeft > 0 else { return false }
        looksLeft -= 1
        return looksLeft == 0
    }

    /// Takes what was held when what is in use had come back after a trim, bytes.
    mutating func trimmed(holding resident: Int) { least = resident }
}
