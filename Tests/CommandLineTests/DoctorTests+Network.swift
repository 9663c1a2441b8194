import Testing
import TuttiClockSync
import TuttiGroupControl
import TuttiLinuxHost
import TuttiTiming

@testable import tutti

/// Interfaces, exchanges, multicast and ports.
extension DoctorTests {
    @Test func `an interface is judged by its link, stamps, multicast and power saving`() {
        func levels(_ change: (inout InterfaceFacts) -> Void) -> [Finding.Level] {
            var facts = Self.interface()
            change(&facts)
            return Judgement.interfaces([Self.interface(), facts]).dropFirst()
                .filter { $0.area != "wifi" }.map(\.level)
        }
        #expect(levels { _ in } == [.ok])
        #expect(levels { $0.isUp = false } == [.note])
        #expect(levels { $0.addresses = [] } == [.note])
        #expect(
            levels {
                $0.addresses = []
                $0.hasIPv6 = true
            } == [.ok])
        #expect(levels { $0.stamping = nil } == [.note])
        #expect(levels { $0.stamping?.softwareTransmit = false } == [.note])
        #expect(levels { $0.stamping?.softwareReceive = false } == [.warning])
        #expect(levels { $0.hasMulticast = false } == [.ok, .warning])
        #expect(levels { $0.powerSave = .on } == [.ok, .warning])
        #expect(levels { $0.powerSave = .off } == [.ok, .ok])
        #expect(levels { $0.powerSave = .unknown } == [.ok, .note])
        #expect(levels { $0.isLoopback = true } == [])
        #expect(Judgement.interfaces([]).map(\.level) == [.warning])
    }

    @Test(
        arguments: [
            (nil, true), (.on, false), (.off, false), (.unknown, false),
        ] as [(InterfaceFacts.PowerSave?, Bool)])
    func `that no interface is wireless is said`(
        powerSave: InterfaceFacts.PowerSave?, isSaid: Bool
    ) {
        var facts = Self.interface()
        facts.powerSave = powerSave
        let findings = Judgement.interfaces([Self.interface(), facts])
        #expect(Self.level(findings, "wifi") == (isSaid ? .ok : nil))
    }

    @Test(arguments: [("192.0.2.7:7439", "7439"), ("[2001:db8::7]:80", "80")])
    func `advice on a firewall names the leader's port`(peer: String, port: String) {
        var facts = Self.exchange()
        (facts.peer, facts.answered) = (peer, 0)
        let silent = Judgement.leader(facts).first?.advice
        #expect(silent?.hasSuffix("ufw allow \(port), or nft") == true, "\(silent ?? "")")
        var failed = DoctorFacts()
        failed.leader = .failed("no route")
        var wishes = Self.wishes
        wishes.leader = peer
        let unreached = Judgement.findings(failed, wishes: wishes).first?.advice
        #expect(unreached?.hasSuffix("ufw allow \(port), or nft") == true, "\(unreached ?? "")")
    }

    @Test func `exchanges are judged by loss, scatter and class`() {
        func loopback(_ change: (inout ExchangeFacts) -> Void) -> Finding.Level? {
            var facts = Self.exchange()
            change(&facts)
            return Judgement.loopback(facts).first?.level
        }
        func leader(_ change: (inout ExchangeFacts) -> Void) -> Finding.Level? {
            var facts = Self.exchange()
            change(&facts)
            return Judgement.leader(facts).first?.level
        }
        #expect(loopback { _ in } == .ok)
        #expect(loopback { $0.answered = 25 } == .problem)
        #expect(loopback { $0.answered = 26 } == .ok)
        #expect(loopback { $0.stamps = .program } == .warning)
        #expect(loopback { $0.stamps = .kernelReceive } == .note)
        #expect(loopback { $0.roundTripLate = $0.roundTripFloor + .microseconds(51) } == .note)
        #expect(leader { _ in } == .ok)
        #expect(leader { $0.answered = 0 } == .problem)
        #expect(leader { $0.peerStamps = nil } == .problem)
        #expect(leader { $0.answered = 39 } == .warning)
        #expect(leader { $0.answered = 40 } == .ok)
        #expect(leader { $0.roundTripLate = $0.roundTripFloor + .milliseconds(6) } == .warning)
        #expect(leader { $0.peerStamps = .program } == .note)
        #expect(leader { $0.stamps = .kernelReceive } == .note)
    }

    @Test func `what rooms hear of broadcasts says whether multicast is converted`() throws {
        func group(_ states: [BroadcastState]) -> GroupStatus {
            var rooms = states.enumerated().map { place, state in
                var room = SyncViewTests.room("room \(place)")
                room.sync?.broadcasts.state = state
                room.sync?.broadcasts.spreadMicroseconds = 21
                return room
            }
            rooms.append(SyncViewTests.room("leader's"))
            rooms[states.count].sync?.broadcasts.state = .absent
            return SyncViewTests.status(rooms)
        }
        let heard = Judgement.conversion(group([.inUse, .inUse]))
        #expect(heard.map(\.level) == [.ok])
        #expect(heard[0].found.contains("room 0, room 1") && heard[0].found.contains("21.0 µs"))
        #expect(!heard[0].found.contains("leader's"))
        let levels: [BroadcastState: Finding.Level] = [
            .unneeded: .ok, .scattered: .warning, .standingOffset: .note, .notHeard: .warning,
            .off: .note, .noMulticast: .warning, .alone: .note, .gathering: .note, .unknown: .note,
        ]
        for (state, level) in levels {
            let findings = Judgement.conversion(group([state]))
            #expect(findings.map(\.level) == [level], "\(state)")
            #expect(level == .ok || findings[0].advice != nil, "\(state)")
        }
        #expect(
            Judgement.conversion(group([.scattered, .inUse])).map(\.level) == [.ok, .warning])
        #expect(Judgement.conversion(group([])).map(\.level) == [.note])
        // Every state that there is has words of its own, or is on its way to one that has.
        for state in BroadcastState.allCases where state != .absent {
            let isOpen = [.alone, .gathering, .unknown].contains(state)
            let found = try #require(Judgement.conversion(group([state])).first).found
            #expect(found.contains("not known yet") == isOpen, "\(state)")
        }
    }

    @Test func `multicast that nobody confirmed is not called good`() {
        func finding(_ change: (inout MulticastFacts) -> Void) -> Finding? {
            var facts = MulticastFacts(interface: "eth0")
            facts.comesBack = true
            change(&facts)
            return Judgement.multicast([facts]).first
        }
        #expect(finding { _ in }?.level == .note)
        #expect(finding { _ in }?.found.contains("not known") == true)
        #expect(finding { $0.comesBack = false }?.level == .warning)
        #expect(finding { $0.reached = ["10.0.0.1"] }?.level == .note)
        #expect(finding { $0.heard = ["10.0.0.1"] }?.level == .note)
        let both = finding {
            $0.reached = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]
            $0.heard = ["10.0.0.1"]
        }
        #expect(both?.level == .ok)
        #expect(both?.found.contains("and 1 more") == true)
        // What one machine cannot see is said, not guessed.
        #expect(both?.found.contains("only with several rooms") == true)
        #expect(Judgement.multicast([]).map(\.level) == [.note])
    }

    @Test func `what a packet showed of stamps counts, not what a driver says`() throws {
        func finding(_ change: (inout MulticastFacts) -> Void) -> Finding? {
            var facts = MulticastFacts(interface: "eth0")
            change(&facts)
            return Judgement.multicast([facts]).first { $0.area == "stamps eth0" }
        }
        #expect(finding { $0.stampsDeparture = true }?.level == .ok)
        let bare = finding { _ in }
        #expect(bare?.level == .note)
        #expect(bare?.advice?.contains("ethtool -T eth0") == true)
        var ghost = InterfaceFacts(name: "ghost0")
        ghost.index = 65_432
        let error = try #require(MulticastFacts.probe([ghost]).first?.failure)
        #expect(finding { $0.failure = error } == nil, "nothing left, so nothing was tried")
    }

    @Test func `a room that cannot hear reference broadcasts is told why`() throws {
        func finding(_ change: (inout MulticastFacts) -> Void) -> Finding? {
            var facts = MulticastFacts(interface: "eth0")
            facts.comesBack = true
            facts.beaconsComeBack = true
            change(&facts)
            return Judgement.multicast([facts]).first { $0.area == "broadcasts eth0" }
        }
        #expect(finding { _ in }?.level == .ok)
        let filtered = finding { $0.beaconsComeBack = false }
        #expect(filtered?.level == .note)
        #expect(filtered?.advice?.contains("7431/udp") == true)
        // A real error: they are made by the probe alone.
        var ghost = InterfaceFacts(name: "ghost0")
        ghost.index = 65_432
        let error = try #require(MulticastFacts.probe([ghost]).first?.failure)
        let refused = finding { $0.beaconFailure = error }
        #expect(refused?.level == .note)
        #expect(refused?.advice?.contains("ip link show eth0") == true)
        // Without multicast one finding says it all.
        #expect(finding { $0.failure = error } == nil)
    }

    @Test func `a port is free, ours, taken or forbidden`() throws {
        // Real errors: they are made by the probe alone.
        var facts = PortFacts(port: 7_430)
        facts.takesExpeditedForwarding = true
        #expect(Judgement.ports(facts).map(\.level) == [.ok, .ok])
        facts.takesExpeditedForwarding = false
        #expect(Judgement.ports(facts).map(\.level) == [.ok, .note])
        let service = try TimeService.start(port: 0, priority: 0) {
            SharedClock(
                map: ClockMap(
                    from: LocalInstant(nanoseconds: 0), to: GroupInstant(nanoseconds: 0)),
                uncertainty: .zero, estimatedAt: HostClock.now(), epoch: 1, quality: .none)
        }
        defer { service.stop() }
        // A clock of quality none is not told to anybody: the port looks foreign.
        let taken = PortFacts.probe(port: service.port)
        #expect(taken.udp?.kind == .portTaken && !taken.isLeader)
        #expect(Self.level(Judgement.ports(taken), "port \(service.port)") == .warning)
        var ours = taken
        ours.isLeader = true
        #expect(Self.level(Judgement.ports(ours), "port \(service.port)") == .ok)
    }
}
