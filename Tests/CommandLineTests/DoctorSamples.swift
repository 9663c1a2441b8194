import TuttiClockSync
import TuttiDeviceOutput
import TuttiLinuxHost
import TuttiTiming

@testable import tutti

/// Facts of a machine on which nothing is wrong, and one of everything that can be.
extension DoctorTests {
    static func wakeUps() -> WakeUpFacts {
        var facts = WakeUpFacts()
        facts.scheduling = .realTime(priority: 50)
        facts.priorityAsked = 50
        facts.timerSlack = Nanoseconds(1)
        facts.count = 500
        facts.median = .microseconds(5)
        facts.late = .microseconds(40)
        facts.latest = .microseconds(90)
        facts.realTimePartsPerMillion = -12.5
        facts.conversion = Nanoseconds(80)
        return facts
    }

    static func card() -> CardFacts {
        var card = CardFacts(pcm: "hw:0")
        card.type = "HW"
        card.sampleFormat = "S32_LE"
        card.sampleRate = 48_000
        card.channelCount = 2
        card.periodFrames = 480
        card.bufferFrames = 1_920
        card.stamps = .raw
        card.readings = 3_000
        card.granularityFrames = 1
        card.partsPerMillion = 31
        return card
    }

    static func interface() -> InterfaceFacts {
        var facts = InterfaceFacts(name: "eth0")
        facts.index = 2
        facts.isUp = true
        facts.hasMulticast = true
        facts.addresses = ["192.0.2.7"]
        facts.stamping = .init(softwareTransmit: true, softwareReceive: true, hardware: false)
        return facts
    }

    static func exchange() -> ExchangeFacts {
        var facts = ExchangeFacts(peer: "127.0.0.1:7430")
        facts.sent = 50
        facts.answered = 50
        facts.stamps = .kernel
        facts.peerStamps = .kernel
        facts.roundTripFloor = .microseconds(3)
        facts.roundTripMedian = .microseconds(4)
        facts.roundTripLate = .microseconds(5)
        return facts
    }

    static func healthy() -> DoctorFacts {
        var machine = MachineFacts()
        machine.realTimePriority = .init(soft: 95, hard: 95)
        machine.throttle = .init(runtimeMicroseconds: 950_000, periodMicroseconds: 1_000_000)
        machine.lockedMemory = .init(soft: 8_388_608, hard: 8_388_608)
        machine.openFiles = .init(soft: 1_024, hard: 4_096)
        machine.clockSource = "tsc"
        machine.governors = ["schedutil"]
        machine.timeDaemon = .init(isSynchronised: true, partsPerMillion: -12.5)
        var ports = PortFacts(port: 7_430)
        ports.takesExpeditedForwarding = true
        var multicast = MulticastFacts(interface: "eth0")
        multicast.comesBack = true
        multicast.stampsDeparture = true
        multicast.beaconsComeBack = true
        multicast.reached = ["192.0.2.9"]
        multicast.heard = ["192.0.2.9"]
        var facts = DoctorFacts()
        facts.machine = .found(machine)
        facts.wakeUps = .found(wakeUps())
        facts.output = .found(.card(card()))
        facts.interfaces = .found([interface()])
        facts.loopback = .found(exchange())
        facts.leader = .found(exchange())
        facts.multicast = .found([multicast])
        facts.ports = .found(ports)
        facts.avahi = .found(AvahiFacts(hasBus: true, isRunning: true))
        facts.cache = .found(
            FolderFacts(
                path: "/c", existing: "/c", isWritable: true, freeBytes: 9_000_000_000))
        facts.state = .found(
            FolderFacts(path: "/s", existing: "/s", isWritable: true, freeBytes: 1))
        facts.codecs = .found(
            CodecFacts(version: "59", titles: ["FLAC"], missing: [], readsHTTP: true))
        return facts
    }

    /// The healthy machine, the one of which nothing is known, and one with all that is wrong.
    static func everything() -> [Finding] {
        var sick = healthy()
        var machine = MachineFacts()
        machine.clockSource = "hpet"
        machine.throttle = .init(runtimeMicroseconds: 1_000, periodMicroseconds: 1_000_000)
        machine.openFiles = .init(soft: 10, hard: 10)
        machine.governors = ["powersave"]
        machine.timeDaemon = .init(isSynchronised: false, partsPerMillion: 0)
        var late = wakeUps()
        late.scheduling = .denied(reason: "no")
        late.late = .milliseconds(30)
        late.latest = .milliseconds(90)
        late.timerSlack = .microseconds(50)
        late.conversion = nil
        var card = card()
        card.type = "IOPLUG"
        card.stamps = .none
        card.granularityFrames = 480
        card.underruns = 3
        card.channelCount = 1
        var wifi = interface()
        wifi.stamping = .init(softwareTransmit: false, softwareReceive: false, hardware: true)
        wifi.hasMulticast = false
        wifi.powerSave = .on
        var deaf = exchange()
        deaf.answered = 3
        sick.machine = .found(machine)
        sick.wakeUps = .found(late)
        sick.output = .found(.card(card))
        sick.interfaces = .found([wifi])
        sick.loopback = .found(deaf)
        sick.leader = .found(deaf)
        sick.multicast = .found([MulticastFacts(interface: "wlan0")])
        sick.avahi = .found(AvahiFacts(hasBus: false, isRunning: false))
        sick.cache = .found(
            FolderFacts(path: "/c", existing: "/", isWritable: false, freeBytes: 0))
        sick.state = .found(
            FolderFacts(path: "/s", existing: "/", isWritable: false, freeBytes: 0))
        sick.codecs = .found(
            CodecFacts(version: "59", titles: ["FLAC"], missing: ["FLAC"], readsHTTP: false))
        var unknown = DoctorFacts()
        unknown.machine = .found(MachineFacts())
        unknown.wakeUps = .unanswered
        unknown.output = .failed("no such card")
        unknown.interfaces = .found([])
        unknown.multicast = .found([])
        unknown.ports = .unanswered
        unknown.leader = .unanswered
        return [healthy(), sick, unknown].flatMap {
            Judgement.findings($0, wishes: wishes)
        }
    }
}
