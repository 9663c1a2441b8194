import TuttiTiming

/// One preparation a member was asked for, and how far it is.
struct Offer: Equatable, Sendable {
    enum Standing: Equatable, Sendable {
        case sent
        case ready
        case failed
        case committed
    }

    let id: UInt64
    var standing: Standing = .sent
    /// Whether a common start waits for it. A room that joins while the others play does not hold
    /// them up.
    var isAwaited = true
    /// Counts from 1; a failed offer is made again.
    var attempt = 1
}

/// A room on a link, as the leader sees it.
struct LeaderMember: Sendable {
    let link: LinkID
    let hello: Hello
    var lastHeard: GroupInstant
    /// Not heard for a while: nothing waits for it until it speaks again.
    var isLost = false
    /// By its last promise.
    var isAlarming = false
    /// It said that it does not play what was committed, and not yet that it does again.
    var isOffLine = false
    /// It has been on a line since it joined.
    private var hasSounded = false
    /// The shortest that it has measured.
    private var roundTrip: Nanoseconds?
    /// Of its output, as it said last.
    var latency: Nanoseconds
    var report: RoomReport?
    var reportedAt: GroupInstant
    var history: SyncHistory

    /// For the line in force; committed, or on the way to it.
    var line: Offer? { didSet { if isOnLine { hasSounded = true } } }
    /// For the common start or seek that is being prepared.
    var pending: Offer?
    /// For the item after this one.
    var follow: Offer?
    /// For the items behind that, in the order of ``LeaderMachine/chain``; those missing were not
    /// offered yet.
    var chain: [Offer?] = []

    /// Since when it was asked for preparations and answered none; `nil`: it has answered.
    var askedAt: GroupInstant?
    /// Preparations that it was sent and has said nothing to, the newest last; withdrawn ones too,
    /// which a slow room answers late.
    private(set) var unanswered: [UInt64] = []
    /// When what failed is offered again.
    var retryAt: GroupInstant?
    /// When the line broke last.
    private var brokeAt: GroupInstant?
    /// Why the last preparation failed; empty when none did.
    var failure = ""

    init(
        link: LinkID, hello: Hello, history: SyncHistory = SyncHistory(), at now: GroupInstant
    ) {
        self.link = link
        self.hello = hello
        self.history = history
        lastHeard = now
        reportedAt = now
        latency = Self.believable(hello.outputLatency)
    }

    /// By wire, as a rule: the air takes longer at its best.
    var isNear: Bool { roundTrip.map { $0 < Self.wiredRoundTrip } ?? false }
    private static let wiredRoundTrip = Nanoseconds.microseconds(800)

    /// Whether people hear it, or would if something played.
    var isAudible: Bool {
        hasSounded && !isOffLine && report?.isCardLost != true && report?.line != .starved
    }

    var takesPart: Bool { hello.hasOutput && !isLost }
    /// Whether it owes an answer.
    var isAsked: Bool { ([line, pending, follow] + chain).contains { $0?.standing == .sent } }
    var isOnLine: Bool { line?.standing == .committed }

    /// An item of the chain, whatever came of it.
    func wasOffered(_ number: Int) -> Bool {
        chain.indices.contains(number) && chain[number] != nil
    }

    /// From the moment we speak until a sound of this room can change: half its round trip and
    /// the latency of its output.
    var reach: Nanoseconds {
        let roundTrip = report?.roundTrip.map(Self.believable) ?? Self.unmeasuredRoundTrip
        return roundTrip / 2 + latency
    }

    /// Taken for a round trip nobody has measured yet. A local network is far below; more would
    /// only delay the first start.
    static let unmeasuredRoundTrip = Nanoseconds.milliseconds(50)

    /// A span a room may claim. Above it the room would hold up the whole group for its own
    /// sake: it joins late instead.
    /// A link over the air, or a sound server, may take two.
    static let longestClaim = Nanoseconds.seconds(3)

    static func believable(_ claim: Nanoseconds) -> Nanoseconds {
        min(max(claim, .zero), longestClaim)
    }

    /// Older ones than so many nobody will answer any more.
    static let mostUnanswered = 64

    mutating func noteAsked(_ id: UInt64) {
        if unanswered.count >= Self.mostUnanswered { unanswered.removeFirst() }
        unanswered.append(id)
    }

    /// - Returns: whether it is the answer to something that it was asked.
    mutating func noteAnswered(_ id: UInt64) -> Bool {
        guard let place = unanswered.firstIndex(of: id) else { return false }
        unanswered.remove(at: place)
        return true
    }

    /// The line broke: faults that are far apart do not add up to one that stays.
    mutating func noteBreak(at now: GroupInstant) {
        if let brokeAt, now - brokeAt >= Self.breakMemory { line?.attempt = 1 }
        brokeAt = now
    }
    private static let breakMemory = Nanoseconds.seconds(60)

    mutating func take(_ report: RoomReport, at now: GroupInstant) {
        self.report = report
        reportedAt = now
        if let measured = report.roundTrip, measured > .zero {
            roundTrip = min(roundTrip ?? measured, measured)
        }
        if report.activity == .playing, let bound = report.bound {
            history.note(error: report.error, bound: bound, at: now)
        }
    }

    /// Forgets what was offered, without a word to the room.
    mutating func forgetOffers() {
        askedAt = nil
        line = nil
        pending = nil
        follow = nil
        chain = []
        retryAt = nil
        failure = ""
    }
}

/// A common start, seek or next item that rooms are preparing.
struct PendingStart: Equatable, Sendable {
    var index: Int
    var frame: Int64
    /// False while paused: rooms stand by at the frame and play turns it true.
    var starts: Bool
    /// Rooms that must have answered; `nil`: whoever is there.
    var required: Int?
    /// From here on it starts with those that are ready.
    var deadline: GroupInstant?
    var isOverdue = false
    /// The line in force is to go on from wherever it is by then, at another rate; the frame is where
    /// that may be at the earliest.
    var goesOn = false
}

/// The item that begins by itself when the current one ends.
struct FollowUp: Equatable, Sendable {
    var index: Int
    var change: RateChange
}

/// An item that is not known yet, and that the session goes to as soon as it is.
struct AwaitedItem: Equatable, Sendable {
    enum Place: Equatable, Sendable {
        /// This item, or what comes behind it.
        case entry(QueueEntry.ID)
        /// What is at this position, or comes there.
        case position(Int)
    }

    var place: Place
    /// Rooms that a first start waits for; `nil`: whoever is there.
    var required: Int?
}
