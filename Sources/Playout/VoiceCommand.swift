import TuttiRealTime
import TuttiTiming

/// A command on its way to the output thread.
///
/// `@unchecked Sendable`: the unmanaged references point to immutable or atomic objects that the
/// port's slot keeps alive until the thread has acknowledged the release of that use.
@safe struct VoiceCommand: BitwiseCopyable, @unchecked Sendable {
    @safe enum Kind: BitwiseCopyable {
        case start(StartCommand)
        case stop(GroupInstant?)
        case gain(serial: UInt64, Float)
        case release(serial: UInt64, fades: Bool)
    }
    var slot: Int
    var kind: Kind
}

@safe struct StartCommand: BitwiseCopyable {
    var serial: UInt64
    var line: Line
    var clock: Unmanaged<ClockCell>?
    var ring: Unmanaged<FrameRing>
    /// Of the filter bank, which the port's slot keeps alive.
    var rows: UnsafePointer<SIMD8<Float>>
    var taps: Int
    var sampleRate: Double
    var endFrame: Int64
    var fadeIn: Bool
    /// As its owner counts, for the report.
    var number: UInt64
    /// Where the voice begins, if this is its first.
    var gain: Float
    /// Which two of the output's channels it plays to.
    var pair: Int
    /// Without a clock: a line that cannot be met begins as soon as it can.
    var waits: Bool

    /// Which clock, 0 for the card's own.
    var clockAddress: UInt {
        @_noLocks @_noAllocation get {
            if let clock = unsafe clock { unsafe UInt(bitPattern: clock.toOpaque()) } else { 0 }
        }
    }
}
