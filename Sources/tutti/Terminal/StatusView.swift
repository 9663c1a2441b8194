import TuttiGroupControl

/// The lines of `tutti status` and of the demo's live table.
struct StatusView {
    /// What is shown.
    typealias Shown = GroupStatus

    var status: Shown
    var width: Int
    /// Of the bar at most, with the times at its ends; `nil`: as wide as all.
    var bar: Int?
    var showsColour = false
    /// What a room is called here; the demo hides the tag that keeps its rooms apart.
    var roomName: (String) -> String = { $0 }

    var lines: [String] { [headline, progress] + complaint + [""] + table }

    /// What is wrong with the group as a whole.
    var complaint: [String] {
        guard let detail = status.detail, !detail.isEmpty else { return [] }
        let line = detail.printable.cut(toColumns: width)
        return [showsColour ? "\u{1B}[31m\(line)\u{1B}[0m" : line]
    }

    var headline: String {
        let place = status.count > 1 ? " (item \(status.index + 1) of \(status.count))" : ""
        let format = status.sampleRate.map { " · \($0) Hz" } ?? ""
        let rate = [0, 1].contains(status.rate) ? "" : " · \(status.rate) times as fast"
        let volume = status.volume == 100 ? "" : " · \(status.volume) %"
        let title = status.title.isEmpty ? "nothing" : status.title.printable
        return
            "\(roomName(status.leader.printable)) · \(status.phase.rawValue) · \(title)\(place)\(rate)\(format)\(volume)"
            .cut(toColumns: width)
    }

    var progress: String {
        if status.title.isEmpty, status.durationSeconds == 0 { return "" }
        return Self.progress(
            position: status.positionSeconds, duration: status.durationSeconds,
            width: min(width, bar ?? width))
    }

    /// `1:23.4 ━━━━━━━────────── 3:05.0`, exactly as wide as asked for.
    static func progress(position: Double, duration: Double, width: Int) -> String {
        let left = PositionArgument.text(position)
        let right = duration > 0 ? PositionArgument.text(duration) : "live"
        let room = width - left.count - right.count - 2
        guard room >= 5 else { return "\(left) / \(right)".cut(toColumns: width) }
        let share = duration > 0 && position.isFinite ? min(max(position / duration, 0), 1) : 0
        let done = Int(share * Double(room))
        return left + " " + String(repeating: "━", count: done)
            + String(repeating: "─", count: room - done) + " " + right
    }

    private var table: [String] {
        var table = Table(columns: [
            .init(title: "room", rank: 9),
            .init(title: "state", rank: 8),
            .init(title: "buffer", alignsRight: true, rank: 3),
            .init(title: "clock ± bound µs", alignsRight: true, rank: 6),
            .init(title: "DAC ppm", alignsRight: true, rank: 5),
            .init(title: "error µs", alignsRight: true, rank: 7),
            .init(title: "volume", alignsRight: true, rank: 4),
            .init(title: "breaks", alignsRight: true, rank: 2),
            .init(title: "card", rank: 1, most: Self.longestCard),
            .init(title: "", rank: 1, most: Self.longestDetail),
        ])
        table.rows = status.rooms.map { room in
            [
                roomName(room.name.printable), room.state.rawValue,
                room.bufferSeconds < 1_000 ? room.bufferSeconds.text(1) + " s" : "> 999 s",
                Self.text(room.clockOffsetMicroseconds, sign: true) + " ± "
                    + Self.text(room.clockBoundMicroseconds),
                room.cardPartsPerMillion.text(2, sign: true),
                Self.text(room.errorMicroseconds, sign: true),
                (room.muted ? "muted" : "\(room.volume) %")
                    + (room.role.map { " \($0.rawValue)" } ?? ""), Self.breaks(of: room),
                (room.sync?.cardFormat ?? "").printable.split(separator: ",").prefix(2)
                    .joined(separator: ","),
                Self.detail(of: room),
            ]
        }
        let lines = table.lines(width: width)
        guard showsColour else { return lines }
        return zip(lines.indices, lines).map { index, line in
            index == 0
                ? "\u{1B}[1m\(line)\u{1B}[0m"
                : colour(of: status.rooms[index - 1]).map { "\($0)\(line)\u{1B}[0m" } ?? line
        }
    }

    /// Why the room stands where it stands, and whether it may be further off than it should.
    static func detail(of room: RoomStatus) -> String {
        let silence = room.sync?.isStale == true ? room.promiseObstacle : nil
        let (complaint, detail) = (alarm(of: room) ?? silence ?? "", room.detail.printable)
        // The same is not said twice.
        if complaint.hasSuffix(detail) { return complaint }
        return complaint.isEmpty ? detail : "\(complaint) · \(detail)"
    }

    /// What is wrong with the room's lockstep.
    static func alarm(of room: RoomStatus) -> String? {
        guard let sync = room.sync, sync.alarm else { return nil }
        return "ALARM: "
            + (room.promiseObstacle ?? "bound above target \(sync.targetMicroseconds.text(0)) µs")
    }

    /// Columns of a detail; the rest is in the JSON.
    private static let longestDetail = 120
    /// "384000 Hz, FLOAT_LE" and a little more.
    private static let longestCard = 24

    /// Dropouts and runs of the card together; more than anybody counts is many.
    static func breaks(of room: RoomStatus) -> String {
        let (sum, isTooMany) = room.dropouts.addingReportingOverflow(room.xruns)
        return isTooMany || sum > 9_999 ? "> 9999" : "\(sum)"
    }

    /// A figure in microseconds that may not be known; from ten seconds on it is only large.
    static func text(_ value: Double?, sign: Bool = false) -> String {
        guard let value else { return "–" }
        guard value.magnitude < 1e7 else {
            return value.isNaN ? "–" : value < 0 ? "< −10 s" : "> 10 s"
        }
        return value.text(1, sign: sign)
    }

    private func colour(of room: RoomStatus) -> String? {
        switch room.state {
        case .failed, .lost, .cardLost: "\u{1B}[31m"
        case .joining, .fetching, .prerolling: "\u{1B}[33m"
        case .playing, .paused, .ready, .idle, .noOutput:
            room.sync?.alarm == true ? "\u{1B}[33m" : nil
        }
    }
}
