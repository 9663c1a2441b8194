/// All findings, as text and as JSON.
struct DoctorReport: Encodable {
    var host: String
    var version = Tutti.version
    var problems: Int
    var warnings: Int
    var findings: [Finding]

    init(host: String, findings: [Finding]) {
        self.host = host
        self.findings = findings
        problems = findings.count { $0.level == .problem }
        warnings = findings.count { $0.level == .warning }
    }

    /// - Parameters:
    ///   - width: columns; long sentences go on under themselves.
    ///   - brief: leaves out what is ok.
    func text(width: Int, colour: Bool, brief: Bool) -> String {
        let shown = findings.filter { !brief || $0.level != .ok }
        let areas = shown.map(\.area.columns).max() ?? 0
        let indent = Self.levelColumns + areas + 2
        var lines: [String] = []
        for finding in shown {
            let level = finding.level.rawValue.padded(to: Self.levelColumns)
            let head = (colour ? Self.paint(level, finding.level) : level)
            let area = finding.area.printable.padded(to: areas + 2)
            let body = Self.wrapped(finding.found.printable, width: width - indent)
            lines.append(head + area + (body.first ?? ""))
            lines += body.dropFirst().map { Self.blanks(indent) + $0 }
            for (number, line) in Self.wrapped(
                finding.advice?.printable ?? "", width: width - indent - 2
            ).enumerated() {
                lines.append(Self.blanks(indent) + (number == 0 ? "→ " : "  ") + line)
            }
        }
        lines.append(summary)
        return lines.joined(separator: "\n") + "\n"
    }

    var summary: String {
        func count(_ number: Int, _ word: String) -> String {
            number == 1 ? "1 \(word)" : "\(number) \(word)s"
        }
        if problems > 0 {
            return "\(count(problems, "problem")), \(count(warnings, "warning")): "
                + "a room cannot play like this."
        }
        if warnings > 0 { return "\(count(warnings, "warning")): it plays, but could do better." }
        return "Fit to play in lockstep."
    }

    private static let levelColumns = 9

    private static func blanks(_ count: Int) -> String { String(repeating: " ", count: count) }

    private static func paint(_ text: String, _ level: Finding.Level) -> String {
        let code =
            switch level {
            case .ok: "32"
            case .note: "36"
            case .warning: "33"
            case .problem: "31"
            }
        return "\u{1B}[\(code)m\(text)\u{1B}[0m"
    }

    /// Words are kept whole; a word longer than the line stands alone.
    static func wrapped(_ text: String, width: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if line.isEmpty {
                line = String(word)
            } else if line.columns + 1 + String(word).columns <= max(20, width) {
                line += " " + word
            } else {
                lines.append(line)
                line = String(word)
            }
        }
        return line.isEmpty ? lines : lines + [line]
    }
}
