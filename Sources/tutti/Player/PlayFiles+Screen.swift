import Glibc
import Synchronization
import Tutti
import TuttiGroupControl
import TuttiPlayback
import TuttiPlayout
import TuttiRoom
import TuttiTiming

/// What is known of the pictures that the terminal can show.
enum PlayGraphics {
    case unasked
    case asked(GraphicsQuestion)
    /// `nil`: none.
    case known(GraphicsQuestion.Answer?)
}

/// What is seen of the player.
extension PlayFiles {
    /// Between two frames on a terminal.
    private static let frame = Duration.milliseconds(200)

    func show() async throws {
        guard Terminal.output.isInteractive else { return try await showLines() }
        var screen = LiveScreen(.output)
        let cover = Cover(number: UInt32(max(1, getpid()))) { [weak self] error in
            if self?.isVerbose == true { self?.tell("tutti: no cover is shown: \(error.reason)") }
        }
        var last: PlayView?
        state.withLock { $0.hasScreen = true }
        defer {
            let notes = state.withLock { state in
                defer { state.notes = [] }
                state.hasScreen = false
                return state.notes
            }
            for note in notes { screen.note(note) }
            // Of what was never opened there is nothing to say.
            let result = last.flatMap { $0.isOpen ? $0 : nil }
            screen.draw(
                result?.result(width: screen.width, showsColour: screen.showsColour) ?? [])
            screen.close()
        }
        while true {
            try checkDevice()
            for note in takeNotes() { guard screen.note(note) else { return } }
            if let view {
                last = view
                guard draw(view, on: &screen, cover) else { return }
                ask()
            }
            try await Task.sleep(for: Self.frame)
        }
    }

    private func draw(_ view: PlayView, on screen: inout LiveScreen, _ cover: Cover) -> Bool {
        let (width, height) = (screen.width, screen.height)
        let colour = screen.showsColour
        guard case .known(let answer?) = state.withLock({ $0.graphics }),
            let item = player.currentItem,
            let space = CoverSpace(
                width: width, height: height, cell: answer.cell ?? CoverSpace.usualCell),
            let picture = cover.picture(
                of: ObjectIdentifier(item), item.metadata?.artwork?.bytes, as: answer, in: space)
        else {
            // In a window of three lines the keys are what can be missed.
            let lines = view.lines(width: width, showsColour: colour)
            return screen.draw(Array(lines.prefix(max(1, height - 1))))
        }
        let lines = view.lines(
            beside: picture.rows, width: width - picture.columns - ScreenPicture.gap,
            showsColour: colour)
        return screen.draw(lines, beside: picture)
    }

    /// Where lines stay. Whoever read them may go; what is played is heard by others.
    private func showLines() async throws {
        var isRead = true
        var loading: (place: Int, progress: DownloadProgress)?
        while true {
            try checkDevice()
            sayLoading(&loading)
            if isRead, let view { isRead = say(view) }
            try await Task.sleep(for: Self.frame)
        }
    }

    // MARK: Sentences

    /// Says a sentence on stderr, or above the frames where both would be on one screen.
    func tell(_ sentence: String) {
        let isKept = state.withLock { state in
            guard state.hasScreen, Terminal.error.isInteractive else { return false }
            state.notes.append(sentence.shown(limit: Terminal.longestSentence))
            return true
        }
        if !isKept { Terminal.error.say(sentence) }
    }

    private func takeNotes() -> [String] {
        state.withLock { state in
            defer { state.notes = [] }
            return state.notes
        }
    }

    /// Where lines stay, what takes long to come has one now and then.
    private func sayLoading(_ said: inout (place: Int, progress: DownloadProgress)?) {
        guard let place, let loading else { return }
        let now = player.output.now()
        if said?.place != place {
            let name = AssetName.shown(files.items[place].location)
            said = (place, DownloadProgress(name, at: now))
        }
        if let line = said?.progress.line(loading.held, of: loading.whole, at: now) {
            tell("tutti: \(line)")
        }
    }

    /// What is fetched of the current item as a whole before it can be heard; `nil`: nothing.
    private var loading: MediaLoading.Progress? {
        place.flatMap { MediaLoading.progress(of: files.items[$0].location) }
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
        guard view.isOpen else { return true }
        let isNews = state.withLock { state in
            defer { state.said = view.number }
            return state.said != view.number
        }
        return !isNews || Terminal.output.say(view.line)
    }

    // MARK: Pictures

    /// Asks the terminal for its pictures, once it is drawn on.
    private func ask() {
        let question: GraphicsQuestion? = state.withLock { state in
            guard case .unasked = state.graphics else { return nil }
            let question =
                showsArtwork && isatty(STDIN_FILENO) == 1
                ? GraphicsQuestion(
                    variable: { name in getenv(name).map { String(cString: $0) } },
                    cell: Terminal.output.cell) : nil
            state.graphics = question.map { .asked($0) } ?? .known(nil)
            return question
        }
        if let question { _ = TerminalMode.shared.ask(question.text) }
    }

    /// Whether the terminal may still say what it can show.
    var expectsAnswer: Bool {
        state.withLock { if case .asked = $0.graphics { true } else { false } }
    }

    func hearAnswer(_ input: TerminalInput) {
        let isAnswered = state.withLock { state in
            guard case .asked(var question) = state.graphics else { return false }
            switch question.take(input) {
            case .waiting:
                state.graphics = .asked(question)
                return false
            case .known(let answer):
                state.graphics = .known(answer)
                return true
            }
        }
        if isAnswered { TerminalMode.shared.wasAnswered() }
    }

    // MARK: The view

    /// What is waited for until it is known what something is.
    static func opening(_ location: String) -> String {
        AssetName.server(of: location).map { "waits for \($0)" } ?? "opens it"
    }

    private var view: PlayView? {
        guard let item = player.currentItem, let place else { return nil }
        let file = files.items[place]
        let time = player.currentTime()
        let whole = loading.map { "loads it: \(DownloadProgress.part($0.held, of: $0.whole))" }
        let waiting: String? =
            switch player.reasonForWaitingToPlay {
            case nil, .noItemToPlay: nil
            case .evaluatingBufferingRate:
                item.status == .unknown ? whole ?? Self.opening(file.location) : nil
            case .toMinimizeStalls: whole ?? "waits for its bytes"
            case .outputUnavailable: "waits for \(device.error.map { "\($0)" } ?? "\(device)")"
            }
        return PlayView(
            title: item.metadata?.title ?? file.title ?? AssetName.shown(file.location),
            artist: item.metadata?.artist, album: item.metadata?.album,
            chapter: item.metadata?.chapter(at: time)?.title,
            number: place + 1, count: files.items.count, seconds: time.seconds,
            isOpen: item.status == .readyToPlay,
            duration: (item.duration.isNumeric ? item.duration : item.metadata?.statedDuration)?
                .seconds,
            state: player.rate == 0 ? .paused : waiting.map { .waiting($0) } ?? .playing,
            volume: Int((player.volume * 100).rounded()), isMuted: player.isMuted,
            rate: player.defaultRate, hasKeys: isatty(STDIN_FILENO) == 1)
    }
}
