/// A place in an asset as people write it: `83.5`, `1:23.5`, `1:02:03`, `+10`, `-1:30`, `50%`.
enum PositionArgument: Equatable {
    /// Seconds from the beginning.
    case time(Double)
    /// Seconds from where it is; negative: back.
    case by(Double)
    /// A share of the whole, 0…1.
    case share(Double)

    /// Seconds. No asset is longer than this; beyond, the text is a mistake.
    static let longest = 1_000.0 * 3_600

    init?(argument: String) {
        let (sign, text) = SignedText.split(argument)
        if text.hasSuffix("%") {
            let number = text.dropLast()
            guard sign == 0, Self.isDecimal(number), let percent = Double(number), percent <= 100
            else { return nil }
            self = .share(percent / 100)
            return
        }
        guard let seconds = Self.seconds(text) else { return nil }
        self = sign == 0 ? .time(seconds) : .by(Double(sign) * seconds)
    }

    private static func seconds(_ text: Substring) -> Double? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard (1...3).contains(parts.count), let last = parts.last, isDecimal(last),
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
        total = parts.count == 1 ? seconds : total * 60 + seconds
        return total <= longest ? total : nil
    }

    private static func isDecimal(_ text: Substring) -> Bool {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        return (1...2).contains(parts.count) && parts.contains { !$0.isEmpty }
            && parts.allSatisfy { $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }
    }

    /// Seconds; what says more is no place in anything that is played.
    private static let longestShown = 3.6e8

    static func text(_ seconds: Double) -> String {
        guard seconds.isFinite else { return "–:––" }
        let tenths = Int(min(max(0, seconds), Self.longestShown) * 10)
        let (minutes, rest) = (tenths / 600, tenths % 600)
        let tail = "\(rest / 100)\(rest / 10 % 10).\(rest % 10)"
        return minutes < 60
            ? "\(minutes):\(tail)" : "\(minutes / 60):\(minutes % 60 / 10)\(minutes % 10):\(tail)"
    }
}

/// A number that may have a sign before it, which makes it a change.
enum SignedText {
    /// - Returns: 1, −1, or 0 without a sign; and what follows. The minus of typesetting counts.
    static func split(_ text: String) -> (sign: Int, rest: Substring) {
        switch text.first {
        case "+": (1, text.dropFirst())
        case "-", "\u{2212}": (-1, text.dropFirst())
        default: (0, text[...])
        }
    }
}
