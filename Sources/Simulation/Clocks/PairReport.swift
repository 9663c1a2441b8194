/// What a ``PairComparison`` found; µs, the median over the seeds.
public struct PairReport: Encodable, Equatable, Sendable {
    /// One kind of house.
    public struct Row: Encodable, Equatable, Sendable {
        /// What the house is called.
        public var house: String
        /// Between two rooms, by two-way exchange alone.
        public var p50Without: Double
        /// 99 hundredths of it.
        public var p99Without: Double
        /// The same with broadcasts.
        public var p50With: Double
        /// 99 hundredths of it.
        public var p99With: Double
        /// Between a room and the leader.
        public var leaderP99Without: Double
        /// The same with broadcasts.
        public var leaderP99With: Double
        /// Share of all looks at all rooms in which the broadcasts are in use, 0…1.
        public var shareInUse: Double
        /// Looks at a room whose bound does not contain the truth, with broadcasts.
        public var boundMisses: Int
        /// The same by two-way exchange alone.
        public var boundMissesWithout: Int
        /// Broadcasts tell something here; elsewhere they must not do harm.
        public var isUseful: Bool
    }

    /// Runs that each figure is the median of.
    public var seeds: Int
    /// One for each house.
    public var rows: [Row]
}

extension PairComparison {
    /// Puts the outcomes together, in whatever order they were computed.
    public func report(of outcomes: [Outcome]) -> PairReport {
        let kinds = Self.kinds.filter { kind in jobs.contains { $0.kind.name == kind.name } }
        return PairReport(
            seeds: seeds,
            rows: kinds.map { kind in
                let runs = outcomes.filter { $0.kind == kind.name }.sorted { $0.seed < $1.seed }
                func median(_ figure: (Outcome) -> Double) -> Double {
                    let values = runs.map(figure).sorted()
                    return values.isEmpty ? .infinity : values[values.count / 2]
                }
                return PairReport.Row(
                    house: kind.name, p50Without: median { $0.without.p50 },
                    p99Without: median { $0.without.p99 }, p50With: median { $0.with.p50 },
                    p99With: median { $0.with.p99 },
                    leaderP99Without: median { $0.without.leaderP99 },
                    leaderP99With: median { $0.with.leaderP99 },
                    shareInUse: median { $0.shareInUse },
                    boundMisses: runs.reduce(0) { $0 + $1.with.misses },
                    boundMissesWithout: runs.reduce(0) { $0 + $1.without.misses },
                    isUseful: kind.isUseful)
            })
    }
}

extension PairReport: CustomStringConvertible {
    public var description: String {
        let head = [
            "house", "two-way 50 / 99", "with broadcasts", "leader 99", "with broadcasts", "in use",
        ]
        let table =
            [head]
            + rows.map { row in
                [
                    row.house, "\(text(row.p50Without)) / \(text(row.p99Without))",
                    "\(text(row.p50With)) / \(text(row.p99With))", text(row.leaderP99Without),
                    text(row.leaderP99With), "\(Int(row.shareInUse * 100 + 0.5)) %",
                ]
            }
        let widths = head.indices.map { column in table.map { $0[column].count }.max() ?? 0 }
        let lines = table.map { row in
            head.indices.map { column in
                let space = String(repeating: " ", count: widths[column] - row[column].count)
                return column == 0 ? row[column] + space : space + row[column]
            }.joined(separator: "  ")
        }
        return
            "Difference of two rooms of one leader, µs: half / 99 of a hundred readings, and the\n"
            + "distance from the leader; median of \(seeds) seed\(seeds == 1 ? "" : "s"), "
            + "\(PairComparison.rooms) rooms, \(Int(PairComparison.seconds)) s, the first "
            + "\(Int(PairComparison.settling)) not counted\n\n" + lines.joined(separator: "\n")
    }

    private func text(_ value: Double) -> String {
        guard value.isFinite else { return "–" }
        let tenths = Int(value * 10 + 0.5)
        return "\(tenths / 10).\(tenths % 10)"
    }
}
