import ArgumentParser
import GroupControl
import Room

/// Finds the leader that a command is for.
///
/// The choice is the same whatever is remembered; who remembers only knows sooner that there is
/// nothing else to wait for.
struct LeaderSearch {
    /// Long enough for Avahi's answers from a busy wifi, short enough to wait for at a prompt.
    static let patience: [Duration] = [.milliseconds(400), .milliseconds(1_600)]
    /// A leader that is there answers within this, also over a busy wifi.
    static let answerLimit = Duration.seconds(1)
    /// A remembered leader answers within this; else the LAN is looked at.
    static let knownAnswerLimit = Duration.milliseconds(300)

    let settings: Settings

    init(_ settings: Settings) { self.settings = settings }

    /// The leader that is meant; it has just answered.
    func client() async throws -> GroupClient {
        if let leader = settings.leader { return try await client(at: leader) }
        guard settings.avahi else {
            throw ValidationError("Without Avahi the leader must be given: --leader HOST:PORT")
        }
        var memory = LeaderMemory.read(in: settings.stateFolder)
        var seen: Set<String> = []
        for duration in Self.patience {
            let expected = memory
            let announced = try await Discovery.leaders(for: duration) {
                expected?.confirms($0) ?? false
            }
            seen.formUnion(announced.map { "\($0.name)" })
            if memory.take()?.confirms(announced) ?? false,
                Self.meant(announced, group: settings.group).count == 1
            {
                if let known = await known(announced) { return GroupClient(address: known.address) }
                // The remembered leader is silent: the next look takes its whole time.
                continue
            }
            guard let choice = try await choice(of: announced) else { continue }
            return GroupClient(address: choice.address)
        }
        throw RoomError(
            .noLeader,
            settings.group.map {
                "no leader named \"\($0)\" answers on this network: see tutti rooms, or give --leader HOST:PORT"
                    + Suggestion.question(for: "\($0)", among: seen.sorted())
            }
                ?? "no leader answers on this network: start one with tutti lead FILE, or give --leader HOST:PORT"
        )
    }

    /// The one whose address is given, whatever it is called.
    private func client(at address: HostPort) async throws -> GroupClient {
        let client = GroupClient(address: address)
        let name = try await client.status().leader
        if let group = settings.group, group.foldedName != name.foldedName {
            let warning = GroupClient.otherName(name, at: address, insteadOf: group)
            Terminal.error.say("tutti: warning: \(warning)")
        }
        return client
    }

    /// The leader of the last look, when the daemon knows of no other one and it answers.
    private func known(_ announced: [DiscoveredRoom]) async -> DiscoveredRoom? {
        await Discovery.answering(
            Self.meant(announced, group: settings.group), within: Self.knownAnswerLimit
        ).first
    }

    private func choice(of announced: [DiscoveredRoom]) async throws -> DiscoveredRoom? {
        let meant = Self.meant(announced, group: settings.group)
        guard !meant.isEmpty else { return nil }
        let answering = await Discovery.answering(meant, within: Self.answerLimit)
        guard let choice = try Self.choose(answering, group: settings.group) else {
            throw RoomError(.unreachable, Self.silence(of: meant))
        }
        LeaderMemory(announced).write(in: settings.stateFolder)
        return choice
    }

    static func silence(of leaders: [DiscoveredRoom]) -> String {
        guard leaders.count == 1 else {
            return
                "\(leaders.count) leaders are announced, and none answers: are they still there? See tutti rooms"
        }
        return
            "the leader \"\(leaders[0].name)\" is announced at \(leaders[0].address), and does not answer: is it still there, and is the port open?"
    }

    static func meant(_ leaders: [DiscoveredRoom], group: String?) -> [DiscoveredRoom] {
        leaders.filter { leader in group.map(leader.isCalled) ?? true }
    }

    /// The leader to talk to; `nil` while there is none.
    ///
    /// - Throws: when there are several and nothing says which.
    static func choose(
        _ leaders: [DiscoveredRoom], group: String?
    ) throws(CommandError) -> DiscoveredRoom? {
        let leaders = meant(leaders, group: group)
        guard leaders.count > 1 else { return leaders.first }
        if let group {
            let addresses = leaders.map { "\($0.label) at \($0.address)" }.joined(separator: ", ")
            throw CommandError(
                "\(leaders.count) leaders are named \"\(group)\": \(addresses); choose one with --leader HOST:PORT"
            )
        }
        let names = leaders.map { "\"\($0.name)\" (\($0.address))" }.joined(separator: ", ")
        throw CommandError(
            "\(leaders.count) leaders answer: \(names); choose one with --group ROOM or --leader HOST:PORT"
        )
    }
}
