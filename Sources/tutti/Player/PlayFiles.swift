import Glibc
import Playback
import Playout
import Room
import Synchronization
import Timing
import Tutti

/// `tutti play FILE …`: a player on this machine alone, without a group.
final class PlayFiles: Sendable {
    /// Between two frames on a terminal.
    private static let frame = Duration.milliseconds(200)
    /// Into an item, from where "previous" means its own beginning.
    private static let restartSeconds = 3.0

    private let files: PlayableFiles
    private let player: QueuePlayer
    private let device: AudioDevice
    private let loudness: PlayerItem.LoudnessNormalization
    /// Where long items are remembered; `nil`: nowhere.
    private let stateFolder: String?

    private struct State {
        /// Of the files, by the item that plays it.
        var places: [ObjectIdentifier: Int] = [:]
        var failures = 0
        /// Said before, where lines stay.
        var said: Int?
        var saidWaiting = false
    }
    private let state = Mutex(State())

    init(
        _ files: PlayableFiles, on device: AudioDevice,
        loudness: PlayerItem.LoudnessNormalization = .off, stateFolder: String? = nil
    ) {
        self.stateFolder = stateFolder
        self.files = files
        self.loudness = loudness
        self.device = device
        player = QueuePlayer(output: device.output)
    }

    /// Where the first item was left, seconds; 0 where it was not.
    var left: Double {
        guard let stateFolder, let first = files.items.first,
            let places = try? ResumePlaces.load(folder: stateFolder)
        else { return 0 }
        return places.seconds(of: Self.identity(of: first.location)) ?? 0
    }

    /// Remembers where a long item is left.
    private func remember() {
        guard let stateFolder, let item = player.currentItem, let place,
            item.duration.isNumeric
        else { return }
        do {
            var places = try ResumePlaces.load(folder: stateFolder)
            let before = places
            places.leave(
                Self.identity(of: files.items[place].location),
                at: player.currentTime().seconds, of: item.duration.seconds)
            if places != before { try places.save(folder: stateFolder) }
        } catch {
            Terminal.error.say("tutti: the place is not remembered: \(error)")
        }
    }

    /// The same file from whichever folder it is named.
    private static func identity(of location: String) -> String {
        guard !location.contains("://"), let path = realpath(location.cFileName, nil) else {
            return location
        }
        defer { free(path) }
        let bytes = UnsafeBufferPointer(start: path, count: strlen(path))
        return String(fileName: bytes.map { UInt8(bitPattern: $0) })
    }

    /// - Parameters:
    ///   - start: into the first item, seconds.
    /// - Throws: `CommandError` when something was not played.
    func run(rate: Double, start: Double) async throws {
        for passed in files.passedOver { Terminal.error.say("tutti: skipped \(passed.sentence)") }
        guard !files.items.isEmpty else {
            throw CommandError("there is nothing to play in what was given")
        }
        do {
            try player.setDefaultRate(rate)
            for place in files.items.indices { try player.insert(item(at: place), after: nil) }
        } catch {
            throw CommandError("\(error)")
        }
        let notices = player.notices()
        player.play()
        defer { remember() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await self.hear(notices) }
            if Terminal.output.isInteractive {
                let keys = TerminalMode.shared.keys()
                group.addTask {
                    var parser = PlayKeyParser()
                    for await byte in keys {
                        guard let key = parser.take(byte) else { continue }
                        if key == .quit { return }
                        self.do(key)
                    }
                    try await Task.sleep(for: .seconds(Int64(Int32.max)))
                }
            }
            group.addTask { try await self.show() }
            if start > 0 { seek(to: MediaTime(seconds: start)) }
            defer { group.cancelAll() }
            try await group.next()
        }
        let missed =
            state.withLock { $0.failures } + files.passedOver.count { $0.isMissed }
        guard missed == 0 else {
            throw CommandError(
                "\(missed) of \(files.items.count + files.passedOver.count { $0.isMissed }) "
                    + "could not be played; each has a line above that says why")
        }
    }

    private func item(at place: Int) -> PlayerItem {
        let item = PlayerItem(url: files.items[place].location)
        item.loudnessNormalization = loudness
        state.withLock { $0.places[ObjectIdentifier(item)] = place }
        return item
    }

    /// Nobody waits for a slow medium: another key may be pressed meanwhile, and a newer seek ends it.
    private func seek(to time: MediaTime) { Task { await player.seek(to: time) } }

    // MARK: What happens

    /// Until nothing is left to play.
    private func hear(_ notices: AsyncStream<PlayerNotice>) async {
        for await notice in notices {
            switch notice {
            case .failedToPlayToEnd(let error):
                state.withLock { $0.failures += 1 }
                let cause = error.underlying.map { "\($0)" } ?? "\(error)"
                Terminal.error.say("tutti: cannot play \(cause)")
                // The last one has nobody to follow it.
                if player.rate == 0, player.items().count <= 1 { return }
            case .didPlayToEnd(let item): forget(item)
            case .currentItemDidChange(nil) where player.items().isEmpty: return
            default: break
            }
        }
    }

    /// It was heard to its end: the next time it begins anew.
    private func forget(_ item: PlayerItem) {
        guard let stateFolder, item.duration.seconds >= ResumePlaces.shortestItem,
            let place = state.withLock({ $0.places[ObjectIdentifier(item)] }),
            var places = try? ResumePlaces.load(folder: stateFolder)
        else { return }
        let length = item.duration.seconds
        places.leave(
            Self.identity(of: files.items[place].location), at: length, of: length)
        try? places.save(folder: stateFolder)
    }

    private func `do`(_ key: PlayKey) {
        switch key {
        case .togglePause: if player.rate == 0 { player.play() } else { player.pause() }
        case .next: if player.items().count > 1 { player.advanceToNextItem() }
        case .previous: goBack()
        case .seek(let span):
            let time = max(0, player.currentTime().seconds + span)
            seek(to: MediaTime(seconds: time))
        case .volume(let percent):
            player.isMuted = false
            player.volume =
                Float(min(100, max(0, Int((player.volume * 100).rounded()) + percent)))
                / 100
        case .mute: player.isMuted.toggle()
        case .rate(let step):
            let wanted = step.map { player.defaultRate + Double($0) / 100 } ?? 1
            let rate = min(Player.rates.upperBound, max(Player.rates.lowerBound, wanted))
            try? player.setDefaultRate(rate)
            if player.rate != 0 { try? player.setRate(rate) }
        case .chapter(let step): goToChapter(step)
        case .quit: break
        }
    }

    /// - Parameter step: 1: the next one; −1: the one before, or the beginning of this one.
    private func goToChapter(_ step: Int) {
        let chapters = player.currentItem?.metadata?.chapters ?? []
        let now = player.currentTime()
        let starts = chapters.map(\.range.start)
        let target =
            step > 0
            ? starts.first { $0 > now }
            : starts.last { $0.seconds < now.seconds - Self.restartSeconds } ?? starts.first
        if let target { seek(to: target) }
    }

    private func goBack() {
        guard let place = place, place > 0,
            player.currentTime().seconds < Self.restartSeconds
        else {
            return seek(to: .zero)
        }
        // What has been played has left the queue.
        let (before, again) = (item(at: place - 1), item(at: place))
        try? player.replaceCurrentItem(with: before)
        try? player.insert(again, after: before)
    }

    private var place: Int? {
        player.currentItem.flatMap { item in
            state.withLock { $0.places[ObjectIdentifier(item)] }
        }
    }

    // MARK: What is seen

    private func show() async throws {
        var screen = LiveScreen(.output)
        defer { screen.close() }
        while true {
            if let view {
                if screen.isLive {
                    let lines = view.lines(width: screen.width, showsColour: screen.showsColour)
                    guard screen.draw(lines) else { return }
                } else {
                    guard say(view) else { return }
                }
            }
            try await Task.sleep(for: Self.frame)
        }
    }

    /// Where lines stay, each item has one, and a wait for the card too.
    private func say(_ view: PlayView) -> Bool {
        if case .waiting(let what) = view.state, player.reasonForWaitingToPlay == .outputUnavailable
        {
            let isNews = state.withLock { state in
                defer { state.saidWaiting = true }
                return !state.saidWaiting
            }
            if isNews { Terminal.error.say("tutti: \(what)") }
            return true
        }
        guard view.duration != nil else { return true }
        let isNews = state.withLock { state in
            defer { state.said = view.number }
            return state.said != view.number
        }
        return !isNews || Terminal.output.say(view.line)
    }

    private var view: PlayView? {
        guard let item = player.currentItem, let place else { return nil }
        let file = files.items[place]
        let time = player.currentTime()
        let waiting: String? =
            switch player.reasonForWaitingToPlay {
            case nil, .noItemToPlay: nil
            case .evaluatingBufferingRate: "opens it"
            case .toMinimizeStalls: "waits for its bytes"
            case .outputUnavailable: "waits for \(device.error.map { "\($0)" } ?? "\(device)")"
            }
        return PlayView(
            title: item.metadata?.title ?? file.title ?? Self.name(of: file.location),
            artist: item.metadata?.artist, chapter: item.metadata?.chapter(at: time)?.title,
            number: place + 1, count: files.items.count, seconds: time.seconds,
            duration: item.duration.isNumeric ? item.duration.seconds : nil,
            state: player.rate == 0 ? .paused : waiting.map { .waiting($0) } ?? .playing,
            volume: Int((player.volume * 100).rounded()), isMuted: player.isMuted,
            rate: player.defaultRate)
    }

    /// The last part of a path or an address.
    private static func name(of location: String) -> String {
        let text = location.readableFileName
        return text.split(separator: "/").last.map(String.init) ?? text
    }
}
