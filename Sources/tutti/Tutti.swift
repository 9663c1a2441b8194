import ArgumentParser
import Glibc
import TuttiGroupControl
import TuttiPlayout

/// The command `tutti`: the root that names the others.
struct Tutti: AsyncParsableCommand {
    static let version = "0.1.0"

    static let configuration = CommandConfiguration(
        commandName: "tutti",
        abstract: "Plays one asset in several rooms at one instant.",
        discussion: """
            Start a leader where the music is, and a follower in every other room:

              tutti lead song.flac --name kitchen --wait-for 2
              tutti follow --name bedroom

            They find each other with Avahi (mDNS), agree on a clock, fetch the file, and start \
            it at one instant. To see it work on this machine alone: tutti demo

            Settings come from flags, then TUTTI_* environment variables, then tutti.yaml, then \
            defaults. Exit status: 0 done, 1 it failed (the reason is on stderr), 64 the command \
            line makes no sense.
            """,
        version: version,
        subcommands: [Manual.self],
        groupedSubcommands: [
            CommandGroup(name: "Rooms", subcommands: [NodeCommand.self, Lead.self, Follow.self]),
            CommandGroup(
                name: "Control",
                subcommands: [
                    Rooms.self, Status.self, Queue.self, QueueAdd.self, Play.self, Pause.self,
                    Seek.self, Next.self,
                    Previous.self, Rate.self, Stop.self, Volume.self, Mute.self, Unmute.self,
                    Offset.self, Handover.self, Channel.self, Move.self, GroupTogether.self,
                    Ungroup.self, MoveQueue.self, SceneCommand.self,
                ]),
            CommandGroup(
                name: "Household",
                subcommands: [HouseholdCommand.self, Join.self, Backup.self, Restore.self]),
            CommandGroup(
                name: "Seeing it work",
                subcommands: [
                    Doctor.self, Demo.self, Responses.self, Simulate.self, Bench.self, Version.self,
                ]),
        ]
    )
}

/// A command that takes no words: where it is meant without its name, a word in its place is a
/// command that there is not.
protocol Wordless {}

/// What is wrong with `tutti stauts` and `tutti help nonsense`: ArgumentParser calls the first an
/// unexpected argument and answers the second with the help of `tutti` itself.
///
/// - Returns: `nil` when that is not it.
func unknownCommand(in arguments: [String]) -> String? {
    var words = arguments.dropFirst()[...]
    let isForHelp = words.first == "help"
    if isForHelp { words = words.dropFirst() }
    var command: any ParsableCommand.Type = Tutti.self
    for word in words {
        let commands = command.configuration.subcommands
        guard !word.hasPrefix("-"), word != "help" else { return nil }
        guard !commands.isEmpty else {
            return isForHelp
                ? "tutti \(command._commandName) has no commands (tutti help \(command._commandName))"
                : nil
        }
        if let next = commands.first(where: { $0._commandName == word }) {
            command = next
            continue
        }
        let names = commands.filter { $0.configuration.shouldDisplay }.map { $0._commandName }
        let question = Suggestion.question(for: word, among: names)
        // What stands there may be meant for the command that needs no name.
        if let standard = command.configuration.defaultSubcommand, !(standard is any Wordless.Type),
            !isForHelp, question.isEmpty
        {
            return nil
        }
        let path = command == Tutti.self ? "tutti help" : "tutti help \(command._commandName)"
        return "there is no command \"\(word)\" (\(path) lists them)" + question
    }
    return nil
}

/// Runs the command and turns what it throws into one sentence and an exit status.
///
/// ArgumentParser's own `main` prints any error with Swift's description of it; a person needs
/// what, where and what to do instead.
@main
enum Program {
    static func main() async {
        let words = commandLineWords()
        if let complaint = unknownCommand(in: words) { refuse(complaint) }
        let command: any ParsableCommand
        do {
            command = try Tutti.parseAsRoot(Array(words.dropFirst()))
        } catch {
            let text = Tutti.fullMessage(for: error)
            if BashCompletions.isScript(text) {
                Terminal.output.write(BashCompletions.completing(text))
                Tutti.exit()
            }
            end(with: error)
        }
        do {
            ignoreBrokenPipes()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                var command = command
                try command.run()
            }
        } catch let error as ExitCode {
            Tutti.exit(withError: error)
        } catch let error as ValidationError {
            refuse(error.message)
        } catch let error as CleanExit {
            end(with: error)
        } catch  where error.isRequestForHelp {
            end(with: error)
        } catch {
            let isVerbose = CommandLine.arguments.contains("--verbose")
            Terminal.error.say("tutti: \(isVerbose ? detailed(error) : sentence(for: error))")
            let isUsage = (error as? SettingsError)?.isUsage ?? false
            Tutti.exit(withError: isUsage ? ExitCode.validationFailure : ExitCode.failure)
        }
    }

    /// Says what ArgumentParser has to say, in lines that fit a terminal.
    private static func end(with error: any Error) -> Never {
        let code = Tutti.exitCode(for: error)
        let text = UsageLines.wrapped(Tutti.fullMessage(for: error))
        let terminal = code == .success ? Terminal.output : Terminal.error
        if !text.isEmpty { terminal.write(text + "\n") }
        Tutti.exit(withError: code)
    }

    /// What was typed, the program's name first. `CommandLine.arguments` repairs what is no UTF-8,
    /// and would name another file.
    private static func commandLineWords() -> [String] {
        (0..<Int(CommandLine.argc)).compactMap { place in
            CommandLine.unsafeArgv[place].map { word in
                let bytes = UnsafeBufferPointer(start: word, count: strlen(word))
                return String(fileName: bytes.map { UInt8(bitPattern: $0) })
            }
        }
    }

    /// The command line makes no sense. ArgumentParser would add the usage of the root command.
    private static func refuse(_ complaint: String) -> Never {
        Terminal.error.say("tutti: \(complaint)")
        Tutti.exit(withError: ExitCode.validationFailure)
    }
}
