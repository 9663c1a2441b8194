import ArgumentParser
import Foundation
import Synchronization
import TuttiGroupControl
import TuttiPlayout
import TuttiRoom

/// `tutti queue`.
struct Queue: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show or change what is played, while it plays.",
        discussion: """
            Positions count from 1. What sounds is not disturbed by any change, unless it is removed.

            Examples:
              tutti queue
              tutti queue add Music/Album --next
              tutti queue move 7 2
              tutti queue remove 3 5
              tutti queue repeat all
            """,
        subcommands: [
            QueueList.self, QueueAdd.self, QueueRemove.self, QueueMove.self, QueueClear.self,
            QueueShuffle.self, QueueRepeat.self, QueuePlay.self,
        ], defaultSubcommand: QueueList.self)
}

/// `tutti queue list`.
struct QueueList: AsyncParsableCommand, Wordless {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Show the queue.",
        discussion: """
            A mark shows what plays. What cannot be played, or was left out since no room could play \
            it just then or the machine that has its file is away, is listed with the reason. The \
            "revision" of the JSON grows with each change under one leader; the next one counts anew.

            Examples:
              tutti queue
              tutti queue list --json
            """)

    @Flag(help: "Print JSON.") var json = false
    @OptionGroup var options: ControlOptions

    func run() async throws {
        try await untilInterrupted {
            let listing = try await options.connect().whoeverLeads { try await $0.wholeQueue() }
            if json {
                let encoder = JSONEncoder()
                encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
                let data = try encoder.encode(listing)
                Terminal.output.write(String(decoding: data, as: UTF8.self) + "\n")
            } else {
                let terminal = Terminal.output
                let width = terminal.isInteractive ? terminal.width : 200
                let lines = QueueView(listing).lines(width: width)
                terminal.write(lines.joined(separator: "\n") + "\n")
            }
        }
    }
}

/// `tutti queue add`, and `tutti add`.
struct QueueAdd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Put files, folders, playlists or addresses into the queue.",
        discussion: """
            At the end, or where --next or --at says. Folders are played with all that is in them. \
            A leader on another machine is sent the files, and keeps them as long as they are in \
            the queue. What cannot be added is left out with a line that says why, and the others \
            are added; the exit status is then 1.

            Examples:
              tutti add song.flac
              tutti add Music/Album --next
              tutti add http://nas.local/x.flac --at 1
            """)

    @Argument(
        help: ArgumentHelp(
            "Files, folders, playlists or http URLs.", valueName: "file|folder|playlist|url"),
        completion: .file())
    var assets: [String]

    @Flag(help: "Behind what plays now.") var next = false
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("At this position, from 1.", valueName: "n"))
    var at: Int?
    @OptionGroup var options: ControlOptions

    func validate() throws {
        guard !assets.contains("") else {
            throw ValidationError(
                "An asset without a name: write the path of a file, or an http URL")
        }
        if let obstacle = assets.compactMap(QueueAddition.obstacle).first {
            throw ValidationError(obstacle)
        }
        if next, at != nil { throw ValidationError("--next and --at exclude each other") }
        if let at, at < 1 { throw ValidationError(noPosition("\(at)")) }
    }

    func run() async throws {
        let place: QueuePlace = next ? .next : at.map { .position($0 - 1) } ?? .end
        let locations = assets.map(Self.whole)
        let progress = SendingLine()
        try await options.steer { [at] client in
            let before = try await client.queue(first: 0, count: 0)
            if let at, at > before.count + 1 {
                throw CommandError(before.noPlace(at, most: before.count + 1))
            }
            try await client.add(locations, at: place) { progress.tell($0) }
            return try await client.addition(since: before, progress)
        }
        if progress.isAnyLeftOut { throw ExitCode.failure }
    }

    /// A location with its whole path: the leader runs in another folder.
    static func whole(_ location: String) -> String {
        if location.contains("://") || location.hasPrefix("/") || location.hasPrefix("file:") {
            return location
        }
        return FileManager.default.currentDirectoryPath + "/" + location
    }
}

/// What is sent to a leader elsewhere, a line for each file, and what is left out.
private final class SendingLine: Sendable {
    private let name = Mutex("")
    private let leftOut = Atomic(false)

    /// Whether something that was named, or looks like audio, is not added.
    var isAnyLeftOut: Bool { leftOut.load(ordering: .relaxed) }

    func tellLeftOut(_ line: String) {
        leftOut.store(true, ordering: .relaxed)
        Terminal.error.say(line.printable)
    }

    func tell(_ news: AdditionNews) {
        switch news {
        case .leftOut(let subject, let reason, let isMissed):
            guard isMissed else { return }
            tellLeftOut("tutti: skipped \(subject): \(reason)")
        case .sending(let name, _, let whole):
            let isNew = self.name.withLock { last in
                defer { last = name }
                return last != name
            }
            guard isNew else { return }
            Terminal.error.say("sending \(name), \(whole.bytesText)".printable)
        }
    }
}

/// The position that a word means, from 0; people count from 1.
private func position(_ word: String) throws -> Int {
    guard let position = Int(word), position >= 1 else {
        throw ValidationError(noPosition(word))
    }
    return position - 1
}

private func noPosition(_ word: String) -> String {
    "\"\(word)\" is no position: they go from 1 to the number of items; look with tutti queue"
}

extension QueueListing {
    /// The item at a position, from 0.
    fileprivate func item(at position: Int) throws -> Item {
        guard items.indices.contains(position) else {
            throw CommandError(noPlace(position + 1, most: count))
        }
        return items[position]
    }

    fileprivate func noPlace(_ position: Int, most: Int) -> String {
        switch most {
        case 0: "the queue is empty: tutti add FILE"
        case 1: "there is no position \(position): the only one is 1; look with tutti queue"
        default:
            "there is no position \(position): they go from 1 to \(most); look with tutti queue"
        }
    }
}

/// `tutti queue remove`.
struct QueueRemove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Take items out of the queue.",
        discussion: """
            If what plays is among them, the next item begins.

            Examples:
              tutti queue remove 3
              tutti queue remove 3 5 7
              tutti queue remove all
            """)

    // A negative number looks like a flag.
    @Argument(
        parsing: .allUnrecognized,
        help: ArgumentHelp("Positions, from 1, or all.", valueName: "n|all"))
    var positions: [String]
    @OptionGroup var options: ControlOptions

    func validate() throws {
        try refuseOptions(in: positions)
        if positions != ["all"] { _ = try positions.map(position) }
    }

    func run() async throws {
        try await options.steer { [positions] client in
            let before = try await client.wholeQueue()
            var seen: Set<QueueEntry.ID> = []
            let named =
                positions == ["all"]
                ? before.items : try positions.map { try before.item(at: position($0)) }
            let items = named.filter { seen.insert($0.id).inserted }
            // One command takes out all but what plays, however long the queue is.
            if positions == ["all"] { try await client.perform(.queue(.clear)) }
            let left =
                positions == ["all"]
                ? try await client.wholeQueue().items.map(\.id) : items.map(\.id)
            try await client.remove(left)
            return [QueueText.removed(items)]
        }
    }
}

/// `tutti queue move`.
struct QueueMove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move", abstract: "Move an item to another position.",
        usage: """
            tutti queue move <from> <to> [--leader <host:port>] [--group <room>] \
            [--config <path>] [--verbose] [--log-level <level>]
            """,
        discussion: "Example:\n  tutti queue move 7 2")

    // A negative number looks like a flag.
    @Argument(
        parsing: .allUnrecognized,
        help: ArgumentHelp("Where it is, from 1, and where it goes.", valueName: "position"))
    var positions: [String]
    @OptionGroup var options: ControlOptions

    func validate() throws { _ = try parsed() }

    private func parsed() throws -> (from: Int, to: Int) {
        try refuseOptions(in: positions)
        guard positions.count == 2 else {
            throw ValidationError(
                "write where the item is, and where it goes: tutti queue move 7 2")
        }
        return (try position(positions[0]), try position(positions[1]))
    }

    func run() async throws {
        let (from, to) = try parsed()
        try await options.steer { client in
            let before = try await client.wholeQueue()
            let item = try before.item(at: from)
            _ = try before.item(at: to)
            try await client.perform(.queue(.move(item.id, to: to)))
            let queue = try await client.wholeQueue()
            return [QueueText.moved(item, in: queue)]
        }
    }
}

/// `tutti queue clear`.
struct QueueClear: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Take everything out of the queue but what plays.",
        discussion: "Example:\n  tutti queue clear")
    @OptionGroup var options: ControlOptions
    func run() async throws {
        try await options.steer { client in
            let before = try await client.queue(first: 0, count: 0)
            try await client.perform(.queue(.clear))
            let after = try await client.queue(first: 0, count: 0)
            return [QueueText.cleared(from: before, to: after)]
        }
    }
}

/// `tutti queue shuffle`.
struct QueueShuffle: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "shuffle", abstract: "Bring what comes next into another order.",
        discussion: "Example:\n  tutti queue shuffle")
    @OptionGroup var options: ControlOptions
    func run() async throws {
        try await options.steer { client in
            let before = try await client.queue(first: 0, count: 0)
            try await client.perform(.queue(.reorder(seed: .random(in: .min ... .max))))
            return [QueueText.shuffled(before)]
        }
    }
}

/// `tutti queue repeat`.
struct QueueRepeat: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "repeat", abstract: "Repeat nothing, the item that plays, or the queue.",
        discussion: "Examples:\n  tutti queue repeat all\n  tutti queue repeat off")
    @Argument(
        help: "off, one or all.",
        completion: .list(RepeatMode.allCases.map(\.rawValue)),
        transform: {
            guard let mode = RepeatMode(rawValue: $0.lowercased()) else {
                throw ValidationError("\"\($0)\" is no way to repeat: off, one or all")
            }
            return mode
        }) var mode: RepeatMode
    @OptionGroup var options: ControlOptions
    func run() async throws {
        try await options.perform(.queue(.repeating(mode)), saying: QueueText.repeats(mode))
    }
}

/// `tutti queue play`.
struct QueuePlay: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "play", abstract: "Go to an item of the queue, and play.",
        usage: """
            tutti queue play <n> [--leader <host:port>] [--group <room>] [--config <path>] \
            [--verbose] [--log-level <level>]
            """,
        discussion: "Example:\n  tutti queue play 4")
    // A negative number looks like a flag.
    @Argument(
        parsing: .allUnrecognized, help: ArgumentHelp("Position, from 1.", valueName: "n"))
    var positions: [String]
    @OptionGroup var options: ControlOptions

    func validate() throws { _ = try parsed() }

    private func parsed() throws -> Int {
        try refuseOptions(in: positions)
        guard positions.count == 1 else {
            throw ValidationError("write the position of one item: tutti queue play 4")
        }
        return try position(positions[0])
    }

    func run() async throws {
        let place = try parsed()
        try await options.steer { client in
            let item = try await client.wholeQueue().item(at: place)
            return EffectText(try await client.perform(.queue(.play(item.id)))).linesOfItem
        }
    }
}

extension GroupClient {
    /// What was added, once it is listed: folders and playlists are looked through meanwhile. What
    /// is left out is said; where that is all, nothing else is.
    ///
    /// - Throws: where there is nothing at all.
    fileprivate func addition(
        since before: QueueListing, _ progress: SendingLine
    ) async throws -> [String] {
        var now = before
        for _ in 0..<20 {
            now = try await queue(first: 0, count: 0)
            if now.revision != before.revision, now.coming == 0 { break }
            try await Task.sleep(for: .milliseconds(50))
        }
        let leftOut = QueueText.leftOut(from: before, to: now)
        for line in leftOut { progress.tellLeftOut(line) }
        guard now.coming > 0 || now.count > before.count else {
            guard leftOut.isEmpty else { return [] }
            throw CommandError("nothing was added: there is nothing to play in what was given")
        }
        return [QueueText.added(from: before, to: now)]
    }

    /// Takes items out, however many.
    func remove(_ ids: [QueueEntry.ID]) async throws {
        for start in stride(from: 0, to: ids.count, by: QueueEdit.mostItems) {
            let part = ids[start...].prefix(QueueEdit.mostItems)
            try await perform(.queue(.remove(Array(part))))
        }
    }
}
