import func Glibc.sqrt

/// What can be said of all rooms of a group together.
public enum GroupPromise: Equatable, Sendable {
    /// Any two rooms are within `promised` of each other, and probably within `expected` (one standard
    /// deviation); microseconds.
    case within(promised: Double, expected: Double)
    /// Why there is no promise, for people.
    case nothing(reason: String)
}

extension GroupStatus {
    /// Of the rooms with an output: the sum of the two widest bounds.
    public var promise: GroupPromise {
        let rooms = rooms.filter { $0.state != .noOutput }
        guard rooms.count > 1 else {
            return .nothing(reason: rooms.isEmpty ? "no room has an output" : "there is one room")
        }
        let silent = rooms.compactMap { room in room.promiseObstacle.map { (room.name, $0) } }
        if let (name, obstacle) = silent.first {
            let others = silent.count > 1 ? ", and \(silent.count - 1) more" : ""
            return .nothing(reason: "\(name): \(obstacle)\(others)")
        }
        let syncs = rooms.compactMap(\.sync)
        let measured = syncs.count { $0.parts.calibrationMicroseconds != nil }
        guard measured == 0 || measured == syncs.count else {
            return .nothing(reason: "what hangs behind some cards was not measured")
        }
        func widest(_ values: [Double?]) -> ArraySlice<Double> {
            values.compactMap { $0 }.sorted().suffix(2)
        }
        let expected = widest(syncs.map(\.expectedMicroseconds)).reduce(0) { $0 + $1 * $1 }
        return .within(
            promised: widest(syncs.map(\.boundMicroseconds)).reduce(0, +),
            expected: sqrt(expected))
    }
}

extension RoomStatus {
    /// Why nothing is promised of this room, for people; `nil` where something is.
    public var promiseObstacle: String? {
        guard let sync else { return "no report yet" }
        guard sync.boundMicroseconds == nil else { return nil }
        if state == .lost || sync.isStale {
            return "not heard for \(Int(sync.reportAgeSeconds)) s"
        }
        if sync.lineAlarm { return "it \(sync.line.shown())" }
        if state == .failed { return "it cannot play this item" }
        if state == .cardLost { return "its card is gone" }
        if state == .noOutput { return "it has no output" }
        if sync.clock == .unmeasured { return "the clock is not known" }
        if sync.parts.cardMicroseconds == nil { return "the position of the card is not known" }
        return state.canPromise
            ? "the clock stood still or was set, and is measured anew" : "it does not play yet"
    }
}
