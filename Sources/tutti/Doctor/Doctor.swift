import ArgumentParser
import TuttiRoom

/// `tutti doctor`: is this machine, and this network, fit to play in lockstep?
struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Test this machine and its network, and say what to do about each finding.",
        discussion: """
            Tests what a room needs, for about five seconds: real-time priority and how late \
            threads really wake up, clocks, the sound card (it is opened and plays silence), time \
            stamps of packets, interfaces and wifi power saving, multicast, ports, Avahi, the \
            cache and state folders and FFmpeg. With --leader, also the path to that leader, and \
            whether its rooms hear multicast as one frame or converted to a packet for each.

            Each finding is ok, a note (nothing is lost by it), a warning (it works, but not as \
            well as it could) or a problem (a room cannot play like this). Exit status 1 when \
            there is a problem; Avahi is one only where it is asked for, by avahi: true or by a \
            group without its leader's address. Nothing is changed; what needs root says so.

            Examples:
              tutti doctor
              tutti doctor --output alsa:hw:1,0 --leader 192.168.1.20:7430
              tutti doctor --json | jq '.findings[] | select(.level != "ok")'
            """)

    @Flag(help: "Print the findings as one JSON object.")
    var json = false

    @Flag(help: "Print only what is not ok.")
    var brief = false

    @Option(
        help: ArgumentHelp("Also test the path to this leader.", valueName: "host:port"))
    var leader: String?

    @Option(
        help: ArgumentHelp(
            "The output to test: alsa[:PCM], virtual, file:PATH or none (default: alsa).",
            valueName: "out"))
    var output: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The port a leader here would take (default: 7430).", valueName: "port"))
    var port: String?

    @OptionGroup(title: "Settings") var common: CommonOptions

    func run() async throws {
        var flags = common.flags
        flags[.leader] = leader
        flags[.output] = output
        flags[.port] = port
        let settings = try await Settings.announced(flags: flags, file: common.config)
        if Terminal.error.isInteractive {
            Terminal.error.write("Testing for a few seconds …\n")
        }
        let facts = await Probing.facts(settings)
        let report = DoctorReport(
            host: Settings.hostName(),
            findings: Judgement.findings(facts, wishes: DoctorWishes(settings)))
        if json {
            Terminal.output.write(jsonText(report, pretty: true) + "\n")
        } else {
            let terminal = Terminal.output
            terminal.write(
                report.text(
                    width: terminal.isInteractive ? terminal.width : 100,
                    colour: terminal.showsColour, brief: brief))
        }
        if report.problems > 0 { throw ExitCode.failure }
    }
}

extension DoctorWishes {
    init(_ settings: Settings) {
        output = "\(settings.output)"
        leader = settings.leader.map { "\($0)" }
        usesAvahi = settings.avahi
        asksForAvahi = settings.asksForAvahi
        bufferMilliseconds = settings.bufferMilliseconds
        cacheLimitMegabytes = settings.cacheLimitMegabytes
    }
}
