public import Logging
public import TuttiDeviceOutput
public import TuttiGroupControl
public import TuttiLinuxHost
public import TuttiPlayout
public import TuttiTiming

/// What a node needs to know before it starts; the command line fills it from flags and file.
public struct NodeConfiguration: Sendable {
    /// The room's name, as people see it and as Avahi announces it.
    public var name: String
    /// Where it sounds; `.none` is a node that is not heard.
    public var output: OutputSpecification
    /// Which part of the assets sounds here.
    public var role: ChannelRole
    /// TCP port of the control service and UDP port of the time service; 0 takes free ones.
    public var port: Int
    /// Folder of the assets fetched from the leader.
    public var cacheFolder: String
    /// What the fetched assets may take together, bytes; what was not used for longest makes way.
    public var cacheLimitBytes: Int64
    /// Of a leader: what files that other machines put into its queue may take together, beside that.
    public var uploadLimitBytes: Int64
    /// Positive: what hangs on the output (amplifier, DSP) delays the sound by this much; `nil`: as
    /// was said by command and remembered, or not at all.
    public var latencyOffset: LatencyOffset?
    /// Folder of what outlives the process: the node's number, offsets, rates of leaders; `nil`
    /// remembers nothing.
    public var stateFolder: String?
    /// Whether everybody on the network may steer the group, feed it files and read what it plays.
    /// Otherwise only members of the household may, whose keys the state folder holds.
    public var isOpen: Bool
    /// The bound of the room's lockstep that its owner accepts; above it there is an alarm.
    public var syncTarget: Nanoseconds
    /// Whether to announce the room, and to look for leaders, with Avahi.
    public var usesAvahi: Bool
    /// The network interface on which the room is announced and others are looked for, by its name;
    /// `nil`: all that Avahi uses.
    public var networkInterface: String?
    /// Whether to send reference broadcasts (leader) and to take part in them (follower).
    public var usesBroadcasts: Bool
    /// Whether datagrams carry tags that only members can make (leader), and nothing is asked before
    /// the leader has given a key (follower). Off, as in a group that ``isOpen``, anybody on the network
    /// can forge the time.
    public var sealsDatagrams: Bool
    /// Whether the node goes on with the group when its leader is lost, and leads where nobody does if
    /// it is one that may.
    public var succeeds: Bool
    /// The loudest that the room gets, percent of the slider, 1 to 100.
    public var volumeLimit: Int
    /// How long the output is awake and silent before the first frame of what begins.
    public var leadIn: Nanoseconds
    /// Whether packets of the clock and of control carry a mark by which switches and access points
    /// let them go first.
    public var marksPackets: Bool
    /// Whether a group that played when the power failed plays on, or stands at its place.
    public var playsAfterRestart: Bool
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
    /// Called once the node has its port, and its room waits for what is to be played.
    public var whenReady: @Sendable () -> Void = {}
    /// Opened by ``openCredentials()`` before the node begins.
    var credentials = Credentials.open

    /// What is left out is as the command line has it without flags.
    public init(
        name: String, output: OutputSpecification, role: ChannelRole = .stereo,
        port: Int = HostPort.defaultPort, cacheFolder: String,
        cacheLimitBytes: Int64 = 2_000_000_000, uploadLimitBytes: Int64 = 2_000_000_000,
        latencyOffset: LatencyOffset? = nil, stateFolder: String? = nil, isOpen: Bool = false,
        syncTarget: Nanoseconds = .milliseconds(1), usesAvahi: Bool = true,
        networkInterface: String? = nil, usesBroadcasts: Bool = true, sealsDatagrams: Bool? = nil,
        succeeds: Bool = true, volumeLimit: Int = 100, leadIn: Nanoseconds = .zero,
        marksPackets: Bool = true, playsAfterRestart: Bool = false,
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
        self.isOpen = isOpen
        self.syncTarget = syncTarget
        self.usesAvahi = usesAvahi
        self.networkInterface = networkInterface
        self.usesBroadcasts = usesBroadcasts
        self.sealsDatagrams = sealsDatagrams ?? !isOpen
        self.succeeds = succeeds
        self.volumeLimit = volumeLimit
        self.leadIn = leadIn
        self.marksPackets = marksPackets
        self.playsAfterRestart = playsAfterRestart
        self.realTimePriority = realTimePriority
        self.bufferMilliseconds = bufferMilliseconds
        self.sampleRate = sampleRate
        self.outputManner = outputManner
        self.overwritesFiles = overwritesFiles
        self.insecureHosts = insecureHosts
        self.logger = logger.plain
    }
}
