public import TuttiRealTime
public import TuttiTiming

/// One playing item: a ring of its decoded frames and the line it plays by.
///
/// The owner fills ``ring`` (after `ring.reset(firstFrame:)` if the item is not played from frame
/// 0) and starts the voice once some is there. Calls may come from any thread; only the owner of
/// the ring's producing side may write it, and must have ceased before ``release()``. The ring may
/// be reset before the first start and again while the report says `stopped` or `ended`.
public final class Voice: Sendable {
    /// Decoded frames for this voice, interleaved stereo.
    public let ring: FrameRing
    private let port: OutputPort
    private let slot: Int
    private let serial: UInt64

    init(port: OutputPort, slot: Int, serial: UInt64, ring: FrameRing) {
        self.port = port
        self.slot = slot
        self.serial = serial
        self.ring = ring
    }

    deinit { release() }

    /// What reports call it.
    public var id: VoiceID { VoiceID(slot: slot, serial: serial) }

    /// Plays by `line`; replaces a pending or running one.
    ///
    /// With the instant ahead: silence up to the exact fraction of a device frame. With the instant
    /// past: joins where the line is now, with a 5 ms fade. A running voice changes to a line ahead
    /// at its instant; up to 5 ms of difference are slewed, up to a second is a cross-fade of 15
    /// ms, more (or a place that the ring does not hold) a dip of 10 ms.
    ///
    /// - Parameters:
    ///   - clock: where the line's instant is read; `nil`: the card's own clock, with the ratio
    ///     exactly nominal and the instant in local nanoseconds.
    ///   - endFrame: the item ends there, whatever the ring holds beyond; `nil`: at the ring's end.
    ///   - fadeIn: raised cosine of 5 ms from the instant on; otherwise the sound begins with the
    ///     line's frame as if silence came before it.
    ///   - waits: without a clock, and with nothing else that sounds without one: an instant that is over
    ///     before a frame can be heard (a card that was just opened) is when the first one is, and
    ///     nothing is left out. The report says when that was.
    ///   - number: what ``VoiceReport/number`` is to say once the output thread has seen this.
    /// - Returns: false when the queue to the thread is full, the line is not playable or the voice
    ///   has been released.
    @discardableResult
    public func start(
        _ line: Line, clock: ClockCell?, endFrame: Int64? = nil, fadeIn: Bool = false,
        number: UInt64 = 0, waits: Bool = false
    ) -> Bool {
        port.start(
            slot: slot, serial: serial, line: line, clock: clock, endFrame: endFrame,
            fadeIn: fadeIn, number: number, waits: waits)
    }

    /// The voice's own volume, linear, 0 to 16; ramped while it sounds. The port's applies as well.
    ///
    /// - Returns: false when the queue to the thread is full or the voice has been released.
    @discardableResult
    public func setGain(_ linear: Float) -> Bool {
        port.setGain(slot: slot, serial: serial, linear)
    }

    /// Falls silent with a 5 ms raised cosine that ends at `instant` (`nil`: begins now). What the
    /// ring holds behind the position stays for a resume.
    ///
    /// - Returns: false when the queue to the thread is full or the voice has been released.
    @discardableResult
    public func stop(at instant: GroupInstant?) -> Bool {
        port.stop(slot: slot, serial: serial, at: instant)
    }

    /// Fades out in 5 ms and gives the slot back; the handle is dead from now on. The slot is free
    /// once the output thread has seen it.
    public func release() { port.release(slot: slot, serial: serial, fades: true) }

    /// ``release()`` without the fade: for a voice that has not sounded.
    public func cancel() { port.release(slot: slot, serial: serial, fades: false) }

    /// The latest snapshot from the output thread.
    public var report: VoiceReport {
        port.voiceReport(slot: slot, serial: serial)
    }
}
