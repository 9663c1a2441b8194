/// The lines of ArgumentParser's help that say how a command is written: it leaves them as long as they
/// come, and a terminal breaks them in the middle of an option.
enum UsageLines {
    /// Of a line, in columns.
    static let most = 100

    private static let heads = ["USAGE: ", "Usage: "]

    /// A help text, or a complaint with usage in it, of which no line with usage is longer.
    static func wrapped(_ text: String) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            let head = heads.first(where: line.hasPrefix)
            guard let head, String(line).columns > most else { return String(line) }
            return wrapped(words(of: line.dropFirst(head.count)), behind: head)
        }.joined(separator: "\n")
    }

    /// An option stays on one line with its value.
    private static func wrapped(_ words: [String], behind head: String) -> String {
        var lines: [String] = []
        var line = head
        let indentation = String(repeating: " ", count: head.count)
        for word in words {
            let isFirst = line == head || line == indentation
            if !isFirst, line.columns + 1 + word.columns > most {
                lines.append(line)
                line = indentation + word
            } else {
                line += (isFirst ? "" : " ") + word
            }
        }
        return (lines + [line]).joined(separator: "\n")
    }

    /// Split at the blanks that are in no bracket; the dots of what may be repeated belong to it.
    private static func words(of usage: Substring) -> [String] {
        var words: [String] = []
        var depth = 0
        for word in usage.split(separator: " ") {
            if depth > 0 || word == "...", let last = words.popLast() {
                words.append(last + " " + word)
            } else {
                words.append(String(word))
            }
            for letter in word {
                if "[<".contains(letter) { depth += 1 }
                if "]>".contains(letter) { depth -= 1 }
            }
        }
        return words
    }
}
