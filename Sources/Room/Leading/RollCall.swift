import TuttiTiming

/// Asks all leaders that are announced, side by side, and says which of those that answer is
/// followed.
///
/// With up to ``mostAtOnce`` addresses of which all but one are black holes, the one answers at
/// once and is followed after ``patience``; each ``mostAtOnce`` beyond take ``limit`` more.
struct RollCall {
    /// Questions that are out at the same time; each is a connection.
    static let mostAtOnce = 64
    /// How long a leader may take to answer.
    static let limit = Nanoseconds.seconds(2)
    /// How long a better leader than the one that answered may still answer.
    static let patience = Nanoseconds.milliseconds(250)
    /// How long the one that was followed last may take to be announced, after another answered.
    static let patienceForKnown = Nanoseconds.seconds(1)
    /// Between the addresses of one leader, the most likely first: one that works is not beaten by
    /// one that works as well.
    static let stagger = Nanoseconds.milliseconds(100)

    /// One question.
    struct Trial: Hashable, Sendable {
        var label: String
        var name: String
        var address: HostPort
        var delay: Nanoseconds
    }

    private var running: Set<Trial> = []
    private var silent: Set<Trial> = []
    private var answers: [String: HostPort] = [:]
    private var firstAnswer: LocalInstant?

    /// Questions to ask now.
    mutating func start(_ list: LeaderList) -> [Trial] {
        var trials: [Trial] = []
        for label in list.inOrderOfAsking {
            guard answers[label] == nil, let room = list.entries[label]?.room else { continue }
            for (place, address) in room.addresses.enumerated() {
                guard running.count < Self.mostAtOnce else { return trials }
                let trial = Trial(
                    label: label, name: room.name, address: address,
                    delay: Self.stagger * Int64(place))
                guard !silent.contains(trial), running.insert(trial).inserted else { continue }
                trials.append(trial)
            }
        }
        return trials
    }

    mutating func answered(_ trial: Trial, at now: LocalInstant) {
        running.remove(trial)
        if answers[trial.label] == nil { answers[trial.label] = trial.address }
        firstAnswer = firstAnswer ?? now
    }

    /// - Returns: whether no address of that leader is left.
    mutating func wasSilent(_ trial: Trial) -> Bool {
        running.remove(trial)
        silent.insert(trial)
        return answers[trial.label] == nil && !running.contains { $0.label == trial.label }
    }

    /// Whom to follow; `nil` while it is not yet known.
    ///
    /// - Parameter isComplete: whether all that the LAN announced at first has been heard.
    func choice(
        in list: LeaderList, isComplete: Bool, at now: LocalInstant
    ) -> (label: String, address: HostPort)? {
        guard let firstAnswer else { return nil }
        let ranked = list.ranked
        guard let place = ranked.firstIndex(where: { answers[$0] != nil }),
            let address = answers[ranked[place]]
        else { return nil }
        let waited = now - firstAnswer
        if list.lacksPreferred, !isComplete, waited < Self.patienceForKnown { return nil }
        let better = Set(ranked[..<place])
        if running.contains(where: { better.contains($0.label) }), waited < Self.patience {
            return nil
        }
        return (ranked[place], address)
    }

    /// Nobody is left who might answer.
    var isOver: Bool { running.isEmpty && answers.isEmpty }
}
