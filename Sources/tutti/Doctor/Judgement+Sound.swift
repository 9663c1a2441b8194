import TuttiDeviceOutput
import TuttiLinuxHost
import TuttiPlayout
import TuttiTiming

extension Judgement {
    /// A wake-up later than this is not heard yet, but something is wrong with the machine.
    static let lateMax = Nanoseconds.milliseconds(2)

    // MARK: - Threads

    static func wakeUps(
        _ facts: WakeUpFacts, _ machine: DoctorFacts.Answer<MachineFacts>, _ wishes: DoctorWishes
    ) -> [Finding] {
        [priority(facts, machine), lateness(facts, wishes), slack(facts), conversion(facts)]
    }

    private static func priority(
        _ facts: WakeUpFacts, _ machine: DoctorFacts.Answer<MachineFacts>
    ) -> Finding {
        let area = "real-time priority"
        var allowed = ""
        if case .found(let machine) = machine {
            let limit = machine.realTimePriority
            let text = limit.map { $0.soft.map { "\($0)" } ?? "unlimited" } ?? "unknown"
            let right = machine.hasSysNice ? "CAP_SYS_NICE is there" : "no CAP_SYS_NICE"
            allowed = " (rtprio limit \(text), \(right))"
        }
        switch facts.scheduling {
        case .realTime(let priority) where priority < facts.priorityAsked:
            return .ok(
                area,
                "SCHED_FIFO \(priority) was obtained, less than the \(facts.priorityAsked) "
                    + "asked for\(allowed)")
        case .realTime(let priority):
            return .ok(area, "SCHED_FIFO \(priority) was obtained\(allowed)")
        case .ordinary:
            return .note(
                area, "none was asked for: realtime-priority is 0 in the settings",
                advice: "--realtime-priority 20, the default, keeps other programs from delaying "
                    + "the sound")
        case .denied:
            return .warning(
                area, "SCHED_FIFO \(facts.priorityAsked) was refused\(allowed)",
                advice: "LimitRTPRIO=95 in the unit (deploy/tutti.service has it), or "
                    + "\"@audio - rtprio 95\" in /etc/security/limits.d/audio.conf, the user in the "
                    + "group audio, and a new login")
        }
    }

    private static func lateness(_ facts: WakeUpFacts, _ wishes: DoctorWishes) -> Finding {
        let area = "wake-ups"
        let found =
            "of \(facts.count) wake-ups half were at most \(micro(facts.median)) late, "
            + "99 of 100 \(micro(facts.late)), the worst \(micro(facts.latest)) (\(how(facts)))"
        let buffer = Nanoseconds.milliseconds(Int64(wishes.bufferMilliseconds))
        if facts.late > buffer / 2 {
            return .problem(
                area, "\(found): the card's \(wishes.bufferMilliseconds) ms would often run dry",
                advice: "stop what loads this machine, or let the card hold more: --buffer-ms "
                    + "\(min(1_000, 4 * wishes.bufferMilliseconds))")
        }
        if facts.latest > buffer / 2 {
            return .warning(
                area, "\(found): the card's \(wishes.bufferMilliseconds) ms can run dry",
                advice: "look for what stalls the machine (drivers, a busy host of this virtual "
                    + "machine), or --buffer-ms \(min(1_000, 4 * wishes.bufferMilliseconds))")
        }
        guard facts.late > lateMax else { return .ok(area, found) }
        return .warning(
            area, found,
            advice: "allow real-time priority, stop what loads this machine, and see the "
                + "governor above")
    }

    private static func how(_ facts: WakeUpFacts) -> String {
        if case .realTime(let priority) = facts.scheduling { return "at SCHED_FIFO \(priority)" }
        return "at ordinary priority"
    }

    private static func slack(_ facts: WakeUpFacts) -> Finding {
        let area = "timer slack"
        guard let slack = facts.timerSlack else {
            return .note(area, "the kernel does not tell by how much it delays timers")
        }
        let found = "timers of our threads may be bundled within \(slack.count) ns"
        guard slack > .microseconds(10) else { return .ok(area, found) }
        return .warning(
            area, "\(found), though 1 ns was asked for",
            advice: "look into what confines this process: prctl(PR_SET_TIMERSLACK) must be allowed"
        )
    }

    /// ppm; an NTP daemon slews no faster by its usual rules.
    static let slewMax = 500.0

    private static func conversion(_ facts: WakeUpFacts) -> Finding {
        let area = "stamp conversion"
        guard let width = facts.conversion else {
            return .warning(
                area,
                "kernel stamps cannot be brought into local time: reading two clocks in a "
                    + "row takes too long here, or CLOCK_REALTIME is being stepped",
                advice: "stop what sets the clock again and again; see the clock source above")
        }
        let error = "kernel stamps are brought into local time to within \(micro(width / 2))"
        guard let rate = facts.realTimePartsPerMillion else { return .ok(area, error) }
        let steered =
            "\(error); CLOCK_REALTIME ran \(rate.text(1, sign: true)) ppm against the crystal"
        guard abs(rate) > slewMax else { return .ok(area, steered) }
        return .note(
            area, "\(steered), as a time daemon does that catches up",
            advice: "chronyc makestep sets the clock at once instead of slewing it")
    }

    // MARK: - Card

    /// Readings of a card without steps scatter by this much.
    static let singleFrames = 3.0
    /// From these on the card model of Playout treats a pointer's steps as coarse, and as batch
    /// when they are such a share of a period.
    static let fineFrames = 16.0
    static let periodShare = 0.75
    /// ppm. No crystal for audio is off by this much; something else paces the PCM.
    static let crystalMax = 1_000.0

    static func output(_ facts: OutputFacts, _ wishes: DoctorWishes) -> [Finding] {
        switch facts {
        case .none(let text):
            return [.note("output", "\(text) is no sound card: there is no hardware to test")]
        case .file(let path, let folder, let place): return [file(path, folder, place)]
        case .card(let card): return [opened(card), pace(card), stamps(card), pointer(card)]
        }
    }

    /// The file is made, its folder is not.
    private static func file(
        _ path: String, _ folder: FolderFacts, _ place: FilePlace
    ) -> Finding {
        let area = "output"
        let free = "\(folder.freeBytes / 1_000_000) MB are free"
        switch place {
        case .refused(let reason):
            return .problem(
                area, "\(path) cannot be written (\(reason))",
                advice: "choose a file that can be: --output file:PATH")
        case .writable: return .ok(area, "\(path) is there and will be replaced, \(free)")
        case .free:
            guard folder.exists else {
                return .problem(
                    area, "\(path) cannot be written: there is no folder \(folder.path)",
                    advice: "mkdir -p \(folder.path), or choose a folder that exists: "
                        + "--output file:PATH")
            }
            guard folder.isWritable else {
                return .problem(
                    area, "\(path) cannot be written in \(folder.path)",
                    advice: "choose a folder that is writable: --output file:PATH")
            }
            return .ok(area, "\(path) can be written, \(free)")
        }
    }

    private static func opened(_ card: CardFacts) -> Finding {
        let milliseconds = Double(1_000 * card.periodFrames) / Double(max(1, card.sampleRate))
        let buffer = Double(1_000 * card.bufferFrames) / Double(max(1, card.sampleRate))
        let found =
            "alsa:\(card.pcm) (\(card.type)) takes \(card.sampleFormat), \(card.sampleRate) Hz, "
            + "\(card.channelCount) channels, periods of \(milliseconds.text(1)) ms in "
            + "\(buffer.text(1)) ms"
        if card.channelCount < 2 {
            return .note(
                "output", found, advice: "--channel mono, so that nothing of the music is lost")
        }
        return .ok("output", found)
    }

    private static func pace(_ card: CardFacts) -> Finding {
        let area = "card's crystal"
        if card.underruns > 0 {
            return .warning(
                area, "the card ran dry \(card.underruns) times in a second of silence",
                advice:
                    "see wake-ups above; a larger --buffer-ms (80 by default) lets the card hold more"
            )
        }
        guard let rate = card.partsPerMillion else {
            return .problem(
                area,
                "the card took silence, but never said how far it has played it "
                    + "(\(card.readings) readings)",
                advice: "choose the card itself instead of a plug-in: --output alsa:hw:CARD,DEVICE")
        }
        let found = "it runs at \(rate.text(0, sign: true)) ppm of its nominal rate"
        guard abs(rate) > crystalMax else { return .ok(area, found) }
        return .problem(
            area, "\(found), as no crystal does: nothing real paces this PCM",
            advice: "choose the card itself: --output alsa:hw:CARD,DEVICE (aplay -l lists them)")
    }

    private static func stamps(_ card: CardFacts) -> Finding {
        let area = "card's stamps"
        switch card.stamps {
        case .raw:
            return .ok(area, "positions are stamped with CLOCK_MONOTONIC_RAW, our local clock")
        case .monotonic, .realTime:
            let name = card.stamps == .monotonic ? "CLOCK_MONOTONIC" : "CLOCK_REALTIME"
            return .note(
                area, "positions are stamped with \(name) and translated, to about a microsecond",
                advice: isPlugin(card)
                    ? "the card itself may do better: --output alsa:hw:CARD,DEVICE" : nil)
        case .none:
            return .warning(
                area, "positions carry no stamp: the program stamps them itself, some 10 µs worse",
                advice: isPlugin(card)
                    ? "choose the card itself: --output alsa:hw:CARD,DEVICE"
                    : "a newer kernel or driver may stamp them")
        }
    }

    private static func pointer(_ card: CardFacts) -> Finding {
        let area = "card's pointer"
        guard card.partsPerMillion != nil else {
            return .note(area, "there were too few readings to tell how finely the card counts")
        }
        let frames = card.granularityFrames
        let rate = Double(max(1, card.sampleRate))
        let size = "\(max(1, frames).text(0)) frames (\((frames / rate * 1e6).text(0)) µs)"
        if frames <= singleFrames {
            return .ok(area, "the card counts frame by frame: class \(CardClass.fine)")
        }
        let found = "the count of played frames moves in steps of about \(size): class "
        if frames < fineFrames { return .ok(area, found + "\(CardClass.fine)") }
        guard frames >= periodShare * Double(card.periodFrames) else {
            return .note(
                area,
                found + "\(CardClass.coarse)"
                    + (card.isBatch ? ", as the driver says itself" : ""),
                advice: isPlugin(card)
                    ? "the card itself may count finer: --output alsa:hw:CARD,DEVICE" : nil)
        }
        return .warning(
            area, found + "\(CardClass.batch), known only once a period",
            advice: isPlugin(card)
                ? "choose the card itself instead of a mixing plug-in: "
                    + "--output alsa:hw:CARD,DEVICE"
                : "shorter periods help: --buffer-ms 20")
    }

    /// Not a driver of the kernel: the library plays through something else.
    private static func isPlugin(_ card: CardFacts) -> Bool { card.type != "HW" }

    // MARK: -

    /// `120 ns`, `12.3 µs`, `4.5 ms`.
    static func micro(_ time: Nanoseconds) -> String {
        let value = time.microseconds
        if abs(value) < 1 { return "\(time.count) ns" }
        return abs(value) < 1_000 ? "\(value.text(1)) µs" : "\((value / 1_000).text(1)) ms"
    }
}
