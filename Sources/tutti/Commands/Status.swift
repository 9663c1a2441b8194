import ArgumentParser
import TuttiGroupControl
import TuttiRoom

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `tutti status`.
struct Status: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show what a group plays and how well its rooms keep together.",
        discussion: """
            Per room: state, decoded audio ahead, movement of the clock estimate ± its bound, the \
            measured error of the card's crystal, and by how much the sound is late (+) or early \
            (−) at the DAC. On a terminal, --watch draws a live table; elsewhere it prints a line \
            when something changed, one a second at most, or with --json an object on a line for \
            each change. The numbers "sequence" and "queueRevision" of the JSON grow under one \
            leader; the next one counts anew ("leader", "sessionTerm" and "session" say who leads, in \
            which term, and which session it is).

            --sync shows the truth about lockstep. Promised: the room is within ± this of the \
            group's line, however the network divides its delay between the two directions, and \
            what the promise is made of. Expected: the likely error, no promise. Two rooms are \
            within the sum of their promises. What hangs behind the sound card is in both where \
            it was measured (tutti offset ROOM 1500±50), and in neither elsewhere.

            Examples:
              tutti status
              tutti status --watch
              tutti status --sync
              tutti status --sync --json
              tutti status --json --leader 192.168.1.20
            """)

    @Flag(help: "Print JSON.")
    var json = false

    @Flag(help: "Show how well the rooms keep together, and why; with --json also the history.")
    var sync = false

    @Flag(help: "Go on until Ctrl-C, or q; a leader that goes away is waited for.")
    var watch = false

    @OptionGroup var options: ControlOptions

    func run() async throws {
        try await untilInterrupted {
            let isOpen = try await options.isOpen()
            if watch {
                try await StatusWatch(
                    connect: { try await options.connect() }, hasPoints: sync, isJSON: json,
                    print: { print($0, sequence: $1, isOpen: isOpen) },
                    lines: { lines($0, width: $1, showsColour: $2, isOpen: isOpen) },
                    line: {
                        (isOpen ? "open · " : "")
                            + (sync ? SyncView.plainLine($0) : Self.plainLine($0))
                    }
                ).run()
            } else {
                let client = try await options.connect()
                let status = try await client.whoeverLeads { try await $0.status(hasPoints: sync) }
                print(status, isOpen: isOpen)
            }
        }
    }

    /// - Returns: false when nobody reads any more.
    @discardableResult
    private func print(
        _ status: GroupStatus, sequence: UInt64? = nil, isOpen: Bool
    ) -> Bool {
        let terminal = Terminal.output
        if json {
            return terminal.write(
                jsonText(
                    StatusDocument(status: status, sequence: sequence, isOpen: isOpen),
                    pretty: !watch) + "\n")
        } else {
            let isLive = terminal.isInteractive
            let lines = lines(
                status, width: isLive ? terminal.width : Self.plainWidth,
                bar: isLive ? nil : Self.plainBar, showsColour: terminal.showsColour, isOpen: isOpen
            )
            return terminal.write(lines.joined(separator: "\n") + "\n")
        }
    }

    private func lines(
        _ status: GroupStatus, width: Int, bar: Int? = nil, showsColour: Bool, isOpen: Bool
    ) -> [String] {
        (sync
            ? SyncView(status: status, width: width, bar: bar, showsColour: showsColour).lines
            : StatusView(status: status, width: width, bar: bar, showsColour: showsColour).lines)
            + (isOpen ? [Self.openWarning] : [])
    }

    static let openWarning = "open: everybody on the network may steer this group, and read it"

    /// A pipe has no width: wide enough that nothing is left out.
    private static let plainWidth = 200
    /// … but for a bar, which tells no more by its length.
    private static let plainBar = 80

    static func plainLine(_ status: GroupStatus) -> String {
        let title = status.title.isEmpty ? "nothing" : "\"\(status.title.printable)\""
        let rooms = status.rooms.map { room in
            "\(room.name.printable) \(room.state.rawValue) "
                + StatusView.text(room.errorMicroseconds, sign: true) + " µs"
                + (StatusView.alarm(of: room).map { " \($0)" } ?? "")
        }
        return
            "\(status.phase.rawValue) \(title) \(PositionArgument.text(status.positionSeconds)) · "
            + rooms.joined(separator: ", ")
    }
}

/// JSON with sorted keys, so that two runs can be compared.
func jsonText(_ value: some Encodable, pretty: Bool) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting =
        pretty
        ? [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
        : [.sortedKeys, .withoutEscapingSlashes]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
        positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    guard let data = try? encoder.encode(value) else {
        preconditionFailure("a value of strings and numbers has no JSON: \(value)")
    }
    return String(decoding: data, as: UTF8.self)
}

/// `tutti rooms`.
struct Rooms: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List the rooms that Avahi finds.",
        discussion: "Examples:\n  tutti rooms\n  tutti rooms --json")

    @Flag(help: "Print JSON.")
    var json = false

    @Option(parsing: .unconditional, help: ArgumentHelp("How long to look.", valueName: "s"))
    var seconds = 1.5

    func validate() throws {
        guard (0.1...60).contains(seconds) else {
            throw ValidationError("--seconds takes 0.1 to 60, not \(seconds)")
        }
    }

    func run() async throws {
        try await untilInterrupted {
            let rooms = try await find()
            if json {
                Terminal.output.write(jsonText(rooms.map(Line.init), pretty: true) + "\n")
            } else if rooms.isEmpty {
                Terminal.error.write(
                    "No room answers on this network. Start one with tutti node.\n")
            } else {
                var table = Table(columns: [
                    .init(title: "room", rank: 5), .init(title: "role", rank: 4),
                    .init(title: "group", rank: 3), .init(title: "host", rank: 1),
                    .init(title: "address", rank: 2),
                ])
                let names = Dictionary(grouping: rooms, by: \.name.foldedName)
                table.rows = rooms.map {
                    let isAlone = names[$0.name.foldedName]?.count == 1
                    return [
                        (isAlone ? $0.name : $0.label).printable, $0.role.rawValue,
                        $0.group.printable, $0.host.printable,
                        $0.role == .leader ? "\($0.address)" : $0.address.host,
                    ]
                }
                let terminal = Terminal.output
                let width = terminal.isInteractive ? terminal.width : 200
                terminal.write(table.lines(width: width).joined(separator: "\n") + "\n")
            }
        }
    }

    /// Here Avahi is the only way: there is no address to give instead.
    private func find() async throws -> [DiscoveredRoom] {
        do {
            return try await Discovery.rooms(for: .milliseconds(Int(seconds * 1000)))
        } catch let error as RoomError where error.code == .noDiscovery {
            throw CommandError(
                "rooms are listed by Avahi, and avahi-daemon does not answer: start it (systemctl start avahi-daemon), or ask a leader whose address you know: tutti status --leader HOST:PORT"
            )
        }
    }

    /// One room in the JSON.
    private struct Line: Encodable {
        var name: String
        var role: String
        var group: String
        var host: String
        var address: String
        var port: Int

        init(_ room: DiscoveredRoom) {
            name = room.name
            role = room.role.rawValue
            group = room.group
            host = room.host
            address = room.address.host
            port = room.address.port
        }
    }
}
