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
    /// A pause or another rate meanwhile are about the new place. Cancelling the task ends the seek.
    ///
    /// - Returns: true when ``currentTime()`` is there: the new place is buffered and, if playing, in
    ///   force. False when a newer seek, a line with a place of its own, another item, an error or
    ///   the task's end came in between, or the time is not a number.
    @discardableResult
    public func seek(
        to time: MediaTime, toleranceBefore: MediaTime, toleranceAfter: MediaTime
    ) async -> Bool {
        let (wanted, serial) = locked { state in
            state.seeks += 1
            state.seek = nil
            if state.item != nil, time.isNumeric || time.isInfinite {
                state.error = nil
                state.seek = Seek(serial: state.seeks, stage: .asked(time))
            }
            return (state.item, state.seeks)
        }
        guard let wanted, time.isNumeric || time.isInfinite else { return false }
        return await withTaskCancellationHandler {
            do throws(PlaybackError) { try await wanted.ready() } catch {
                abandonSeek(serial)
                return false
            }
            return await arrive(serial)
        } onCancel: {
            abandonSeek(serial)
        }
    }

    private enum SeekStep: Sendable {
        case lost, arrived
        case fills(Feed)
        case begins(in: Nanoseconds)
    }

    /// Waits until the seek is where it was to go, whoever got it there and by which feed.
    private func arrive(_ serial: Int) async -> Bool {
        while true {
            switch locked({ step(of: serial, &$0) }) {
            case .lost: return false
            case .arrived: return true
            case .fills(let feed): _ = await feed.filled()
            case .begins(let span): await output.sleep(span)
            }
        }
    }

    private func step(of serial: Int, _ state: inout State) -> SeekStep {
        guard state.seek?.serial == serial else { return .lost }
        if case .asked(let time) = state.seek?.stage { begin(seekTo: time, &state) }
        guard case .going(let feed, _) = state.seek?.stage else {
            state.seek = nil
            return .lost
        }
        if feed.isAlive, !feed.isFilled { return .fills(feed) }
        if state.transition?.feed === feed { performTransition(&state) }
        if state.upcoming === feed, let last = state.schedule.lines.last {
            let rest = last.instant - reading(state, at: output.now())
            // A line that begins much later was given by somebody else, who knows.
            if rest > .zero, rest <= output.latency { return .begins(in: rest) }
        }
        state.seek = nil
        return .arrived
    }

    private func begin(seekTo time: MediaTime, _ state: inout State) {
        guard let (item, format) = state.ready, let frame = try? Self.frame(of: time, item, format)
        else { return }
        dropPrepared(&state)
        if state.rate == 0 {
            stand(at: frame, &state)
        } else {
            jump(to: frame, by: nil, waits: true, &state)
        }
    }

    /// Whoever wanted it does not any more: what plays goes on.
    private func abandonSeek(_ serial: Int) {
        state.withLock { state in
            guard let seek = state.seek, seek.serial == serial else { return }
            state.seek = nil
            guard case .going(let feed, _) = seek.stage else { return }
            // It may be in force already, by another order, and have nothing to play for long.
            feed.endWaiting()
            if state.transition?.feed === feed { dropIntent(&state) }
            if state.prepared === feed { dropPrepared(&state) }
        }
    }

    /// Item time jumps to `frame` while nothing plays.
    private func stand(at frame: Double, _ state: inout State) {
        let now = output.now()
        dropIntent(&state)
        settle(&state)
        // A pause may still be under way to the output: it is not undone.
        let instant = reading(state, at: now)
        state.sounding?.stop(at: nil)
        retire(state.sounding, &state)
        state.sounding = nil
        state.schedule.append(Line(itemFrame: frame, instant: instant, rate: 0))
        let feed = makeFeed(frame: frame, rate: state.defaultRate, state)
        state.prepared = feed
        follow(feed, from: frame, &state)
        announce(
            .timeJumped(to: Self.time(ofFrame: frame, sampleRate: feed.format.sampleRate)), &state)
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
            if !time.isValid { follow(feed, from: frame, &state) }
            return feed
        }
        let filling = await withTaskCancellationHandler {
            await feed.filled()
        } onCancel: {
            // Somebody may be playing it by now.
            state.withLock { if $0.prepared === feed { dropPrepared(&$0) } }
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
