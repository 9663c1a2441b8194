import ArgumentParser
import Logging
import TuttiDeviceOutput
import TuttiRoom

/// Options of every command that reads settings.
struct CommonOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Read settings from this file instead of the usual ones.", valueName: "path"),
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    @Flag(help: "Log what happens to stderr (the same as --log-level debug).")
    var verbose = false

    @Option(
        help: ArgumentHelp(
            "Log from this level on: trace, debug, info, notice, warning, error, critical.",
            valueName: "level"),
        completion: .list(Completions.logLevels))
    var logLevel: String?

    var flags: [SettingKey: String] {
        var flags: [SettingKey: String] = [:]
        if verbose { flags[.logLevel] = "debug" }
        flags[.logLevel] = logLevel ?? flags[.logLevel]
        return flags
    }
}

/// Options that say which leader is meant.
struct LeaderOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The leader's address; without it, Avahi finds the leader.", valueName: "host:port"),
        completion: .custom(Completions.leaderAddresses))
    var leader: String?

    @Option(
        help: ArgumentHelp(
            "The leader of this name, when Avahi finds several.", valueName: "room"),
        completion: .custom(Completions.leaderNames))
    var group: String?

    var flags: [SettingKey: String] {
        var flags: [SettingKey: String] = [:]
        flags[.leader] = leader
        flags[.group] = group
        return flags
    }
}

/// Options of a room: what it is called and what it sounds on.
///
/// Numbers are taken as they stand, so that -500 is a value and no flag.
struct RoomOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("Name of this room (default: the host's name).", valueName: "room"))
    var name: String?

    @Option(
        help: ArgumentHelp(
            "Where the sound goes (default: alsa).",
            discussion: """
                alsa[:PCM]     a sound card by its ALSA name: alsa, alsa:hw:1,0
                virtual[:…]    a card without hardware: ppm=80,wander=0.3,record=PATH
                file:PATH      a WAV file, written at the pace of a card
                none           no sound; for a leader only
                """, valueName: "out"),
        completion: .custom(Completions.outputs))
    var output: String?

    @Option(
        help: ArgumentHelp(
            "One more room of this machine, on another output; for tutti node.",
            discussion: """
                May be given several times. The rooms are one machine to the household, and each is one \
                to the group.
                """, valueName: "name=out"))
    var also: [String] = []

    @Option(
        help: ArgumentHelp(
            "What sounds here: stereo, left, right or mono (default: stereo).",
            discussion: "One side, or the mean of both, on every loudspeaker of this room.",
            valueName: "part"),
        completion: .list(["stereo", "left", "right", "mono"]))
    var channel: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Control (TCP) and clock (UDP) port of a leader; 0: any (default: 7430).",
            valueName: "port"))
    var port: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "How much later the sound leaves what hangs on this output, in µs; 1500±50 if measured.",
            discussion: """
                Amplifiers and DSPs delay; the room plays earlier by this much. Without it the room \
                takes what tutti offset said last, or 0.
                """, valueName: "us"))
    var latencyOffsetUs: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Warn when the room may be further off than this, in µs (default: 1000).",
            valueName: "us"))
    var syncTargetUs: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The loudest that this room gets, whatever it is asked for (default: 100).",
            valueName: "1…100"))
    var volumeLimit: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "How long the output is awake and silent before the first frame (default: 0).",
            discussion: """
                Some screens and receivers swallow the beginning of what comes after a pause; the group \
                waits for this room as long.
                """, valueName: "ms"))
    var leadInMs: String?

    @Option(
        help: ArgumentHelp(
            "Folder for what the room remembers (default: ~/.local/state/tutti).",
            valueName: "path"),
        completion: .directory)
    var stateFolder: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "What the sound card should hold (default: \(OutputThread.standardBufferMilliseconds)).",
            valueName: "ms"))
    var bufferMs: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Frames per second that the card is asked for; auto: as the item (default: auto).",
            valueName: "hz|auto"),
        completion: .list(["auto", "44100", "48000", "96000", "192000"]))
    var sampleRate: String?

    @Option(
        help: ArgumentHelp(
            "Whether other programs may have the card while nothing plays (default: keep).",
            valueName: "keep|release"),
        completion: .list(["keep", "release"]))
    var outputIdle: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "SCHED_FIFO priority of output and clock threads, 0: none (default: 20).",
            valueName: "0…99"))
    var realtimePriority: String?

    @Option(
        help: ArgumentHelp(
            "Folder for assets fetched from the leader (default: ~/.cache/tutti).",
            valueName: "path"),
        completion: .directory)
    var cacheFolder: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The most that this folder may hold (default: 2000).", valueName: "megabytes"))
    var cacheLimitMb: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The most that files of other machines in the queue may take (default: 2000).",
            valueName: "megabytes"))
    var cacheUploadsMb: String?

    @Flag(help: "Neither announce this room nor look for leaders with Avahi.")
    var noAvahi = false

    @Option(
        help: ArgumentHelp(
            "The network interface on which this room is announced and looks for leaders (default: all that Avahi uses).",
            valueName: "name"),
        completion: .custom(Completions.interfaces))
    var interface: String?

    @Flag(
        help: ArgumentHelp(
            "Do without packets that all rooms hear at once.",
            discussion: """
                On the air they bring rooms closer together; where multicast does not work they do \
                nothing. A leader with this flag sends none.
                """))
    var noBroadcasts = false

    @Flag(
        help: ArgumentHelp(
            "Never lead by itself, neither when the leader is lost nor where there is none."))
    var noSuccession = false

    @Option(
        help: ArgumentHelp(
            "What a tutti node that led when the power failed does with its queue: stand at its place, or play on (default: pause).",
            valueName: "pause|play"),
        completion: .list(["pause", "play"]))
    var afterRestart: String?

    @Flag(
        help: ArgumentHelp(
            "Do not mark packets of the clock and of control for switches and access points."))
    var noQos = false

    @Flag(
        help: ArgumentHelp(
            "Let everybody on the network steer the group, feed it files and read what it plays.",
            discussion: "For demonstrations. Leader, rooms and commands all need it."))
    var open = false

    @Flag(help: "Let file:PATH and record=PATH write over files that are there.")
    var force = false

    @Flag(help: .hidden)
    var dieWithParent = false

    var flags: [SettingKey: String] {
        var flags: [SettingKey: String] = [:]
        flags[.name] = name
        flags[.output] = output
        flags[.also] = also.isEmpty ? nil : also.joined(separator: ";")
        flags[.channel] = channel
        flags[.port] = port
        flags[.latencyOffset] = latencyOffsetUs
        flags[.syncTarget] = syncTargetUs
        flags[.volumeLimit] = volumeLimit
        flags[.leadIn] = leadInMs
        flags[.stateFolder] = stateFolder
        flags[.buffer] = bufferMs
        flags[.sampleRate] = sampleRate
        flags[.outputIdle] = outputIdle
        flags[.realTimePriority] = realtimePriority
        flags[.cacheFolder] = cacheFolder
        flags[.cacheLimit] = cacheLimitMb
        flags[.uploadLimit] = cacheUploadsMb
        flags[.interface] = interface
        flags[.avahi] = noAvahi ? "false" : nil
        flags[.broadcasts] = noBroadcasts ? "false" : nil
        flags[.succession] = noSuccession ? "false" : nil
        flags[.afterRestart] = afterRestart
        flags[.qos] = noQos ? "false" : nil
        flags[.open] = open ? "true" : nil
        return flags
    }
}

extension [SettingKey: String] {
    static func + (a: Self, b: Self) -> Self { a.merging(b) { _, new in new } }
}
