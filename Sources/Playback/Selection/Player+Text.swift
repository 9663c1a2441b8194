import Synchronization
public import TuttiPlayout
import TuttiTiming

/// The text that belongs to the moment: subtitles, lyrics, captions.
extension Player {
    /// What there is to be read now, and from then on each time that this changes: by playing, by a jump,
    /// by another item or another selection. Empty while there is nothing.
    ///
    /// Which texts are read says the item's selection of ``MediaCharacteristic/legible`` options. A
    /// consumer that is busy gets the newest. Ends when the consuming task is cancelled, and with the
    /// player, which it does not keep.
    public func timedText() -> AsyncStream<[TimedText]> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: [TimedText].self, bufferingPolicy: .bufferingNewest(1))
        let id = turn { state in
            state.observerCount += 1
            state.text.observers[state.observerCount] = continuation
            continuation.yield(state.text.shown)
            return state.observerCount
        }
        continuation.whenLeft { [weak self] in
            self?.turn { $0.text.observers[id] = nil }
        }
        return stream
    }

    /// Reads what the current item's selection asks for, if anybody wants to know, and lets go of what
    /// nobody asks for any more. At the end of each turn.
    func followText(_ state: inout State) {
        let wanted = state.wantedText
        guard wanted != state.text.source else { return }
        state.text.loading?.cancel()
        state.text.loading = nil
        if let observer = state.text.observer { perform(.endObserving(observer), &state) }
        state.text.observer = nil
        state.text.cues = []
        state.text.source = wanted
        state.text.show([])
        guard let wanted, !wanted.tracks.isEmpty, let item = state.items[wanted.item] else {
            return
        }
        let asset = item.asset
        state.text.loading = Task(executorPreference: state.output.executor) { [weak self] in
            let answer = await asset.readText(of: wanted.tracks)
            if Task.isCancelled { return }
            self?.hear { player in
                player.turn { player.take(answer, of: wanted, &$0) }
            }
        }
    }

    private func take(
        _ answer: Result<[TimedText], PlaybackError>, of source: TextSource, _ state: inout State
    ) {
        // Somebody may have chosen otherwise since, or otherwise and back.
        if case .failure(let error) = answer, error.code == .cancelled { return }
        guard state.text.source == source else { return }
        state.text.loading = nil
        switch answer {
        case .success(let cues):
            state.text.cues = cues
            state.observerCount += 1
            let observer = ObserverID(number: state.observerCount)
            state.text.observer = observer
            let marks = Set(cues.flatMap { [$0.range.start, $0.range.end] }).sorted()
            perform(.observe(observer, .marks(marks)), &state)
        case .failure(let error):
            announce(.textFailed(error), of: source.item, &state)
        }
    }
}

/// Which texts of which item are read.
struct TextSource: Equatable, Sendable {
    var item: ItemID
    var tracks: [Int]
}

/// The texts of the current item, while somebody wants to know.
struct TextState {
    var observers: [Int: AsyncStream<[TimedText]>.Continuation] = [:]
    var source: TextSource?
    var loading: Task<Void, Never>?
    /// By their beginnings.
    var cues: [TimedText] = []
    /// Tells of each beginning and end.
    var observer: ObserverID?
    private(set) var shown: [TimedText] = []

    mutating func show(at time: MediaTime) {
        show(cues.prefix { $0.range.start <= time }.filter { $0.range.contains(time) })
    }

    mutating func show(_ texts: [TimedText]) {
        guard texts != shown else { return }
        shown = texts
        for observer in observers.values { observer.yield(texts) }
    }
}

extension Player.State {
    fileprivate var wantedText: TextSource? {
        guard !text.observers.isEmpty, let item = machine.item else { return nil }
        let tracks = items[item]?.selection.read.filter(\.isDecodable).map(\.id) ?? []
        return TextSource(item: item, tracks: tracks)
    }
}

extension Asset {
    /// All cues of some text tracks, in the order of their beginnings.
    ///
    /// Ends with its task; a reading that hangs, and that its opener cannot end, goes on alone.
    ///
    /// - Throws: ``PlaybackError/Code/mediaFailed``; ``PlaybackError/Code/cancelled``.
    public func loadText(of track: MediaTrack) async throws(PlaybackError) -> [TimedText] {
        try await readText(of: [track.id]).get()
    }

    func readText(of tracks: [Int]) async -> Result<[TimedText], PlaybackError> {
        await TextReading(of: tracks, location: location, opener: opener).answer()
    }
}

/// Reads texts off the cooperative pool. Waiting for it ends at once, and reading where its opener can
/// end it.
private final class TextReading: Sendable {
    typealias Answer = Result<[TimedText], PlaybackError>

    private enum State {
        case begins
        case waits(CheckedContinuation<Answer, Never>)
        case over(Answer)
    }

    private let tracks: [Int]
    private let location: String
    private let opener: MediaOpener
    /// Its own: a reading that hangs holds up nobody else.
    private let queue = DecodingQueue()
    private let cancellation = MediaCancellation()
    private let state = Mutex(State.begins)

    init(of tracks: [Int], location: String, opener: MediaOpener) {
        (self.tracks, self.location, self.opener) = (tracks, location, opener)
    }

    /// To be asked once.
    func answer() async -> Answer {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let known: Answer? = state.withLock { state in
                    // Its task may have ended before it had begun to wait.
                    if case .over(let answer) = state { return answer }
                    state = .waits(continuation)
                    return nil
                }
                if let known { return continuation.resume(returning: known) }
                queue.run { [self] in end(read()) }
            }
        } onCancel: {
            cancellation.cancel()
            end(
                .failure(
                    PlaybackError(.cancelled, "reading the text of \(location) was given up")))
        }
    }

    private func end(_ answer: Answer) {
        let waiting: CheckedContinuation<Answer, Never>? = state.withLock { state in
            switch state {
            case .over: return nil
            case .begins:
                state = .over(answer)
                return nil
            case .waits(let continuation):
                state = .over(answer)
                return continuation
            }
        }
        waiting?.resume(returning: answer)
    }

    private func read() -> Answer {
        do throws(MediaError) {
            var cues: [TimedText] = []
            for track in tracks {
                cues += try opener.readText(
                    location, track: track, cancellation: cancellation)
            }
            return .success(cues.sorted { $0.range.start < $1.range.start })
        } catch {
            return .failure(
                PlaybackError(
                    .mediaFailed, "the text of \(location) cannot be read", underlying: error))
        }
    }
}
