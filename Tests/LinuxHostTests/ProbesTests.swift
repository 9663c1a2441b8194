import Testing
import TuttiClockSync
import TuttiTiming

@testable import TuttiLinuxHost

/// Probes against this machine: only what every machine has in common can be expected of it.
@Suite(.timeLimit(.minutes(1))) struct ProbesTests {
    @Test func `what the kernel tells is consistent with itself`() {
        let facts = MachineFacts.read()
        for limit in [facts.realTimePriority, facts.lockedMemory, facts.openFiles] {
            guard let soft = limit?.soft, let hard = limit?.hard else { continue }
            #expect(soft <= hard)
        }
        if let source = facts.clockSource { #expect(facts.clockSources.contains(source)) }
        #expect(facts.governors == Array(Set(facts.governors)).sorted())
    }

    @Test(arguments: [0, 50])
    func `wake-ups are late by something, and in order`(priority: Int) throws {
        let facts = try WakeUpFacts.measure(priority: priority, duration: .milliseconds(100))
        #expect(facts.count == 50)
        // Sleeping is never early, and the quantiles are of one sample.
        #expect(facts.median > .zero)
        #expect(facts.median <= facts.late && facts.late <= facts.latest)
        if priority == 0 { #expect(facts.scheduling == .ordinary) }
        #expect(facts.priorityAsked == priority)
    }

    @Test func `the loopback interface is found, with its address`() throws {
        let all = try InterfaceFacts.all()
        let loopback = try #require(all.first { $0.isLoopback })
        #expect(loopback.addresses.contains("127.0.0.1"))
        #expect(loopback.powerSave == nil)
        #expect(Set(all.map(\.name)).count == all.count)
    }

    @Test func `exchanges over the loopback interface are all answered, and in order`()
        throws
    {
        let facts = try ExchangeFacts.loopback(count: 20)
        #expect(facts.sent == 20)
        #expect(facts.answered == 20)
        #expect(facts.roundTripFloor <= facts.roundTripMedian)
        #expect(facts.roundTripMedian <= facts.roundTripLate)
    }

    @Test func `a host on which nobody listens answers nothing, and is not waited for`() throws {
        // A port that was free a moment ago.
        let service = try TimeService.start(port: 0, priority: 0) {
            SharedClock(
                map: ClockMap(
                    from: LocalInstant(nanoseconds: 0), to: GroupInstant(nanoseconds: 0)),
                uncertainty: .zero, estimatedAt: HostClock.now(), epoch: 1, quality: .locked)
        }
        let port = service.port
        #expect(PortFacts.probe(port: port).udp?.kind == .portTaken)
        #expect(PortFacts.probe(port: port).isLeader)
        service.stop()
        #expect(PortFacts.probe(port: port).udp == nil)
        // The kernel says at once that nobody is there; that too is no answer.
        let facts = try? ExchangeFacts.measure(host: "127.0.0.1", port: port, count: 3)
        #expect(facts?.answered ?? 0 == 0)
    }

    @Test func `an interface that does not exist cannot carry multicast`() {
        var ghost = InterfaceFacts(name: "ghost0")
        ghost.index = 65_432
        let facts = MulticastFacts.probe([ghost])
        #expect(facts.count == 1)
        #expect(facts.first?.failure != nil)
        #expect(facts.first?.comesBack == false)
    }

    /// From the kernel's sources: what x86, a Raspberry Pi and another ARM board say.
    @Test(arguments: [
        ("processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD  EPYC: 7\nflags\t: fpu", "AMD EPYC: 7"),
        ("processor\t: 0\nCPU part\t: 0xd08\n\nModel\t\t: Raspberry Pi 4", "Raspberry Pi 4"),
        ("Hardware\t: BCM2835\nSerial\t: 1", "BCM2835"),
        ("processor\t: 0\nmodel name\t:", nil), ("", nil),
    ])
    func `a processor is called what the kernel calls it, or the board`(
        text: String, name: String?
    ) {
        #expect(Processor.name(in: text) == name)
    }
}
