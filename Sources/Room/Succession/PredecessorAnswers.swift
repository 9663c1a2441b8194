import TuttiGroupControl

/// What a leader that has handed over answers when it is asked whether it is still there: it has
/// the files that it put into the queue, and other ways to them are looked for only once it has
/// ended.
struct PredecessorAnswers {
    /// One that is asked in vain so often, one after the other, has ended.
    static let mostSilences = 5

    private var silences = 0

    var haveEnded: Bool { silences >= Self.mostSilences }

    mutating func take(_ answer: SightAnswer) {
        switch answer {
        case .sight: silences = 0
        // A machine that is busy, or whose process stands still, takes connections.
        case .stalled: break
        case .refused, .silent: silences += 1
        }
    }
}
