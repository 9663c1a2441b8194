/// One hot part, as a benchmark runs it.
///
/// What is timed is a *batch*: the same operation some times over, on state of its own that is made
/// once. The batch returns a number made from its results, so that no compiler can leave the work
/// out.
struct Benchmark {
    /// `part/case`; a name on the command line chooses every benchmark that begins with it.
    var name: String
    /// What one operation is.
    var operation: String
    /// How many of `unit` are in one operation: 480 frames in a period, for instance.
    var unitsPerOperation = 1.0
    /// The unit in which the figure is stated: "ns per `unit`".
    var unit: String
    /// A rate worth stating too: what a second of operations comes to.
    var rate: Rate?
    /// Makes the state, and gives the batch: `count` operations, and a number made from them.
    var prepare: () throws -> (_ count: Int) -> UInt64

    struct Rate {
        var unit: String
        /// In this unit, what one operation a second amounts to.
        var perOperationPerSecond: Double
    }
}

extension Benchmark {
    /// All there are, in the order of the flow: packets, clock, messages, sound, the whole.
    static var all: [Benchmark] {
        clockBenchmarks + wireBenchmarks + tagBenchmarks + resamplerBenchmarks + renderBenchmarks
            + simulationBenchmarks
    }

    /// Those whose name begins with one of `names`; all when there are none.
    ///
    /// - Throws: ``CommandError`` with the names there are, for a name that chooses nothing.
    static func chosen(by names: [String]) throws -> [Benchmark] {
        let all = all
        for name in names where !all.contains(where: { $0.name.hasPrefix(name) }) {
            let known = all.map(\.name).joined(separator: ", ")
            throw CommandError("bench: no benchmark begins with \"\(name)\"; there are \(known)")
        }
        return all.filter { benchmark in
            names.isEmpty || names.contains { benchmark.name.hasPrefix($0) }
        }
    }
}
