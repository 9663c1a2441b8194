import TuttiTiming

/// When a room heard the last beacons, by its own clock.
struct BeaconMemory: Sendable {
    static let capacity = 64

    private var numbers = [UInt32](repeating: 0, count: Self.capacity)
    private var instants = [LocalInstant?](repeating: nil, count: Self.capacity)

    subscript(number: UInt32) -> LocalInstant? {
        let place = Int(number % UInt32(Self.capacity))
        return numbers[place] == number ? instants[place] : nil
    }

    /// The first report of a beacon counts.
    mutating func insert(_ number: UInt32, _ instant: LocalInstant) {
        let place = Int(number % UInt32(Self.capacity))
        guard numbers[place] != number || instants[place] == nil else { return }
        numbers[place] = number
        instants[place] = instant
    }

    mutating func removeAll() { self = BeaconMemory() }
}

/// How two rooms' times of hearing the same beacons differ.
struct BeaconComparison {
    /// Fewer common beacons say nothing about their spread.
    static let fewest = 16

    /// Beacons that both heard.
    let count: Int
    /// Median of the differences, seconds.
    let median: Double
    /// Median deviation from it, seconds.
    let spread: Double
    /// Deviation of the median itself, seconds.
    var noise: Double { 1.2533 * scale / Double(max(1, count)).squareRoot() }
    /// Standard deviation of one difference that this spread is of, were it normal; seconds.
    var scale: Double { 1.4826 * spread }

    /// - Parameters:
    ///   - numbers: the beacons to compare.
    ///   - a, b: what was heard, and the clocks it was heard by; positive differences: a is later.
    init(
        _ numbers: Range<UInt32>, _ a: BeaconMemory, _ aMap: ClockMap<LocalClock, GroupClock>,
        _ b: BeaconMemory, _ bMap: ClockMap<LocalClock, GroupClock>
    ) {
        var differences: [Double] = []
        for number in numbers {
            guard let here = a[number], let there = b[number] else { continue }
            differences.append((aMap(here) - bMap(there)).seconds)
        }
        count = differences.count
        guard count > 0 else {
            median = 0
            spread = .infinity
            return
        }
        let middle = Self.median(&differences)
        for index in differences.indices {
            differences[index] = (differences[index] - middle).magnitude
        }
        median = middle
        spread = Self.median(&differences)
    }

    static func median(_ values: inout [Double]) -> Double {
        values.sort()
        let half = values.count / 2
        return values.count % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2
    }
}
