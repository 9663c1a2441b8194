/// What came of running one benchmark.
struct Measurement: Encodable {
    var name: String
    var operation: String
    /// What the figures are per.
    var unit: String
    /// Nanoseconds of processor time per unit, of the best run and of the run in the middle.
    var bestNanoseconds: Double
    var medianNanoseconds: Double
    /// Steps of the reference loop that take as long, the median over runs: each run is divided by
    /// a reference run beside it.
    var medianReferenceSteps: Double
    /// Between these lies the middle half of the runs: how far to trust the median.
    var lowerQuartileReferenceSteps: Double
    var upperQuartileReferenceSteps: Double
    var runs: Int
    var operationsPerRun: Int
    /// How many of `unit` are in one operation.
    var unitsPerOperation: Double
    var rateUnit: String?
    /// Rate of the best run, in `rateUnit`.
    var bestRate: Double?
    /// Made from the results of the first operation: the same on every machine for the same code.
    var checksum: String

    /// The middle half of the runs lies within this share of the median.
    var spread: Double {
        medianReferenceSteps > 0
            ? (upperQuartileReferenceSteps - lowerQuartileReferenceSteps) / medianReferenceSteps : 0
    }
}

/// Runs benchmarks: short runs, as many as fit the time, each with the reference beside it.
struct BenchRunner {
    /// A run must be long against the clock's resolution and short against a time slice.
    static let runNanoseconds: Int64 = 4_000_000
    static let fewestRuns = 5
    static let mostRuns = 2_000

    /// Processor time for each benchmark; seconds.
    var seconds: Double
    private(set) var bestReferenceNanoseconds = Double.infinity
    private let referenceSteps: Int

    init(seconds: Double) {
        self.seconds = seconds
        // About 1 ms, a quarter of a run, where a step takes 2 to 3 ns.
        referenceSteps = 400_000
    }

    mutating func measure(_ benchmark: Benchmark) throws -> Measurement {
        let batch = try benchmark.prepare()
        let checksum = batch(1)
        var operations = 1
        var waste: UInt64 = 0
        // The first runs warm caches and find how many operations make a run.
        while true {
            let spent = Stopwatch.time { waste &+= batch(operations) }
            if spent >= Self.runNanoseconds / 2 || operations >= 1 << 30 { break }
            let wanted = Double(Self.runNanoseconds) / Double(max(spent, 1_000))
            operations = max(operations + 1, Int(Double(operations) * min(wanted, 16)))
        }
        let end = Stopwatch.nanoseconds + Int64(seconds * 1e9)
        var spans: [Double] = []
        var ratios: [Double] = []
        while spans.count < Self.fewestRuns
            || (Stopwatch.nanoseconds < end && spans.count < Self.mostRuns)
        {
            let before = Stopwatch.time { waste &+= ReferenceLoop.run(steps: referenceSteps) }
            let spent = Stopwatch.time { waste &+= batch(operations) }
            let reference = Double(before) / Double(referenceSteps)
            bestReferenceNanoseconds = min(bestReferenceNanoseconds, reference)
            let span = Double(spent) / Double(operations) / benchmark.unitsPerOperation
            spans.append(span)
            ratios.append(span / reference)
        }
        precondition(waste != 1)  // used, or the compiler may leave the work out
        let best = spans.min() ?? 0
        let rate = benchmark.rate.map {
            $0.perOperationPerSecond * 1e9 / (best * benchmark.unitsPerOperation)
        }
        return Measurement(
            name: benchmark.name, operation: benchmark.operation, unit: benchmark.unit,
            bestNanoseconds: best, medianNanoseconds: Self.median(spans),
            medianReferenceSteps: Self.median(ratios),
            lowerQuartileReferenceSteps: Self.quantile(0.25, of: ratios),
            upperQuartileReferenceSteps: Self.quantile(0.75, of: ratios), runs: spans.count,
            operationsPerRun: operations, unitsPerOperation: benchmark.unitsPerOperation,
            rateUnit: benchmark.rate?.unit, bestRate: rate, checksum: String(checksum, radix: 16))
    }

    static func median(_ values: [Double]) -> Double { quantile(0.5, of: values) }

    /// The value with this share of the others below it, 0…1; between two values on the line
    /// through both.
    static func quantile(_ share: Double, of values: [Double]) -> Double {
        let sorted = values.sorted()
        guard let last = sorted.indices.last else { return 0 }
        let place = share * Double(last)
        let below = Int(place)
        let above = min(below + 1, last)
        return sorted[below] + (place - Double(below)) * (sorted[above] - sorted[below])
    }
}
