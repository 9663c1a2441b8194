public import DeviceOutput
public import GroupControl
public import LinuxHost
public import Logging
public import Playout
public import Timing

/// What a node needs to know before it starts; the command line fills it from flags and file.
public struct NodeConfiguration: Sendable {
    /// The room's name, as people see it and as Avahi announces it.
    public var name: String
    public var output: OutputSpecification
    /// Which part of the assets sounds here.
    public var role: ChannelRole
    /// TCP port of the control service and UDP port of the time service; 0 takes free ones.
    public var port: Int
    /// Folder of the assets fetched from the leader.
    public var cacheFolder: String
    public var cacheLimitBytes: Int64
    /// Of a leader: what files that other machines put into its queue may take together, beside that.
    public var uploadLimitBytes: Int64
    /// Positive: what hangs on the output (amplifier, DSP) delays the sound by this much; `nil`: as
    /// was said by command and remembered, or not at all.
    public var latencyOffset: LatencyOffset?
    /// Folder of what outlives the process: the node's number, offsets, rates of leaders; `nil`
    /// remembers nothing.
    public var stateFolder: String?
    /// The bound of the room's lockstep that its owner accepts; above it there is an alarm.
    public var syncTarget: Nanoseconds
    /// Whether to announce the room, and to look for leaders, with Avahi.
    public var usesAvahi: Bool
    /// Whether to send reference broadcasts (leader) and to take part in them (follower).
    public var usesBroadcasts: Bool
    /// SCHED_FIFO priority of the output and clock threads, 1 to 99; 0 asks for none.
    public var realTimePriority: Int
    /// What the sound card should hold, in milliseconds.
    public var bufferMilliseconds: Int
    /// Nominal rate the card is opened with, if it can.
    public var sampleRate: Int
    /// Whether the card goes to other rates for items, and is let go of when nothing plays.
    public var outputManner: OutputManner
    /// Whether an output that writes files may replace files that are there.
    public var overwritesFiles: Bool
    /// Web servers whose certificate is not looked at.
    public var insecureHosts: Set<String>
    /// What it logs is one line each, of characters that can be seen; see ``PlainLogHandler``.
    public var logger: Logger { didSet { logger = logger.plain } }

    public init(
        name: String, output: OutputSpecification, role: ChannelRole = .stereo,
        port: Int = HostPort.defaultPort, cacheFolder: String,
        cacheLimitBytes: Int64 = 2_000_000_000, uploadLimitBytes: Int64 = 2_000_000_000,
        latencyOffset: LatencyOffset? = nil, stateFolder: String? = nil,
        syncTarget: Nanoseconds = .milliseconds(1), usesAvahi: Bool = true,
        usesBroadcasts: Bool = true,
        realTimePriority: Int = RealTimeThread.usualPriority,
        bufferMilliseconds: Int = OutputThread.standardBufferMilliseconds, sampleRate: Int = 48_000,
        outputManner: OutputManner = OutputManner(), overwritesFiles: Bool = false,
        insecureHosts: Set<String> = [], logger: Logger = Logger(label: "tutti")
    ) {
        self.name = name
        self.output = output
        self.role = role
        self.port = port
        self.cacheFolder = cacheFolder
        self.cacheLimitBytes = cacheLimitBytes
        self.uploadLimitBytes = uploadLimitBytes
        self.latencyOffset = latencyOffset
        self.stateFolder = stateFolder
        self.syncTarget = syncTarget
        self.usesAvahi = usesAvahi
        self.usesBroadcasts = usesBroadcasts
        self.realTimePriority = realTimePriority
        self.bufferMilliseconds = bufferMilliseconds
        self.sampleRate = sampleRate
        self.outputManner = outputManner
        self.overwritesFiles = overwritesFiles
        self.insecureHosts = insecureHosts
        self.logger = logger.plain
    }
}
