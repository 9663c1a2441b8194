import TuttiTiming

/// Holds what leaves a room's card against what the leader committed.
///
/// Its one source is the commits: which voice sounds by which line from which instant to which.
/// Its other is the output's report of every voice. The two meet nowhere else on their way, so a
/// fault in between, of whatever layer, shows here: a voice that was given another line, one that
/// was given none, one that was not stopped.
///
/// A voice is on its line when the item frame it says it plays is due at the instant it says:
///
///     deviation = at − instant(of: itemFrame)
///
/// This contains what the voice knows and is correcting, up to the 5 ms beyond which it jumps. So
/// it is off the line when the deviation differs from what it knows by more than
/// ``tolerance``, or when it is larger than ``longestCorrection`` and stays so.
///
/// One look proves nothing: a voice may be in the middle of a jump, a command on its way. What is
/// found twice, ``patience`` apart, is an alarm, once; one and the same voice that nobody asked for
/// has ``withdrawal`` to end. An alarm is over with the first look that finds
/// the room on a line, or when nothing has to sound any more.
struct LineProof: Equatable, Sendable {
    /// What the group's line and the card's model may move between the rendering of a period and a
    /// look at it, with the longest queue of 2 s: 200 ppm of it, and the rounding of two clocks.
    /// Smaller rings while a young clock learns its rate.
    static let tolerance = Nanoseconds.microseconds(500)
    /// A voice slews up to 5 ms, and jumps beyond; the rest is the tolerance.
    static let longestCorrection = Nanoseconds.microseconds(5_500)
    /// From the instant of a line, or from its commit when that comes later, to a look at which it
    /// must sound: the output thread takes its commands once a period, a card that broke off finds
    /// its phase in 0.1 s.
    static let settling = Nanoseconds.milliseconds(300)
    /// Items may be shorter than ``settling``: a room in which none of them is heard for so long is
    /// silent, whichever it should be.
    static let longestSilence = Nanoseconds.milliseconds(550)
    /// Behind the end of a line, until which its voice may still say that it sounds: its fade and
    /// the period in which it ends.
    static let ending = Nanoseconds.milliseconds(100)
    /// Between two looks.
    static let interval = Nanoseconds.milliseconds(300)
    /// Between the first look that finds something and the one that rings.
    static let patience = Nanoseconds.milliseconds(250)
    /// How long one and the same voice has to go on before it counts as one that nobody asked for. It
    /// ends when its player is given back, which takes a busy machine some tenths of a second; in a
    /// burst of seeks each look finds another one on its way out. The third look finds it.
    static let withdrawal = Nanoseconds.milliseconds(500)
    /// Looks at an output that was told to stop: what goes on sounding was not asked for.
    static let looksAfterStop = 10
    /// Lines that are remembered: the one that sounds, those that follow it, those that end.
    static let mostSpans = 48

    /// What has to sound, from when to when.
    struct Span: Equatable, Sendable {
        /// What the leader calls it.
        var id: UInt64
        let voice: UInt64
        let asset: AssetDescriptor
        let change: RateChange
        let committedAt: LocalInstant
        /// It was paused, or something else takes its place.
        var stop: GroupInstant?

        var end: GroupInstant {
            let itemEnd =
                change.instant(ofFrame: asset.frameCount, sampleRate: asset.sampleRate)
                ?? change.instant
            return stop.map { min($0, itemEnd) } ?? itemEnd
        }
    }

    /// What came of a look.
    enum Verdict: Equatable, Sendable {
        case unchanged
        /// `span` is the line that is not played as committed, if it is one; `isNews`: it was not in
        /// alarm, or for another reason.
        case raised(LineFinding, Span?, isNews: Bool)
        case cleared
    }

    private(set) var spans: [Span] = []
    private(set) var alarm: LineFinding?
    /// Of the voice that should sound, at the look before; `nil`: there is none, or nobody can tell.
    private(set) var deviation: Nanoseconds?
    private var latest = LineFinding.nothing
    private var looksLeft = 0
    private var suspicion: (finding: Found, since: LocalInstant)?
    /// Since when something had to sound at every look, and nothing that was committed did.
    private var silentSince: LocalInstant?
    /// Voices that nobody asked for, and since when each is heard at every look.
    private var strays: [Stray: LocalInstant] = [:]

    private struct Stray: Hashable {
        /// The name that stays when the room forgets the voice.
        var source: UInt64?
        var voice: UInt64?

        init(_ heard: HeardVoice) {
            source = heard.source
            voice = heard.source == nil ? heard.voice : nil
        }
    }

    struct Found: Equatable, Sendable {
        var finding: LineFinding
        var voice: UInt64?

        /// Whether it is the same fault of the same voice; how far it is off may change meanwhile.
        func isSame(as other: Self) -> Bool {
            // Short items follow one another while nothing is heard.
            finding.gravity == other.finding.gravity
                && (voice == other.voice || finding == .silent)
        }
    }

    static func == (a: Self, b: Self) -> Bool {
        a.spans == b.spans && a.alarm == b.alarm && a.deviation == b.deviation
            && a.latest == b.latest && a.suspicion?.finding == b.suspicion?.finding
            && a.suspicion?.since == b.suspicion?.since && a.silentSince == b.silentSince
            && a.strays == b.strays
    }

    /// What the room reports.
    var finding: LineFinding { alarm ?? (latest == .onLine ? .onLine : .nothing) }

    /// Whether something has to sound, or did a moment ago.
    var isWatching: Bool {
        !spans.isEmpty || suspicion != nil || !strays.isEmpty || looksLeft > 0
    }

    // MARK: What was committed

    /// A line was committed. Unless it follows, whatever else sounds ends at its instant.
    mutating func begin(
        _ commit: Commit, voice: UInt64, of asset: AssetDescriptor, at now: LocalInstant
    ) {
        if !commit.following {
            // What was to come later is taken back.
            spans.removeAll { $0.change.instant >= commit.change.instant }
            for place in spans.indices {
                let instant = commit.change.instant
                spans[place].stop = spans[place].stop.map { min($0, instant) } ?? instant
            }
        }
        if spans.count >= Self.mostSpans { spans.removeFirst() }
        spans.append(
            Span(
                id: commit.id, voice: voice, asset: asset, change: commit.change,
                committedAt: now))
    }

    /// The line of this voice stops at an instant: a pause.
    mutating func stop(_ voice: UInt64, at instant: GroupInstant) {
        for place in spans.indices where spans[place].voice == voice {
            spans[place].stop = instant
        }
        calm()
    }

    /// The leader calls the line of this voice otherwise.
    mutating func rename(_ voice: UInt64, to id: UInt64) {
        for place in spans.indices where spans[place].voice == voice { spans[place].id = id }
    }

    mutating func forget(_ voice: UInt64) { spans.removeAll { $0.voice == voice } }

    mutating func forgetAll() {
        let wasWatching = isWatching
        self = LineProof()
        looksLeft = wasWatching ? Self.looksAfterStop : 0
    }

    /// Nothing has to sound: what was wrong is over.
    mutating func calm() { alarm = nil }

    // MARK: What is heard

    mutating func judge(_ look: OutputLook, at now: LocalInstant) -> Verdict {
        spans.removeAll { $0.end + Self.settling < look.until }
        looksLeft = spans.isEmpty ? max(0, looksLeft - 1) : 0
        guard let voices = look.voices else {
            // Said elsewhere: that the card is gone, that the clock does not answer.
            (deviation, latest, suspicion, silentSince) = (nil, .nothing, nil, nil)
            strays = [:]
            return .unchanged
        }
        let found = examine(voices, until: look.until, at: now)
        latest = found.finding
        guard found.finding.isAlarm else {
            suspicion = nil
            // Where a line was given up nothing is heard, and nothing is well again.
            guard alarm != nil, found.finding == .onLine || alarm == .stray else {
                return .unchanged
            }
            alarm = nil
            return .cleared
        }
        guard isConfirmed(found, at: now) else { return .unchanged }
        suspicion = nil
        let isNews = alarm?.gravity != found.finding.gravity
        alarm = found.finding
        let span = found.voice.flatMap { voice in spans.first { $0.voice == voice } }
        return .raised(found.finding, span, isNews: isNews)
    }

    /// Whether this is more than one look's.
    private mutating func isConfirmed(_ found: Found, at now: LocalInstant) -> Bool {
        // Its own patience is over.
        if found.finding == .stray { return true }
        guard let first = suspicion, first.finding.isSame(as: found) else {
            suspicion = (found, now)
            return false
        }
        return now - first.since >= Self.patience
    }

    /// The worst of what is heard; sets ``deviation``.
    private mutating func examine(
        _ voices: [HeardVoice], until: GroupInstant, at now: LocalInstant
    ) -> Found {
        let expected = spans.last { $0.change.instant <= until && until < $0.end }
        deviation = nil
        var worst = Found(finding: .nothing, voice: nil)
        func note(_ finding: LineFinding, _ voice: UInt64?) {
            if finding.gravity > worst.finding.gravity {
                worst = Found(finding: finding, voice: voice)
            }
        }
        let isSilent =
            expected != nil
            && !voices.contains { heard in spans.contains { $0.voice == heard.voice } }
        silentSince = isSilent ? silentSince ?? now : nil
        var unasked: [Stray: LocalInstant] = [:]
        for heard in voices {
            let span = spans.first { $0.voice == heard.voice }
            let deviation = span?.deviation(of: heard)
            if let span, span == expected { self.deviation = deviation }
            var finding = LineFinding.stray
            if let span, let deviation {
                finding = Self.judge(heard, on: span, deviation: deviation)
            }
            if finding == .stray {
                let since = strays[Stray(heard)] ?? now
                unasked[Stray(heard)] = since
                if now - since < Self.withdrawal { continue }
            }
            note(finding, heard.voice)
        }
        strays = unasked
        if let expected, !voices.contains(where: { $0.voice == expected.voice }) {
            let isDue =
                until - expected.change.instant >= Self.settling
                && expected.end - until >= Self.settling
                && now - expected.committedAt >= Self.settling
            let isLong = silentSince.map { now - $0 >= Self.longestSilence } ?? false
            if isDue || isLong { note(.silent, expected.voice) }
        }
        return worst
    }

    private static func judge(
        _ heard: HeardVoice, on span: Span, deviation: Nanoseconds
    ) -> LineFinding {
        if heard.isAltered { return .otherItem }
        if let hash = heard.hash, hash != span.asset.hash { return .otherItem }
        if heard.at >= span.end + ending { return .stray }
        let unknown = (deviation - heard.knownError).magnitude
        if unknown > tolerance || deviation.magnitude > longestCorrection {
            return .off(by: deviation)
        }
        return heard.isSupplied ? .onLine : .starved
    }
}

extension LineProof.Span {
    /// By how much later than committed the voice plays what it plays.
    func deviation(of heard: HeardVoice) -> Nanoseconds {
        // Whole frames are exact as integers; the fraction is far below a frame.
        let whole = Int64(saturating: heard.itemFrame)
        guard let due = change.instant(ofFrame: whole, sampleRate: asset.sampleRate) else {
            return .zero
        }
        let fraction = (heard.itemFrame - Double(whole)) / (Double(asset.sampleRate) * change.rate)
        return heard.at - due - Nanoseconds(seconds: fraction)
    }
}

extension LineFinding {
    /// The worst of several is told.
    fileprivate var gravity: Int {
        switch self {
        case .nothing: 0
        case .onLine: 1
        case .starved: 2
        case .silent: 3
        case .stray: 4
        case .off: 5
        case .otherItem: 6
        }
    }
}
