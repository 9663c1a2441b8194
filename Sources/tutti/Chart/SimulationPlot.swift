import TuttiSimulation

/// A simulated run over time as SVG (https://www.w3.org/TR/SVG11/): what is heard, clocks, skew, and who
/// leads.
struct SimulationPlot {
    let report: SimulationReport
    let history: SimulationHistory

    private static let width = 1_200.0
    private static let (left, right) = (90.0, 1_170.0)
    private static let panelHeight = 190.0
    private static let gap = 54.0
    private static let top = 90.0
    /// Told apart also by people who do not see red and green (Okabe and Ito).
    private static let colours = [
        "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#945e00", "#5a3ca0", "#828282",
    ]

    private struct Panel {
        var title: String
        var curves: [(colour: String, points: [SimulationHistory.Point])]
    }

    private func colour(_ room: Int) -> String { Self.colours[room % Self.colours.count] }

    private var panels: [Panel] {
        func curves(_ all: [[SimulationHistory.Point]]) -> [(String, [SimulationHistory.Point])] {
            all.enumerated().map { (colour($0), $1) }
        }
        return [
            Panel(title: "heard, against the line, µs (late: up)", curves: curves(history.errors)),
            Panel(
                title: "clocks, against the group's, µs (ahead: up)", curves: curves(history.clocks)
            ),
            Panel(
                title: "between the first and the last room, µs", curves: [("#222", history.skew)]),
        ]
    }

    private func x(_ seconds: Double) -> Double {
        Self.left + seconds / max(report.simulatedSeconds, 1) * (Self.right - Self.left)
    }

    var text: String {
        let panels = panels
        let height =
            Self.top + Double(panels.count) * (Self.panelHeight + Self.gap) + 70
        var lines = [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(number(Self.width)) \(number(height))\" font-family=\"sans-serif\" font-size=\"13\">",
            "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>",
            label(
                "\(report.scenario), seed \(report.seed)", x: Self.left, y: 28, size: 18),
        ]
        for (room, name) in history.rooms.enumerated() {
            let place = Self.left + Double(room) * 130
            lines.append(
                "<rect x=\"\(number(place))\" y=\"38\" width=\"12\" height=\"12\" fill=\"\(colour(room))\"/>"
            )
            lines.append(label(name, x: place + 18, y: 49))
        }
        var y = Self.top
        for panel in panels {
            lines += draw(panel, at: y)
            y += Self.panelHeight + Self.gap
        }
        lines += reigns(at: y - 20)
        return (lines + ["</svg>", ""]).joined(separator: "\n")
    }

    private func draw(_ panel: Panel, at y: Double) -> [String] {
        let values = panel.curves.flatMap(\.points).map(\.value)
        let least = min(0, values.nearestRank(0.002) ?? 0)
        let most = max(0, values.nearestRank(0.998) ?? 0)
        let step = SkewChart.niceStep(max(most - least, 1) / 4)
        let low = (least / step).rounded(.down) * step
        let high = max((most / step).rounded(.up) * step, low + step)
        func height(_ value: Double) -> Double {
            let share = (high - min(max(value, low), high)) / (high - low)
            return y + share * Self.panelHeight
        }
        var lines = [label(panel.title, x: Self.left, y: y - 8)]
        for mark in stride(from: low, through: high + step / 2, by: step) {
            lines.append(
                "<path d=\"M\(number(Self.left)) \(number(height(mark)))H\(number(Self.right))\" stroke=\"\(mark.magnitude < step / 2 ? "#888" : "#ddd")\"/>"
            )
            lines.append(
                "<text x=\"\(number(Self.left - 8))\" y=\"\(number(height(mark) + 4))\" text-anchor=\"end\">\(number(mark))</text>"
            )
        }
        for begin in history.begins {
            lines.append(
                "<path d=\"M\(number(x(begin))) \(number(y))v\(number(Self.panelHeight))\" stroke=\"#aaa\" stroke-dasharray=\"3 3\"/>"
            )
        }
        for curve in panel.curves where !curve.points.isEmpty {
            lines.append(
                "<path fill=\"none\" stroke=\"\(curve.colour)\" stroke-width=\"1.3\" d=\"\(path(curve.points, height))\"/>"
            )
        }
        return lines
    }

    /// A new part where a room was silent in between.
    private func path(
        _ points: [SimulationHistory.Point], _ height: (Double) -> Double
    ) -> String {
        var text = ""
        var last = -Double.infinity
        for point in points {
            text += point.seconds - last > 0.12 ? "M" : "L"
            text += "\(number(x(point.seconds))) \(number(height(point.value)))"
            last = point.seconds
        }
        return text
    }

    private func reigns(at y: Double) -> [String] {
        var lines = [label("leads", x: Self.left - 8, y: y + 15, anchor: "end")]
        for (place, reign) in history.reigns.enumerated() {
            let end =
                history.reigns.dropFirst(place + 1).first?.seconds ?? report.simulatedSeconds
            let fill = reign.room.map(colour) ?? "#eee"
            let width = x(end) - x(reign.seconds)
            lines.append(
                "<rect x=\"\(number(x(reign.seconds)))\" y=\"\(number(y))\" width=\"\(number(width))\" height=\"20\" fill=\"\(fill)\"/>"
            )
        }
        for second in stride(
            from: 0, through: report.simulatedSeconds,
            by: SkewChart.niceStep(max(report.simulatedSeconds, 1) / 10))
        {
            lines.append(label("\(number(second)) s", x: x(second), y: y + 40, anchor: "middle"))
        }
        return lines
    }

    private func label(
        _ text: String, x: Double, y: Double, size: Int = 13, anchor: String = "start"
    ) -> String {
        let escaped = text.map { ["&": "&amp;", "<": "&lt;", ">": "&gt;"][$0] ?? String($0) }
        return
            "<text x=\"\(number(x))\" y=\"\(number(y))\" font-size=\"\(size)\" text-anchor=\"\(anchor)\">\(escaped.joined())</text>"
    }

    /// With a decimal or two: a picture has no more.
    private func number(_ value: Double) -> String {
        let hundredths = Int((value * 100).rounded())
        guard hundredths % 100 != 0 else { return "\(hundredths / 100)" }
        let sign = hundredths < 0 ? "-" : ""
        let (whole, rest) = hundredths.magnitude.quotientAndRemainder(dividingBy: 100)
        return "\(sign)\(whole).\(rest < 10 ? "0" : "")\(rest)"
    }
}
