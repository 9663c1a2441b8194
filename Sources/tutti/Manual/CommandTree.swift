import ArgumentParser
import Foundation

/// The command line as its declarations say it: what ArgumentParser makes its help of.
///
/// Only what a manual shows; the parser's own description of itself
/// (`--experimental-dump-help`) has more.
struct CommandTree: Decodable {
    struct Command: Decodable {
        var commandName: String
        var abstract: String?
        var discussion: String?
        var shouldDisplay: Bool?
        var defaultSubcommand: String?
        var subcommands: [Command]?
        var arguments: [Argument]?

        var isShown: Bool { shouldDisplay ?? true }
        /// Commands below this one that people are told of; `help` explains the others.
        var shownCommands: [Command] {
            (subcommands ?? []).filter { $0.isShown && $0.commandName != "help" }
        }
        var shownArguments: [Argument] { (arguments ?? []).filter(\.shouldDisplay) }
    }

    struct Argument: Decodable, Equatable {
        enum Kind: String, Decodable {
            case positional, option, flag
        }

        struct Name: Decodable, Equatable {
            var kind: String
            var name: String

            var text: String { (kind == "long" ? "--" : "-") + name }
        }

        var kind: Kind
        var shouldDisplay: Bool
        var isOptional: Bool
        var isRepeating: Bool
        var names: [Name]?
        var valueName: String?
        var abstract: String?
        var discussion: String?
    }

    var command: Command

    /// - Throws: when the parser describes itself otherwise than this program knows.
    init(of root: (some ParsableCommand).Type) throws {
        self = try JSONDecoder().decode(CommandTree.self, from: Data(root._dumpHelp().utf8))
    }
}
