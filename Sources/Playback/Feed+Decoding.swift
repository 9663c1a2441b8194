import Synchronization
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// The decoding side of a feed: everything here runs on the feed's own queue.
extension Feed {
    /// Frames decoded at once: about what a packet of the larger codecs holds.
    static let chunkFrames = 4_096
    /// A voice is full enough to start with half a second, a hundred times what one wake-up of a
    /// busy machine is late, where more comes fast enough; see ``SupplyMeter``.
    static let fillSeconds = 0.5
    /// Longest sleep while playing. Besides decoding, a turn costs some ten wake-ups of the timer,
    /// the pool and the decoder's thread: 0.4 ms on our machine, hence one a second.
    static let longestNap = Nanoseconds.seconds(1)
    static let shortestNap = Nanoseconds.milliseconds(10)
    /// While a command is on its way through the output thread, a few periods.
    static let commandNap = Nanoseconds.milliseconds(30)
    /// A sleep that lasts so much longer than asked means that everything stood still. When this
    /// task is the first to go on the ring is still full, but the voice is about to jump over what
    /// should have been heard meanwhile: …
    static let standstill = Nanoseconds.milliseconds(100)
    /// … for so long its every jump is looked for.
    static let alertSpan = Nanoseconds.milliseconds(300)
    /// A paused feed has nothing to look after.
    static let idleNap = Nanoseconds.seconds(3_600)
    /// How long to wait for a slot that another voice is just giving back.
    static let slotPatience = Nanoseconds.seconds(2)

    func run() async {
        do throws(PlaybackError) {
            if let voice = try await begin() { try await feed(voice) }
        } catch {
            settle(.failed(error))
            if !isCancelled { events(self, .failed(error)) }
        }
        close()
    }

    var isCancelled: Bool { control.withLock { $0.isCancelled } }

    /// Gives the voice back and ends all waiting.
    private func close() {
        let voices = control.withLock { control in
            defer { (control.voice, control.wing) = (nil, []) }
            control.isCancelled = true
            return control.voices
        }
        for voice in voices { voice.release() }
        settle(.ended)
        events(self, .closed)
    }

    private func settle(_ filling: Filling) {
        for waiter in control.withLock({ $0.takeWaiters(filling) }) {
            waiter.resume(returning: filling)
        }
    }

    /// A voice of the port; waits a little for one that is being given back.
    ///
    /// - Parameter pair: which of the output's channels it plays to.
    private func claimVoice(_ pair: Int) async throws(PlaybackError) -> Voice {
        let deadline = output.now() + Self.slotPatience
        while !isCancelled {
            if let voice = output.port.makeVoice(
                sampleRate: format.sampleRate, rate: recipe.voiceRate, pair: pair)
            {
                return voice
            }
            guard output.now() < deadline else { break }
            await nap(Self.shortestNap)
        }
        throw PlaybackError(.outputBusy, "all voices of the output are in use")
    }

    /// Decodes the first frames, and takes a voice for them: one that waits for a slow medium holds
    /// none, however many wait.
    ///
    /// - Returns: `nil` when cancelled meanwhile.
    private func begin() async throws(PlaybackError) -> Voice? {
        guard let cursors = try await borrow() else { return nil }
        let position = decidePosition()
        let scratch = UnsafeMutableBufferPointer<Float>.allocate(capacity: 2 * Self.chunkFrames)
        defer { scratch.deallocate() }
        let count: Int
        do throws(MediaError) {
            let begin = output.now()
            count = try pipelines[0].read(at: position, from: cursors, into: scratch)
            meter.count(Int64(count), in: output.now() - begin)
        } catch {
            discard(cursors)
            throw failure(error)
        }
        give(cursors)
        if Task.isCancelled { return nil }
        let voice = try await claimVoice(0)
        var wing: [Voice] = []
        for pair in pipelines.indices.dropFirst() { wing.append(try await claimVoice(pair)) }
        for voice in [voice] + wing {
            voice.ring.reset(firstFrame: position)
            if count == 0 { voice.ring.finish() }
        }
        if count > 0 {
            _ = voice.ring.write(UnsafeBufferPointer(rebasing: scratch[..<(2 * count)]))
        }
        let map = pipelines[0].map
        control.withLock { control in
            (control.voice, control.wing, control.map) = (voice, wing, map)
            control.passOrders()
        }
        // Other channels have nothing yet.
        let hasAll = wing.isEmpty && position + Int64(count) > wantedFrame
        if count == 0 || hasAll { announce(isEnough: count == 0, keepsUp: count == 0) }
        return voice
    }

    private func failure(_ error: MediaError) -> PlaybackError {
        PlaybackError(.mediaFailed, "\(item.asset.location) cannot be read", underlying: error)
    }

    /// From here on ``reach(from:)`` says what can be played: the line of this moment may be
    /// replaced by another before the first frame is decoded.
    private func decidePosition() -> Int64 {
        let ahead = output.latency
        return control.withLock { control in
            var position = firstFrame
            if let start = control.orders.running {
                let frame = frame(of: start, in: ahead)
                position = max(position, Int64(saturating: frame) - Self.historyFrames)
            }
            // Behind the last frame nothing is heard, also not of a filter's history: it is not asked for.
            if let end = end { position = wantedFrame < end ? min(position, end) : end }
            control.position = position
            return position
        }
    }

    /// The voice's frame at which the item is over; `nil` when only the source knows.
    private nonisolated var end: Int64? {
        recipe.rate < 0
            ? recipe.endFrame(for: 0) : format.frameCount.map { recipe.endFrame(for: Double($0)) }
    }

    private nonisolated func frame(of start: Start, in ahead: Nanoseconds) -> Double {
        let at = output.reading(of: start.clock, at: output.now() + ahead)
        return start.line.frame(at: at, sampleRate: format.sampleRate)
    }

    /// Fills the ring whenever there is room, until the voice has come to rest for good.
    private func feed(_ voice: Voice) async throws(PlaybackError) {
        var isFinished = voice.ring.isFinished
        var alertUntil = output.now()
        while !Task.isCancelled {
            if !isFinished, hasRoom(voice.ring) {
                // The reader may hang on a disc or a network; somebody must notice the silence.
                // Leaving the scope ends the watching.
                async let _ = watch(voice)
                isFinished = try fill(voice.ring).get()
            }
            if Task.isCancelled { return }

            let report = voice.report
            switch turn(report) {
            case .rests: return
            case .hasEnded(let order):
                // The report is about what has been rendered; the last of it is yet to be heard.
                let queued = report.at - output.now()
                if queued > .zero {
                    await nap(queued)
                } else if let event = end(order, report, voice.ring) {
                    events(self, event)
                    return
                }
                continue
            case .goesOn: break
            }
            look(at: report, isFinished: isFinished)
            var span = pause(report, voice.ring, isFinished: isFinished)
            let begin = output.now()
            if begin < alertUntil { span = min(span, Self.commandNap) }
            if isHungry { span = Self.shortestNap }
            await nap(span)
            let end = output.now()
            if end - begin > span + Self.standstill { alertUntil = end + Self.alertSpan }
        }
    }

    private enum Turn {
        case goesOn
        /// The voice has been stopped for good.
        case rests
        /// It has played to the end by this order.
        case hasEnded(UInt64)
    }

    /// What the voice's report asks for, and what it still has to be told.
    private func turn(_ report: VoiceReport) -> Turn {
        control.withLock { control in
            control.passOrders()
            // From before the last start: says nothing about it.
            guard report.number == control.orders.startNumber, control.orders.isPassed else {
                return .goesOn
            }
            if control.retires, control.isAtRest(report.state) {
                // From here on no start is taken: it would be lost.
                control.isCancelled = true
                return .rests
            }
            if case .ended = report.state, !control.orders.isStopped {
                return .hasEnded(control.orders.number)
            }
            return .goesOn
        }
    }

    /// What to say of an end that has been heard; `nil` when the feed was given another order since.
    private func end(_ order: UInt64, _ report: VoiceReport, _ ring: FrameRing) -> Event? {
        control.withLock { control in
            guard control.orders.number == order else { return nil }
            control.isCancelled = true
            guard let failure = control.failure, report.itemFrame >= Double(ring.endFrame) else {
                return .playedToEnd(order)
            }
            return .failed(failure)
        }
    }

    /// Decodes until there is no room; whether the end of the item was reached.
    private func fill(_ ring: FrameRing) -> Result<Bool, PlaybackError> {
        let cursors: [SourcePool.Cursor]
        do throws(PlaybackError) {
            // All in use: soon again.
            let borrowed = try borrowNow(for: ring.endFrame)
            isHungry = borrowed == nil
            guard let borrowed else { return .success(false) }
            cursors = borrowed
        } catch {
            return broken(error, ring)
        }
        let result = fill(ring, from: cursors)
        if case .failure(let error) = result {
            discard(cursors)
            return broken(error, ring)
        }
        give(cursors)
        note(keepsUp: hasEnough(ring), isFull: ring.isFinished || !hasRoom(ring), hasMore: true)
        return result
    }

    /// Asked again with all that comes: a medium may become slow while it is played.
    private func hasEnough(_ ring: FrameRing) -> Bool {
        isFilled && (ring.isFinished || keepsUp(ring))
    }

    /// Says so where frames come otherwise than was said last; of what is not at hand as a whole, also
    /// that there is more. `nil`: as it was.
    private nonisolated func note(
        keepsUp: Bool? = nil, isFull: Bool? = nil, hasMore: Bool = false
    ) {
        let isNews = control.withLock { control in
            let known = control.supply
            control.supply = Supply(
                keepsUp: keepsUp ?? known.keepsUp, isFull: isFull ?? known.isFull)
            return control.supply != known
        }
        if isNews || hasMore && !item.asset.isLocal { events(self, .supplied) }
    }

    /// What is decoded is heard; then comes the error, at its place.
    private func broken(
        _ error: PlaybackError, _ ring: FrameRing
    ) -> Result<Bool, PlaybackError> {
        guard ring.endFrame > max(wantedFrame, ring.firstFrame) else { return .failure(error) }
        control.withLock { $0.failure = error }
        finish(ring)
        announce(isEnough: true, keepsUp: true)
        note(keepsUp: true, isFull: true)
        return .success(true)
    }

    private func fill(
        _ ring: FrameRing, from cursors: [SourcePool.Cursor]
    ) -> Result<Bool, PlaybackError> {
        let fillFrames = Int64(Double(format.sampleRate) * Self.fillSeconds)
        let scratch = UnsafeMutableBufferPointer<Float>.allocate(capacity: 2 * Self.chunkFrames)
        defer { scratch.deallocate() }
        do throws(PlaybackError) {
            while !Task.isCancelled, hasRoom(ring) {
                let begin = output.now()
                if try !decode(from: cursors, into: ring, scratch) {
                    announce(isEnough: true, keepsUp: true)
                    return .success(true)
                }
                if ring.endFrame > wantedFrame {
                    let isFilled =
                        ring.endFrame - ring.firstFrame >= fillFrames && keepsUp(ring)
                    announce(isEnough: isFilled, keepsUp: isFilled)
                    note(keepsUp: hasEnough(ring), hasMore: output.now() > begin + Self.commandNap)
                }
                if let order = isLeftBehind(ring) {
                    events(self, .leftBehind(order))
                    return .success(false)
                }
            }
            if !Task.isCancelled { announce(isEnough: true, keepsUp: keepsUp(ring)) }
            return .success(false)
        } catch {
            return .failure(error)
        }
    }

    /// Whether the rest of the item will come in time. If not, as much is waited for as there is room.
    private func keepsUp(_ ring: FrameRing) -> Bool {
        meter.keepsUp(
            buffered: ring.endFrame - max(wantedFrame, ring.firstFrame),
            rest: end.map { max(0, $0 - ring.endFrame) }, speed: framesPerSecond)
    }

    /// Whether the line is so far ahead that jumping there beats decoding the way. Only a shared
    /// clock goes on without us.
    ///
    /// - Returns: the order by which it is.
    private func isLeftBehind(_ ring: FrameRing) -> UInt64? {
        let (running, order) = control.withLock { ($0.orders.running, $0.orders.number) }
        guard let running, running.clock != nil else { return nil }
        let reach = Double(format.sampleRate) * Self.reachSeconds
        return frame(of: running, in: .zero) > Double(ring.endFrame) + reach ? order : nil
    }

    /// Looks at the voice while a decoder is at work, from when it may have run dry until cancelled.
    @concurrent
    private nonisolated func watch(_ voice: Voice) async {
        await output.sleep(Self.commandNap)
        if Task.isCancelled { return }
        // Less and less is decoded ahead until it comes back.
        note(isFull: false)
        while true {
            // What is buffered is of this feed once its voice plays.
            let report = voice.report
            let buffered = report.state == .playing ? report.bufferedFrames : 0
            let supply = Double(buffered) / framesPerSecond
            await output.sleep(max(Self.commandNap, Nanoseconds(seconds: supply)))
            if Task.isCancelled { return }
            look(at: voice.report, isFinished: false)
        }
    }

    /// Says so when the voice has run dry. A line joined late is silent until the first frames
    /// arrive: that is no stall.
    private nonisolated func look(at report: VoiceReport, isFinished: Bool) {
        let dry: UInt64? = control.withLock { control in
            guard report.number == control.orders.startNumber else { return nil }
            defer { control.isSupplied = report.state == .playing }
            return control.isSupplied && !control.orders.isStopped && report.state == .starved
                ? control.orders.number : nil
        }
        if let dry, !isFinished { events(self, .starved(dry)) }
    }

    /// - Parameter keepsUp: whether it is enough because the rest will come in time.
    private func announce(isEnough: Bool, keepsUp: Bool) {
        let isNews = control.withLock { control in
            let isNews = !control.hasFrames || isEnough && control.filling == nil
            control.hasFrames = true
            // Before it is said: whoever begins to wait for it in between must find it done.
            if isEnough, control.filling == nil {
                control.filling = .filled
                control.supply.keepsUp = keepsUp
            }
            return isNews
        }
        guard isNews else { return }
        // The player first: who waited finds it already playing.
        events(self, .supplied)
        if isEnough { settle(.filled) }
    }

    /// Decodes one chunk; false at the end of the item.
    private func decode(
        from cursors: [SourcePool.Cursor], into ring: FrameRing,
        _ scratch: UnsafeMutableBufferPointer<Float>
    ) throws(PlaybackError) -> Bool {
        do throws(MediaError) {
            let begin = output.now()
            let count = try pipelines[0].read(at: ring.endFrame, from: cursors, into: scratch)
            if count > 0 {
                // There is room: only this task fills the ring, and it looked.
                let written = ring.write(UnsafeBufferPointer(rebasing: scratch[..<(2 * count)]))
                assert(written == count)
            }
            try decodeWing(to: ring.endFrame, from: cursors, scratch)
            meter.count(Int64(count), in: output.now() - begin)
            if count == 0 { finish(ring) }
            return count > 0
        } catch {
            throw failure(error)
        }
    }

    /// Of the voice, while it plays.
    private nonisolated var framesPerSecond: Double { Double(format.sampleRate) * recipe.voiceRate }

    /// How long nothing will be needed of us.
    private func pause(
        _ report: VoiceReport, _ ring: FrameRing, isFinished: Bool
    ) -> Nanoseconds {
        let (orders, retires) = control.withLock { ($0.orders, $0.retires) }
        let isStopped = orders.isStopped
        // An order is under way to the output thread.
        guard orders.isPassed, report.number == orders.startNumber else { return Self.commandNap }
        switch report.state {
        case .idle, .stopped:
            let waits = (orders.start != nil && !isStopped) || retires
            return waits ? Self.commandNap : Self.idleNap
        case .ended: return isStopped ? Self.idleNap : Self.shortestNap
        case .starved: return Self.shortestNap
        case .armed, .playing:
            // A card that is just back jumps over what it missed, and needs what lies behind that.
            if output.port.hasCard, report.at < output.now() - Self.standstill {
                return Self.commandNap
            }
            // Three eighths of the ring, or what is left to play: one is behind the playing
            // position, and four are in hand when the next turn comes, 1.4 s at 48 kHz.
            let portion = Double(ring.capacityFrames / 8 * 3) / framesPerSecond
            let rest = isFinished ? Double(report.bufferedFrames) / framesPerSecond : portion
            let span = Nanoseconds(seconds: min(portion, rest))
            let longest = isStopped ? Self.commandNap : Self.longestNap
            return max(Self.shortestNap, min(longest, span))
        }
    }

    /// Sleeps until the time is over or ``wake()`` is called.
    func nap(_ span: Nanoseconds) async {
        let sleep = output.sleep
        let nap = Task(executorPreference: output.executor) { await sleep(span) }
        let isWoken = control.withLock {
            $0.nap = nap
            return $0.isWoken
        }
        if isWoken { nap.cancel() }
        await withTaskCancellationHandler {
            await nap.value
        } onCancel: {
            nap.cancel()
        }
        control.withLock {
            $0.nap = nil
            $0.isWoken = false
        }
    }
}
