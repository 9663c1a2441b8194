import ArgumentParser
import TuttiGroupControl
import TuttiRoom

/// Options of a command that talks to a leader.
struct ControlOptions: ParsableArguments {
    @OptionGroup var leader: LeaderOptions
    @OptionGroup var common: CommonOptions

    @Option(
        help: ArgumentHelp(
            "Folder with this machine's key (default: ~/.local/state/tutti).", valueName: "path"),
        completion: .directory)
    var stateFolder: String?

    @Flag(help: "The group was started with --open, for everybody on the network.")
    var open = false

    private var flags: [SettingKey: String] {
        var flags = leader.flags + common.flags
        flags[.stateFolder] = stateFolder
        flags[.open] = open ? "true" : nil
        return flags
    }

    func settings() async throws -> Settings {
        try await Settings.announced(flags: flags, file: common.config)
    }

    /// Whether the group that is asked is open to everybody: only such a one answers then.
    func isOpen() async throws -> Bool {
        try await Settings.load(flags: flags, file: common.config).isOpen
    }

    /// The leader that is meant, connected.
    ///
    /// - Parameter room: what the command is about, if it is about one.
    func connect(about room: RoomID? = nil, anew: Bool = false) async throws -> GroupClient {
        let settings = try await settings()
        return try await LeaderSearch(
            settings, settings.credentials(), about: room, looksAnew: anew
        ).client()
    }

    /// Does something with the leader that is meant, or with the one that leads by now, and prints the
    /// lines that say what came of it.
    func steer(
        about room: RoomID? = nil,
        _ work: @escaping @Sendable (GroupClient) async throws -> [String]
    ) async throws {
        try await untilInterrupted {
            let client = try await connect(about: room)
            let lines: [String]
            do {
                lines = try await client.whoeverLeads(work)
            } catch let error as RoomError where error.code == .refused {
                guard let room, try await !has(client, room) else { throw error }
                // It may be in a group that was not known yet.
                let other = try await connect(about: room, anew: true)
                lines = try await other.whoeverLeads(work)
            }
            for line in lines { Terminal.output.say(line.printable) }
        }
    }

    /// Whether a room is heard in the group that a leader leads.
    private func has(_ leader: GroupClient, _ room: RoomID) async throws -> Bool {
        try await leader.whoeverLeads { try await $0.status() }.rooms.contains {
            $0.state != .lost && $0.name.foldedName == room.name.foldedName
        }
    }

    /// Sends one command, waits for the leader's answer, and prints what the command has done.
    ///
    /// - Parameter words: where the effect does not say it.
    func perform(_ command: GroupCommand, saying words: String? = nil) async throws {
        try await steer(about: command.room) { client in
            let effect = try await client.perform(command)
            let text = EffectText(effect)
            return words.map { [$0] } ?? (command.isForAnItem ? text.linesOfItem : text.lines)
        }
    }
}

/// A room as a person writes it, on the command line.
func roomArgument(_ text: String) throws(ValidationError) -> RoomID {
    do {
        return try RoomID(text)
    } catch {
        throw ValidationError("\(error)")
    }
}

/// Refuses unknown options, which a command that takes negative numbers would take as words.
func refuseOptions(in words: [String]) throws(ValidationError) {
    if let option = words.first(where: { $0.hasPrefix("--") && $0.count > 2 }) {
        throw ValidationError("there is no option \"\(option)\" here")
    }
}

extension GroupCommand {
    /// Whether it asks for another item than the one that plays.
    fileprivate var isForAnItem: Bool {
        switch self {
        case .next, .previous, .queue(.play): true
        default: false
        }
    }

    /// The room that it is about; `nil`: the group.
    fileprivate var room: RoomID? {
        switch self {
        case .volume(let room, _), .volumeBy(let room, _), .mute(let room, _): room
        case .role(let room, _), .latencyOffset(let room, _), .handOver(let room): room
        case .play, .pause, .seek, .seekBy, .seekTo, .rate, .next, .previous, .stop, .move,
            .separate, .queue:
            nil
        }
    }
}
