import TuttiLinuxHost
import TuttiRoom
import TuttiTiming

/// Turns what the probes found into findings: values in, sentences out, nothing asked of the
/// machine. Every branch can be reached by a test.
enum Judgement {
    /// All findings in the order in which sound and time flow.
    static func findings(_ facts: DoctorFacts, wishes: DoctorWishes) -> [Finding] {
        /// - Returns: what `judge` makes of an answer; one finding where there is none.
        func about<Value>(
            _ answer: DoctorFacts.Answer<Value>, _ area: String, _ judge: (Value) -> [Finding]
        ) -> [Finding] {
            if case .found(let value) = answer { return judge(value) }
            return missing(answer, area, wishes).map { [$0] } ?? []
        }
        var all: [Finding] = []
        all += about(facts.machine, "kernel", machine)
        all += about(facts.wakeUps, "wake-ups") { wakeUps($0, facts.machine, wishes) }
        all += about(facts.output, "output") { output($0, wishes) }
        all += about(facts.interfaces, "interfaces", interfaces)
        all += about(facts.loopback, "kernel stamps", loopback)
        all += about(facts.leader, "leader", leader)
        all += about(facts.multicast, "multicast", multicast)
        all += about(facts.group, conversionArea, conversion)
        all += about(facts.ports, "ports", ports)
        all += about(facts.avahi, "Avahi") { avahi($0, wishes) }
        all += about(facts.cache, "cache folder") { cache($0, wishes) }
        all += about(facts.state, "state folder", state)
        all += about(facts.codecs, "FFmpeg", codecs)
        return all
    }

    /// What is said of a probe without a value; `nil` where there was nothing to test.
    private static func missing<Value>(
        _ answer: DoctorFacts.Answer<Value>, _ area: String, _ wishes: DoctorWishes
    ) -> Finding? {
        let advice = advice(forFailed: area, wishes)
        switch answer {
        case .failed(let reason):
            // What a room needs to play is a problem; what only its comfort needs, a warning.
            return ["output", "leader"].contains(area)
                ? .problem(area, reason, advice: advice)
                : .warning(area, "could not be tested: \(reason)", advice: advice)
        case .unanswered:
            return .warning(area, "gave no answer in time and was left alone", advice: advice)
        case .found, .skipped: return nil
        }
    }

    private static func advice(
        forFailed area: String, _ wishes: DoctorWishes
    ) -> String {
        switch area {
        case "output":
            "choose an output that works: tutti doctor --output alsa:PCM (aplay -L lists them), "
                + "virtual, or file:PATH"
        case "leader", conversionArea:
            "start it there (tutti lead FILE), check its address, and let "
                + portsThrough(of: wishes.leader ?? ":\(HostPort.defaultPort)")
        case "Avahi": "systemctl restart dbus avahi-daemon"
        default: "run tutti doctor again; if it stays so, journalctl -k may say why"
        }
    }

    // MARK: - Kernel

    /// Fewer than this and a leader of a large group runs out: each room takes a few.
    static let openFilesMin = 256
    /// µs. A sleep that takes longer than this to leave shows in the stamps of packets.
    static let idleExitMax = 200
    /// Clock sources that take a system call or a slow register to read.
    static let slowClocks = ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "xen"]

    static func machine(_ facts: MachineFacts) -> [Finding] {
        var all: [Finding] = []
        all.append(clockSource(facts))
        if let daemon = facts.timeDaemon { all.append(timeDaemon(daemon)) }
        all.append(throttle(facts.throttle))
        all.append(governor(facts))
        if let limit = facts.lockedMemory { all.append(lockedMemory(limit)) }
        if let limit = facts.openFiles { all.append(openFiles(limit)) }
        return all
    }

    private static func clockSource(_ facts: MachineFacts) -> Finding {
        let area = "clock source"
        guard let source = facts.clockSource else {
            return .note(area, "the kernel does not tell which clock it reads")
        }
        guard slowClocks.contains(source) else {
            return .ok(area, "the kernel reads \(source), which is fast and fine")
        }
        let file = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        let better = facts.clockSources.first { !slowClocks.contains($0) }
        return .warning(
            area, "the kernel reads \(source), which takes about a microsecond each time",
            advice: better.map { "as root: echo \($0) > \(file)" }
                ?? "look for \"clocksource\" in dmesg: it says why tsc was found unfit")
    }

    private static func timeDaemon(_ daemon: MachineFacts.TimeDaemon) -> Finding {
        let rate = daemon.partsPerMillion.text(1, sign: true)
        let state =
            daemon.isSynchronised
            ? "a time daemon keeps CLOCK_REALTIME on time and corrects the crystal by \(rate) ppm"
            : "nobody keeps CLOCK_REALTIME on time (its set correction is \(rate) ppm)"
        return .ok(
            "time daemon", "\(state); rooms use CLOCK_MONOTONIC_RAW, which nobody steers")
    }

    private static func throttle(_ throttle: MachineFacts.Throttle?) -> Finding {
        let area = "real-time share"
        guard let throttle, throttle.periodMicroseconds > 0 else {
            return .note(area, "the kernel does not tell how much of a core real-time threads get")
        }
        if throttle.runtimeMicroseconds < 0 {
            return .ok(area, "real-time threads may use all of a core")
        }
        let share = 100 * throttle.runtimeMicroseconds / throttle.periodMicroseconds
        let found = "real-time threads may use \(share) % of each core"
        guard share < 50 else { return .ok(area, found) }
        return .warning(
            area, found,
            advice: "as root: sysctl kernel.sched_rt_runtime_us="
                + "\(throttle.periodMicroseconds / 20 * 19)")
    }

    private static func governor(_ facts: MachineFacts) -> Finding {
        let area = "processor sleep"
        let idle = facts.deepestIdle.map {
            "the deepest sleep (\($0.name)) takes \($0.exitMicroseconds) µs to leave"
        }
        let lazy = facts.governors.contains("powersave")
        let governors = facts.governors.joined(separator: ", ")
        guard !facts.governors.isEmpty || idle != nil else {
            return .note(
                area, "governor and sleep states are not visible here, as in a virtual machine")
        }
        let found = [
            facts.governors.isEmpty ? nil : "the frequency governor is \(governors)", idle,
        ]
        .compactMap { $0 }.joined(separator: " and ")
        if let deepest = facts.deepestIdle, deepest.exitMicroseconds > idleExitMax {
            return .note(
                area, found,
                advice: "for the last microseconds, as root: cpupower idle-set -D \(idleExitMax)")
        }
        guard lazy else { return .ok(area, found) }
        return .note(
            area, found,
            advice: "if wake-ups are late, as root: cpupower frequency-set -g schedutil"
        )
    }

    private static func lockedMemory(_ limit: MachineFacts.Limit) -> Finding {
        .ok(
            "locked memory",
            (limit.soft.map { "up to \($0 / 1024) KiB may be locked" } ?? "any amount may be locked")
                + "; Tutti touches its buffers beforehand and locks none")
    }

    private static func openFiles(_ limit: MachineFacts.Limit) -> Finding {
        let area = "open files"
        guard let soft = limit.soft else { return .ok(area, "any number may be open") }
        guard soft < openFilesMin else { return .ok(area, "up to \(soft) may be open at once") }
        return .warning(
            area, "only \(soft) may be open at once, and a leader needs a few for each room",
            advice: "ulimit -n 1024, or LimitNOFILE=1024 in the unit")
    }

    // MARK: - Folders, codecs, Avahi

    static func cache(_ facts: FolderFacts, _ wishes: DoctorWishes) -> [Finding] {
        let area = "cache folder"
        guard facts.isWritable else {
            return [
                .warning(
                    area,
                    "\(facts.existing) is not writable, so a follower holds assets in memory, "
                        + "up to 256 MB, and not in \(facts.path)",
                    advice:
                        "choose another with --cache-folder PATH or cache.folder in tutti.yaml, "
                        + "or as root: install -d -o \"$USER\" \(facts.path)")
            ]
        }
        let free = facts.freeBytes / 1_000_000
        let found = "\(facts.path) can be written, \(free) MB are free"
        if free < 200 {
            return [
                .warning(
                    area, found,
                    advice: "free some space: an hour of WAV is 700 MB; or choose another folder "
                        + "with --cache-folder PATH")
            ]
        }
        if free < wishes.cacheLimitMegabytes {
            return [
                .note(
                    area,
                    "\(found), less than the cache's limit of \(wishes.cacheLimitMegabytes) MB",
                    advice: "--cache-limit-mb \(free / 2) keeps it from filling the disk")
            ]
        }
        return [.ok(area, found)]
    }

    /// A room plays without one, and begins anew each time.
    static func state(_ facts: FolderFacts) -> [Finding] {
        let area = "state folder"
        guard facts.isWritable else {
            return [
                .warning(
                    area,
                    "\(facts.existing) is not writable: what would be kept in \(facts.path), "
                        + "latency offsets, this node's number and the rates of clocks, is "
                        + "forgotten when the program ends",
                    advice:
                        "choose another with --state-folder PATH or state-folder in tutti.yaml, "
                        + "or as root: install -d -o \"$USER\" \(facts.path)")
            ]
        }
        return [.ok(area, "\(facts.path) can be written")]
    }

    static func codecs(_ facts: CodecFacts) -> [Finding] {
        let area = "FFmpeg"
        if !facts.readsHTTP {
            return [
                .problem(
                    area,
                    "libavformat \(facts.version) is built without http, by which rooms "
                        + "fetch assets", advice: "apt-get install --reinstall libavformat59")
            ]
        }
        guard facts.missing.isEmpty else {
            return [
                .warning(
                    area,
                    "libavformat \(facts.version) cannot read "
                        + facts.missing.joined(separator: ", "),
                    advice: "apt-get install --reinstall libavcodec59 libavformat59")
            ]
        }
        return [
            .ok(
                area,
                "libavformat \(facts.version) reads \(facts.titles.joined(separator: ", "))")
        ]
    }

    static func avahi(_ facts: AvahiFacts, _ wishes: DoctorWishes) -> [Finding] {
        let area = "Avahi"
        if facts.isRunning { return [.ok(area, "avahi-daemon answers")] }
        let found =
            facts.hasBus
            ? "D-Bus answers, but avahi-daemon does not" : "there is no D-Bus system bus"
        let remedy =
            facts.hasBus
            ? "systemctl enable --now avahi-daemon"
            : "apt-get install avahi-daemon dbus && systemctl enable --now dbus avahi-daemon"
        if !wishes.usesAvahi {
            return [.note(area, "\(found); it is switched off in the settings anyway")]
        }
        if wishes.leader != nil {
            return [
                .note(
                    area,
                    "\(found): tutti rooms does not list this one; nothing else is lost by it, "
                        + "with the leader given", advice: remedy)
            ]
        }
        let sentence = "\(found): rooms cannot find each other"
        let advice = "\(remedy); or name the leader: tutti follow --leader HOST:PORT"
        return [
            wishes.asksForAvahi
                ? .problem(area, sentence, advice: advice)
                : .warning(area, sentence, advice: advice)
        ]
    }
}
