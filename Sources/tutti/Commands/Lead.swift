import ArgumentParser
import TuttiRoom

/// `tutti lead`: a node with the music.
struct Lead: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lead a group: announce it and play assets in order, in all of its rooms.",
        discussion: """
            Plays when as many rooms are ready as --wait-for says, this one included if it has an \
            output. Rooms that come later join the running line in sync. Ends when the last asset \
            has been played, or with Ctrl-C. Without an asset it waits for tutti add.

            Plays what FFmpeg plays of files with sound: FLAC, MP3, AAC, ALAC, Opus, Vorbis, WAV, AIFF, \
            WMA, WavPack, APE, DSD, the sound of films and others. More than two channels are mixed \
            to two. Not played: tracker modules and chip tunes, which two rooms would not play \
            alike; files that only their name tells (G.722, GSM); protected purchases.

            It begins with the first asset that can be played and reads the others meanwhile. \
            Folders are played with all that is in them, by disc and track or by name; playlists \
            are m3u, m3u8, pls, xspf and cue sheets, whose tracks are parts of a file. What cannot \
            be played is left out with a line that says \
            why; the exit status is then 1, unless it was no audio in a folder.

            Examples:
              tutti lead song.flac
              tutti lead a.mp3 b.opus --name kitchen --wait-for 3
              tutti lead Music/Album party.m3u8
              tutti lead http://nas.local/x.flac --output none --wait-for 2
              tutti lead song.wav --output alsa:hw:1,0 --loop
            """)

    @Argument(
        help: ArgumentHelp(
            "Files, folders, playlists or http URLs of anything that FFmpeg plays.",
            valueName: "file|folder|playlist|url"),
        completion: .file())
    var assets: [String] = []

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Start when this many rooms are ready (default: 1).", valueName: "n"))
    var waitFor: String?

    @Option(
        help: ArgumentHelp(
            "A web server whose https certificate is not looked at; may be repeated.",
            valueName: "host"))
    var insecure: [String] = []

    @Flag(help: "Begin again after the last asset.")
    var loop = false

    @OptionGroup(title: "Room") var room: RoomOptions
    @OptionGroup(title: "Settings") var common: CommonOptions

    func validate() throws {
        guard !assets.contains("") else {
            throw ValidationError(
                "An asset without a name: write the path of a file, or an http URL")
        }
    }

    func run() async throws {
        var flags = room.flags + common.flags
        flags[.waitFor] = waitFor
        if !insecure.isEmpty { flags[.insecure] = insecure.joined(separator: ",") }
        let settings = try await Settings.announced(flags: flags, file: common.config)
        let logger = makeLogger(level: settings.logLevel)
        let ready = Ready()
        var configuration = settings.nodeConfiguration(
            logger: logger, overwritesFiles: room.force)
        configuration.whenReady = { ready.tell() }
        let node = LeaderNode(
            configuration, assets: assets, roomsToWaitFor: settings.waitFor, loops: loop)
        try await untilInterrupted(
            alsoWhenParentEnds: room.dieWithParent, millisecondsToEnd: millisecondsToEndNode
        ) {
            let asking = Task { await PairingPrompt(node).run() }
            defer { asking.cancel() }
            try await runningNode {
                ready.take($0)
                try await node.run()
            }
        }
        let missed = node.missedItems
        if missed.count > 0 {
            throw CommandError(
                "\(missed.count) of \(missed.of) items could not be played; "
                    + "each has a line above that says why")
        }
    }
}
