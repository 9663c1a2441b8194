import TuttiTiming

// Rooms that are asked and do not answer. One delays one start, and none after it until it answers:
// the others play, and the status says who is missing.

extension LeaderMachine {
    /// Whether a common start waits for this room's answer.
    func isWaitedFor(_ member: LeaderMember) -> Bool {
        member.takesPart && member.pending?.standing == .sent
            && member.pending?.isAwaited == true && !missing.contains(member.hello.room)
    }

    /// How long a room may owe its first answer: as long as the start that is prepared waits at
    /// most. Seeks that follow one another do not add up.
    private var answerLimit: Nanoseconds {
        pending?.required == nil
            ? configuration.preparationLimit : configuration.firstStartLimit
    }

    /// When somebody who is waited for has had its time.
    var missingDeadline: GroupInstant? {
        guard pending?.starts == true else { return nil }
        return members.filter(isWaitedFor).compactMap { $0.askedAt.map { $0 + answerLimit } }.min()
    }

    mutating func noteMissing(at now: GroupInstant) {
        for place in members.indices where members[place].askedAt == nil && members[place].isAsked {
            members[place].askedAt = now
        }
        guard pending?.starts == true else { return }
        for place in members.indices where isWaitedFor(members[place]) {
            guard let asked = members[place].askedAt, now >= asked + answerLimit else { continue }
            giveUpWaiting(for: place)
        }
    }

    /// It is not waited for again until it answers.
    mutating func giveUpWaiting(for place: Int) {
        let member = members[place]
        if missing.count >= Self.mostSettings {
            missing = missing.intersection(members.map(\.hello.room))
        }
        guard missing.insert(member.hello.room).inserted else { return }
        tell(.missing, of: member)
    }

    /// For people; empty when everybody answers.
    var missingWords: String {
        let names = members.filter { $0.takesPart && missing.contains($0.hello.room) }
            .map { "\($0.hello.room)" }.sorted()
        guard let first = names.first else { return "" }
        return names.count == 1
            ? "\(first) does not answer; the others do not wait for it"
            : "\(names.count) rooms do not answer (\(first), …); the others do not wait for them"
    }

    /// Who those that are ready wait for, for people; empty where they wait for nobody.
    var waitingWords: String {
        guard pending?.starts == true,
            members.contains(where: { $0.takesPart && $0.pending?.standing == .ready })
        else { return "" }
        let names = members.filter(isWaitedFor).map { "\($0.hello.room)" }.sorted()
        guard !names.isEmpty else { return "" }
        let shown = names.prefix(Self.mostNames).joined(separator: ", ")
        let more = names.count - Self.mostNames
        return "waits for \(shown)" + (more > 0 ? " and \(more) more" : "")
    }

    /// Names in one sentence.
    static let mostNames = 5

    /// A room that says it cannot do what it was not asked for has answered nothing.
    mutating func noteAnswer(_ id: UInt64, from place: Int) {
        guard members[place].noteAnswered(id) else { return }
        members[place].askedAt = nil
        missing.remove(members[place].hello.room)
    }
}
