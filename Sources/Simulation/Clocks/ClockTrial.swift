import TuttiClockSync
import TuttiTiming

/// One filter's errors over one run.
struct ClockErrors: Sendable {
    /// Between two readings; seconds.
    static let grid = 0.05

    /// Estimated minus true leader time at every multiple of ``grid``; seconds. `nil`: no clock.
    private(set) var values: [Double?] = []

    /// Half and 99 hundredths of the magnitudes in a span, µs; a clock that is not there is
    /// infinitely wrong.
    func percentiles(_ span: Range<Double>) -> (p50: Double, p99: Double) {
        let sorted = slice(span).map { ($0?.magnitude ?? .infinity) * 1e6 }.sorted()
        guard !sorted.isEmpty else { return (.infinity, .infinity) }
        func part(_ share: Double) -> Double {
            sorted[min(sorted.count - 1, Int(share * Double(sorted.count)))]
        }
        return (part(0.5), part(0.99))
    }

    /// Magnitude at a time; µs.
    func magnitude(at time: Double) -> Double {
        let index = Int(time / Self.grid + 0.5) - 1
        guard values.indices.contains(index), let value = values[index] else { return .infinity }
        return value.magnitude * 1e6
    }

    /// The time after `start` from which on the error stays below `limit` seconds; `nil`: never.
    func recovery(after start: Double, below limit: Double) -> Double? {
        let first = Int(start / Self.grid + 0.5) - 1
        guard values.indices.contains(first) else { return nil }
        let last = values[first...].lastIndex { ($0?.magnitude ?? .infinity) > limit }
        guard let last else { return 0 }
        return last == values.count - 1 ? nil : Double(last + 1 - first) * Self.grid
    }

    private func slice(_ span: Range<Double>) -> ArraySlice<Double?> {
        let low = min(max(0, Int(span.lowerBound / Self.grid + 0.5) - 1), values.count)
        let high = min(max(low, Int(span.upperBound / Self.grid + 0.5) - 1), values.count)
        return values[low..<high]
    }

    /// Runs a filter over a trace, reading causally.
    init(_ trace: ExchangeTrace, _ filter: any ClockFilter) {
        self = Self.measured(trace, filter)
    }

    /// Opens the existential once instead of at each reading.
    private static func measured(
        _ trace: ExchangeTrace, _ filter: some ClockFilter
    ) -> ClockErrors {
        var (filter, clocks, errors) = (filter, trace.clocks, ClockErrors())
        var next = 0
        var reading = 1
        while Double(reading) * grid <= trace.seconds {
            let now = TrueInstant(nanoseconds: Int64(Double(reading) * grid * 1e9))
            let local = clocks.local(now)
            while next < trace.exchanges.count, trace.exchanges[next].sample.t4 <= local {
                filter.receive(trace.exchanges[next])
                next += 1
            }
            let time = Exchange.seconds(of: local)
            let truth = Exchange.offset(clocks.group(now), local)
            errors.values.append(filter.offset(at: time).map { $0 - truth })
            reading += 1
        }
        return errors
    }

    /// Runs ours on its own schedule.
    init(_ world: ClockWorld, seconds: Double) {
        var world = world
        var reading = 1
        while Double(reading) * Self.grid <= seconds {
            world.run(until: Double(reading) * Self.grid)
            values.append(world.error())
            reading += 1
        }
    }

    private init() {}
}
