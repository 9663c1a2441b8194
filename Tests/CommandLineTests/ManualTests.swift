import ArgumentParser
import Foundation
import Testing

@testable import tutti

@Suite struct ManualTests {
    private let page: String
    private let tree: CommandTree

    init() throws {
        tree = try CommandTree(of: Tutti.self)
        page = ManualPage(tree, version: Tutti.version).text
    }

    /// Everything that can be run, with the words before it.
    private func commands(
        of command: CommandTree.Command, _ path: [String]
    ) -> [(path: [String], command: CommandTree.Command)] {
        command.shownCommands.flatMap { next -> [(path: [String], command: CommandTree.Command)] in
            let below = path + [next.commandName]
            return [(below, next)] + commands(of: next, below)
        }
    }

    @Test func `every command has a section, with each of its words and options`() {
        let all = commands(of: tree.command, ["tutti"])
        let names = Tutti.configuration.groupedSubcommands.flatMap(\.subcommands)
        #expect(all.filter { $0.path.count == 2 }.count == names.count)
        #expect(all.count > names.count, "simulate has commands of its own")
        let lines = Set(page.split(separator: "\n"))
        for (path, command) in all {
            let heading = ".SS " + Roff.text(path.joined(separator: " "))
            #expect(lines.contains(Substring(heading)), "\(path)")
            let section = page.components(separatedBy: heading + "\n").last ?? ""
            let own = section.components(separatedBy: "\n.S").first ?? ""
            let common = page.components(separatedBy: ".SH COMMON OPTIONS").last ?? ""
            for argument in command.shownArguments {
                let words = argument.names?.map(\.text) ?? [argument.valueName ?? ""]
                for word in words {
                    let shown = Roff.text(word)
                    #expect(own.contains(shown) || common.contains(shown), "\(path) \(word)")
                }
            }
        }
        #expect(!page.contains("die\\-with\\-parent"), "what is hidden stays so")
    }

    @Test func `nothing in a text is taken for a command of the page`() {
        #expect(Roff.line(".TH x") == "\\&.TH x")
        #expect(Roff.line("'br") == "\\(aqbr")
        #expect(Roff.text("a\\fB-b") == "a\\efB\\-b")
        #expect(Roff.text("1500±50 µs…") == "1500\\[u00B1]50 \\[u00B5]s\\[u2026]")
        #expect(page.utf8.allSatisfy { $0 < 0x80 })
    }

    /// The formatter's own warnings; groff-base and man-db are in deploy/packages.txt.
    @Test(arguments: [
        ["groff", "-man", "-ww", "-z", "-Tutf8"],
        ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"],
    ])
    func `the page is formatted without a warning`(words: [String]) throws {
        let path = NSTemporaryDirectory() + "tutti-\(UUID().uuidString).1"
        try Data(page.utf8).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = words + [path]
        process.environment = [
            "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "HOME": "/nonexistent",
        ]
        let complaints = Pipe()
        process.standardOutput = FileHandle.nullDevice
        process.standardError = complaints
        try process.run()
        let said = try complaints.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        #expect(String(decoding: said, as: UTF8.self) == "")
    }

    @Test func `the help of what prints numbers of one leader says so`() {
        #expect(Status.helpMessage(columns: 10_000).contains("counts anew"))
        #expect(QueueList.helpMessage(columns: 10_000).contains("counts anew"))
    }
}
