import ArgumentParser
import TuttiGroupControl
import TuttiRoom

/// `tutti move`.
struct Move: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Let a room play in another group.",
        discussion: """
            A group is named by any of its rooms, or by the address of its leader. The room plays on until \
            the other group has taken it in; neither group notices anything else. A room that leads \
            hands its group over first.

            Examples:
              tutti move bedroom to kitchen
              tutti move bedroom to 192.168.1.20:7430
            """)

    @Argument(
        help: ArgumentHelp("The room, \"to\", and the group.", valueName: "room to group"),
        completion: .custom(Completions.rooms))
    var words: [String]

    @OptionGroup var options: ControlOptions

    func validate() throws { _ = try parsed() }

    private func parsed() throws -> (room: RoomID, group: String) {
        try refuseOptions(in: words)
        guard let (room, group) = sides(of: words) else {
            throw ValidationError("which room, and where? write tutti move ROOM to GROUP")
        }
        return (try roomArgument(room), group)
    }

    func run() async throws {
        let (room, group) = try parsed()
        try await untilInterrupted {
            let house = try await HouseGroups.look(options, having: [room.name])
            let said = try await house.move(room, to: try await house.group(called: group))
            Terminal.output.say(said.printable)
        }
    }
}

/// `tutti group`.
struct GroupTogether: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "group",
        abstract: "Let rooms play together: all of them what the first one plays.",
        discussion: """
            Example:
              tutti group kitchen+bedroom+bath
            """)

    @Argument(
        help: ArgumentHelp(
            "Names of rooms, with + between them.", valueName: "room+room"),
        completion: .custom(Completions.rooms))
    var rooms: [String]

    @OptionGroup var options: ControlOptions

    func validate() throws { _ = try parsed() }

    private func parsed() throws -> [RoomID] {
        try refuseOptions(in: rooms)
        let names = rooms.flatMap { $0.split(separator: "+") }.map(String.init)
        guard names.count >= 2 else {
            throw ValidationError("which rooms? write tutti group ROOM+ROOM")
        }
        return try names.map(roomArgument)
    }

    func run() async throws {
        let rooms = try parsed()
        try await untilInterrupted {
            for room in rooms.dropFirst() {
                // Each move may change who leads.
                let house = try await HouseGroups.look(
                    options, having: [room.name, rooms[0].name])
                let said = try await house.move(
                    room, to: try await house.group(called: rooms[0].name))
                Terminal.output.say(said.printable)
            }
        }
    }
}

/// `tutti ungroup`.
struct Ungroup: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Let a room leave its group, and lead one of its own with nothing in its queue.",
        discussion: "Example:\n  tutti ungroup bedroom")

    @Argument(
        help: ArgumentHelp("The room.", valueName: "room"),
        completion: .custom(Completions.rooms))
    var room: String

    @OptionGroup var options: ControlOptions

    func validate() throws { _ = try roomArgument(room) }

    func run() async throws {
        let room = try roomArgument(room)
        try await untilInterrupted {
            let house = try await HouseGroups.look(options, having: [room.name])
            let said = try await house.separate(room)
            Terminal.output.say(said.printable)
        }
    }
}

/// `tutti move-queue`.
struct MoveQueue: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move-queue",
        abstract: "Let the rooms of one group go on with what another one plays.",
        discussion: """
            The queue goes over with its place, and plays on: the rooms there join in, and the rooms here \
            are in a group of their own then, with nothing in its queue. What the other group had in its \
            queue is gone. A group is named by any of its rooms.

            Example:
              tutti move-queue kitchen to bedroom
            """)

    @Argument(
        help: ArgumentHelp(
            "The group that plays, \"to\", and the other.", valueName: "group to group"),
        completion: .custom(Completions.rooms))
    var words: [String]

    @OptionGroup var options: ControlOptions

    func validate() throws { _ = try parsed() }

    private func parsed() throws -> (from: String, to: String) {
        try refuseOptions(in: words)
        guard let sides = sides(of: words) else {
            throw ValidationError(
                "from which group, and to which? write tutti move-queue GROUP to GROUP")
        }
        return sides
    }

    func run() async throws {
        let (from, to) = try parsed()
        try await untilInterrupted {
            try await QueueMoving(options: options).run(from: from, to: to) {
                Terminal.output.say($0.printable)
            }
        }
    }
}

/// The queue stays with its session, and the session goes to another room: the rooms of the other group
/// come in, one of them leads, and the rooms that were there leave. So nothing is read anew, and who
/// joins plays from where the others are.
private struct QueueMoving {
    let options: ControlOptions

    func run(from: String, to: String, say: (String) -> Void) async throws {
        let house = try await HouseGroups.look(options)
        let source = try await house.group(called: from)
        let target = try await house.group(called: to)
        guard source.status.leader.foldedName != target.status.leader.foldedName else {
            throw CommandError("\"\(from)\" and \"\(to)\" are in one group")
        }
        let before = source.status.rooms.filter { $0.state != .lost }.map(\.name)
        // Its leader last: until then nobody else has to lead there.
        let coming = target.status.rooms.filter { $0.state != .lost }.map(\.name)
            .sorted { a, b in b.foldedName == target.status.leader.foldedName && a != b }
        guard let first = before.first else {
            throw CommandError("no room plays in the group of \"\(from)\"")
        }
        guard let next = coming.last else {
            throw CommandError("no room is in the group of \"\(to)\"")
        }
        for room in coming {
            let house = try await HouseGroups.look(options, having: [room, first])
            say(
                try await house.move(
                    try RoomID(room), to: try await house.group(called: first)))
        }
        let heir = try RoomID(next)
        let there = try await HouseGroups.look(options, having: [first, next])
        let leader = try await there.client(of: there.group(called: first))
        _ = try await leader.whoeverLeads { try await $0.perform(.handOver(to: heir)) }
        say("\"\(heir)\" leads the group now")
        var own: String?
        for room in before {
            let house = try await HouseGroups.look(
                options, having: [room] + (own.map { [$0] } ?? []))
            let id = try RoomID(room)
            if let own {
                say(try await house.move(id, to: try await house.group(called: own)))
            } else {
                say(try await house.separate(id))
                own = room
            }
        }
    }
}

/// What stands before and behind "to", which may be left out; `nil` where something is missing, or more is
/// there.
private func sides(of words: [String]) -> (from: String, to: String)? {
    let names = words.count == 3 && words[1] == "to" ? [words[0], words[2]] : words
    return names.count == 2 ? (names[0], names[1]) : nil
}
