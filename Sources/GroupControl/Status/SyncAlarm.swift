public import TuttiTiming

/// Says when a room's bound leaves its target, and when it is back: once each.
///
/// A bound that wanders around the target would ring at every report, so it must fall clearly below
/// before all is well again.
public struct SyncAlarm: Equatable, Sendable {
    /// For a room whose owner says nothing: a millisecond is a third of a metre of air, and the
    /// least that a careful listener hears between two loudspeakers of one room.
    public static let standardTarget = Nanoseconds.milliseconds(1)

    /// What a judgement changed, with the bound that did it.
    public enum Change: Equatable, Sendable {
        case raised(bound: Nanoseconds)
        case cleared(bound: Nanoseconds)
    }

    /// The bound above which the alarm rings; it ends below nine tenths of it.
    public let target: Nanoseconds
    /// Whether it rings.
    public private(set) var isRaised = false

    /// An alarm that does not ring yet.
    public init(target: Nanoseconds) { self.target = target }

    /// Nothing is judged for a while; what was wrong before is not, and rings again if it is then.
    public mutating func rest() { isRaised = false }

    /// Judges what a room says, and notes in it whether the alarm rings. It never does where nothing
    /// is promised, or the clock is still being acquired: that is not a promise that is too wide,
    /// and the status says which of these it is.
    ///
    /// - Returns: what changed, if anything did.
    public mutating func judge(_ report: inout RoomReport) -> Change? {
        let change = judge(report.bound, quality: report.sync.quality)
        let isJudged = report.bound != nil && report.sync.quality.isPlayable
        report.sync.isAlarming = isRaised && isJudged
        return change
    }

    /// Judges a bound; `nil` in `bound` or a clock that is still being acquired says nothing.
    ///
    /// - Returns: what changed, if anything did.
    mutating func judge(_ bound: Nanoseconds?, quality: SharedClock.Quality) -> Change? {
        guard let bound, quality.isPlayable else { return nil }
        if !isRaised, bound > target {
            isRaised = true
            return .raised(bound: bound)
        }
        if isRaised, bound < target / 10 * 9 {
            isRaised = false
            return .cleared(bound: bound)
        }
        return nil
    }
}
