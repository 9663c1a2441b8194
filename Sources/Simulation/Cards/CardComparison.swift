/// A table of ``CardTrial``s: every kind of card, over some crystals.
public struct CardComparison: Sendable {
    /// One kind of card. A figure is the mean over the crystals unless it says otherwise; errors at
    /// the DAC are in µs.
    public struct Row: Sendable, Equatable {
        /// The kind of card, as ``CardModel/name``.
        public var name: String
        /// What the engine took it for.
        public var cardClass: String
        /// Median of the absolute error.
        public var median: Double
        /// 99 of a hundred absolute errors are not above it.
        public var p99: Double
        /// The signed error: the lasting difference between this card and another; positive: late.
        public var mean: Double
        /// 99 hundredths of the error's distance from that mean.
        public var p99AboutMean: Double
        /// Scatter (RMS) of the resampling ratio about the one that the crystal asks for, ppm.
        public var ratioNoise: Double
        /// Largest change of the ratio between two periods on any crystal, ppm.
        public var largestStep: Double
        /// Half width of what the engine promises of its own error, µs.
        public var bound: Double
        /// The smallest share of promises that held, 0...1.
        public var kept: Double
        /// How often the output thread wakes, a second.
        public var wakeUps: Double
        /// The largest p99 of any crystal, µs.
        public var worstP99: Double
        /// Longest time until the error stays below 20 µs, seconds; `nil`: on some crystal never.
        public var secondsToTwenty: Double?
    }

    /// The kinds in the order of their models.
    public var rows: [Row] = []

    /// Runs `seeds` crystals between −120 and +120 ppm of each kind, `seconds` long each.
    public init(models: [CardModel] = CardModel.standard, seconds: Double, seeds: Int) {
        precondition(seconds > CardTrial.settling && seeds > 0, "\(seeds) runs of \(seconds) s")
        for model in models {
            let results = (0..<seeds).map { index in
                var model = model
                let place = seeds == 1 ? 1 : Double(index) / Double(seeds - 1)
                model.partsPerMillion = -120 + 240 * place
                return CardTrial.run(model, seconds: seconds, seed: UInt64(index) + 1)
            }
            rows.append(Self.row(model.name, results))
        }
    }

    private static func row(_ name: String, _ results: [CardTrial.Result]) -> Row {
        func mean(_ figure: (CardTrial.Result) -> Double) -> Double {
            results.map(figure).reduce(0, +) / Double(results.count)
        }
        var slowest: Double? = 0
        for result in results {
            guard let known = slowest, let seconds = result.secondsToTwenty else {
                slowest = nil
                break
            }
            slowest = max(known, seconds)
        }
        return Row(
            name: name, cardClass: results.first.map { "\($0.cardClass)" } ?? "",
            median: mean(\.median), p99: mean(\.p99), mean: mean(\.mean),
            p99AboutMean: mean(\.p99AboutMean), ratioNoise: mean(\.ratioNoise),
            largestStep: results.map(\.largestStep).max() ?? 0,
            bound: mean(\.bound), kept: results.map(\.kept).min() ?? 0,
            wakeUps: mean(\.wakeUps), worstP99: results.map(\.p99).max() ?? 0,
            secondsToTwenty: slowest)
    }
}

extension CardComparison: CustomStringConvertible {
    /// Lines for people; errors at the DAC in µs, ratios in ppm.
    public var description: String {
        var lines = [
            Self.line(
                "card", "class",
                [
                    "p50", "p99", "worst", "mean", "p99 ab.", "noise", "step", "bound", "kept %",
                    "wakes/s", "< 20 after",
                ])
        ]
        for row in rows {
            lines.append(
                Self.line(
                    row.name, row.cardClass,
                    [
                        Self.text(row.median), Self.text(row.p99), Self.text(row.worstP99),
                        Self.text(row.mean), Self.text(row.p99AboutMean),
                        Self.text(row.ratioNoise), Self.text(row.largestStep),
                        Self.text(row.bound), Self.text(row.kept * 100),
                        Self.text(row.wakeUps),
                        row.secondsToTwenty.map { Self.text($0) + " s" } ?? "never",
                    ]))
        }
        return lines.joined(separator: "\n")
    }

    private static func line(_ name: String, _ cardClass: String, _ cells: [String]) -> String {
        func padded(_ text: String, to width: Int) -> String {
            text + String(repeating: " ", count: max(0, width - text.count))
        }
        return padded(name, to: 7) + padded(cardClass, to: 8)
            + cells.map { String(repeating: " ", count: max(1, 10 - $0.count)) + $0 }.joined()
    }

    /// The number with two decimals.
    private static func text(_ number: Double) -> String {
        let hundredths = Int64((number.magnitude * 100) + 0.5)
        let cents = String(hundredths % 100 + 100).dropFirst()
        return (number < 0 && hundredths > 0 ? "-" : "") + "\(hundredths / 100).\(cents)"
    }
}
