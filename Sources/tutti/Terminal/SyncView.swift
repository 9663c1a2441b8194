import TuttiGroupControl

/// The lines of `tutti status --sync`: for each room what is promised, why, and what to expect.
struct SyncView {
    var status: GroupStatus
    var width: Int
    /// See ``StatusView/bar``.
    var bar: Int?
    var showsColour = false

    /// Columns of a sparkline: a bar for ten seconds.
    private static let sparkWidth = 30
    /// Where the text of a line begins, and goes on when it is too long for one.
    private static let indent = 12
    /// Least value that fills a bar, µs: on a finer scale noise looks like a landscape.
    private static let leastTop: Float = 1

    var lines: [String] {
        let view = StatusView(status: status, width: width, bar: bar, showsColour: showsColour)
        return [view.headline, view.progress] + view.complaint
            + group.wrapped(toColumns: width, indent: 2) + dropped
            + status.rooms.flatMap { [""] + block($0) }
    }

    private var group: String {
        switch status.promise {
        case .within(let promised, let expected):
            "any two rooms within \(promised.text(1)) µs (promised), "
                + "\(expected.text(1)) µs (expected)"
        case .nothing(let reason):
            "no promise about all rooms together: \(reason.printable)"
        }
    }

    /// By the leader.
    private var dropped: [String] {
        guard let drops = status.dropped else { return [] }
        return "datagrams dropped: \(drops.words)".wrapped(toColumns: width, indent: 2)
    }

    private func block(_ room: RoomStatus) -> [String] {
        guard let sync = room.sync else {
            return ["\(room.name.printable) · \(room.state.rawValue) · no report yet"]
                .map { $0.cut(toColumns: width) }
        }
        let title = title(room, sync).wrapped(toColumns: width, indent: 2).map { line in
            guard showsColour else { return line }
            return (sync.alarm ? "\u{1B}[31;1m" : "\u{1B}[1m") + line + "\u{1B}[0m"
        }
        let figures = [
            ("line", sync.line.printable), ("error", error(room, sync)),
            ("promised", promise(room, sync)),
            ("made of", parts(sync)),
            ("expected", sync.expectedMicroseconds.map { "± \($0.text(1)) µs" } ?? "–"),
            ("rates", rates(room, sync)), ("clock", clock(room, sync)),
            ("multicast", broadcasts(room, sync.broadcasts)),
            ("datagrams", sync.dropped.map { "dropped: \($0.words)" } ?? ""),
            ("card", card(room, sync)),
            ("detail", room.detail.printable),
        ]
        return title
            + figures.filter { !$0.1.isEmpty }.flatMap { label, text in
                ("  " + label.padded(to: Self.indent - 2) + text)
                    .wrapped(toColumns: width, indent: Self.indent)
            }
    }

    private func title(_ room: RoomStatus, _ sync: SyncStatus) -> String {
        let target = "target \(sync.targetMicroseconds.text(0)) µs"
        let verdict = StatusView.alarm(of: room) ?? target
        // A stale report shows its age, since what it says may no longer hold.
        let isOld = sync.isStale && room.state != .lost
        let age = isOld ? "\(Int(sync.reportAgeSeconds)) s ago: " : ""
        return "\(room.name.printable) · \(age)\(room.state.rawValue) · clock "
            + "\(sync.clock.rawValue) · \(verdict)"
    }

    private func error(_ room: RoomStatus, _ sync: SyncStatus) -> String {
        let now =
            room.errorMicroseconds.map { "\($0.text(1, sign: true)) µs at the DAC" }
            ?? (sync.boundMicroseconds == nil ? "not known" : "none: nothing sounds")
        return now + spread(sync.history.error, sync.history.errors, sync)
    }

    private func promise(_ room: RoomStatus, _ sync: SyncStatus) -> String {
        let now =
            sync.boundMicroseconds.map { "± \($0.text(1)) µs" }
            ?? "nothing: \(room.promiseObstacle ?? "")"
        return now + spread(sync.history.bound, sync.history.bounds, sync)
    }

    private func spread(_ spread: Spread?, _ points: [Float], _ sync: SyncStatus) -> String {
        guard let spread else { return "" }
        let history = sync.history
        let spark = Sparkline.text(
            points, ages: history.ages, span: Float(history.seconds), width: Self.sparkWidth,
            top: max(Float(spread.max), Self.leastTop))
        return "; last \(history.seconds) s: min \(spread.min.text(1)) p50 \(spread.p50.text(1)) "
            + "p99 \(spread.p99.text(1)) max \(spread.max.text(1))"
            + (spark.isEmpty ? "" : " " + spark)
    }

    private func parts(_ sync: SyncStatus) -> String {
        let parts = sync.parts
        guard sync.boundMicroseconds != nil || parts.clockMicroseconds != nil else { return "–" }
        return "error \(StatusView.text(parts.errorMicroseconds))"
            + " + clock \(StatusView.text(parts.clockMicroseconds))"
            + " + path \(StatusView.text(parts.pathMicroseconds))"
            + " + card \(StatusView.text(parts.cardMicroseconds))"
            + (parts.calibrationMicroseconds.map { " + calibration \($0.text(1)) µs" }
                ?? " µs; behind the card: not measured")
    }

    private func rates(_ room: RoomStatus, _ sync: SyncStatus) -> String {
        "resampling \(room.ratioPartsPerMillion.text(2, sign: true)) ppm, "
            + "card \(room.cardPartsPerMillion.text(2, sign: true)) ppm, leader "
            + "\(sync.skewPartsPerMillion.text(3, sign: true)) ± "
            + "\(sync.skewDeviationPartsPerMillion.text(3)) ppm"
    }

    private func clock(_ room: RoomStatus, _ sync: SyncStatus) -> String {
        guard sync.ownStamps != .absent else {
            return room.stamps == .own
                ? "the group's own"
                : "no exchange yet: \(sync.packetsSent) sent, \(sync.packetsAnswered) answered"
        }
        let trip = room.roundTripMicroseconds.map { ", last round trip \($0.text(0)) µs" } ?? ""
        return "stamps here \(sync.ownStamps.rawValue), at the leader "
            + "\(sync.leaderStamps.rawValue)\(trip); \(sync.packetsSent) sent, "
            + "\(sync.packetsAnswered) answered, \(sync.packetsRejected) rejected, "
            + "\(sync.clockRestarts) restarts; \(sync.clockAgeSeconds.text(1)) s old"
    }

    private func broadcasts(_ room: RoomStatus, _ status: BroadcastStatus) -> String {
        let spread = "spread \(status.spreadMicroseconds.text(1)) µs"
        switch status.state {
        case .absent: return room.stamps == .own ? "this is the leader" : "no exchange yet"
        case .inUse:
            return "in use with \(status.rooms) rooms, \(spread); corrected by "
                + "\(status.correctionMicroseconds.text(1, sign: true)) µs, noise "
                + "\(status.noiseMicroseconds.text(1)) µs"
        case .scattered:
            return "not used: \(spread) is too wide; multicast is converted to unicast, rooms hang "
                + "on different access points, or the others are on wires"
        case .standingOffset:
            return "not used: \(spread), but an offset that stays; multicast may be converted to "
                + "unicast"
        case .alone: return "not used: no other room asks for it here"
        case .gathering: return "not used yet: too few packets heard"
        case .off, .noMulticast, .notHeard, .unneeded:
            return "not used: \(status.state.rawValue)"
        case .unknown: return "in a state that this version does not know"
        }
    }

    private func card(_ room: RoomStatus, _ sync: SyncStatus) -> String {
        let kind = sync.cardClass == .undecided ? "class unknown" : sync.cardClass.rawValue
        let fixed = sync.latencyOffsetFixed ? " (settings)" : ""
        let measured = sync.parts.calibrationMicroseconds.map { " ± \($0.text(0))" } ?? ""
        let format = sync.cardFormat.map { "\($0.printable); " } ?? ""
        return "\(format)\(kind); \(room.xruns) xruns, \(room.dropouts) dropouts; latency offset "
            + "\(sync.latencyOffsetMicroseconds.text(0, sign: true))\(measured) µs\(fixed)"
    }

    /// One line for a pipe.
    static func plainLine(_ status: GroupStatus) -> String {
        let rooms = status.rooms.map { room in
            let error = StatusView.text(room.errorMicroseconds, sign: true)
            guard let sync = room.sync else {
                return "\(room.name.printable) \(room.state.rawValue)"
            }
            return "\(room.name.printable) \(room.state.rawValue) \(error) µs, promised ± "
                + "\(StatusView.text(sync.boundMicroseconds)), expected ± "
                + StatusView.text(sync.expectedMicroseconds)
                + (StatusView.alarm(of: room).map { " \($0)" } ?? "")
        }
        return "\(status.phase.rawValue) \(PositionArgument.text(status.positionSeconds)) · "
            + rooms.joined(separator: "; ")
    }
}
