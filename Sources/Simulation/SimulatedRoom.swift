import TuttiClockSync
import TuttiGroupControl
import TuttiPlayout
import TuttiRealTime
import TuttiTiming
import TuttiTrust

/// One process of a room: machine, clock, players and output, and the shell around them.
final class SimulatedRoom {
    let life: World.RoomLife
    let id: RoomID
    var machine: RoomMachine
    let output: SimulatedOutput
    let stage: SimulatedStage

    /// Where voices read the group clock. Another clock gets another cell.
    var cell: ClockCell
    /// `nil` in the leader's own room, whose clock is the group clock.
    var follower: ClockFollower?
    /// Origin of the group clock that is followed.
    var followed: UInt64?
    /// Life of the leader that is asked for the time.
    var asked = 0
    /// `nil`: nobody has given it a key.
    var tags: RoomTags?

    /// The link of this room's attempt to connect, or of its connection.
    var link: Int?
    var helloAt: TrueInstant?
    var machineAlarm: LocalInstant?
    var clockAlarm: LocalInstant?
    var upkeeps = 0
    /// Clock followers made so far; each draws from a stream of its own by this number.
    var clocksMade = 0

    init(life: World.RoomLife, machine: RoomMachine, output: SimulatedOutput) {
        self.life = life
        self.machine = machine
        self.output = output
        id = machine.configuration.room
        stage = SimulatedStage(port: output.engine.port)
        cell = ClockCell(.unknown)
    }
}

/// The leader's process, without its room.
final class SimulatedLeader {
    let life: Int
    let place: Int
    var machine: LeaderMachine
    /// Its half of time exchange.
    var time: ClockLeader<Int, World.ReplyRoute>
    var tags: LeaderTags
    let clock: SharedClock
    var packet: UInt32 = 0
    var alarm: GroupInstant?

    init(
        life: Int, place: Int, machine: LeaderMachine, clock: SharedClock, secret: [UInt8]
    ) {
        let term = LeaderTags.firstTerm(of: machine.configuration.term)
        guard let key = try? GroupKey(term: term, secret: secret) else {
            preconditionFailure("a secret of \(secret.count) bytes")
        }
        tags = LeaderTags(key)
        time = ClockLeader(start: clock.estimatedAt, broadcasts: false)
        self.life = life
        self.place = place
        self.machine = machine
        self.clock = clock
    }
}
