extension ClockReport: CustomStringConvertible {
    /// Paths side by side in one block.
    private static let blockWidth = 5

    public var description: String {
        var blocks: [String] = []
        if !columns.isEmpty { blocks.append(steadyText) }
        if !joins.isEmpty { blocks.append(joinText) }
        if !locks.isEmpty { blocks.append(lockText) }
        if !events.isEmpty { blocks.append(eventText) }
        return blocks.joined(separator: "\n\n")
    }

    /// Seeds of joins and events.
    private var fewSeeds: Int { min(seeds, ClockComparison.eventSeeds) }

    private func text(seeds: Int) -> String {
        "\(seeds) \(isHeldOut ? "held-out " : "")seed\(seeds == 1 ? "" : "s")"
    }

    private var steadyText: String {
        var text =
            "Error of the clock, µs: half / 99 of a hundred readings, median of \(text(seeds: seeds));\n"
            + "300 s, the first 30 not counted. * best of all at 99.\n"
        var begin = 0
        while begin < columns.count {
            let block = Array(columns[begin..<min(begin + Self.blockWidth, columns.count)])
            begin += block.count
            var rows = [["same exchanges for all"] + block.map(\.path)]
            for index in block[0].figures.indices {
                let name = block[0].figures[index].filter
                rows.append([name] + block.map { Self.cell($0.figures[index], of: $0) })
            }
            rows.append(["tutti"] + block.map(\.verdict.rawValue))
            text += "\n" + Self.aligned(rows) + "\n"
        }
        let others = ClockComparison.baselines.map { "\($0.name): \($0.like)" }
        text += "\nAfter the descriptions of " + others.joined(separator: "; ") + ".\n"
        for column in columns where column.verdict == .loses {
            let ours = Self.number(column.figures[0].p99)
            let theirs = Self.number(column.figures.first { $0.filter == column.best }?.p99)
            text += "\(column.path): \(column.best) is better at 99, \(theirs) against \(ours).\n"
        }
        let verdict = lost.isEmpty ? "wins or ties on every path" : "loses on \(lost.count)"
        text += "Steady, tutti \(verdict)."
        return text
    }

    private static func cell(_ figure: Figure, of column: Column) -> String {
        let best = column.figures.compactMap(\.p99).min()
        let mark = figure.p99 != nil && figure.p99 == best ? "*" : ""
        return "\(number(figure.p50)) / \(number(figure.p99))\(mark)"
    }

    private var joinText: String {
        var rows = [
            ["path", "filter"] + (joins.first?.seconds ?? []).map { "\($0) s" }
        ]
        var last = ""
        for join in joins {
            rows.append(
                [join.path == last ? "" : join.path, join.filter]
                    + zip(join.p50, join.p95).map { "\(Self.number($0)) / \(Self.number($1))" })
            last = join.path
        }
        let runs = "\(fewSeeds * ClockComparison.joinsPerSeed) joins"
        return "Error after the first packet, µs: 50 / 95 of a hundred of \(runs)\n\n"
            + Self.aligned(rows)
    }

    private var lockText: String {
        var rows = [
            ["path", "seconds", "error then, µs", "largest of 2 s after, µs", "unhindered"]
        ]
        for lock in locks {
            rows.append([
                lock.path, "\(Self.precise(lock.secondsP50)) / \(Self.precise(lock.secondsP95))",
                "\(Self.number(lock.errorP50)) / \(Self.number(lock.errorP95))",
                "\(Self.number(lock.laterP50)) / \(Self.number(lock.laterP95))",
                "\(Self.count(lock.unhinderedP50)) / \(Self.count(lock.unhinderedP5))",
            ])
        }
        return "When a room's own line may be played by: 50 / 95 of a hundred of the joins.\n"
            + "Unhindered: packets of the first half second that took as long as the quickest,\n"
            + "in the direction that has fewer; 50 / 5 of a hundred\n\n"
            + Self.aligned(rows)
    }

    private var eventText: String {
        var text =
            "Seconds until the error stays below the limit, and 99 of a hundred errors 60 to\n"
            + "100 s later (µs); median of \(text(seeds: fewSeeds))\n"
        var paths: [String] = []
        for event in events where !paths.contains(event.path) { paths.append(event.path) }
        for path in paths {
            let block = events.filter { $0.path == path }
            var rows = [
                ["\(path), \(Self.number(block[0].limitMicroseconds)) µs"] + block.map(\.event)
            ]
            for index in block[0].recoveries.indices {
                rows.append(
                    [block[0].recoveries[index].filter]
                        + block.map { Self.cell($0.recoveries[index]) })
            }
            text += "\n" + Self.aligned(rows) + "\n"
        }
        return String(text.dropLast())
    }

    private static func cell(_ recovery: Event.Recovery) -> String {
        let seconds = recovery.seconds.map(decimal) ?? "never"
        return "\(seconds) (\(number(recovery.laterP99)))"
    }

    // MARK: Numbers

    /// Three digits: 0.4, 12.3, 456, 12k.
    static func number(_ value: Double?) -> String {
        guard let value else { return "–" }
        if value >= 99_950 { return "\(Int(value / 1e3 + 0.5))k" }
        if value >= 99.95 { return "\(Int(value + 0.5))" }
        return decimal(value)
    }

    private static func count(_ value: Double?) -> String { value.map { "\(Int($0))" } ?? "–" }

    /// The value with two decimals; "never" for `nil`.
    static func precise(_ value: Double?) -> String {
        guard let value else { return "never" }
        let hundredths = Int(value * 100 + 0.5)
        return "\(hundredths / 100).\(hundredths / 10 % 10)\(hundredths % 10)"
    }

    private static func decimal(_ value: Double) -> String {
        let tenths = Int(value * 10 + 0.5)
        return "\(tenths / 10).\(tenths % 10)"
    }

    /// The first column to the left, the others to the right.
    static func aligned(_ rows: [[String]]) -> String {
        let columns = rows[0].indices
        let widths = columns.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            var line = ""
            for column in columns {
                let space = String(repeating: " ", count: widths[column] - row[column].count)
                let isText = column == 0 || rows[0][column] == "filter"
                line +=
                    (column == 0 ? "" : "  ") + (isText ? row[column] + space : space + row[column])
            }
            while line.last == " " { line.removeLast() }
            return line
        }.joined(separator: "\n")
    }
}
