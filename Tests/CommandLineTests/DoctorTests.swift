import Synchronization
import Testing
import TuttiClockSync
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiLinuxHost
import TuttiTiming

@testable import tutti

/// Judgement is values in and sentences out: each rule is held by the two values around its edge.
@Suite struct DoctorTests {
    static let wishes = DoctorWishes(
        output: "alsa:default", leader: nil, usesAvahi: true, asksForAvahi: false,
        bufferMilliseconds: 40,
        cacheLimitMegabytes: 2_000)

    static func level(_ findings: [Finding], _ area: String) -> Finding.Level? {
        findings.first { $0.area == area }?.level
    }

    // MARK: - Every finding

    @Test func `whatever is not ok says what to do, and a measured value ends no sentence`() {
        for finding in Self.everything() {
            #expect(!finding.found.isEmpty && !finding.area.isEmpty)
            #expect(!finding.found.hasSuffix("."), "\(finding.found)")
            if finding.level > .note { #expect(finding.advice?.isEmpty == false, "\(finding)") }
            if finding.level == .ok { #expect(finding.advice == nil, "\(finding)") }
        }
    }

    @Test func `a machine that has all is fit, and only then`() {
        let good = DoctorReport(
            host: "x", findings: Judgement.findings(Self.healthy(), wishes: Self.wishes))
        #expect(good.findings.allSatisfy { $0.level == .ok }, "\(good.findings)")
        #expect(good.problems == 0 && good.warnings == 0)
        #expect(good.summary == "Fit to play in lockstep.")
        var facts = Self.healthy()
        facts.codecs = .found(
            CodecFacts(version: "59", titles: ["FLAC"], missing: ["FLAC"], readsHTTP: true))
        let worse = DoctorReport(
            host: "x", findings: Judgement.findings(facts, wishes: Self.wishes))
        #expect(worse.warnings == 1 && worse.problems == 0)
        #expect(worse.summary != good.summary)
    }

    @Test func `a probe that fails or hangs is a finding of its own area`() {
        var facts = Self.healthy()
        facts.output = .failed("no such card")
        facts.leader = .failed("no route")
        facts.avahi = .unanswered
        facts.machine = .failed("no /proc")
        let findings = Judgement.findings(facts, wishes: Self.wishes)
        #expect(Self.level(findings, "output") == .problem)
        #expect(Self.level(findings, "leader") == .problem)
        #expect(Self.level(findings, "Avahi") == .warning)
        #expect(Self.level(findings, "kernel") == .warning)
        #expect(findings.contains { $0.found.contains("no such card") })
    }

    @Test func `what was not tested is not spoken of`() {
        #expect(Judgement.findings(DoctorFacts(), wishes: Self.wishes).isEmpty)
    }

    // MARK: - Kernel

    @Test(arguments: [
        ("tsc", Finding.Level.ok), ("kvm-clock", .ok), ("arch_sys_counter", .ok),
        ("hpet", .warning), ("acpi_pm", .warning), ("jiffies", .warning),
    ])
    func `a clock that is slow to read is a warning`(source: String, level: Finding.Level) {
        var facts = MachineFacts()
        facts.clockSource = source
        facts.clockSources = ["hpet", "tsc"]
        let finding = Judgement.machine(facts).first { $0.area == "clock source" }
        #expect(finding?.level == level)
        // The advice names the one that is better, and only when there is one.
        #expect(finding?.advice?.contains("echo tsc") == (level == .warning ? true : nil))
        facts.clockSources = ["hpet"]
        let alone = Judgement.machine(facts).first { $0.area == "clock source" }
        #expect(alone?.advice?.contains("echo") != true)
    }

    @Test(arguments: [
        (-1, Finding.Level.ok), (950_000, .ok), (500_000, .ok), (499_999, .warning),
        (0, .warning),
    ])
    func `less than half a core for real-time threads is a warning`(
        runtime: Int, level: Finding.Level
    ) {
        var facts = MachineFacts()
        facts.throttle = .init(runtimeMicroseconds: runtime, periodMicroseconds: 1_000_000)
        #expect(Self.level(Judgement.machine(facts), "real-time share") == level)
    }

    @Test(arguments: [(255, .warning), (256, .ok), (nil, .ok)] as [(Int?, Finding.Level)])
    func `few open files are a warning`(soft: Int?, level: Finding.Level) {
        var facts = MachineFacts()
        facts.openFiles = .init(soft: soft, hard: nil)
        #expect(Self.level(Judgement.machine(facts), "open files") == level)
    }

    @Test func `sleep states are judged by how long they take to leave`() {
        var facts = MachineFacts()
        #expect(Self.level(Judgement.machine(facts), "processor sleep") == .note)
        facts.governors = ["performance"]
        #expect(Self.level(Judgement.machine(facts), "processor sleep") == .ok)
        facts.deepestIdle = .init(name: "C1", exitMicroseconds: 200)
        #expect(Self.level(Judgement.machine(facts), "processor sleep") == .ok)
        facts.deepestIdle = .init(name: "C6", exitMicroseconds: 201)
        #expect(Self.level(Judgement.machine(facts), "processor sleep") == .note)
        facts.deepestIdle = nil
        facts.governors = ["performance", "powersave"]
        #expect(Self.level(Judgement.machine(facts), "processor sleep") == .note)
    }

    // MARK: - Threads

    @Test func `a priority that was refused is a warning with the limit that refuses it`() {
        var facts = Self.wakeUps()
        var machine = MachineFacts()
        machine.realTimePriority = .init(soft: 0, hard: 0)
        func finding() -> Finding? {
            Judgement.wakeUps(facts, .found(machine), Self.wishes).first
        }
        facts.scheduling = .denied(reason: "no")
        #expect(finding()?.level == .warning)
        #expect(finding()?.found.contains("rtprio limit 0, no CAP_SYS_NICE") == true)
        #expect(finding()?.advice?.contains("LimitRTPRIO") == true)
        facts.scheduling = .ordinary
        #expect(finding()?.level == .note)
        facts.scheduling = .realTime(priority: 20)
        #expect(finding()?.level == .ok)
        #expect(finding()?.found.contains("less than the 50") == true)
    }

    /// Half a buffer is what a wake-up may be late before the card runs dry.
    @Test(arguments: [
        (2_000, 20_000, Finding.Level.ok), (2_001, 20_000, .warning), (100, 20_001, .warning),
        (20_000, 20_001, .warning), (20_001, 20_001, .problem),
    ])
    func `late wake-ups are judged by the buffer`(late: Int, latest: Int, level: Finding.Level) {
        var facts = Self.wakeUps()
        facts.late = .microseconds(Int64(late))
        facts.latest = .microseconds(Int64(latest))
        let findings = Judgement.wakeUps(facts, .skipped, Self.wishes)
        #expect(Self.level(findings, "wake-ups") == level)
        // A buffer twice as long forgives twice as much.
        var patient = Self.wishes
        patient.bufferMilliseconds *= 2
        let again = Judgement.wakeUps(facts, .skipped, patient)
        #expect((Self.level(again, "wake-ups") ?? .problem) <= level)
        #expect(Self.level(again, "wake-ups") != .problem)
    }

    @Test func `stamps that cannot be converted are a warning, a fast slew is a note`() {
        var facts = Self.wakeUps()
        facts.realTimePartsPerMillion = 500
        let area = "stamp conversion"
        #expect(Self.level(Judgement.wakeUps(facts, .skipped, Self.wishes), area) == .ok)
        facts.realTimePartsPerMillion = -501
        #expect(Self.level(Judgement.wakeUps(facts, .skipped, Self.wishes), area) == .note)
        facts.conversion = nil
        #expect(Self.level(Judgement.wakeUps(facts, .skipped, Self.wishes), area) == .warning)
        facts.timerSlack = .microseconds(50)
        #expect(
            Self.level(Judgement.wakeUps(facts, .skipped, Self.wishes), "timer slack") == .warning)
    }

    // MARK: - Card

    @Test(arguments: [
        (1.0, Finding.Level.ok, "fine"), (15.9, .ok, "fine"), (16, .note, "coarse"),
        (359, .note, "coarse"), (360, .warning, "batch"), (480, .warning, "batch"),
    ])
    func `the class of a card is the size of its pointer's steps`(
        frames: Double, level: Finding.Level, word: String
    ) {
        var card = Self.card()
        card.granularityFrames = frames
        let finding = Judgement.output(.card(card), Self.wishes).first {
            $0.area == "card's pointer"
        }
        #expect(finding?.level == level)
        #expect(finding?.found.contains("class \(word)") == true, "\(finding?.found ?? "")")
    }

    @Test func `a card is judged by its stamps, its pace and its channels`() {
        func level(_ area: String, _ change: (inout CardFacts) -> Void) -> Finding.Level? {
            var card = Self.card()
            change(&card)
            return Self.level(Judgement.output(.card(card), Self.wishes), area)
        }
        #expect(level("card's stamps") { $0.stamps = .raw } == .ok)
        #expect(level("card's stamps") { $0.stamps = .monotonic } == .note)
        #expect(level("card's stamps") { $0.stamps = .realTime } == .note)
        #expect(level("card's stamps") { $0.stamps = .none } == .warning)
        #expect(level("card's crystal") { $0.partsPerMillion = -1_000 } == .ok)
        #expect(level("card's crystal") { $0.partsPerMillion = 1_001 } == .problem)
        #expect(level("card's crystal") { $0.partsPerMillion = nil } == .problem)
        #expect(level("card's pointer") { $0.partsPerMillion = nil } == .note)
        #expect(level("card's crystal") { $0.underruns = 1 } == .warning)
        #expect(level("output") { $0.channelCount = 1 } == .note)
        #expect(level("output") { $0.channelCount = 2 } == .ok)
    }

    // MARK: - The rest

    @Test func `Avahi is needed by those who have no other way`() {
        func level(
            running: Bool, bus: Bool, leader: String?, uses: Bool, asks: Bool = false
        ) -> Finding.Level? {
            var wishes = Self.wishes
            wishes.asksForAvahi = asks
            wishes.leader = leader
            wishes.usesAvahi = uses
            return Judgement.avahi(AvahiFacts(hasBus: bus, isRunning: running), wishes).first?.level
        }
        for bus in [true, false] {
            #expect(
                level(running: false, bus: bus, leader: nil, uses: true, asks: true) == .problem)
            // It may be given with --leader, and then nothing is lost.
            #expect(level(running: false, bus: bus, leader: nil, uses: true) == .warning)
            #expect(level(running: false, bus: bus, leader: "a:1", uses: true) == .note)
            #expect(level(running: false, bus: bus, leader: nil, uses: false) == .note)
        }
        #expect(level(running: true, bus: true, leader: nil, uses: true) == .ok)
    }

    @Test func `a text that is too long goes on under itself`() {
        let report = DoctorReport(
            host: "x",
            findings: [
                .ok("a", "fine"),
                .problem("area", String(repeating: "word ", count: 40), advice: "do this"),
            ])
        let lines = report.text(width: 60, colour: false, brief: false).split(separator: "\n")
        #expect(lines.allSatisfy { String($0).columns <= 60 })
        #expect(lines.contains { $0.hasSuffix("→ do this") })
        #expect(lines.last == "1 problem, 0 warnings: a room cannot play like this.")
        let brief = report.text(width: 60, colour: false, brief: true)
        #expect(!brief.contains("fine"))
        #expect(jsonText(report, pretty: false).contains("\"level\":\"problem\""))
    }

    // MARK: - Probing

    @Test(.timeLimit(.minutes(5))) func `a probe that never ends is left alone in time`() async {
        // It ends when the answer is there, so waiting for it would never end.
        let isWaitedFor = Mutex(true)
        let answer = await Probing.limited(.milliseconds(50)) {
            while isWaitedFor.withLock({ $0 }) {
                HostClock.sleep(until: HostClock.now() + .milliseconds(10))
            }
        }
        isWaitedFor.withLock { $0 = false }
        guard case .unanswered = answer else {
            Issue.record("the probe answered: \(answer)")
            return
        }
    }

    @Test func `a probe's value and its error both come through`() async {
        struct Broken: Error, CustomStringConvertible { var description: String { "broken" } }
        let value = await Probing.limited(.seconds(30)) { 7 }
        guard case .found(7) = value else {
            Issue.record("\(value)")
            return
        }
        let failure: DoctorFacts.Answer<Int> = await Probing.limited(.seconds(30)) {
            throw Broken()
        }
        guard case .failed("broken") = failure else {
            Issue.record("\(failure)")
            return
        }
    }
}
