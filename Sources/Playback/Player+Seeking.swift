import Playout
import Synchronization
public import Timing

/// Going to another place, and getting ready for one.
extension Player {
    /// Sample-exact; see ``seek(to:toleranceBefore:toleranceAfter:)``.
    @discardableResult
    public func seek(to time: MediaTime) async -> Bool {
        await seek(to: time, toleranceBefore: .zero, toleranceAfter: .zero)
    }

    /// Goes to `time`, clamped into the item, always exactly: the tolerances allow more than is
    /// used.
    ///
    /// While playing, the old place sounds until the new one is buffered and takes over without a
    /// gap. Loads the item first where that is not done.
    ///
    /// - Returns: true when the new place is buffered (and, if playing, its line decided); false
    ///   when a newer seek, another item or an error came in between, or the time is not a number.
    @discardableResult
    public func seek(
        to time: MediaTime, toleranceBefore: MediaTime, toleranceAfter: MediaTime
    ) async -> Bool {
        let (wanted, serial) = state.withLock {
            $0.seeks += 1
            return ($0.item, $0.seeks)
        }
        guard let wanted, time.isNumeric || time.isInfinite else { return false }
        do throws(PlaybackError) { try await wanted.ready() } catch { return false }
        let feed: Feed? = locked { state in
            guard state.seeks == serial, state.item === wanted, let (item, format) = state.ready,
                let frame = try? Self.frame(of: time, item, format)
            else { return nil }
            dropPrepared(&state)
            return state.rate == 0 ? stand(at: frame, &state) : jump(to: frame, &state)
        }
        guard let feed, case .filled = await feed.filled() else { return false }
        return state.withLock { $0.seeks == serial }
    }

    /// Item time jumps to `frame` while nothing plays.
    private func stand(at frame: Double, _ state: inout State) -> Feed {
        let now = output.now()
        dropTransition(&state)
        settle(&state)
        // A pause may still be under way to the output: it is not undone.
        let instant = reading(state, at: now)
        state.sounding?.stop(at: nil)
        retire(state.sounding, &state)
        state.sounding = nil
        state.schedule.append(Line(itemFrame: frame, instant: instant, rate: 0))
        let feed = makeFeed(frame: frame, rate: state.defaultRate, state)
        state.prepared = feed
        announce(
            .timeJumped(to: Self.time(ofFrame: frame, sampleRate: feed.format.sampleRate)), &state)
        return feed
    }

    /// A feed at `frame` that takes over when it is filled.
    private func jump(to frame: Double, _ state: inout State) -> Feed {
        dropTransition(&state)
        let feed = makeFeed(frame: frame, rate: state.rate, state)
        state.transition = Transition(feed: feed, frame: frame)
        return feed
    }

    /// Decodes and fills the pipeline at the current time, without starting.
    ///
    /// - Returns: true when filled; false when ended by ``cancelPendingPrerolls()``, a seek, a rate
    ///   change or another item.
    /// - Throws: ``PlaybackError`` with the codes `noItem`, `itemNotReady`, `alreadyPlaying`,
    ///   `rateNotSupported`, or the media's error.
    public func preroll(atRate rate: Double) async throws(PlaybackError) -> Bool {
        try await preroll(atRate: rate, time: .invalid)
    }

    /// Gets ready to play from `time` at `rate` while what sounds now goes on undisturbed.
    ///
    /// A following ``setRate(_:time:atHostTime:)`` to that place (or to a line that passes it soon)
    /// starts it on its instant and stops the old sound at the same instant: an exact seek. One
    /// place can be prerolled at a time; a newer preroll ends the older with false.
    ///
    /// - Parameter time: ``MediaTime/invalid``: the current time; then the player must be paused.
    /// - Returns: see ``preroll(atRate:)``.
    public func preroll(
        atRate rate: Double, time: MediaTime
    ) async throws(PlaybackError) -> Bool {
        try Self.check(rate, allowsZero: false)
        let feed = try locked { state throws(PlaybackError) in
            let (item, format) = try readyItem(state)
            guard time.isValid || state.rate == 0 else {
                throw PlaybackError(
                    .alreadyPlaying, "the current time can be prerolled only while paused")
            }
            dropPrepared(&state)
            let frame =
                try time.isValid
                ? Self.frame(of: time, item, format) : currentFrame(state, at: output.now())
            let feed = makeFeed(frame: frame, rate: rate, state)
            state.prepared = feed
            return feed
        }
        let filling = await withTaskCancellationHandler {
            await feed.filled()
        } onCancel: {
            feed.cancel()
        }
        switch filling {
        case .filled: return state.withLock { $0.prepared === feed }
        case .ended: return false
        case .failed(let error): throw error
        }
    }

    /// Ends all prerolls under way with false, and gives up what was prerolled.
    public func cancelPendingPrerolls() { state.withLock { dropPrepared(&$0) } }

    // MARK: Frames

    func readyItem(
        _ state: State
    ) throws(PlaybackError) -> (item: PlayerItem, format: MediaFormat) {
        guard let item = state.item else { throw PlaybackError(.noItem, "there is no item") }
        guard let ready = state.ready else {
            throw item.error
                ?? PlaybackError(.itemNotReady, "\(item.asset.location) is not ready to play")
        }
        return ready
    }

    /// A time as a frame within the item.
    static func frame(
        of time: MediaTime, _ item: PlayerItem, _ format: MediaFormat
    ) throws(PlaybackError) -> Double {
        guard let frame = time.frame(atSampleRate: format.sampleRate) else {
            throw PlaybackError(.timeNotNumeric, "\(time) is not a time to play from")
        }
        return Double(max(0, min(frame, item.endFrame ?? .max)))
    }

    static func time(ofFrame frame: Double, sampleRate: Int) -> MediaTime {
        let whole = Int64(saturating: frame)
        return Double(whole) == frame
            ? MediaTime(frame: whole, sampleRate: sampleRate)
            : MediaTime(seconds: frame / Double(sampleRate))
    }

    func clamped(_ frame: Double, _ state: State) -> Double {
        max(0, min(frame, state.item?.endFrame.map(Double.init) ?? .infinity))
    }

    /// Item time in frames at a local instant near now.
    func currentFrame(_ state: State, at now: LocalInstant) -> Double {
        guard let format = state.item?.format else { return 0 }
        let at = reading(state, at: now)
        let line = state.schedule.line(at: at)
        let frame = line.frame(at: at, sampleRate: format.sampleRate)
        return state.actionAtItemEnd == .none && line.rate != 0
            ? max(0, frame) : clamped(frame, state)
    }
}
