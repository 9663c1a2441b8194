import TuttiTiming

extension SimulationReport: CustomStringConvertible {
    /// A table for a terminal; the trace hash is not in it.
    public var description: String {
        var text = "\(scenario), seed \(seed): \(Self.fixed(simulatedSeconds, 1)) s simulated\n\n"
        let heads = ["", "p50", "p99", "max"]
        text += Self.table(
            [heads]
                + [
                    ("skew of rooms, µs", skew), ("within 0.5 s of starts", skewAfterStart),
                    ("after 20 s", skewSettled), ("slew after 20 s, ppm", slewSettled),
                ].map { [$0.0] + Self.cells($0.1) })
        text += "\n"
        text += Self.table(
            [
                [
                    "room", "error p50", "p99", "max", "mean", "clock p99", "joined ms",
                    "absent ms", "starved", "restarts", "steps",
                ]
            ]
                + rooms.map { room in
                    [room.name] + Self.cells(room.error) + [
                        Self.fixed(room.meanError, 1), Self.fixed(room.clockError.p99, 1),
                        room.joinMilliseconds.map { Self.fixed($0, 0) }.joined(separator: " "),
                        Self.fixed(room.absentMilliseconds, 0), "\(room.starvedFrames)",
                        "\(room.restarts)", "\(room.steps)",
                    ]
                })
        text += "\n"
        text += Self.table(
            [
                [
                    "line", "at s", "item s", "began", "joined", "spread µs", "error µs", "ended",
                    "spread µs",
                ]
            ]
                + lines.enumerated().map { place, line in
                    [
                        "item \(line.index + 1)", Self.fixed(line.beginSeconds, 3),
                        Self.fixed(line.itemSeconds, 3), "\(line.begins)", "\(line.joins)",
                        Self.fixed(line.beginSpread, 1), Self.fixed(line.beginError, 1),
                        "\(line.ends)", Self.fixed(line.endSpread, 1),
                    ]
                })
        if apartMilliseconds > 0 {
            text += "\non different lines for \(Self.fixed(apartMilliseconds, 0)) ms\n"
        }
        if let rest {
            text +=
                "\nafter the storm: skew p99 \(Self.fixed(rest.skew.p99, 1)) µs; not all on one line "
                + "for \(Self.fixed(rest.unrestMilliseconds, 0)) ms; \(rest.droppedDatagrams) "
                + "datagrams not believed\n"
        }
        if let audio {
            text +=
                "\nsound: \(audio.comparedFrames) frames compared, at most "
                + "\(Self.fixed(audio.worstLead * 1e3, 3)) thousandths of a frame from the reported "
                + "position; \(audio.strayFrames) stray frames\n"
        }
        for room in rooms where room.lineAlarms > 0 {
            text += "\n\(room.name) did not play what was committed: \(room.lineAlarms) times\n"
        }
        for refusal in refusals { text += "\nrefused: \(refusal)\n" }
        return text
    }

    private static func cells(_ spread: Spread) -> [String] {
        [spread.p50, spread.p99, spread.max].map { spread.count == 0 ? "–" : fixed($0, 1) }
    }

    /// A number with `places` decimals.
    private static func fixed(_ number: Double, _ places: Int) -> String {
        var scale = 1.0
        for _ in 0..<places { scale *= 10 }
        let whole = Int64(saturating: number.magnitude * scale)
        let sign = number < 0 && whole > 0 ? "-" : ""
        guard places > 0 else { return "\(sign)\(whole)" }
        let digits = String(whole)
        let padded = String(repeating: "0", count: max(0, places + 1 - digits.count)) + digits
        return "\(sign)\(padded.dropLast(places)).\(padded.suffix(places))"
    }

    /// First column to the left, the others to the right.
    private static func table(_ rows: [[String]]) -> String {
        let widths = (0..<(rows.first?.count ?? 0)).map { column in
            rows.map { $0[column].count }.max() ?? 0
        }
        var text = ""
        for row in rows {
            var line = ""
            for (column, cell) in row.enumerated() {
                let space = String(repeating: " ", count: widths[column] - cell.count)
                line += column == 0 ? cell + space : "  " + space + cell
            }
            text += line + "\n"
        }
        return text
    }
}
