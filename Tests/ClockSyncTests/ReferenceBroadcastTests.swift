import Testing
import TuttiClockSync
import TuttiTiming

import func Glibc.sin

/// What the leader makes of reference broadcasts.
@Suite struct ReferenceBroadcastTests {
    typealias Room = BeaconHouse.Room

    /// An error that comes and goes as a path's does.
    static func wave(_ size: Double, period: Double, phase: Double) -> (Double) -> Double {
        { time in size * sin(2 * .pi * (time / period + phase)) }
    }

    /// Three rooms whose errors are a third of a turn apart, so that their mean is zero.
    static func house(seed: UInt64) -> BeaconHouse {
        let skews = [30e-6, -45e-6, 5e-6]
        return BeaconHouse(
            (0..<3).map { room in
                Room(
                    error: wave(40e-6, period: 40, phase: Double(room) / 3), skew: skews[room],
                    delay: { $0.chance(0.04) ? nil : $0.uniform(0, 60e-6) })
            }, seed: seed)
    }

    /// Half of a hundred microseconds of two-way error goes away: what is left is the receivers'
    /// noise (17 µs a stamp, hundreds of them), and that the mean follows within a few seconds.
    @Test(arguments: [1, 2, 3, 4, 5] as [UInt64])
    func `each room is told how far it is from the mean of all`(seed: UInt64) throws {
        var house = Self.house(seed: seed)
        house.run(until: 60)
        for second in 61...120 {
            house.run(until: Double(second))
            for room in house.rooms {
                let verdict = try #require(room.verdict)
                #expect(verdict.state == .inUse && verdict.rooms == 3)
                #expect(verdict.share > 0.8)
                // The error was told at most a request ago: 0.15 s at 6 µs/s.
                let left = verdict.correction.seconds + room.error(house.time)
                #expect(left.magnitude < 12e-6, "\(left) at \(second)")
                #expect(verdict.noise > .zero && verdict.noise < .microseconds(6))
                #expect(verdict.spread > .microseconds(8) && verdict.spread < .microseconds(40))
            }
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64], [2, 3, 12])
    func `rooms that get packets of their own are not compared, and are told so for good`(
        seed: UInt64, count: Int
    ) throws {
        var house = Self.house(seed: seed)
        house.rooms = (0..<count).map { house.rooms[$0 % 3] }
        for room in house.rooms.indices {
            house.rooms[room].delay = { 0.3e-3 + $0.exponential(300e-6) }
        }
        for second in 1...60 {
            house.run(until: Double(second))
            for room in house.rooms {
                #expect(room.verdict?.state != .inUse)
                if second > 10 { #expect(room.verdict?.state == .scattered, "at \(second)") }
            }
        }
        for room in house.rooms {
            #expect(room.verdict?.state == .scattered)
            #expect(try #require(room.verdict).spread > .microseconds(100))
        }
    }

    @Test func `rooms on two access points form two clusters`() {
        var house = Self.house(seed: 1)
        house.rooms.append(house.rooms[0])
        // The second access point's queue is of another length each time.
        let far = ExternalDelay()
        house.rooms[0].delay = { random in
            far.value = random.uniform(0.5e-3, 5e-3)
            return random.uniform(0, 60e-6)
        }
        house.rooms[2].delay = { far.value + $0.uniform(0, 60e-6) }
        house.rooms[3].delay = { far.value + $0.uniform(0, 60e-6) }
        house.run(until: 60)
        #expect(house.rooms.allSatisfy { $0.verdict?.rooms == 2 && $0.verdict?.state == .inUse })
    }

    /// One packet after the other on quiet air: hardly any spread, but always the same order.
    @Test func `an offset that stays is left to two-way exchange`() throws {
        var house = Self.house(seed: 2)
        for room in house.rooms.indices {
            house.rooms[room].error = Self.wave(10e-6, period: 40, phase: Double(room) / 3)
            house.rooms[room].delay = { Double(room) * 200e-6 + $0.uniform(0, 60e-6) }
        }
        for second in 1...120 {
            house.run(until: Double(second))
            for room in house.rooms {
                guard let verdict = room.verdict else { continue }
                let correction = verdict.share * verdict.correction.seconds
                #expect(correction.magnitude < 40e-6, "at \(second): \(verdict)")
            }
        }
        #expect(house.rooms[0].verdict?.state == .standingOffset)
        #expect(house.rooms[2].verdict?.state == .standingOffset)
    }

    @Test(arguments: [5e-3, -0.8, 200e-6])
    func `a room that is far off and sure of itself moves nobody`(lie: Double) throws {
        var house = Self.house(seed: 3)
        house.rooms.append(house.rooms[0])
        house.rooms[3].expectedError = 0
        house.rooms[3].error = { _ in lie }
        house.run(until: 60)
        for second in 61...90 {
            house.run(until: Double(second))
            for room in house.rooms[..<3] {
                let left = try #require(room.verdict).correction.seconds + room.error(house.time)
                // The mean of three that are not quite trusted alike: less than what each is wrong
                // by.
                #expect(left.magnitude < 30e-6, "\(left) at \(second)")
            }
        }
        let correction = try #require(house.rooms[3].verdict)
        #expect(correction.share < 0.1)
    }

    @Test func `a house of one room has no beacons`() {
        var house = BeaconHouse([Room()], seed: 1)
        house.run(until: 20)
        #expect(house.beacons == 0)
        #expect(house.rooms[0].verdict?.state == .alone)
    }

    @Test func `a room that falls silent is forgotten, and one left alone goes by itself`() {
        var house = Self.house(seed: 4)
        house.run(until: 30)
        #expect(house.rooms[0].verdict?.rooms == 3)
        house.rooms[2].isSilent = true
        house.run(until: 40)
        #expect(house.rooms[0].verdict?.rooms == 2)
        house.rooms[1].isSilent = true
        house.run(until: 50)
        #expect(house.rooms[0].verdict?.state == .alone)
        let before = house.beacons
        house.run(until: 60)
        #expect(house.beacons == before)
        // Back again, and measured anew.
        house.rooms[1].isSilent = false
        house.run(until: 90)
        #expect(house.rooms[0].verdict?.rooms == 2)
    }

    @Test func `another line of the leader begins the count anew`() {
        var house = Self.house(seed: 5)
        house.run(until: 30)
        house.epoch = 2
        house.run(until: 30.5)
        #expect(house.rooms.allSatisfy { $0.verdict?.state != .inUse })
        house.run(until: 60)
        #expect(house.rooms.allSatisfy { $0.verdict?.state == .inUse && $0.epoch == 2 })
    }

    /// The room that asked hears what follows a little earlier than the others: no bias if the
    /// occasions are shared, though one asks five times as often.
    @Test func `beacons come ten times a second, on everybody's requests alike`() {
        var house = Self.house(seed: 6)
        house.rooms[0].pause = 0.025
        house.run(until: 100)
        #expect(house.beacons > 500 && house.beacons < 1_300)
        for room in house.rooms {
            #expect(room.occasions * 4 > house.beacons, "\(room.occasions) of \(house.beacons)")
        }
    }

    @Test func `idle rooms get two beacons a second and are compared all the same`() {
        var house = Self.house(seed: 7)
        for room in house.rooms.indices { house.rooms[room].pause = 0.5 }
        house.run(until: 10)
        let before = house.beacons
        house.run(until: 60)
        #expect(house.beacons - before < 120)
        #expect(house.rooms.allSatisfy { $0.verdict?.state == .inUse })
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `nonsense in one room's reports does not move the others`(seed: UInt64) throws {
        var house = Self.house(seed: seed)
        house.rooms.append(house.rooms[1])
        var forger = Randomness(seed: seed)
        let words = ExternalWords((0..<4_096).map { _ in forger.next() })
        house.forge = { room, report in
            guard room == 3, words.next() % 3 == 0 else { return }
            report.newest = UInt32(truncatingIfNeeded: words.next())
            for place in 0..<8 { report.ages[place] = UInt32(truncatingIfNeeded: words.next()) }
            report.reading = GroupInstant(nanoseconds: Int64(bitPattern: words.next()))
            report.skewTrillionths = Int32(truncatingIfNeeded: words.next())
            report.expectedError = Nanoseconds(Int64(truncatingIfNeeded: words.next()))
        }
        house.run(until: 60)
        for second in 61...80 {
            house.run(until: Double(second))
            for room in house.rooms[..<3] {
                let verdict = try #require(room.verdict)
                let left = verdict.correction.seconds + room.error(house.time)
                #expect(verdict.rooms >= 3)
                // The forger counts as one room of four at most: a quarter of 40 µs more.
                #expect(left.magnitude < 30e-6, "\(left) at \(second)")
            }
        }
    }

    @Test func `the same reports give the same verdicts`() {
        var (a, b) = (Self.house(seed: 8), Self.house(seed: 8))
        a.run(until: 40)
        b.run(until: 40)
        for (one, other) in zip(a.rooms, b.rooms) { #expect(one.verdict == other.verdict) }
    }
}

/// A delay that two rooms share.
private final class ExternalDelay {
    var value = 0.0
}

/// Words of chance for a closure that cannot mutate.
private final class ExternalWords {
    private let words: [UInt64]
    private var place = 0

    init(_ words: [UInt64]) { self.words = words }

    func next() -> UInt64 {
        place = (place + 1) % words.count
        return words[place]
    }
}
