import ArgumentParser
import Tutti
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiPlayback
import TuttiRoom

/// `tutti play`.
struct Play: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Play, or go on after a pause; files are played on this machine alone.",
        discussion: """
            Without a file the group plays, or goes on. With files, folders, playlists or \
            addresses it is a player of its own, without a group: items follow one another \
            without a gap, and the tracks of a cue sheet, or of a file that has one in its tags or \
            has chapters, are items. In a terminal there are keys:

              \(PlayKey.help)

            At another rate the pitch stays. The cover is shown in terminals that can show \
            pictures, by the protocol of kitty or as sixels.

            Examples:
              tutti play
              tutti play Music/Album
              tutti play Music/Album.cue
              tutti play talk.mp3 --start 12:30 --rate 1.25
              tutti play audiobook.m4b --resume
              tutti play song.flac --output alsa:hw:1,0
              tutti play --device-list
            """)

    @Argument(
        help: ArgumentHelp(
            "What to play here, without a group.", valueName: "file|folder|playlist|url"),
        completion: .file())
    var files: [String] = []

    @Option(
        help: ArgumentHelp(
            "With files: where the sound goes (default: alsa:default).", valueName: "out"),
        completion: .custom(Completions.playedOutputs))
    var output: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("With files: how fast, 0.25 to 4 (default: 1).", valueName: "rate"))
    var rate: String?

    @Option(
        help: ArgumentHelp(
            "With files: where in the first one to begin: 1:23.5, or 50%.",
            valueName: "time|percent"))
    var start: String?

    @Option(
        help: ArgumentHelp(
            "With files: play each as loud as its ReplayGain or R 128 tags say: off, track or album "
                + "(default: off).", valueName: "kind"),
        completion: .list(["off", "track", "album"]))
    var loudness: String?

    @Flag(help: "With files: go on where the first one was left, if it is longer than ten minutes.")
    var resume = false

    @Flag(help: "With files: show no cover, also in a terminal that can show pictures.")
    var noArtwork = false

    @Flag(help: "With files: let file:PATH and record=PATH write over files that are there.")
    var force = false

    @Flag(help: "List the sound cards and PCMs that ALSA knows, and end.")
    var deviceList = false

    @OptionGroup var options: ControlOptions

    func validate() throws {
        let isHere = !files.isEmpty
        guard !resume || start == nil else {
            throw ValidationError("--resume and --start are two places: choose one")
        }
        let isPlain = !resume && !noArtwork && !force
        guard isHere || isPlain && [output, rate, start, loudness].allSatisfy({ $0 == nil }) else {
            throw ValidationError(
                "--output, --rate, --start, --loudness, --resume, --no-artwork and --force are for files: "
                    + "tutti play FILE --rate 1.25")
        }
        guard !isHere || options.leader.flags.isEmpty else {
            throw ValidationError(
                "files are played on this machine alone; a group gets them by tutti add")
        }
        _ = try parsedRate()
        _ = try parsedStart()
        _ = try parsedLoudness()
        _ = try parsedOutput()
    }

    private func parsedLoudness() throws(ValidationError) -> PlayerItem.LoudnessNormalization {
        switch loudness {
        case nil, "off": return .off
        case "track": return .track
        case "album": return .album
        case let word?: throw ValidationError("--loudness \(word): off, track or album")
        }
    }

    private func parsedRate() throws(ValidationError) -> Double {
        guard let rate else { return 1 }
        guard let value = Double(rate), PlayFiles.rates.contains(value) else {
            throw ValidationError(
                "--rate \(rate): 0.25 to 4")
        }
        return value
    }

    private func parsedOutput() throws(ValidationError) -> OutputSpecification {
        guard let output else { return .alsa(pcm: "default") }
        if let mistyped = MistypedOutput(output) {
            throw ValidationError("--output \"\(output)\": \(mistyped.reason)\(mistyped.question)")
        }
        guard let specification = try? OutputSpecification(parsing: output),
            specification != OutputSpecification.none
        else {
            throw ValidationError("--output none: without an output nothing plays")
        }
        return specification
    }

    func parsedStart() throws(ValidationError) -> PositionArgument {
        guard let start else { return .time(0) }
        switch PositionArgument(argument: start) {
        case .time(let seconds)?: return .time(seconds)
        case .share(let share)?: return .share(share)
        case .by?, nil:
            throw ValidationError(
                "--start \(start): seconds, M:SS or H:MM:SS, or a share such as 50%")
        }
    }

    func run() async throws {
        if deviceList {
            for device in AudioDevice.available() {
                let words = device.description.isEmpty ? "" : "  \(device.description)"
                Terminal.output.say("alsa:\(device.name)\(words)")
            }
            return
        }
        guard !files.isEmpty else { return try await options.perform(.play) }
        let specification = try parsedOutput()
        let (rate, start, loudness) = (
            try parsedRate(), try parsedStart(), try parsedLoudness()
        )
        let settings = try await Settings.announced(
            flags: options.common.flags, file: options.common.config)
        let isVerbose = options.common.verbose
        try await untilInterrupted { [files, resume, noArtwork, force] in
            let files = PlayableFiles(files)
            try OutputFiles(specification).spare(
                sources: files.sources, cacheFolder: settings.cacheFolder)
            let look = FirstLook(files)
            if FirstLook.isDue(for: specification) {
                try await look.findSomethingPlayable { Terminal.error.say($0) }
            }
            let place = try await look.seconds(of: start)
            let player = PlayFiles(
                files, on: AudioDevice(specification, overwrites: force), loudness: loudness,
                stateFolder: settings.stateFolder, showsArtwork: !noArtwork, isVerbose: isVerbose)
            try await player.run(rate: rate, start: resume ? player.left : place)
        }
    }
}

/// `tutti pause`.
struct Pause: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Pause all rooms at one instant.", discussion: "Example:\n  tutti pause")
    @OptionGroup var options: ControlOptions
    func run() async throws { try await options.perform(.pause) }
}

/// `tutti next`.
struct Next: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Go to the next asset.", discussion: "Example:\n  tutti next")
    @OptionGroup var options: ControlOptions
    func run() async throws { try await options.perform(.next) }
}

/// `tutti previous`.
struct Previous: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Go to the beginning of the asset, or to the asset before it.",
        discussion: """
            In the first three seconds of an asset it is the one before; later its own beginning.

            Example:
              tutti previous
            """)
    @OptionGroup var options: ControlOptions
    func run() async throws { try await options.perform(.previous) }
}

/// `tutti stop`.
struct Stop: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Stop playing; the rooms stay in the group.",
        discussion: """
            The queue and the place in it stay: tutti play begins the item anew that was stopped.

            Example:
              tutti stop
            """)
    @OptionGroup var options: ControlOptions
    func run() async throws { try await options.perform(.stop) }
}

/// `tutti rate`.
struct Rate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Play faster or slower from now on, in all rooms at one instant.",
        discussion: """
            0.25 to 4; 1 is as recorded. The pitch stays. It holds for this asset and for those \
            that follow, until another rate is set or the leader ends.

            Examples:
              tutti rate 1.25
              tutti rate 1
            """)

    @Argument(help: ArgumentHelp("How fast, 0.25 to 4.", valueName: "rate"))
    var word: String

    @OptionGroup var options: ControlOptions

    func validate() throws { _ = try parsed() }

    func parsed() throws -> GroupCommand { .rate(try rate) }

    private var rate: Double {
        get throws {
            guard let rate = Double(word), RateChange.rates.contains(rate) else {
                throw ValidationError(
                    "\"\(word)\" is no rate: write tutti rate 1.25, from 0.25 to 4")
            }
            return rate
        }
    }

    func run() async throws {
        let rate = try rate
        try await options.steer { client in
            EffectText(try await client.perform(.rate(rate))).lines(atRate: rate)
        }
    }
}

/// `tutti seek`.
struct Seek: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Go to a place of the current asset, in all rooms at one instant.",
        usage: """
            tutti seek <time|+time|-time|percent> [--leader <host:port>] [--group <room>] \
            [--config <path>] [--verbose] [--log-level <level>]
            """,
        discussion: """
            Seconds, M:SS or H:MM:SS, with a fraction if you like; with + or - before it, from \
            where it plays now; with %, a share of the asset.

            Examples:
              tutti seek 1:23.5
              tutti seek 1:02:03
              tutti seek +10
              tutti seek -1:30
              tutti seek 50%

            A time behind the end, or in the last second, is a second before the end; one before \
            the beginning is the beginning.
            """)

    // A negative number looks like a flag.
    @Argument(
        parsing: .allUnrecognized,
        help: ArgumentHelp("Where to go.", valueName: "time|+time|-time|percent"))
    var words: [String] = []

    @OptionGroup var options: ControlOptions

    func validate() throws { _ = try parsed() }

    func parsed() throws -> GroupCommand {
        try refuseOptions(in: words)
        // A space before the sign may make it a word of its own: 50 %.
        let isPercent = words.count == 2 && words[1] == "%"
        let text = words.joined().split(separator: " ").joined()
        guard words.count == 1 || isPercent, let place = PositionArgument(argument: text) else {
            throw ValidationError(
                "\"\(words.joined(separator: " "))\" is no place: "
                    + "write tutti seek 83.5, 1:23.5, +10, -10 or 50%")
        }
        return switch place {
        case .time(let seconds): .seek(seconds: seconds)
        case .by(let seconds): .seekBy(seconds: seconds)
        case .share(let share): .seekTo(share: share)
        }
    }

    func run() async throws { try await options.perform(parsed()) }
}
