public import TuttiTiming

/// What leaves a room's card, against the line that the leader committed.
///
/// A room's error against the line that its own voice was given says nothing when the voice was
/// given another one, or when another voice sounds. So which item, which place and which instant
/// are read behind the output, and compared with the commit; see ``LineProof``.
public enum LineFinding: Hashable, Sendable {
    /// Nothing has to sound, or nobody can tell: the card is gone, the clock is not known.
    case nothing
    /// The committed item, at its committed place.
    case onLine
    /// The committed item at another place: positive, what is heard is late.
    case off(by: Nanoseconds)
    /// Another item than the committed one.
    case otherItem
    /// Nothing is heard though a line has begun.
    case silent
    /// The voice is on its line, and the frames that it should play are not there.
    case starved
    /// Something sounds that nobody asked for, or not any more.
    case stray

    /// Whether a person must hear of it.
    public var isAlarm: Bool {
        switch self {
        case .nothing, .onLine: false
        case .off, .otherItem, .silent, .starved, .stray: true
        }
    }

    /// For people; empty where there is nothing to say.
    public var words: String {
        switch self {
        case .nothing: ""
        case .onLine: "on the line"
        case .off(let by):
            "plays another place than the group, \(Self.span(by)) \(by > .zero ? "late" : "early")"
        case .otherItem: "plays another item than the group"
        case .silent: "is silent where it should sound"
        case .starved: "is silent: what it should play has not arrived"
        case .stray: "plays what nobody asked for"
        }
    }

    private static func span(_ span: Nanoseconds) -> String {
        let tenths = span.magnitude / 100_000
        if tenths >= .init(100_000) { return "\(span.magnitude.count / 1_000_000_000) s" }
        return "\(tenths.count / 10).\(tenths.count % 10) ms"
    }
}

/// One voice of an output that is on a line, as its report has it.
public struct HeardVoice: Equatable, Sendable {
    /// The preparation that it was made for; `nil`: nobody here knows it.
    public var voice: UInt64?
    /// Which voice of the output it is: tells apart those that nobody here knows; `nil`: by
    /// ``voice`` alone.
    public var source: UInt64?
    /// Of the bytes that it plays.
    public var hash: ContentHash?
    /// Somebody has written into them since they were found to have that hash.
    public var isAltered = false
    /// False: it is on its line and has no frames.
    public var isSupplied: Bool
    /// What leaves the card …
    public var itemFrame: Double
    /// … at this instant, latency offset included; some time ahead of now.
    public var at: GroupInstant
    /// What the voice knows to be wrong and is correcting; positive: late.
    public var knownError: Nanoseconds

    /// A voice that is at `itemFrame` at the instant `at`; without `voice` nobody knows what it was
    /// made for.
    public init(
        voice: UInt64?, source: UInt64? = nil, hash: ContentHash?, isSupplied: Bool,
        itemFrame: Double, at: GroupInstant, knownError: Nanoseconds, isAltered: Bool = false
    ) {
        self.isAltered = isAltered
        self.voice = voice
        self.source = source
        self.hash = hash
        self.isSupplied = isSupplied
        self.itemFrame = itemFrame
        self.at = at
        self.knownError = knownError
    }
}

/// One look at what an output plays.
public struct OutputLook: Equatable, Sendable {
    /// When what was rendered last leaves the card, on the group clock.
    public var until: GroupInstant
    /// The voices that are on a line. `nil`: nobody can tell, because the card is gone or was just
    /// opened, or the clock is not known.
    public var voices: [HeardVoice]?

    /// What an output plays, as of reports up to `until`.
    public init(until: GroupInstant, voices: [HeardVoice]?) {
        self.until = until
        self.voices = voices
    }
}
