import ArgumentParser
import TuttiGroupControl
import TuttiRoom
import TuttiTiming

/// `tutti scene`.
struct SceneCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scene",
        abstract: "Keep how rooms are grouped and how loud they are, and have it so again.",
        discussion: """
            A scene has rooms, in which groups they are, their volumes, channels and delays, and, if \
            wanted, what plays. This machine keeps it; tutti backup takes it along.

            Examples:
              tutti scene save evening
              tutti scene save breakfast --music http://radio.example/news.mp3
              tutti scene recall evening
              tutti scene delete evening
            """,
        subcommands: [SceneList.self, SceneSave.self, SceneRecall.self, SceneDelete.self],
        defaultSubcommand: SceneList.self)
}

/// `tutti scene list`.
struct SceneList: AsyncParsableCommand, Wordless {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the scenes that this machine keeps.")

    @OptionGroup var options: ControlOptions

    func run() async throws {
        let book = try SceneBook.load(folder: try await options.settings().stateFolder)
        guard !book.scenes.isEmpty else {
            Terminal.error.say(
                "No scene is kept yet: tutti scene save NAME keeps the rooms as they are.")
            return
        }
        for scene in book.scenes {
            Terminal.output.say("\(scene.name): \(scene.summary)".printable)
        }
    }
}

/// `tutti scene save`.
struct SceneSave: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "save",
        abstract: "Keep the rooms as they are now, all of the house or those of --group.",
        discussion: """
            One of the same name is replaced. With --music the scene plays that when it is recalled; \
            without, the rooms go on with what some of them play already.
            """)

    @Argument(help: "What it is called.") var name: String
    @Option(
        parsing: .upToNextOption,
        help: ArgumentHelp(
            "What plays then.", valueName: "file|folder|playlist|url"),
        completion: .file())
    var music: [String] = []
    @Option(help: ArgumentHelp("Where it begins (default: 0).", valueName: "m:s")) var at: String?
    @OptionGroup var options: ControlOptions

    func validate() throws {
        guard (try? RoomID(name)) != nil else {
            throw ValidationError("\"\(name)\" is no name: write 1 to 64 printable characters")
        }
        if at != nil, music.isEmpty { throw ValidationError("--at says where --music begins") }
        if let at, Self.seconds(at) == nil {
            throw ValidationError("\"\(at)\" is no place: write seconds, m:s or h:m:s")
        }
    }

    private static func seconds(_ text: String) -> Double? {
        if case .time(let seconds)? = PositionArgument(argument: text) { seconds } else { nil }
    }

    func run() async throws {
        let settings = try await options.settings()
        try await untilInterrupted {
            var book = try SceneBook.load(folder: settings.stateFolder)
            let house = try await HouseGroups.look(options)
            let meant = settings.group.map { group in house.groups.filter { $0.has(group) } }
            let groups = (meant ?? house.groups).map { Scene.Group($0.status) }
                .filter { !$0.rooms.isEmpty }
            guard !groups.isEmpty else {
                throw CommandError("no room is there that could be kept: see tutti rooms")
            }
            let scene = Scene(
                name: name, groups: groups,
                music: music.isEmpty
                    ? nil
                    : Scene.Music(
                        locations: music.map(QueueAdd.whole),
                        seconds: at.flatMap(Self.seconds) ?? 0))
            try book.keep(scene)
            try book.save(folder: settings.stateFolder)
            Terminal.output.say("\(scene.name): \(scene.summary)".printable)
        }
    }
}

/// `tutti scene recall`.
struct SceneRecall: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recall",
        abstract: "Have the rooms so again.",
        discussion: """
            Rooms of the scene come together, and those that are in the way leave with what is theirs. A \
            room that is not there is left out, with a line.
            """)

    @Argument(help: "The scene.", completion: .custom(Completions.scenes)) var name: String
    @OptionGroup var options: ControlOptions

    func run() async throws {
        let settings = try await options.settings()
        let scene = try SceneBook.load(folder: settings.stateFolder).scene(name)
        try await untilInterrupted {
            for group in scene.groups {
                try await SceneStage(options: options, group: group, music: scene.music).set()
            }
        }
    }
}

/// `tutti scene delete`.
struct SceneDelete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Forget a scene.")

    @Argument(help: "The scene.", completion: .custom(Completions.scenes)) var name: String
    @OptionGroup var options: ControlOptions

    func run() async throws {
        let folder = try await options.settings().stateFolder
        var book = try SceneBook.load(folder: folder)
        try book.remove(name)
        try book.save(folder: folder)
        Terminal.output.say("\(name): deleted".printable)
    }
}

/// Brings the rooms of one group of a scene together, and makes them as they were.
private struct SceneStage {
    let options: ControlOptions
    let group: Scene.Group
    let music: Scene.Music?

    private var names: Set<String> { Set(group.rooms.map(\.name.foldedName)) }

    func set() async throws {
        let house = try await HouseGroups.look(options, having: group.rooms.map(\.name))
        let present = Set(
            house.groups.flatMap { $0.status.rooms }.filter { $0.state != .lost }
                .map(\.name.foldedName))
        let rooms = group.rooms.filter { present.contains($0.name.foldedName) }
        for room in group.rooms where !present.contains(room.name.foldedName) {
            Terminal.error.say("tutti: warning: \"\(room.name)\" is not there".printable)
        }
        guard let first = anchor(of: rooms, in: house) else { return }
        for room in rooms where room.name != first.name {
            // Each move may change who leads.
            let house = try await HouseGroups.look(options, having: [room.name, first.name])
            let said = try await house.move(
                try RoomID(room.name), to: try await house.group(called: first.name))
            Terminal.output.say(said.printable)
        }
        try await sendOthersAway(from: first.name)
        let now = try await HouseGroups.look(options, having: [first.name])
        let client = try await now.client(of: now.group(called: first.name))
        try await client.whoeverLeads { try await give(rooms, to: $0) }
    }

    /// The room to which the others come: in a group that plays, or at least has something in its queue;
    /// of those the one that led.
    private func anchor(of rooms: [Scene.Room], in house: HouseGroups) -> Scene.Room? {
        func worth(_ room: Scene.Room) -> Int {
            let status = house.groups.first { $0.has(room.name) }?.status
            let music = status?.phase == .playing ? 4 : status.map { $0.count > 0 ? 2 : 0 } ?? 0
            return music + (room.name.foldedName == group.leader.foldedName ? 1 : 0)
        }
        return rooms.max { worth($0) < worth($1) }
    }

    private func sendOthersAway(from first: String) async throws {
        let status = try await HouseGroups.look(options, having: [first]).group(called: first)
            .status
        for room in status.rooms
        where !names.contains(room.name.foldedName) && room.state != .lost {
            let house = try await HouseGroups.look(options, having: [room.name])
            let said = try await house.separate(try RoomID(room.name))
            Terminal.output.say(said.printable)
        }
    }

    private func give(_ rooms: [Scene.Room], to leader: GroupClient) async throws {
        _ = try await leader.perform(.volume(room: nil, percent: group.volume))
        for room in rooms {
            let name = try RoomID(room.name)
            for command in [
                GroupCommand.volume(room: name, percent: room.volume),
                .mute(room: name, muted: room.muted), .role(room: name, room.role),
            ] { _ = try await leader.perform(command) }
            guard let offset = room.offsetMicroseconds,
                let known = try? LatencyOffset(microseconds: offset)
            else { continue }
            do {
                _ = try await leader.perform(.latencyOffset(room: name, known))
            } catch let error as RoomError where error.code == .refused {
                Terminal.error.say("tutti: warning: \(error)".printable)
            }
        }
        if let music { try await play(music, at: leader) }
        Terminal.output.say(
            (rooms.map(\.name).joined(separator: " + ") + ": as kept").printable)
    }

    /// Reading a long file on a slow disk takes a while.
    private static let readingLimit = Duration.seconds(20)

    /// In the place of what is in the queue, which stays where nothing of it can be played.
    private func play(_ music: Scene.Music, at leader: GroupClient) async throws {
        let before = try await leader.wholeQueue().items
        try await leader.add(music.locations, at: .end) { _ in }
        let known = Set(before.map(\.id))
        let deadline = ContinuousClock.now + Self.readingLimit
        var added: QueueListing.Item?
        var seen: UInt64?
        // It is listed a moment after it was taken, and known once it was read.
        while added == nil || added?.state == .unread, ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(50))
            let revision = try await leader.queue(first: 0, count: 0).revision
            guard revision != seen else { continue }
            seen = revision
            added = try await leader.wholeQueue().items
                .first { !known.contains($0.id) && $0.state != .unplayable }
        }
        guard let first = added else {
            throw CommandError("nothing of the scene's music can be played")
        }
        _ = try await leader.perform(.queue(.play(first.id)))
        while ContinuousClock.now < deadline {
            let status = try await leader.status()
            let now = try await leader.queue(first: status.index, count: 1)
            if now.items.first?.id == first.id, now.phase == .playing { break }
            try await Task.sleep(for: .milliseconds(100))
        }
        try await leader.remove(before.map(\.id))
        if music.seconds > 0 { _ = try await leader.perform(.seek(seconds: music.seconds)) }
    }
}
