import CTuttiALSA
import Glibc
import TuttiLinuxHost
public import TuttiPlayout
import TuttiTiming

/// A sound card, or anything else that ALSA calls a PCM.
///
/// The card is filled by the first periods that are written and then started explicitly, so frame
/// k that was written is frame k that is heard. After an underrun or a suspend the same happens
/// again from frame 0: the caller hears of it as `.restarted` and the next writes fill the card.
///
/// Positions come from one `snd_pcm_status` call: frames queued *and* the instant at which that
/// was true. When it is asked is the engine's affair (``WaitPlan``), what of it is believed that of
/// ``CardPlace``.
///
/// One thread at a time; no allocation after opening; no call waits longer than a second or so.
/// `@safe`: the library's handles are opened and freed here and never leave.
@safe
public final class ALSADevice: AudioOutput {
    public let format: OutputFormat
    let sampleFormat: SampleFormat

    public let sampleRates: [Int]
    public let channelLayout: ChannelLayout?
    public let sampleDescription: String

    private var pcm: OpaquePointer
    /// The stream before, until this one has begun: a sound server keeps its latency short for as
    /// long as somebody wants it to be.
    private var former: OpaquePointer?
    private let name: String
    private let negotiation: ALSANegotiation
    private let cardFrames: Int
    private var place: CardPlace
    private var hasRenewed = false
    private var encoder: SampleEncoder
    private let encoded: UnsafeMutableRawPointer
    private let status: OpaquePointer
    private var stamps: PositionStamps
    /// What ``wait(_:)`` saw; taken by ``reading()``.
    private var latest: CardReading?
    private var isOpen = true

    /// Frames written since the last (re)start, and whether that start has happened.
    private var framesWritten: Int64 = 0
    private var isRunning = false
    private var startedAt = LocalInstant(nanoseconds: 0)
    private var fruitlessRestarts = 0

    /// No room for one period within this: the card stands still and is restarted.
    private static let stallLimit = Nanoseconds.seconds(1)
    /// The same where nothing has moved since the start. Sound servers and links over the air take
    /// their time; starting anew would only make it longer.
    private static let beginLimit = Nanoseconds.seconds(4)
    /// Between two returns to a thread that may have been told to stop.
    private static let longestWait = Nanoseconds.milliseconds(100)
    /// Restarts without a buffer's length of sound in between; then the card is given up.
    private static let fruitlessRestartsMax = 3
    /// Between two looks at a card that sleeps, and how many there are before it is given up.
    private static let nap = Nanoseconds.milliseconds(100)
    private static let napsMax = 20
    /// Between two looks at a card that plays out what it holds.
    private static let drainInterval = Nanoseconds.milliseconds(5)
    /// From the ring to the ear, at most: links over the air, receivers.
    private static let longestWay = Nanoseconds.seconds(2)
    /// A card that is faster than this against local time is not a card; see `hold`.
    private static let fastestRate = 1.002

    /// - Parameters:
    ///   - pcm: any name that ALSA's configuration knows, such as `default` or `hw:1,0`.
    ///   - preferredSampleRate: the nearest one that the card has is taken; see ``format``.
    ///   - bufferMilliseconds: queue to keep, 5…2000; a card may insist on more or less.
    /// - Throws: what failed, at which PCM, and what to do about it.
    public convenience init(
        pcm: String, preferredSampleRate: Int = 48_000,
        bufferMilliseconds: Int = OutputThread.standardBufferMilliseconds
    ) throws(OutputError) {
        precondition(
            (5...OutputThread.longestBufferMilliseconds).contains(bufferMilliseconds),
            "buffer \(bufferMilliseconds) ms")
        precondition(preferredSampleRate > 0, "sample rate \(preferredSampleRate)")
        try self.init(
            ALSANegotiation(
                name: pcm, preferredSampleRate: preferredSampleRate,
                bufferMilliseconds: bufferMilliseconds))
    }

    convenience init(_ negotiation: ALSANegotiation) throws(OutputError) {
        let setup = try negotiation.open()
        var status: OpaquePointer?
        let code = unsafe snd_pcm_status_malloc(&status)
        guard code >= 0, let status = unsafe status else {
            unsafe snd_pcm_close(setup.pcm)
            throw ALSAFailure.error("snd_pcm_status_malloc", code, pcm: setup.name)
        }
        unsafe self.init(setup, status, negotiation)
    }

    private init(
        _ setup: ALSASetup, _ status: OpaquePointer, _ negotiation: ALSANegotiation
    ) {
        unsafe pcm = setup.pcm
        self.negotiation = negotiation
        sampleRates = setup.sampleRates
        sampleDescription = unsafe String(
            cString: snd_pcm_format_name(setup.sampleFormat.alsa))
        place = CardPlace(
            bufferFrames: setup.format.bufferFrames, cardFrames: setup.cardFrames)
        name = setup.name
        format = setup.format
        sampleFormat = setup.sampleFormat
        channelLayout = unsafe Self.channelLayout(of: setup.pcm, count: setup.format.channelCount)
        cardFrames = setup.cardFrames
        stamps = PositionStamps(clock: setup.stampClock)
        encoder = SampleEncoder(
            format: sampleFormat, significantBits: setup.significantBits)
        unsafe encoded = .allocate(
            byteCount: format.periodFrames * format.channelCount * sampleFormat.bytesPerSample,
            alignment: 16)
        unsafe self.status = status
    }

    deinit {
        close()
        unsafe encoded.deallocate()
        unsafe snd_pcm_status_free(status)
    }

    public func playOut() {
        // The stop of a card that was never started would begin it.
        guard isOpen, isRunning else { return }
        let queued = Nanoseconds(seconds: Double(cardFrames) / Double(format.sampleRate))
        let giveUp = HostClock.now() + queued + Self.longestWay + Self.stallLimit
        // It does not wait itself: the PCM was opened so.
        while unsafe snd_pcm_drain(pcm) == -EAGAIN, HostClock.now() < giveUp {
            HostClock.sleep(until: HostClock.now() + Self.drainInterval)
            if unsafe snd_pcm_state(pcm) != SND_PCM_STATE_DRAINING { return }
        }
    }

    public func close() {
        guard isOpen else { return }
        isOpen = false
        closeFormer()
        unsafe snd_pcm_drop(pcm)
        unsafe snd_pcm_close(pcm)
    }

    // MARK: - The output thread's three calls

    public func wait(_ plan: WaitPlan) throws(OutputError) -> OutputEvent {
        // Filling: there is room until the card is started.
        if !isRunning { return .writable }
        hold(plan)
        let needed = cardFrames - format.bufferFrames + format.periodFrames
        let begin = HostClock.now()
        let giveUp =
            max(begin, place.hasMoved ? begin : startedAt + Self.beginLimit) + Self.stallLimit
        while true {
            let room = look()
            if place.hasMoved { closeFormer() }
            if place.needsRenewal, renew() { return .renewed }
            if room >= needed {
                if framesWritten > 2 * format.bufferFrames { fruitlessRestarts = 0 }
                return .writable
            }
            if room < 0 { return try restart("snd_pcm_avail", Int32(room)) }
            let now = HostClock.now()
            if now > giveUp { return try restart("snd_pcm_wait", -ETIMEDOUT) }
            if !place.hasMoved, now > begin + Self.longestWait { return .glance }
            if let glance = plan.glance {
                // Not by a poll's time-out, which counts whole milliseconds.
                HostClock.sleep(until: glance)
                latest = nil
                return .glance
            }
            let code = unsafe snd_pcm_wait(pcm, 100)
            if code < 0 { return try restart("snd_pcm_wait", code) }
            // Some plug-ins wake us a little early, again and again.
            if code > 0, unsafe snd_pcm_avail(pcm) < needed {
                HostClock.sleep(until: HostClock.now() + .microseconds(200))
            }
        }
    }

    public func reading() -> CardReading? {
        if let known = latest {
            latest = nil
            return known
        }
        guard isRunning, let (delay, room, instant) = unsafe stamps.read(pcm, into: status) else {
            return nil
        }
        return reading(delay, room, instant)
    }

    private func reading(_ delay: Int, _ room: Int, _ instant: LocalInstant) -> CardReading? {
        guard
            let (heard, ahead) = place.look(
                written: framesWritten, delay: delay, room: room, at: instant)
        else { return nil }
        return CardReading(
            framesHeard: Double(heard), instant: instant, resolution: 1,
            framesAhead: Double(ahead))
    }

    public func write(_ frames: UnsafePointer<Float>) throws(OutputError) -> OutputEvent {
        unsafe encoder.encode(
            frames, count: format.periodFrames * format.channelCount, into: encoded)
        let frameBytes = format.channelCount * sampleFormat.bytesPerSample
        let giveUp = HostClock.now() + Self.stallLimit
        var done = 0
        while done < format.periodFrames {
            let taken = unsafe snd_pcm_writei(
                pcm, encoded + done * frameBytes, snd_pcm_uframes_t(format.periodFrames - done))
            if taken > 0 {
                done += taken
            } else if taken == 0 || taken == -Int(EAGAIN) {
                if HostClock.now() > giveUp { return try restart("snd_pcm_writei", -ETIMEDOUT) }
                let code = unsafe snd_pcm_wait(pcm, 10)
                if code < 0 { return try restart("snd_pcm_wait", code) }
            } else {
                return try restart("snd_pcm_writei", Int32(taken))
            }
        }
        framesWritten += Int64(done)
        if !isRunning, framesWritten >= format.bufferFrames {
            let code = unsafe snd_pcm_start(pcm)
            if code < 0 { return try restart("snd_pcm_start", code) }
            isRunning = true
            startedAt = HostClock.now()
        }
        return .writable
    }

    // MARK: -

    /// How many frames there is room for, or the library's error; keeps the position that comes
    /// with it.
    private func look() -> Int {
        guard let (delay, room, instant) = unsafe stamps.read(pcm, into: status) else {
            latest = nil
            return unsafe standstill ?? snd_pcm_avail(pcm)
        }
        latest = reading(delay, room, instant)
        return room
    }

    /// What the card's state says against playing, as the error that a driver gives for it.
    ///
    /// Plug-ins answer `snd_pcm_avail` with a number while they sleep: without this a card that fell
    /// asleep as it began would be taken for one that takes its time.
    private var standstill: Int? {
        switch unsafe snd_pcm_state(pcm) {
        case SND_PCM_STATE_XRUN: -Int(EPIPE)
        case SND_PCM_STATE_SUSPENDED: -Int(ESTRPIPE)
        case SND_PCM_STATE_DISCONNECTED: -Int(ENODEV)
        default: nil
        }
    }

    /// Sleeps until the engine believes that there is room.
    ///
    /// However wrong that is, and the latency behind the ring may have changed meanwhile, the ring is
    /// looked at before it is down to a period. A card that is not paced at all (`null`) is held to
    /// a card's pace here, or the thread would spin.
    private func hold(_ plan: WaitPlan) {
        let rate = Double(format.sampleRate)
        if let due = plan.due {
            let latest = place.instant(
                whenDownTo: format.periodFrames, written: framesWritten, sampleRate: rate)
            HostClock.sleep(until: min(due, latest))
        }
        guard place.isUnpaced else { return }
        let needed = framesWritten - Int64(format.bufferFrames - format.periodFrames)
        let slack = Double(format.bufferFrames)
        let earliest = (Double(needed) - slack) / (rate * Self.fastestRate)
        HostClock.sleep(until: startedAt + Nanoseconds(seconds: earliest))
    }

    /// Makes the card ready for new frames from 0 on.
    ///
    /// - Throws: when the card is gone, or restarts do not help.
    private func restart(_ operation: String, _ code: Int32) throws(OutputError) -> OutputEvent {
        switch -code {
        case EPIPE, ETIMEDOUT: break
        case ESTRPIPE:
            // Some say that they are awake, and are not.
            if fruitlessRestarts > 0 { HostClock.sleep(until: HostClock.now() + Self.nap) }
            resume()
        default: throw ALSAFailure.error(operation, code, pcm: name)
        }
        fruitlessRestarts += 1
        if fruitlessRestarts > (-code == ESTRPIPE ? Self.napsMax : Self.fruitlessRestartsMax) {
            var failure = ALSAFailure.error(operation, code, pcm: name)
            if -code != ESTRPIPE {
                failure.reason +=
                    "; restarting it \(Self.fruitlessRestartsMax) times did not help: "
                    + "check the card, or allow a longer buffer"
            }
            throw failure
        }
        beginAnew()
        closeFormer()
        unsafe snd_pcm_drop(pcm)
        try ALSAFailure.check(unsafe snd_pcm_prepare(pcm), "snd_pcm_prepare", pcm: name)
        return -code == ESTRPIPE ? .awoken : .restarted
    }

    private func beginAnew() {
        framesWritten = 0
        isRunning = false
        stamps.forget()
        place.restart()
        latest = nil
    }

    /// Another stream to the same card, whose time has not come to a standstill. Where there can be
    /// no second one, or it was of no use, only the ring is believed from now on.
    private func renew() -> Bool {
        guard !hasRenewed, let setup = try? negotiation.open() else {
            place.ignoresDelay = true
            return false
        }
        guard setup.format == format, setup.cardFrames == cardFrames else {
            unsafe snd_pcm_close(setup.pcm)
            place.ignoresDelay = true
            return false
        }
        hasRenewed = true
        unsafe former = pcm
        unsafe pcm = setup.pcm
        beginAnew()
        return true
    }

    private func closeFormer() {
        guard let pcm = unsafe former else { return }
        unsafe former = nil
        unsafe snd_pcm_drop(pcm)
        unsafe snd_pcm_close(pcm)
    }

    /// Waits until the driver has woken up; `prepare` does the rest whether it can resume or not.
    private func resume() {
        for _ in 0..<100 where unsafe snd_pcm_resume(pcm) == -EAGAIN {
            HostClock.sleep(until: HostClock.now() + .milliseconds(10))
        }
    }
}
