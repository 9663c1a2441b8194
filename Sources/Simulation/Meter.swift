import TuttiGroupControl
import TuttiTiming

/// What one room plays at one look.
struct MeterReading {
    var room: Int
    var key: LineKey
    /// Nominal frames per second of the item.
    var sampleRate: Double
    /// Frame of the item that leaves the card.
    var position: Double
}

/// Collects the figures of a run: how far apart the rooms are, and how far each is from its line.
struct Meter {
    /// What is measured within this time of a line's instant counts as start, seek or resume.
    static let startSpan = Nanoseconds.milliseconds(500)
    /// A room has settled this long after its process first sounded: its servo has come down to
    /// its final gain.
    static let settling = Nanoseconds.seconds(20)
    /// A look this close to a line's beginning may find one room before and one behind it.
    private static let edge = Nanoseconds.milliseconds(2)

    struct Room {
        var name: String
        /// µs; positive: late against the line.
        var errors: [Double] = []
        /// Errors of the estimate of the group clock while something sounds, µs; positive: it is
        /// ahead.
        var clockErrors: [Double] = []
        var starvedFrames: Int64 = 0
        var restarts = 0
        var steps = 0
        var comparedFrames = 0
        var worstLead = 0.0
        var strayFrames = 0
        /// From the hello (or the line's instant, when that is later) to the first sound, for each
        /// process; ms.
        var joins: [Double] = []
        /// Looks at which it should have sounded and did not.
        var absences = 0
        /// Times it said that it does not play what was committed.
        var lineAlarms = 0

        fileprivate var soundsSince: GroupInstant?
        fileprivate var expected: LineKey?
        fileprivate var missing = 0
        fileprivate var isAlive = false
        fileprivate var clockError: Double?
        /// Line and error (µs) at the previous look, and its group time.
        fileprivate var last: (key: LineKey, error: Double, at: GroupInstant)?
    }

    struct Line {
        var key: LineKey
        /// Room, and group time of the line's first frame in it against the line's instant, µs.
        var begins: [(room: Int, error: Double)] = []
        var joined: [Int] = []
        /// Group time of the end in each room, ns.
        var ends: [(room: Int, instant: Int64)] = []
    }

    private(set) var rooms: [Room]
    private(set) var lines: [Line] = []
    /// Earliest to latest room on a line, µs; one for each look.
    private(set) var skews: [Double] = []
    private(set) var skewsAfterStart: [Double] = []
    private(set) var skewsSettled: [Double] = []
    /// Rate at which a settled room's error changes from look to look, ppm; positive: it is slow.
    private(set) var slewsSettled: [Double] = []
    /// Looks at which rooms sounded on different lines.
    private(set) var apart = 0
    /// Second of the run from which on nothing of what happened before may be heard; `nil`: never.
    var restBegins: Double?
    /// Of that time, as ``skews``.
    private(set) var skewsAtRest: [Double] = []
    /// Looks at which not all rooms that are there sounded on one line.
    private(set) var unrest = 0
    var refusals: [String] = []
    var handovers: [SimulationReport.Handover] = []

    /// `nil`: nobody wants one.
    var history: SimulationHistory?
    private var looks = 0
    private var seconds = 0.0
    private var group = GroupInstant(nanoseconds: 0)
    private var readings: [MeterReading] = []

    init(roomNames: [String]) { rooms = roomNames.map { Room(name: $0) } }

    // MARK: Processes

    mutating func processStarted(_ room: Int) {
        rooms[room].soundsSince = nil
        rooms[room].expected = nil
        rooms[room].isAlive = true
    }

    mutating func processEnded(_ room: Int, _ output: SimulatedOutput) {
        rooms[room].isAlive = false
        rooms[room].starvedFrames += output.starvedFrames
        rooms[room].restarts += output.restarts
        rooms[room].steps += output.steps
        rooms[room].comparedFrames += output.audio.comparedFrames
        rooms[room].worstLead = max(rooms[room].worstLead, output.audio.worstLead)
        rooms[room].strayFrames += output.audio.strayFrames
    }

    mutating func note(_ finding: LineFinding, of room: Int) {
        if finding.isAlarm { rooms[room].lineAlarms += 1 }
    }

    mutating func noteCommit(of room: Int, _ key: LineKey) { rooms[room].expected = key }

    mutating func note(
        _ boundary: SimulatedOutput.Boundary, of room: Int, at instant: TrueInstant,
        group: GroupInstant
    ) {
        let place =
            lines.firstIndex { $0.key == boundary.key }
            ?? {
                lines.append(Line(key: boundary.key))
                history?.begins.append(Double(instant.nanoseconds) * 1e-9)
                return lines.count - 1
            }()
        switch boundary.kind {
        case .begin:
            let error = (group - boundary.key.change.instant).microseconds
            lines[place].begins.append((room, error))
        case .joined: lines[place].joined.append(room)
        case .end: lines[place].ends.append((room, group.nanoseconds))
        }
    }

    // MARK: One look

    /// - Parameter instant: in true time.
    mutating func begin(at group: GroupInstant, _ instant: TrueInstant) {
        self.group = group
        seconds = Double(instant.nanoseconds) * 1e-9
        looks += 1
        readings.removeAll(keepingCapacity: true)
        for room in rooms.indices { rooms[room].clockError = nil }
    }

    mutating func noteClock(of room: Int, error: Nanoseconds) {
        rooms[room].clockError = error.microseconds
        if isDrawn {
            history?.clocks[room].append(.init(seconds: seconds, value: error.microseconds))
        }
    }

    private var isDrawn: Bool {
        history != nil && looks.isMultiple(of: SimulationHistory.every)
    }

    /// From now on this room's node leads; `nil`: nobody does.
    mutating func noteLeader(_ room: Int?, at instant: TrueInstant) {
        history?.reigns.append(.init(seconds: Double(instant.nanoseconds) * 1e-9, room: room))
    }

    /// - Parameter helloGroup: group time at which the process said hello.
    mutating func note(_ reading: MeterReading, helloGroup: GroupInstant?) {
        readings.append(reading)
        let room = reading.room
        rooms[room].missing = 0
        if let error = rooms[room].clockError { rooms[room].clockErrors.append(error) }
        if rooms[room].soundsSince == nil {
            rooms[room].soundsSince = group
            let since = max(helloGroup ?? group, reading.key.change.instant)
            rooms[room].joins.append((group - since).seconds * 1e3)
        }
    }

    /// Ends the look: compares the rooms.
    mutating func finish(_ trace: (Double) -> Void) {
        var keys: [LineKey] = []
        for reading in readings where !keys.contains(reading.key) { keys.append(reading.key) }
        for key in keys {
            var earliest = Double.infinity
            var latest = -Double.infinity
            var count = 0
            var haveSettled = true
            for reading in readings where reading.key == key {
                let error = error(of: reading)
                rooms[reading.room].errors.append(error)
                if isDrawn {
                    history?.errors[reading.room].append(.init(seconds: seconds, value: error))
                }
                trace(error)
                noteSlew(of: reading, error: error)
                earliest = min(earliest, error)
                latest = max(latest, error)
                haveSettled = haveSettled && hasSettled(reading.room)
                count += 1
            }
            guard count > 1 else { continue }
            skews.append(latest - earliest)
            if isAtRest { skewsAtRest.append(latest - earliest) }
            if isDrawn {
                history?.skew.append(.init(seconds: seconds, value: latest - earliest))
            }
            if haveSettled { skewsSettled.append(latest - earliest) }
            if group - key.change.instant < Self.startSpan {
                skewsAfterStart.append(latest - earliest)
            }
        }
        if isAtRest, keys.count != 1 || readings.count != rooms.count(where: \.isAlive) {
            unrest += 1
        }
        if keys.count > 1, !keys.contains(where: { isAtEdge($0) }) { apart += 1 }
        noteAbsences(keys)
    }

    private var isAtRest: Bool { restBegins.map { seconds >= $0 } ?? false }

    private mutating func noteSlew(of reading: MeterReading, error: Double) {
        let last = rooms[reading.room].last
        rooms[reading.room].last = (reading.key, error, group)
        guard let last, last.key == reading.key, hasSettled(reading.room),
            group - last.at < World.grid * 2
        else { return }
        slewsSettled.append((error - last.error) / (group - last.at).seconds)
    }

    private mutating func noteAbsences(_ keys: [LineKey]) {
        for room in rooms.indices where rooms[room].isAlive && rooms[room].soundsSince != nil {
            guard let expected = rooms[room].expected, keys.contains(expected),
                !isAtEdge(expected),
                !readings.contains(where: { $0.room == room && $0.key == expected })
            else { continue }
            rooms[room].missing += 1
            // Once may be the end of the line, which is not the same look everywhere.
            if rooms[room].missing > 1 { rooms[room].absences += 1 }
        }
    }

    private func hasSettled(_ room: Int) -> Bool {
        rooms[room].soundsSince.map { group - $0 >= Self.settling } ?? false
    }

    private func isAtEdge(_ key: LineKey) -> Bool { group - key.change.instant < Self.edge }

    /// µs by which a room is late against its line, by the true group clock.
    private func error(of reading: MeterReading) -> Double {
        let change = reading.key.change
        let speed = reading.sampleRate * change.rate
        let wanted = Double((group - change.instant).count) * 1e-9 * speed
        return (wanted - (reading.position - Double(change.itemFrame))) / speed * 1e6
    }
}
