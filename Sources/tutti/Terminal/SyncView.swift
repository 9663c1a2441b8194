import GroupControl

/// The lines of `tutti status --sync`: for each room what is promised, why, and what to expect.
struct SyncView {
    var status: GroupStatus
    var width: Int
    var showsColour = false

    /// Columns of a sparkline: a bar for ten seconds.
    private static let sparkWidth = 30

    var lines: [String] {
        let view = StatusView(status: status, width: width, showsColour: showsColour)
        let lines = [view.headline, view.progress] + view.complaint + [group]
        return lines.map { $0.cut(toColumns: width) } + status.rooms.flatMap { [""] + block($0) }
    }

    /// Rooms report each second; one that has not for so many says nothing of now.
    static let staleSeconds = 5.0

    /// Of all rooms together: the two worst.
    private var group: String {
        let reports = status.rooms.compactMap(\.sync).filter {
            $0.reportAgeSeconds <= Self.staleSeconds
        }
        let bounds = reports.compactMap(\.boundMicroseconds).sorted()
        let guesses = reports.compactMap(\.expectedMicroseconds).sorted()
        let measured = reports.count { $0.parts.calibrationMicroseconds != nil }
        guard bounds.count > 1, bounds.count == status.rooms.count(where: { $0.state != .noOutput })
        else { return "no promise about all rooms together" }
        guard measured == 0 || measured == bounds.count else {
            return "no promise about all rooms together: what hangs behind some cards was not "
                + "measured"
        }
        let promised = bounds.suffix(2).reduce(0, +)
        let expected = guesses.suffix(2).reduce(0) { $0 + $1 * $1 }.squareRoot()
        return "any two rooms within \(promised.text(1)) µs (promised), "
            + "\(expected.text(1)) µs (expected)"
    }

    private func block(_ room: RoomStatus) -> [String] {
        guard let sync = room.sync else {
            return ["\(room.name.printable) · \(room.state.rawValue) · no report yet"]
                .map { $0.cut(toColumns: width) }
        }
        let lines =
            [
                title(room, sync),
                "  error     " + error(room, sync),
                "  promised  " + promise(sync),
                "  made of   " + parts(sync),
                "  expected  " + (sync.expectedMicroseconds.map { "± \($0.text(1)) µs" } ?? "–"),
                "  rates     " + rates(room, sync),
                "  clock     " + clock(room, sync),
                "  multicast " + broadcasts(room, sync.broadcasts),
                "  card      " + card(room, sync),
            ] + (room.detail.isEmpty ? [] : ["  detail    " + room.detail.printable])
        return lines.enumerated().map { place, line in
            let line = line.cut(toColumns: width)
            guard showsColour, place == 0 else { return line }
            return (sync.alarm ? "\u{1B}[31;1m" : "\u{1B}[1m") + line + "\u{1B}[0m"
        }
    }

    private func title(_ room: RoomStatus, _ sync: SyncStatus) -> String {
        let target = "target \(sync.targetMicroseconds.text(0)) µs"
        let verdict = sync.alarm ? "ALARM: bound above \(target)" : target
        return "\(room.name.printable) · \(room.state.rawValue) · clock \(sync.clock.printable) · "
            + verdict
    }

    private func error(_ room: RoomStatus, _ sync: SyncStatus) -> String {
        "\(room.errorMicroseconds.text(1, sign: true)) µs at the DAC"
            + spread(sync.history.error, sync.history.errors, sync)
    }

    private func promise(_ sync: SyncStatus) -> String {
        guard let bound = sync.boundMicroseconds else { return "nothing: \(missing(sync))" }
        return "± \(bound.text(1)) µs" + spread(sync.history.bound, sync.history.bounds, sync)
    }

    private func missing(_ sync: SyncStatus) -> String {
        sync.clock == "none" ? "the clock is not known" : "the position of the card is not known"
    }

    private func spread(_ spread: Spread?, _ points: [Float], _ sync: SyncStatus) -> String {
        guard let spread else { return "" }
        let spark = Sparkline.text(
            points, width: Self.sparkWidth, top: max(Float(spread.max), .leastNormalMagnitude))
        return "; last \(sync.history.seconds) s: min \(spread.min.text(1))"
            + "  p50 \(spread.p50.text(1))  p99 \(spread.p99.text(1))  max \(spread.max.text(1))"
            + (spark.isEmpty ? "" : "  " + spark)
    }

    private func parts(_ sync: SyncStatus) -> String {
        let parts = sync.parts
        return "error \(parts.errorMicroseconds.text(1)) + clock \(parts.clockMicroseconds.text(1))"
            + " + path \(parts.pathMicroseconds.text(1))"
            + " + card \(parts.cardMicroseconds?.text(1) ?? "–")"
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
        guard !sync.ownStamps.isEmpty else {
            return room.stamps == "own" ? "the group's own" : "no exchange yet"
        }
        let trip = room.roundTripMicroseconds.map { ", round trip \($0.text(0)) µs" } ?? ""
        return "stamps here \(sync.ownStamps.printable), at the leader "
            + "\(sync.leaderStamps.printable)\(trip); \(sync.packetsSent) sent, "
            + "\(sync.packetsAnswered) answered, \(sync.packetsRejected) rejected, "
            + "\(sync.clockRestarts) restarts; \(sync.clockAgeSeconds.text(1)) s old"
    }

    private func broadcasts(_ room: RoomStatus, _ status: BroadcastStatus) -> String {
        let spread = "spread \(status.spreadMicroseconds.text(1)) µs"
        switch status.state {
        case "": return room.stamps == "own" ? "this is the leader" : "no exchange yet"
        case "in use":
            return "in use with \(status.rooms) rooms, \(spread); corrected by "
                + "\(status.correctionMicroseconds.text(1, sign: true)) µs, noise "
                + "\(status.noiseMicroseconds.text(1)) µs"
        case "scattered":
            return "not used: \(spread) is too wide; multicast is converted to unicast, rooms hang "
                + "on different access points, or the others are on wires"
        case "standing offset":
            return "not used: \(spread), but an offset that stays; multicast may be converted to "
                + "unicast"
        case "alone": return "not used: no other room asks for it here"
        case "gathering": return "not used yet: too few packets heard"
        default: return "not used: \(status.state.printable)"
        }
    }

    private func card(_ room: RoomStatus, _ sync: SyncStatus) -> String {
        let kind = sync.cardClass.isEmpty ? "class unknown" : sync.cardClass.printable
        let fixed = sync.latencyOffsetFixed ? " (settings)" : ""
        return "\(kind); \(room.restarts) xruns, \(room.dropouts) gaps; latency offset "
            + "\(sync.latencyOffsetMicroseconds.text(0, sign: true)) µs\(fixed)"
    }

    /// One line for a pipe.
    static func plainLine(_ status: GroupStatus) -> String {
        let rooms = status.rooms.map { room in
            let error = room.errorMicroseconds.text(1, sign: true)
            guard let sync = room.sync else {
                return "\(room.name.printable) \(room.state.rawValue)"
            }
            return "\(room.name.printable) \(room.state.rawValue) \(error) µs, promised ± "
                + "\(sync.boundMicroseconds?.text(1) ?? "–"), expected ± "
                + "\(sync.expectedMicroseconds?.text(1) ?? "–")\(sync.alarm ? " ALARM" : "")"
        }
        return "\(status.phase.rawValue) \(PositionArgument.text(status.positionSeconds)) · "
            + rooms.joined(separator: "; ")
    }
}
