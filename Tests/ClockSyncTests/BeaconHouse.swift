import TuttiClockSync
import TuttiTiming

/// Rooms that hear beacons and report them, without any network: the errors of their two-way lines
/// and the delays of their receivers are given.
struct BeaconHouse {
    struct Room {
        /// Two-way line minus the group's time, by seconds.
        var error: (Double) -> Double = { _ in 0 }
        /// What the room thinks its error is, seconds.
        var expectedError = 20e-6
        /// What its clock does against the leader's.
        var skew = 0.0
        /// Between the beacon and its stamp, seconds; `nil`: lost.
        var delay: (inout Randomness) -> Double? = { $0.uniform(0, 60e-6) }
        /// Between two requests, seconds.
        var pause = 0.125
        var isSilent = false
        var epoch: UInt64 = 1

        var nextRequest = 0.0
        var heard: [(number: UInt32, at: LocalInstant)] = []
        var verdict: ReferenceVerdict?
        /// Beacons that left on its requests.
        var occasions = 0
    }

    var rooms: [Room]
    var judge = ReferenceBroadcastJudge<Int>()
    var random: Randomness
    var epoch: UInt64 = 1
    /// Changes a report on its way.
    var forge: (Int, inout ReferenceReport) -> Void = { _, _ in }
    private(set) var time = 0.0
    private(set) var beacons = 0
    private var sequence: UInt32 = 0

    init(_ rooms: [Room], seed: UInt64) {
        self.rooms = rooms
        random = Randomness(seed: seed)
        for room in rooms.indices { self.rooms[room].nextRequest = random.uniform(0, 0.1) }
    }

    private static func leader(_ time: Double) -> LocalInstant {
        LocalInstant(nanoseconds: 5_000_000_000 + Int64(time * 1e9))
    }

    /// The reading of a room's clock.
    private func local(_ room: Int, _ time: Double) -> LocalInstant {
        LocalInstant(
            nanoseconds: 77_000_000_000 * Int64(room + 1)
                + Int64(time * (1 - rooms[room].skew) * 1e9))
    }

    /// The same instant by a room's two-way line; the group's time is that of the leader.
    private func reading(_ room: Int, _ time: Double) -> GroupInstant {
        GroupInstant(
            nanoseconds: Self.leader(time).nanoseconds
                + Int64((rooms[room].error(time) * 1e9).rounded()))
    }

    mutating func run(until end: Double) {
        while let room = rooms.indices.filter({ !rooms[$0].isSilent })
            .min(by: { rooms[$0].nextRequest < rooms[$1].nextRequest }),
            rooms[room].nextRequest < end
        {
            time = rooms[room].nextRequest
            rooms[room].nextRequest += rooms[room].pause * random.uniform(0.8, 1.2)
            ask(room)
        }
        time = end
    }

    private mutating func ask(_ room: Int) {
        let t1 = local(room, time)
        var report = ReferenceReport(
            epoch: rooms[room].epoch, reading: reading(room, time),
            skewTrillionths: Int32(rooms[room].skew * 1e12),
            expectedError: Nanoseconds(seconds: rooms[room].expectedError))
        report.newest = rooms[room].heard.map(\.number).max() ?? 0
        for (number, at) in rooms[room].heard {
            let (back, age) = (Int(report.newest - number), (t1 - at).count)
            if back < 8, age > 0, age <= Int(UInt32.max) { report.ages[back] = UInt32(age) }
        }
        forge(room, &report)
        sequence += 1
        let request = TimeRequest(
            sequence: sequence, t1: t1, stamps: .kernel, pause: Nanoseconds(seconds: 0.125),
            reference: report)
        let now = Self.leader(time)
        judge.receive(report, of: request, from: room, medium: 3, at: now)
        rooms[room].verdict = judge.verdict(for: room, on: request)
        guard let beacon = judge.beacon(on: room, epoch: epoch, at: now) else { return }
        beacons += 1
        rooms[room].occasions += 1
        // The air's own delay is common to all who hear one frame.
        for place in rooms.indices {
            guard let delay = rooms[place].delay(&random) else { continue }
            if rooms[place].epoch != beacon.epoch { rooms[place].heard.removeAll() }
            rooms[place].epoch = beacon.epoch
            rooms[place].heard.append(
                (beacon.number, local(place, time + 700e-6 + delay)))
            if rooms[place].heard.count > 8 { rooms[place].heard.removeFirst() }
        }
    }
}
