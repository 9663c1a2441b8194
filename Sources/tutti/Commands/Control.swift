import ArgumentParser
import GroupControl
import Room

/// Options of a command that talks to a leader.
struct ControlOptions: ParsableArguments {
    @OptionGroup var leader: LeaderOptions
    @OptionGroup var common: CommonOptions

    /// The leader that is meant, connected.
    func connect() async throws -> GroupClient {
        let settings = try await Settings.announced(
            flags: leader.flags + common.flags, file: common.config)
        return try await LeaderSearch(settings).client()
    }

    /// Sends one command and waits for the leader's answer.
    ///
    /// - Parameter isSaid: whether to print what the command has done.
    func perform(_ command: GroupCommand, isSaid: Bool = true) async throws {
        try await untilInterrupted {
            let effect = try await connect().perform(command)
            guard isSaid else { return }
            for line in EffectText(effect).lines { Terminal.output.say(line) }
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
