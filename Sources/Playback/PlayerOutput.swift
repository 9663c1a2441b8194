public import TuttiPlayout
import TuttiRealTime
public import TuttiTiming

/// Where a player sounds, and what it needs of the machine around it.
///
/// Time arrives from outside so that a test can let a night pass in a second.
public struct PlayerOutput: Sendable {
    /// The output; several players may share one, each item has a voice of its own.
    public let port: OutputPort
    /// The local clock; any thread.
    public let now: @Sendable () -> LocalInstant
    /// Returns after that much of the local clock, or at once when the task is cancelled.
    public let sleep: @Sendable (Nanoseconds) async -> Void
    /// Where the tasks run that wait for the decoders; `nil`: on the cooperative pool. Decoding
    /// itself has queues of its own.
    public let executor: (any TaskExecutor)?
    /// What has to live as long as somebody plays there: a device, for example.
    public let owner: (any AnyObject & Sendable)?
    /// When reports of items and feeds reach a player: at once, except where a test owns the delay.
    var postpone: (@Sendable (@escaping @Sendable () -> Void) -> Void)?

    /// An output around the control side of an engine; each argument is the property of its name.
    public init(
        port: OutputPort, now: @escaping @Sendable () -> LocalInstant,
        executor: (any TaskExecutor)? = nil, owner: (any AnyObject & Sendable)? = nil,
        sleep: @escaping @Sendable (Nanoseconds) async -> Void = PlayerOutput.taskSleep
    ) {
        self.port = port
        self.now = now
        self.executor = executor
        self.owner = owner
        self.sleep = sleep
    }

    /// `Task.sleep`.
    public static let taskSleep: @Sendable (Nanoseconds) async -> Void = { span in
        try? await Task.sleep(for: .nanoseconds(Swift.max(0, span.count)))
    }

    /// How far ahead an instant must lie for every sample from it on to be heard: what the card
    /// queues, what lies between it and the ear, and a margin for a busy machine.
    ///
    /// The output thread wakes when there is room for a period, sees the commands and fills the
    /// queue. One that comes just afterwards is seen a period later, when the queue has become
    /// shorter by that period: what is rendered then is heard a queue's length after the command.
    public var latency: Nanoseconds {
        let format = port.format
        let frames = Int64(format.bufferFrames + port.report.framesAhead)
        let queued = Nanoseconds(frames * 1_000_000_000 / Int64(max(1, format.sampleRate)))
        return queued + Self.schedulingMargin
    }

    /// Ordinary wake-up lateness of a loaded two-core machine, p99.9.
    static let schedulingMargin = Nanoseconds.milliseconds(5)

    /// What the driving clock reads: without a shared clock, local time.
    func reading(of clock: MediaClock?, at now: LocalInstant) -> GroupInstant {
        clock?.cell.load().map(now) ?? GroupInstant(nanoseconds: now.nanoseconds)
    }
}
