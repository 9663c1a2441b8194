import TuttiLinuxHost

/// What `tutti bench` prints: for machines as it is, for people as a table.
struct BenchReport: Encodable {
    /// Changes when a field changes its meaning.
    var schema = 1
    var version: String
    var isOptimised = Self.isOptimised
    var architecture = Self.architecture
    /// `nil`, and absent in JSON, where the kernel does not tell.
    var processor = Processor.name
    var secondsEach: Double
    var reference = ReferenceLoop.description
    /// Processor time of one step of the reference loop in the best of all runs.
    var referenceNanoseconds: Double
    var benchmarks: [Measurement]

    static var architecture: String {
        #if arch(x86_64)
        "x86_64"
        #elseif arch(arm64)
        "arm64"
        #else
        "other"
        #endif
    }

    static var isOptimised: Bool {
        var isDebug = false
        assert(
            {
                isDebug = true
                return true
            }())
        return !isDebug
    }

    /// - Parameter width: columns; the table gives up its least important ones.
    func text(width: Int) -> String {
        var table = Table(columns: [
            Table.Column(title: "BENCHMARK", rank: 9, least: 24),
            Table.Column(title: "BEST", alignsRight: true, rank: 8),
            Table.Column(title: "MEDIAN", alignsRight: true, rank: 5),
            Table.Column(title: "PER", rank: 6, least: 12),
            Table.Column(title: "× REF", alignsRight: true, rank: 7),
            Table.Column(title: "SPREAD", alignsRight: true, rank: 4),
            Table.Column(title: "RATE", alignsRight: true, rank: 2, least: 19),
            Table.Column(title: "RUNS", alignsRight: true, rank: 1),
        ])
        table.rows = benchmarks.map { measurement in
            [
                measurement.name, Self.span(measurement.bestNanoseconds),
                Self.span(measurement.medianNanoseconds), measurement.unit,
                Self.number(measurement.medianReferenceSteps),
                "\((100 * measurement.spread).text(1)) %",
                measurement.bestRate.map { rate in
                    "\(Self.number(rate)) \(measurement.rateUnit ?? "")"
                } ?? "",
                "\(measurement.runs)",
            ]
        }
        let lines = table.lines(width: width)
        let step = Self.span(referenceNanoseconds)
        let machine = [processor?.printable, architecture].compactMap(\.self).joined(
            separator: ", ")
        return lines.joined(separator: "\n")
            + "\nref: \(step) a step of \(reference)\non: \(machine)\n"
    }

    /// Three digits of a duration, with the unit that suits it.
    static func span(_ nanoseconds: Double) -> String {
        switch nanoseconds {
        case ..<1_000: "\(number(nanoseconds)) ns"
        case ..<1_000_000: "\(number(nanoseconds / 1_000)) µs"
        case ..<1_000_000_000: "\(number(nanoseconds / 1_000_000)) ms"
        default: "\(number(nanoseconds / 1_000_000_000)) s"
        }
    }

    /// Three significant digits, without an exponent.
    static func number(_ value: Double) -> String {
        let digits = value >= 100 ? 0 : (value >= 10 ? 1 : 2)
        let scale = [1.0, 10, 100][digits]
        let whole = Int((value * scale).rounded())
        guard digits > 0 else { return "\(whole)" }
        let fraction = String(whole % Int(scale))
        let zeros = String(repeating: "0", count: digits - fraction.count)
        return "\(whole / Int(scale)).\(zeros)\(fraction)"
    }
}
