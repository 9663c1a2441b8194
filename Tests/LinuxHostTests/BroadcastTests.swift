import Synchronization
import Testing
import TuttiClockSync
import TuttiLinuxHost
import TuttiTiming

/// Reference broadcasts over the loopback interface: real multicast, heard by several rooms at
/// once.
@Suite(.serialized, .timeLimit(.minutes(1))) struct BroadcastTests {
    typealias Support = TimeServiceTests

    static func client(
        _ host: String, _ port: Int, _ latest: Support.Latest, broadcasts: Bool = true
    ) throws -> ClockClient {
        try ClockClient.start(
            host: host, port: port, priority: 0, seed: 1, broadcasts: broadcasts
        ) { clock, _ in latest.clock.withLock { $0 = clock } }
    }

    static func service(broadcasts: Bool) throws -> TimeService {
        try TimeService.start(port: 0, priority: 0, broadcasts: broadcasts) {
            .own(at: HostClock.now(), epoch: 99)
        }
    }

    @Test func `rooms that hear the same beacons are told so, and their bounds hold`() throws {
        let service = try Support.service()
        defer { service.stop() }
        let latest = [Support.Latest(), Support.Latest(), Support.Latest()]
        let clients = try latest.map { try Self.client("127.0.0.1", service.port, $0) }
        defer { clients.forEach { $0.stop() } }
        // This machine's own interface is the shortest of paths, and needs no correction.
        let states: [ReferenceState] = [.inUse, .standingOffset, .unneeded]
        Support.wait {
            clients.allSatisfy { client in
                let reference = client.statistics.reference
                return states.contains(reference.state) && reference.rooms == 3
            }
        }
        for (client, latest) in zip(clients, latest) {
            let reference = client.statistics.reference
            #expect(reference.heard >= 16)
            // One kernel hands the packet to all of them; with more spread they would be apart.
            #expect(reference.spread <= .microseconds(30))
            let now = HostClock.now()
            let clock = try #require(latest.value)
            let error = Nanoseconds(
                clock.map(now).nanoseconds - now.nanoseconds - Support.shift)
            #expect(error.magnitude <= clock.uncertainty + Nanoseconds(1))
        }
    }

    /// The loopback interface has no route for IPv6 multicast on most machines.
    @Test func `rooms that reach their leader over IPv6 ask too, and are locked without an answer`()
        throws
    {
        let service = try Support.service()
        defer { service.stop() }
        let latest = [Support.Latest(), Support.Latest()]
        let clients = try latest.map { try Self.client("::1", service.port, $0) }
        defer { clients.forEach { $0.stop() } }
        Support.wait {
            clients.allSatisfy {
                $0.statistics.quality == .locked
                    && [.notHeard, .gathering, .inUse, .unneeded].contains(
                        $0.statistics.reference.state)
            }
        }
        #expect(clients.allSatisfy { $0.problem == nil })
    }

    @Test func `a house of one room hears no beacon and knows why`() throws {
        let service = try Support.service()
        defer { service.stop() }
        let latest = Support.Latest()
        let client = try Self.client("127.0.0.1", service.port, latest)
        defer { client.stop() }
        Support.wait { client.statistics.reference.state == .alone }
        Support.wait { client.statistics.answered >= 40 }
        #expect(client.statistics.reference.heard == 0)
    }

    @Test func `where either side wants none, there are none`() throws {
        let (willing, unwilling) = (
            try Self.service(broadcasts: true), try Self.service(broadcasts: false)
        )
        defer {
            willing.stop()
            unwilling.stop()
        }
        let latest = (0..<4).map { _ in Support.Latest() }
        let clients = [
            try Self.client("127.0.0.1", willing.port, latest[0], broadcasts: false),
            try Self.client("127.0.0.1", willing.port, latest[1], broadcasts: true),
            try Self.client("127.0.0.1", unwilling.port, latest[2], broadcasts: true),
            try Self.client("127.0.0.1", unwilling.port, latest[3], broadcasts: true),
        ]
        defer { clients.forEach { $0.stop() } }
        Support.wait { clients.allSatisfy { $0.statistics.answered >= 40 } }
        Support.wait { clients[1].statistics.reference.state == .alone }
        Support.wait { clients[2].statistics.reference.state == .off }
        #expect(clients[0].statistics.reference.state == .off)
        #expect(clients.allSatisfy { $0.statistics.reference.heard == 0 })
    }
}
