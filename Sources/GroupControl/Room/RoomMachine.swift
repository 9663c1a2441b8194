package import TuttiTiming

/// One room's side of the group: its link, its preparations and the lines it plays.
///
/// What sounds does not depend on the link: when the leader is silent the line runs on to the end
/// of its item, and a room that finds the same session with the same line again says ready at
/// once and plays on without a gap. A commit counts only for a preparation that is ready here; for
/// any other the room says why not, and the leader asks again.
///
/// Pure: `now` is the local clock; the shell performs the effects and reports back.
package struct RoomMachine: Sendable {
    package private(set) var configuration: RoomConfiguration

    var link: Link
    /// Delay before the next attempt to connect; doubles until a leader welcomes us.
    var backOff = shortestBackOff
    var clock = SharedClock.Quality.none
    var report = RoomReport()
    var nextReport = LocalInstant(nanoseconds: .max)
    /// What the last report said, and when.
    var reported: (activity: RoomActivity, line: LineFinding, at: LocalInstant)?

    /// The session that `preparations` and `lines` belong to.
    var membership: Welcome?
    /// The state that comes first after a welcome decides whether old lines may run on.
    var awaitsState = false
    var session: SessionState?
    var isPaused = false
    var failure = ""
    /// How loud the room is, as a leader has said last.
    var settings: RoomSettings?
    /// Who goes on without this leader; `nil`: it has not said so.
    var succession: Succession?
    /// The leader is lost, and what is done about that.
    var bereft: Bereft?
    /// It asks for its leader no sooner.
    var nextSearch = LocalInstant(nanoseconds: .min)
    /// Of questions who leads; answers to an older one do not count.
    var round = 0
    var vainLeads = VainLeads()
    /// When a leader last said that another leads.
    var sentOnAt: LocalInstant?
    /// Of the output, as the last preroll found it.
    var latency: Nanoseconds

    var preparations: [RoomPreparation] = []
    var lines: [RoomLine] = []
    /// The pause applied last; it may come again.
    var lastPause: Commit?
    /// What leaves the card, against what was committed.
    var proof = LineProof()
    /// When the output is to be looked at next; never while nothing has to sound.
    var nextLook = LocalInstant(nanoseconds: .max)
    var strikes: Strikes?
    /// Of the assets that are needed, those in the cache.
    var fetched: [ContentHash] = []
    var fetching: [ContentHash] = []
    /// Of these, the ones that can be prepared before all of them is here.
    var arriving: [ContentHash] = []

    enum Link: Equatable, Sendable {
        case waiting(until: LocalInstant)
        case connecting(since: LocalInstant)
        /// The hello is sent.
        case greeting(since: LocalInstant)
        case joined(heard: LocalInstant)
        case left
    }

    package init(_ configuration: RoomConfiguration, at now: LocalInstant) {
        self.configuration = configuration
        link = .waiting(until: now)
        latency = configuration.outputLatency
        settings = configuration.settings
    }

    /// Takes in what happened to the link, the shell or the output.
    package mutating func receive(_ input: RoomInput, at now: LocalInstant) -> [RoomEffect] {
        defer {
            forgetFiles()
            planLook(at: now)
            hastenReport(at: now)
        }
        return take(input, at: now)
    }

    private mutating func take(_ input: RoomInput, at now: LocalInstant) -> [RoomEffect] {
        switch input {
        case .connected: connected(at: now)
        case .closed(let reason): closed(reason, at: now)
        case .received(let message): received(message, at: now)
        case .notified(let notice): notified(notice, at: now)
        case .fetched(let hash, let outcome): fetched(hash, outcome)
        case .prepared(let id, let outcome): prepared(id, outcome, at: now)
        case .missing(let id): missing(id)
        case .report(let report): take(report)
        case .clock(let quality): take(quality, at: now)
        case .heard(let look): heard(look, at: now)
        case .itemEnded(let id): itemEnded(id)
        case .itemFailed(let id, let reason): itemFailed(id, reason)
        case .leads(let answer): isJoined ? [.send(.lead(answer))] : []
        case .sights(let answers, let round): answered(answers, round: round, at: now)
        case .succeeded(let answer): succeeded(answer, at: now)
        case .leadsAfresh: leadsAfresh(at: now)
        case .leave: leave()
        }
    }

    /// Does what is due; call it at ``nextDeadline``.
    package mutating func advance(to now: LocalInstant) -> [RoomEffect] {
        defer { planLook(at: now) }
        if now >= nextLook { nextLook = now + LineProof.interval }
        return advanceSearch(to: now) + advanceLink(to: now)
    }

    private mutating func advanceLink(to now: LocalInstant) -> [RoomEffect] {
        switch link {
        case .left: return []
        case .waiting(let until):
            guard now >= until else { return [] }
            link = .connecting(since: now)
            return [.connect]
        case .connecting(let since):
            guard now >= since + Self.answerLimit else { return [] }
            return lose("the leader cannot be reached", at: now) + seek(at: now)
        case .greeting(let since):
            guard now >= since + Self.answerLimit else { return [] }
            return lose("the leader does not answer", at: now) + seek(at: now)
        case .joined(let heard):
            if now >= heard + Self.leaderSilence {
                return lose("the leader is silent", at: now) + seek(at: now)
            }
            let search = now >= max(heard + Self.doubt, nextSearch) ? seek(at: now) : []
            guard now >= nextReport else { return search }
            nextReport = now + Self.reportInterval
            reported = (activity, proof.finding, now)
            return search + [.send(.report(currentReport))]
        }
    }

    /// When ``advance(to:)`` is due next; `nil` after the room has left.
    package var nextDeadline: LocalInstant? {
        let others = min(nextLook, searchDeadline ?? nextLook)
        return switch link {
        case .waiting(let until): min(until, others)
        case .connecting(let since), .greeting(let since):
            min(since + Self.answerLimit, others)
        case .joined(let heard): min(heard + Self.leaderSilence, nextReport, others)
        case .left: nil
        }
    }

    /// From now on it says hello by the name that a group gave it: after a restart of the leader
    /// each room keeps its own, whoever comes first.
    mutating func take(_ name: RoomID?) -> [RoomEffect] {
        guard let name, name != configuration.room else { return [] }
        configuration.room = name
        return [.renamed(name)]
    }

    /// Whether it looks for who goes on without its leader.
    package var isSearching: Bool { bereft != nil }

    /// Whether its node was told to lead, and nobody else leads yet.
    package var isSucceeding: Bool { if case .succeeding? = bereft { true } else { false } }

    /// Whether a leader has welcomed this room and is heard.
    package var isJoined: Bool {
        if case .joined = link { true } else { false }
    }
}

/// One preparation, as the room sees it.
struct RoomPreparation: Equatable, Sendable {
    enum Standing: Equatable, Sendable {
        case fetching
        case prerolling
        /// Prepared, but the group clock is not known yet.
        case clockless(latency: Nanoseconds)
        case ready
        /// The line asked for is the one that sounds here already: nothing to prepare.
        case running
    }

    let order: Preparation
    var standing: Standing

    /// Whether the shell holds a voice for it.
    var hasVoice: Bool {
        switch standing {
        case .fetching, .running: false
        case .prerolling, .clockless, .ready: true
        }
    }
}

/// A line that sounds here, or is armed to follow.
struct RoomLine: Equatable, Sendable {
    /// What the leader calls it; changes when the room joins again.
    var id: UInt64
    /// What the shell calls it: the preparation it was made for.
    let voice: UInt64
    let hash: ContentHash
    let change: RateChange
    /// When it is over.
    let end: GroupInstant?
    /// Whether the present leader has committed it, or the one before, of which the present one may
    /// not know it: then it goes on as long as it is of the session.
    var isAdopted = true
}

// MARK: Constants

extension RoomMachine {
    static let shortestBackOff = Nanoseconds.milliseconds(200)
    /// A leader that comes back is found within two seconds; more often would be noise on the
    /// network for as long as it is away.
    static let longestBackOff = Nanoseconds.seconds(2)
    /// Until a leader answers, or an attempt to reach it is given up.
    package static let answerLimit = Nanoseconds.seconds(3)
    /// The leader gives a sign of life every second.
    static let leaderSilence = Nanoseconds.seconds(5)
    /// As often as the leader keeps points of the history.
    static let reportInterval = Nanoseconds.seconds(1)
    static let shortestReportInterval = Nanoseconds.milliseconds(100)
    /// The first comes before a start is planned: it says how long messages take.
    static let firstReport = Nanoseconds.milliseconds(500)
    /// A leader holds three offers to a room, and a chain of short items; the rest is room for
    /// messages crossing.
    static let mostPreparations = 6 + LeaderMachine.mostChained
    static let mostLines = 4 + LeaderMachine.mostChained
    static let mostFetching = 8
}

// MARK: What the room says of itself

extension RoomMachine {
    private mutating func take(_ report: RoomReport) -> [RoomEffect] {
        self.report = report
        return []
    }

    /// The leader shows what this room does: it hears soon of what changed. Not before there is a
    /// clock: on the air each word on the path holds up the packets that measure it.
    private mutating func hastenReport(at now: LocalInstant) {
        guard isJoined, clock.isPlayable, let reported,
            activity != reported.activity || proof.finding.isAlarm != reported.line.isAlarm
        else { return }
        nextReport = min(nextReport, max(now, reported.at + Self.shortestReportInterval))
    }

    /// The shell's figures under the machine's own word for what the room does.
    var currentReport: RoomReport {
        var current = report
        current.activity = activity
        current.line = proof.finding
        if activity == .failed { current.detail = failure }
        return current
    }

    var activity: RoomActivity {
        if !configuration.hasOutput { return .noOutput }
        if report.isCardLost { return .cardLost }
        if !lines.isEmpty { return .playing }
        if preparations.contains(where: { $0.standing == .fetching }) { return .fetching }
        if preparations.contains(where: { $0.standing != .ready }) { return .prerolling }
        if isPaused { return .paused }
        if !preparations.isEmpty { return .ready }
        if !failure.isEmpty { return .failed }
        return isJoined && clock.isPlayable ? .idle : .joining
    }

    /// Whether neither a preparation nor a line needs the group clock.
    package var isIdle: Bool { lines.isEmpty && preparations.isEmpty }
}
