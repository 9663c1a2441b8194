import ArgumentParser

/// A time in an asset as people write it: `83.5`, `1:23.5`, `1:02:03`.
struct PositionArgument: ExpressibleByArgument, Equatable {
    /// From 0 on.
    var seconds: Double

    /// No asset is longer than this; beyond, the text is a mistake.
    static let longest = 1_000.0 * 3_600

    init?(argument: String) {
        let parts = argument.split(separator: ":", omittingEmptySubsequences: false)
        guard (1...3).contains(parts.count), let last = parts.last, Self.isDecimal(last),
            let seconds = Double(last)
        else { return nil }
        var total = 0.0
        for (place, part) in parts.dropLast().enumerated() {
            guard !part.isEmpty, part.utf8.count <= 6,
                part.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let whole = Double(part)
            else { return nil }
            // Only the first part may run over: 90:00 is an hour and a half, 1:90:00 a slip.
            guard place == 0 || whole < 60 else { return nil }
            total = total * 60 + whole
        }
        guard parts.count == 1 || seconds < 60 else { return nil }
        self.seconds = parts.count == 1 ? seconds : total * 60 + seconds
        guard self.seconds <= Self.longest else { return nil }
    }

    private static func isDecimal(_ text: Substring) -> Bool {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        return (1...2).contains(parts.count) && !parts[0].isEmpty
            && parts.allSatisfy { $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }
    }

    static func text(_ seconds: Double) -> String {
        guard seconds.isFinite else { return "–:––" }
        let tenths = Int(max(0, seconds) * 10)
        let (minutes, rest) = (tenths / 600, tenths % 600)
        let tail = "\(rest / 100)\(rest / 10 % 10).\(rest % 10)"
        return minutes < 60
            ? "\(minutes):\(tail)" : "\(minutes / 60):\(minutes % 60 / 10)\(minutes % 10):\(tail)"
    }
}
