import TuttiTiming

/// Where a pair of clocks is counted from: the first exchange. Their epochs may lie years apart, so
/// everything is kept relative to it, in seconds.
struct ClockBase: Sendable {
    private let local: LocalInstant
    /// Group minus local, nanoseconds; any value.
    private let offset: Int64

    init(_ first: ExchangeSample) {
        local = first.t1
        offset = first.t2.nanoseconds &- first.t1.nanoseconds
    }

    /// Seconds since the first request left.
    func time(_ instant: LocalInstant) -> Double { (instant - local).seconds }

    /// Group minus local without the base's own difference, seconds.
    func difference(_ group: GroupInstant, _ local: LocalInstant) -> Double {
        // Wrapping: the difference of two epochs may exceed Int64, the rest never does.
        Double(group.nanoseconds &- local.nanoseconds &- offset) * 1e-9
    }

    /// The inverse: the group clock when the two differ by so many seconds.
    func group(_ local: LocalInstant, difference: Double) -> GroupInstant {
        GroupInstant(
            nanoseconds: local.nanoseconds &+ offset &+ Nanoseconds(seconds: difference).count)
    }
}
