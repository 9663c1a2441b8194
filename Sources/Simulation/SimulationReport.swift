import TuttiGroupControl
import TuttiPlayout
import TuttiTiming

/// What came of a simulated run.
public struct SimulationReport: Equatable, Sendable {
    /// Magnitudes of a figure; µs where nothing else is said.
    public struct Spread: Equatable, Sendable {
        /// How many there were.
        public var count: Int
        /// Half of them are not above it.
        public var p50: Double
        /// 99 of a hundred are not above it.
        public var p99: Double
        /// The largest; 0 where there were none.
        public var max: Double

        init(_ values: [Double]) {
            let sorted = values.map(\.magnitude).sorted()
            count = sorted.count
            func part(_ share: Double) -> Double {
                sorted.isEmpty
                    ? 0 : sorted[min(sorted.count - 1, Int(share * Double(sorted.count)))]
            }
            p50 = part(0.5)
            p99 = part(0.99)
            max = sorted.last ?? 0
        }
    }

    /// How one room fared.
    public struct Room: Equatable, Sendable {
        /// The room's name in the scenario.
        public var name: String
        /// Distance of what is heard from the line, by the true group clock.
        public var error: Spread
        /// The same with its sign, on average; µs, positive: late.
        public var meanError: Double
        /// Distance of the room's clock from the true group clock while it plays.
        public var clockError: Spread
        /// From hello (or the line's beginning) to the first sound, for each process; ms, to the
        /// 10 ms of the measuring grid.
        public var joinMilliseconds: [Double]
        /// Time in which it should have sounded with the others and did not; ms.
        public var absentMilliseconds: Double
        /// Frames that were silent because no decoded ones were there.
        public var starvedFrames: Int
        /// Times the card ran dry.
        public var restarts: Int
        /// Jumps of the position by more than a frame while it played.
        public var steps: Int
        /// Times it said that it does not play what the leader committed.
        public var lineAlarms: Int
    }

    /// One line that sounded: a start, a seek, a resume or the next item.
    public struct Line: Equatable, Sendable {
        /// Place of the item in the queue.
        public var index: Int
        /// Where in the item it begins; seconds.
        public var itemSeconds: Double
        /// Since the first line began; seconds.
        public var beginSeconds: Double
        /// Rooms that began it at its instant.
        public var begins: Int
        /// Rooms that joined it later.
        public var joins: Int
        /// Between the first and the last room's first frame; µs.
        public var beginSpread: Double
        /// Largest distance of a first frame from the line's instant; µs.
        public var beginError: Double
        /// Rooms that heard its end, and the time between the first and the last; µs.
        public var ends: Int
        /// Between the first and the last room's last frame; µs.
        public var endSpread: Double
    }

    /// The sound itself, when it was rendered.
    public struct Audio: Equatable, Sendable {
        /// Frames whose sound was compared with the position that was reported.
        public var comparedFrames: Int
        /// Largest distance of the sound from the position that was reported; frames.
        public var worstLead: Double
        /// Frames with sound where silence was due.
        public var strayFrames: Int
    }

    /// One leader after another; µs.
    public struct Handover: Equatable, Sendable {
        /// The group clock of the new leader against that of the old one.
        public var step: Double
        /// What the new leader promised of its estimate at that moment.
        public var bound: Double
    }

    /// How a house is once a storm is over.
    public struct Rest: Equatable, Sendable {
        /// Between the earliest and the latest room, every 10 ms.
        public var skew: Spread
        /// Time in which not all rooms sounded on one line; ms.
        public var unrestMilliseconds: Double
        /// Datagrams that those who are there at the end did not believe.
        public var droppedDatagrams: Int
    }

    /// The scenario's name.
    public var scenario: String
    /// What chance was drawn from: with the same one everything happens again.
    public var seed: UInt64
    /// How long the scenario is.
    public var simulatedSeconds: Double
    /// One for each room.
    public var rooms: [Room]
    /// Between the earliest and the latest room on one line, every 10 ms.
    public var skew: Spread
    /// The same within 500 ms of a start, seek, resume or next item.
    public var skewAfterStart: Spread
    /// The same from 20 s after each room's first sound on.
    public var skewSettled: Spread
    /// Rate of what rooms play against the group's, less one, from then on; ppm, every 10 ms.
    public var slewSettled: Spread
    /// What sounded, in the order in which it began.
    public var lines: [Line]
    /// Time in which rooms sounded on different lines; ms.
    public var apartMilliseconds: Double
    /// `nil` where only positions were computed.
    public var audio: Audio?
    /// `nil` where there is no storm.
    public var rest: Rest?
    /// Each change of leader, in order.
    public var handovers: [Handover]
    /// Commands that the leader refused, and why.
    public var refusals: [String]
    /// How it went over time; `nil` where nobody wanted to know.
    public var history: SimulationHistory?
    /// Steps of the simulated world.
    public var eventCount: Int
    /// Hash of every event and every measured error: equal for equal runs.
    public var traceHash: UInt64

    /// Frames that were silent because no decoded ones were there, in all rooms.
    public var starvedFrames: Int { rooms.reduce(0) { $0 + $1.starvedFrames } }
}

extension SimulationReport {
    init(_ world: World) {
        let meter = world.meter
        let grid = World.grid.seconds * 1e3
        scenario = world.scenario.name
        seed = world.seed
        simulatedSeconds = world.scenario.seconds
        rooms = meter.rooms.map { Room($0, grid: grid) }
        skew = Spread(meter.skews)
        skewAfterStart = Spread(meter.skewsAfterStart)
        skewSettled = Spread(meter.skewsSettled)
        slewSettled = Spread(meter.slewsSettled)
        let first = meter.lines.first?.key.change.instant
        lines = meter.lines.map { line in
            let change = line.key.change
            let errors = line.begins.map(\.error)
            let ends = line.ends.map(\.instant)
            return Line(
                index: line.key.index,
                itemSeconds: Double(change.itemFrame) / Double(Scenario.itemSampleRate),
                beginSeconds: (change.instant - (first ?? change.instant)).seconds,
                begins: line.begins.count, joins: line.joined.count,
                beginSpread: (errors.max() ?? 0) - (errors.min() ?? 0),
                beginError: errors.map(\.magnitude).max() ?? 0, ends: ends.count,
                endSpread: Double((ends.max() ?? 0) - (ends.min() ?? 0)) * 1e-3)
        }
        apartMilliseconds = Double(meter.apart) * grid
        if world.fidelity == .audio {
            audio = Audio(
                comparedFrames: meter.rooms.reduce(0) { $0 + $1.comparedFrames },
                worstLead: meter.rooms.map(\.worstLead).max() ?? 0,
                strayFrames: meter.rooms.reduce(0) { $0 + $1.strayFrames })
        }
        if meter.restBegins != nil {
            rest = Rest(
                skew: Spread(meter.skewsAtRest), unrestMilliseconds: Double(meter.unrest) * grid,
                droppedDatagrams: world.droppedAtEnd)
        }
        history = meter.history
        handovers = meter.handovers
        refusals = meter.refusals
        eventCount = world.eventCount
        traceHash = world.trace.value
    }
}

extension SimulationReport.Room {
    fileprivate init(_ room: Meter.Room, grid: Double) {
        name = room.name
        error = SimulationReport.Spread(room.errors)
        meanError =
            room.errors.isEmpty ? 0 : room.errors.reduce(0, +) / Double(room.errors.count)
        clockError = SimulationReport.Spread(room.clockErrors)
        joinMilliseconds = room.joins
        absentMilliseconds = Double(room.absences) * grid
        starvedFrames = Int(room.starvedFrames)
        restarts = room.restarts
        steps = room.steps
        lineAlarms = room.lineAlarms
    }
}
