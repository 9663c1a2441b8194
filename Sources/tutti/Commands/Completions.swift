import ArgumentParser
import Dispatch
import Foundation
import Logging
import Synchronization
import Tutti
import TuttiGroupControl
import TuttiRoom

/// What the shell offers after Tab: values that are known, and names that the network tells.
///
/// Whoever presses Tab waits: when the network does not answer soon, or fails, nothing is offered
/// and no error is printed into the prompt.
enum Completions {
    /// As long as a person waits after Tab without pressing it again.
    private static let patience = Duration.milliseconds(400)

    static let logLevels = Logger.Level.allCases.map(\.rawValue)

    /// The rooms of the group that the words before or the settings mean; without a leader, those
    /// that Avahi finds.
    static func rooms(words: [String], index: Int, typed: String) -> [String] {
        waiting(typed) {
            var flags: [SettingKey: String] = [:]
            flags[.leader] = value(of: "--leader", in: words)
            flags[.group] = value(of: "--group", in: words)
            let settings = try? await Settings.load(flags: flags, file: nil)
            guard let settings else { return [] }
            if let leader = settings.leader { return await names(of: leader, settings) ?? [] }
            let found = await found()
            guard let group = settings.group else { return found.map(\.name) }
            let leader = found.first {
                $0.role == .leader && $0.name.foldedName == group.foldedName
            }
            guard let leader else { return [] }
            return await names(of: leader.address, settings) ?? []
        }
    }

    private static func names(of leader: HostPort, _ settings: Settings) async -> [String]? {
        guard let credentials = try? settings.credentials(),
            let client = try? await GroupClient.connect(
                to: leader, timeout: patience, credentials: credentials)
        else { return nil }
        return try? await client.status().rooms.map(\.name)
    }

    static func leaderNames(words: [String], index: Int, typed: String) -> [String] {
        waiting(typed) { await found().filter { $0.role == .leader }.map(\.name) }
    }

    static func leaderAddresses(words: [String], index: Int, typed: String) -> [String] {
        let addresses = waiting(typed) {
            await found().filter { $0.role == .leader }.map { "\($0.address)" }
        }
        return shown(addresses)
    }

    /// The network interfaces of this machine.
    static func interfaces(words: [String], index: Int, typed: String) -> [String] {
        let names = try? FileManager.default.contentsOfDirectory(atPath: "/sys/class/net")
        return shown((names ?? []).filter { $0 != "lo" }.sorted())
    }

    /// Kinds of output and, behind them, cards and files.
    static func outputs(words: [String], index: Int, typed: String) -> [String] {
        playedOutputs(words: words, index: index, typed: typed) + ["none"]
    }

    /// The same where something is to be heard.
    static func playedOutputs(words: [String], index: Int, typed: String) -> [String] {
        let file = "file:"
        if typed.hasPrefix(file) {
            return shown(files(typed.dropFirst(file.count)).map { file + $0 })
        }
        let cards = AudioDevice.available().map { "alsa:\($0.name)" }
        return shown(["alsa", "alsa:hw:", "virtual", file] + cards)
    }

    /// Those that go on from a path, folders with a slash.
    private static func files(_ typed: Substring) -> [String] {
        let folder = String(typed.lastIndex(of: "/").map { typed[...$0] } ?? "")
        let begin = String(typed.dropFirst(folder.count))
        let names = try? FileManager.default.contentsOfDirectory(
            atPath: folder.isEmpty ? "." : folder)
        return (names ?? []).filter { $0.hasPrefix(begin) && (begin != "" || !$0.hasPrefix(".")) }
            .sorted().map { name in
                let path = folder + name
                let type = try? FileManager.default.attributesOfItem(atPath: path)[.type]
                return type as? FileAttributeType == .typeDirectory ? path + "/" : path
            }
    }

    /// As the shell takes them: zsh takes what is behind a colon for an explanation.
    static func shown(
        _ words: [String], in shell: CompletionShell? = CompletionShell.requesting
    ) -> [String] {
        words.map(\.printable).map { shell == .zsh ? $0.replacing(":", with: "\\:") : $0 }
    }

    /// The scenes that this machine keeps.
    static func scenes(words: [String], index: Int, typed: String) -> [String] {
        waiting(typed) {
            guard let folder = try? await Settings.load(flags: [:], file: nil).stateFolder,
                let book = try? SceneBook.load(folder: folder)
            else { return [] }
            return book.scenes.map(\.name)
        }
    }

    /// Who belongs to the household, as this machine knows it.
    static func members(words: [String], index: Int, typed: String) -> [String] {
        waiting(typed) {
            guard let settings = try? await Settings.load(flags: [:], file: nil),
                let access = try? HouseholdAccess(settings.credentials()),
                let members = try? await access.members(asking: nil)
            else { return [] }
            return members.map(\.name)
        }
    }

    /// What was written for an option, as `--option value` or `--option=value`.
    static func value(of option: String, in words: [String]) -> String? {
        for (word, next) in zip(words, words.dropFirst() + [""]) {
            if word == option, !next.isEmpty { return next }
            if word.hasPrefix(option + "=") { return String(word.dropFirst(option.count + 1)) }
        }
        return nil
    }

    /// Names that go on from what was typed. Shells compare letter by letter, and names are taken
    /// without regard to case: the letters that were typed stay as they are. What is typed in quotes
    /// goes on from nothing here, and the shell looks itself.
    static func continuing(_ typed: String, _ names: [String]) -> [String] {
        let matching = names.filter { $0.lowercased().hasPrefix(typed.lowercased()) }
        return matching.isEmpty ? names : matching.map { typed + $0.dropFirst(typed.count) }
    }

    private static func found() async -> [DiscoveredRoom] {
        (try? await Discovery.rooms(for: patience)) ?? []
    }

    /// Asynchronous completions would need the whole command line to be parsed asynchronously; who
    /// presses Tab has a process that does nothing else.
    private static func waiting(
        _ typed: String, _ names: @escaping @Sendable () async -> [String]
    ) -> [String] {
        let answer = Answer()
        Task.detached {
            let names = await names()
            answer.names.withLock { $0 = names }
            answer.isThere.signal()
        }
        answer.isThere.wait()
        // A line of the shell's list is one line of letters that can be seen.
        return continuing(typed, answer.names.withLock { $0 }.map(\.printable))
    }

    private final class Answer: Sendable {
        let names = Mutex<[String]>([])
        let isThere = DispatchSemaphore(value: 0)
    }
}
