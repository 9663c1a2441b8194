import Glibc
import Synchronization
import Tutti
import TuttiPlayback
import TuttiPlayout
import TuttiRoom
import TuttiTiming

/// `tutti play FILE …`: a player on this machine alone, without a group.
final class PlayFiles: Sendable {
    /// Beyond them nothing can be understood.
    static let rates = 0.25...4.0

    let files: PlayableFiles
    let player: QueuePlayer
    let device: AudioDevice
    private let loudness: PlayerItem.LoudnessNormalization
    /// Where long items are remembered; `nil`: nowhere.
    let stateFolder: String?
    let showsArtwork: Bool
    let isVerbose: Bool

    struct State {
        /// Of the files, by the item that plays it.
        var places: [ObjectIdentifier: Int] = [:]
        /// Of whole files of which a part was opened, seconds.
        var lengths: [String: Double] = [:]
        var failures = 0
        /// Of what was the only thing to be played: the command ends with it.
        var onlyFailure: String?
        /// Files of which it was said that they were cut off.
        var saidCut: Set<String> = []
        /// Said before, where lines stay.
        var said: Int?
        var saidWaiting = false
        /// Sentences for the screen, which is drawn by somebody else.
        var notes: [String] = []
        var hasScreen = false
        var aim: Aim?
        var seeks = 0
        var graphics = PlayGraphics.unasked
    }
    let state = Mutex(State())

    init(
        _ files: PlayableFiles, on device: AudioDevice,
        loudness: PlayerItem.LoudnessNormalization = .off, stateFolder: String? = nil,
        showsArtwork: Bool = false, isVerbose: Bool = false
    ) {
        self.stateFolder = stateFolder
        self.files = files
        self.loudness = loudness
        self.device = device
        (self.showsArtwork, self.isVerbose) = (showsArtwork, isVerbose)
        player = QueuePlayer(output: device.output)
        player.actionAtOutputLoss = .wait
    }

    /// - Parameters:
    ///   - start: from the beginning of the first item, seconds; may lie in a later part of its file.
    /// - Throws: `CommandError` when something was not played.
    func run(rate: Double, start: Double) async throws {
        for passed in files.passedOver { Terminal.error.say("tutti: skipped \(passed.sentence)") }
        guard !files.items.isEmpty else { throw Self.nothingThere }
        let beginning = beginning(at: start)
        do {
            try player.setDefaultRate(rate)
            for place in files.items.indices[beginning.place...] {
                try player.insert(item(at: place), after: nil)
            }
        } catch {
            throw CommandError("\(error)")
        }
        do {
            let isOver = try await play(from: beginning.seconds)
            await device.close(playsOut: isOver)
        } catch {
            await device.close(playsOut: false)
            throw error
        }
        let (failures, only) = state.withLock { ($0.failures, $0.onlyFailure) }
        if let only { throw CommandError(only) }
        let missed = failures + files.passedOver.count { $0.isMissed }
        guard missed == 0 else { throw Self.missed(missed, of: whole) }
    }

    /// What was meant to be played.
    private var whole: Int { files.items.count + files.passedOver.count { $0.isMissed } }

    static let nothingThere = CommandError("there is nothing to play in what was given")

    static func missed(_ count: Int, of whole: Int) -> CommandError {
        CommandError(
            "\(count) of \(whole) could not be played; each has a line above that says why")
    }

    /// - Returns: whether nothing is left to play; else it was ended by a key, or nobody looks any
    ///   more.
    private func play(from seconds: Double) async throws -> Bool {
        let notices = player.notices()
        player.play()
        // Who looks away by Ctrl-Z comes back to the same place.
        TerminalMode.shared.hold { [player] in
            let rate = player.rate
            player.pause()
            return { if rate != 0 { try? player.setRate(rate) } }
        }
        defer {
            TerminalMode.shared.hold(nil)
            remember()
        }
        return try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                await self.hear(notices)
                // It ends with its task too, and then something else has come first.
                try Task.checkCancellation()
                return true
            }
            if Terminal.output.isInteractive {
                let keys = TerminalMode.shared.keys()
                group.addTask {
                    if await self.take(keys) { return false }
                    try await Task.sleep(for: .seconds(Int64(Int32.max)))
                    return false
                }
            }
            group.addTask {
                try await self.show()
                return false
            }
            if seconds > 0 { seek(to: MediaTime(seconds: seconds)) }
            defer { group.cancelAll() }
            return try await group.next() ?? false
        }
    }

    /// Of a file that was cut off what is there is played; whoever hears it end early wants to know
    /// why.
    private func warnIfCut(_ item: PlayerItem) {
        guard let promised = item.metadata?.promisedDuration,
            let place = state.withLock({ $0.places[ObjectIdentifier(item)] }),
            let length = length(of: item, at: place)
        else { return }
        let location = files.items[place].location
        guard state.withLock({ $0.saidCut.insert(location).inserted }) else { return }
        tell(
            "tutti: \(location.readableFileName): the file was cut off; what is there is played "
                + "(\(PositionArgument.text(length)) of "
                + "\(PositionArgument.text(promised.seconds)))")
    }

    /// Nobody waits for an output that can never be there.
    ///
    /// - Throws: `CommandError` that says why it cannot.
    func checkDevice() throws(CommandError) {
        guard !device.mayCome else { return }
        throw CommandError("cannot play on \(device.error.map { "\($0)" } ?? "\(device)")")
    }

    func item(at place: Int) -> PlayerItem {
        let file = files.items[place]
        let asset = file.asset { [weak self] format in
            self?.state.withLock { $0.lengths[file.location] = format.duration.seconds }
        }
        let item = PlayerItem(asset: asset)
        item.loudnessNormalization = loudness
        state.withLock { $0.places[ObjectIdentifier(item)] = place }
        return item
    }

    // MARK: What happens

    /// Until nothing is left to play.
    private func hear(_ notices: AsyncStream<PlayerNotice>) async {
        for await notice in notices {
            switch notice {
            case .failedToPlayToEnd(let error):
                let sentence = "cannot play \(error.cause)"
                let isOnly = whole == 1
                state.withLock {
                    $0.failures += 1
                    if isOnly { $0.onlyFailure = sentence }
                }
                if !isOnly { tell("tutti: \(sentence)") }
                // The last one has nobody to follow it; its own failure may be still to be heard.
                let left = player.items()
                if player.rate == 0, left.count <= 1,
                    left.last?.error.map({ "\($0)" == "\(error)" }) ?? true
                {
                    return
                }
            case .didPlayToEnd(let item):
                warnIfCut(item)
                forget(item)
            case .itemStatusDidChange(.readyToPlay?):
                if let item = player.currentItem { warnIfCut(item) }
            case .currentItemDidChange(nil) where player.items().isEmpty: return
            default: break
            }
        }
    }

    /// Of the files; `nil` while there is no item.
    var place: Int? {
        player.currentItem.flatMap { item in
            state.withLock { $0.places[ObjectIdentifier(item)] }
        }
    }
}
