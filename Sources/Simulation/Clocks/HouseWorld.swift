import TuttiClockSync
import TuttiTiming

/// Several rooms of one leader, each with its own clock, network and follower, and the beacons
/// that they all hear; in virtual time.
///
/// The rooms run side by side in turns of 10 ms. What the leader's judge knows when a room has had
/// its turn is what the room is told in the next.
struct HouseWorld {
    private static let turn = 0.01

    private(set) var rooms: [ClockWorld]
    private(set) var judge = ReferenceBroadcastJudge<Int>()
    private var medium: MulticastMedium?
    private(set) var time = 0.0
    private(set) var beacons = 0
    var sendsBeacons = true

    /// - Parameter multicast: `nil`: no broadcasts.
    init(
        _ path: ClockPath, rooms count: Int, multicast: MulticastShape?, seed: UInt64,
        keepsPublications: Bool = false
    ) {
        rooms = (0..<count).map { room in
            ClockWorld(ClockParts(path, seed: seed &* 1_000 &+ UInt64(room)))
        }
        medium = multicast.map {
            MulticastMedium(
                $0, rooms: count, network: path.network(seed: seed), stamps: path.stamps,
                seed: seed)
        }
        for room in rooms.indices { rooms[room].keepsPublications = keepsPublications }
        if multicast != nil {
            for room in rooms.indices { rooms[room].follower.setReferenceRefusal(nil) }
        }
    }

    /// Runs until `end`; seconds of true time.
    mutating func run(until end: Double) {
        while time < end {
            time = min(end, time + Self.turn)
            for room in rooms.indices {
                rooms[room].run(until: time)
                if medium != nil { serve(room) }
            }
        }
    }

    /// Published lines minus the leader's clock at this moment; seconds.
    mutating func errors() -> [Double?] { rooms.indices.map { rooms[$0].error() } }

    /// What the leader does when requests arrive: takes the reports, sends a beacon when one is
    /// due.
    private mutating func serve(_ room: Int) {
        let now = rooms[room].leaderNow
        for request in rooms[room].takeRequests() {
            judge.receive(request.reference, of: request, from: room, medium: 1, at: now)
            if sendsBeacons, let beacon = judge.beacon(on: room, epoch: rooms[room].epoch, at: now)
            {
                send(beacon)
            }
        }
        let judge = judge
        rooms[room].verdict = { judge.verdict(for: room, on: $0) }
    }

    private mutating func send(_ beacon: ReferenceBeacon) {
        beacons += 1
        let stamps = medium?.stamps(of: TrueInstant(nanoseconds: Int64(time * 1e9))) ?? []
        for (room, stamp) in stamps.enumerated() {
            if let stamp { rooms[room].hear(beacon, at: stamp) }
        }
    }
}

extension HouseWorld {
    mutating func state(of room: Int) -> ReferenceState { rooms[room].statistics().reference.state }

    /// What a room says at this moment, its clock's reading, and the leader's.
    mutating func look(
        at room: Int
    ) -> (SharedClock?, local: LocalInstant, truth: GroupInstant, ClockStatistics) {
        let truth = GroupInstant(nanoseconds: rooms[room].leaderNow.nanoseconds)
        return (rooms[room].sharedClock(), rooms[room].local, truth, rooms[room].statistics())
    }

    /// Whether the leader's clock lies within what the room promises at this moment.
    mutating func containsTruth(_ room: Int) -> Bool {
        guard let error = rooms[room].error(), let clock = rooms[room].sharedClock() else {
            return true
        }
        // The published line may be a piece older than what is asked for now.
        return error.magnitude <= clock.uncertainty.seconds + 1e-9
    }
}
