public import TuttiTiming

/// A sound card that exists in memory: a ring of frames emptied by a crystal.
///
/// Pure: the caller says what time it is. `advance(to:)` lets frames leave through `emit`; a ring
/// that runs empty is an underrun, after which the card stands still until it is written again and
/// its frame count begins at 0.
public struct VirtualCard: Sendable {
    /// What it was made with.
    public let format: OutputFormat
    /// Ticks counted since the card was made; it runs through restarts.
    public private(set) var crystal: Crystal
    /// Readings say a multiple of this many frames, rounded down (the pointer is late); 0: exact.
    public var pointerGranularity: Int

    private var samples: [Float]
    /// Since the last restart.
    private var written: Int64 = 0
    private var heard: Int64 = 0
    /// Tick at which frame 0 began to leave; `nil` while the card stands still.
    private var startTick: Double?
    private var threshold: Int
    /// Times the card ran dry.
    public private(set) var restarts = 0
    /// Frames that left since the card was made.
    public private(set) var framesEmitted: Int64 = 0

    /// - Parameters:
    ///   - startThreshold: the card starts once this many frames are queued; default: all of them.
    public init(
        format: OutputFormat, crystal: Crystal, pointerGranularity: Int = 0,
        startThreshold: Int? = nil
    ) {
        self.format = format
        self.crystal = crystal
        self.pointerGranularity = pointerGranularity
        threshold =
            startThreshold ?? format.bufferFrames / format.periodFrames * format.periodFrames
        samples = [Float](repeating: 0, count: format.bufferFrames * format.channelCount)
        self.crystal.reserve()
    }

    /// Whether frames leave it.
    public var isRunning: Bool { startTick != nil }
    /// Frames that were written and have not left.
    public var queuedFrames: Int { Int(written - heard) }
    /// Frames for which there is room.
    public var writableFrames: Int { format.bufferFrames - queuedFrames }

    /// Lets the card play until `now`.
    ///
    /// - Parameter emit: called for each run of frames that left: interleaved samples, and the
    ///   number of the first since the last restart.
    /// - Returns: `.restarted` when the ring ran empty on the way; the frame count is 0 again.
    public mutating func advance(
        to now: LocalInstant,
        emit: (_ samples: ArraySlice<Float>, _ firstFrame: Int64) -> Void = { _, _ in }
    ) -> OutputEvent {
        guard let startTick else { return .writable }
        let ticks = crystal.frames(at: now) - startTick
        let due = Int64(ticks < 0 ? 0 : ticks)
        let end = min(due, written)
        let channels = format.channelCount
        while heard < end {
            let index = Int(heard % Int64(format.bufferFrames))
            let count = min(Int(end - heard), format.bufferFrames - index)
            emit(samples[index * channels..<(index + count) * channels], heard)
            heard += Int64(count)
            framesEmitted += Int64(count)
        }
        guard due > written else { return .writable }
        restarts += 1
        self.startTick = nil
        written = 0
        heard = 0
        return .restarted
    }

    /// Queues frames; the card starts when enough are there.
    ///
    /// - Parameter frames: interleaved, at most ``writableFrames`` frames.
    public mutating func write(_ frames: UnsafeBufferPointer<Float>, now: LocalInstant) {
        let channels = format.channelCount
        let count = frames.count / channels
        precondition(count <= writableFrames, "\(count) frames for \(writableFrames) of room")
        for i in 0..<count {
            let index = Int((written + Int64(i)) % Int64(format.bufferFrames)) * channels
            for c in 0..<channels { unsafe samples[index + c] = frames[i * channels + c] }
        }
        written += Int64(count)
        if startTick == nil, written >= Int64(threshold) { startTick = crystal.frames(at: now) }
    }

    /// The pointer as a driver would report it; `nil` while the card stands still.
    public mutating func reading(at now: LocalInstant) -> CardReading? {
        guard let startTick else { return nil }
        var ticks = max(0, crystal.frames(at: now) - startTick)
        if pointerGranularity > 0 {
            let step = Double(pointerGranularity)
            ticks = Double(Int64(ticks / step)) * step
        }
        return CardReading(framesHeard: ticks, instant: now)
    }

    /// When frame `n` since the last restart leaves the card: the truth that a model estimates.
    public mutating func instant(ofFrame n: Double) -> (instant: LocalInstant, fraction: Double)? {
        guard let startTick else { return nil }
        return crystal.instant(ofFrame: startTick + n)
    }
}
