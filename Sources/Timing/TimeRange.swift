/// A stretch of item time: `start` belongs to it, `end` does not.
@frozen
public struct TimeRange: Hashable, Sendable, BitwiseCopyable {
    /// The first time that belongs to it.
    public let start: MediaTime
    /// Never negative.
    public let duration: MediaTime

    /// ``invalid`` when either time is, or when the duration is negative.
    public init(start: MediaTime, duration: MediaTime) {
        let meaningful = start.isValid && duration.isValid && duration >= .zero
        self.start = meaningful ? start : .invalid
        self.duration = meaningful ? duration : .invalid
    }

    /// From `start` up to `end`; ``invalid`` when `end` lies before.
    public init(start: MediaTime, end: MediaTime) {
        self.init(start: start, duration: end - start)
    }

    /// Nothing at the beginning: empty, and valid.
    public static let zero = TimeRange(start: .zero, duration: .zero)
    /// The result of an operation without meaning; also "not given".
    public static let invalid = TimeRange(start: .invalid, duration: .invalid)

    /// Whether it is a range at all; an empty one is.
    public var isValid: Bool { start.isValid }
    /// Valid and without a moment in it.
    public var isEmpty: Bool { isValid && duration == .zero }
    /// The first time after the range; infinite or indefinite with the duration.
    public var end: MediaTime { start + duration }

    /// Whether `time` lies in the range, which begins with `start` and ends before `end`; never for
    /// what is no number.
    public func contains(_ time: MediaTime) -> Bool {
        isValid && time.isNumeric && time >= start && time < end
    }

    /// Whether every moment of `other` is in this range; an empty one is where its start is.
    public func contains(_ other: TimeRange) -> Bool {
        guard isValid, other.isValid else { return false }
        return other.isEmpty
            ? contains(other.start) : other.start >= start && other.end <= end
    }

    /// The moments in both; ``zero`` when there are none, ``invalid`` when either is.
    public func intersection(_ other: TimeRange) -> TimeRange {
        guard isValid, other.isValid else { return .invalid }
        let (first, last) = (max(start, other.start), min(end, other.end))
        return first < last ? TimeRange(start: first, end: last) : .zero
    }

    /// The smallest range that covers both, with any gap between them.
    public func union(_ other: TimeRange) -> TimeRange {
        guard isValid, other.isValid else { return .invalid }
        return TimeRange(start: min(start, other.start), end: max(end, other.end))
    }

    /// The nearest time inside, both ends included; ``invalid`` when `time` is not a number and
    /// not infinite.
    public func clamping(_ time: MediaTime) -> MediaTime {
        guard isValid, time.isNumeric || time.isInfinite else { return .invalid }
        return min(max(time, start), end)
    }

    /// Where `time` of this range falls in `target`, stretched or squeezed to fit.
    ///
    /// - Returns: the nearest time at the target's timescale (nanoseconds if that is coarser);
    ///   ``invalid`` when this range is empty or any of the five times is not a number.
    public func mapping(_ time: MediaTime, to target: TimeRange) -> MediaTime {
        let all = [start, duration, time, target.start, target.duration]
        guard all.allSatisfy(\.isNumeric), !isEmpty else { return .invalid }
        let share = (time - start).seconds / duration.seconds
        let scale = max(target.duration.timescale, 1_000_000_000)
        return target.start
            + target.duration.converted(toTimescale: scale).multiplied(by: share)
    }
}

extension TimeRange: CustomStringConvertible {
    public var description: String { "[\(start), \(end))" }
}
