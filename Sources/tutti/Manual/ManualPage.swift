/// The manual page of the whole command line, in the language of `man`: a section for each command.
///
/// It is made of the same declarations as the help, so that it cannot say something else. What most
/// commands have in common is said once.
struct ManualPage {
    private let tree: CommandTree
    private let version: String
    private var lines: [String] = []

    private typealias Command = CommandTree.Command
    private typealias Argument = CommandTree.Argument

    init(_ tree: CommandTree, version: String) {
        self.tree = tree
        self.version = version
    }

    /// The page; ASCII only, since not every `man` expects anything else.
    var text: String {
        var page = self
        page.write()
        return page.lines.joined(separator: "\n") + "\n"
    }

    private mutating func write() {
        let root = tree.command
        let name = root.commandName
        lines = [
            ".\\\" Made of the declarations of the command line; not to be edited.",
            ".TH \(name.uppercased()) 1 \"\" \"\(name) \(version)\" \"User Commands\"",
            ".SH NAME",
            "\(Roff.text(name)) \\- \(Roff.text(Self.asPart(root.abstract ?? "")))",
            ".SH SYNOPSIS",
            ".B \(Roff.text(name))",
            "\\fIcommand\\fR [\\fIoption\\fR ...]",
            ".SH DESCRIPTION",
        ]
        paragraphs(root.discussion ?? "")
        let commands = Self.leaves(of: root, path: [name])
        let common = Self.common(to: commands.map(\.command))
        lines.append(".SH COMMANDS")
        for (path, command) in commands { write(command, path, without: common) }
        lines.append(".SH COMMON OPTIONS")
        lines.append("Of most commands.")
        for argument in common { write(argument) }
        lines += [
            ".SH FILES",
            ".TP", ".I ~/.config/tutti/tutti.yaml", "Settings of this user.",
            ".TP", ".I /etc/tutti/tutti.yaml", "Settings of this machine, for who has none.",
        ]
    }

    /// Everything that can be run, in the order of the help.
    private static func leaves(
        of command: Command, path: [String]
    ) -> [(path: [String], command: Command)] {
        command.shownCommands.flatMap { next -> [(path: [String], command: Command)] in
            let below = path + [next.commandName]
            return [(below, next)] + leaves(of: next, path: below)
        }
    }

    /// What more than half of the commands take.
    private static func common(to commands: [Command]) -> [Argument] {
        var found: [(argument: Argument, count: Int)] = []
        for argument in commands.flatMap(\.shownArguments) where argument.kind != .positional {
            if let place = found.firstIndex(where: { $0.argument == argument }) {
                found[place].count += 1
            } else {
                found.append((argument, 1))
            }
        }
        return found.filter { 2 * $0.count > commands.count }.map(\.argument)
    }

    private mutating func write(
        _ command: Command, _ path: [String], without common: [Argument]
    ) {
        let arguments = command.shownArguments
        let own = arguments.filter { !common.contains($0) }
        let words = arguments.filter { $0.kind == .positional }.map(Self.synopsis)
        lines.append(".SS \(Roff.text(path.joined(separator: " ")))")
        lines.append(
            (["\\fB\(Roff.text(path.joined(separator: " ")))\\fR", "[\\fIoption\\fR ...]"] + words)
                .joined(separator: " "))
        lines.append(".PP")
        paragraphs(command.abstract ?? "")
        if let discussion = command.discussion {
            lines.append(".PP")
            paragraphs(discussion)
        }
        for argument in own { write(argument) }
    }

    private static func synopsis(_ argument: Argument) -> String {
        let value = "\\fI\(Roff.text(argument.valueName ?? ""))\\fR"
        let repeated = argument.isRepeating ? "\(value) ..." : value
        return argument.isOptional ? "[\(repeated)]" : repeated
    }

    private mutating func write(_ argument: Argument) {
        lines.append(".TP")
        let value = "\\fI\(Roff.text(argument.valueName ?? ""))\\fR"
        let names = (argument.names ?? []).map { "\\fB\(Roff.text($0.text))\\fR" }
        switch argument.kind {
        case .positional: lines.append(value)
        case .flag: lines.append(names.joined(separator: ", "))
        case .option: lines.append("\(names.joined(separator: ", ")) \(value)")
        }
        paragraphs(argument.abstract ?? "", inItem: true)
        if let discussion = argument.discussion {
            lines.append(".br")
            paragraphs(discussion, inItem: true)
        }
    }

    /// Flowing text, and as it stands what is set in columns or indented: examples and lists.
    private mutating func paragraphs(_ text: String, inItem: Bool = false) {
        var isVerbatim = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let wantsVerbatim = line.hasPrefix(" ") || line.contains("   ")
            if line.isEmpty {
                if isVerbatim { lines.append(".fi") }
                isVerbatim = false
                lines.append(inItem ? ".IP" : ".PP")
                continue
            }
            if wantsVerbatim != isVerbatim { lines.append(wantsVerbatim ? ".nf" : ".fi") }
            isVerbatim = wantsVerbatim
            lines.append(Roff.line(String(line)))
        }
        if isVerbatim { lines.append(".fi") }
    }

    /// As behind a dash: no capital, no full stop.
    private static func asPart(_ sentence: String) -> String {
        let text = sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence
        return text.prefix(1).lowercased() + text.dropFirst()
    }
}

/// Text as `man` wants it: nothing in it is a command, and all of it is ASCII.
enum Roff {
    static func text(_ text: String) -> String {
        text.unicodeScalars.map { scalar -> String in
            switch scalar {
            case "\\": "\\e"
            case "-": "\\-"
            case "'": "\\(aq"
            case "`": "\\(ga"
            case "^": "\\(ha"
            case "~": "\\(ti"
            case "\"": "\\(dq"
            case _ where scalar.isASCII: String(scalar)
            default: "\\[u\(Self.hexadecimal(scalar.value))]"
            }
        }.joined()
    }

    /// A line of its own: one that begins with a full stop would be a command.
    static func line(_ line: String) -> String {
        (line.hasPrefix(".") ? "\\&" : "") + text(line)
    }

    private static func hexadecimal(_ value: UInt32) -> String {
        let digits = String(value, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}
