import TuttiRoom

/// What is asked at a leader's terminal about machines that want to join, and what an answer means.
///
/// Anybody on the network can knock, and go again, at any moment. So a "y" is for the machine whose
/// digits were on the screen when it was written, and for no other: not for one that has come in its
/// place, and not for the next. Digits that are typed say themselves whom they mean.
struct PairingQuestion {
    /// What an answer amounts to.
    enum Decision: Equatable {
        case accept(digits: String)
        case decline(digits: String)
        /// Nothing is decided; this is said instead.
        case say(String)
    }

    private var waiting: [PairingCandidate] = []
    /// Whom the question on the screen is about; `nil`: there is none, or it was answered.
    private var asked: PairingCandidate?
    /// It took the place of one that nobody had answered: who answers may mean that one still.
    private var isReplacement = false

    /// Whether others wait than before. Who is turned away at the door, and comes again every two
    /// seconds, is no news: what is half typed then is for those who wait still.
    func isNews(_ candidates: [PairingCandidate]) -> Bool { candidates != waiting }

    /// Others wait than before. What was written until now, and not read, is to be thrown away before
    /// the lines are shown: it answers nothing of them.
    ///
    /// - Returns: what to show.
    mutating func change(to candidates: [PairingCandidate]) -> [String] {
        var lines: [String] = []
        let before = waiting
        waiting = candidates
        let gone = before.filter { !candidates.contains($0) }
        if let asked, gone.contains(asked) {
            lines.append("\"\(asked.name)\" (\(asked.digits)) waits no longer.")
            isReplacement = true
            self.asked = nil
        }
        for candidate in candidates where !before.contains(candidate) { ask(candidate, &lines) }
        // The only one that is left, and the last question was about another.
        if candidates.count == 1, before.count > 1, asked != candidates[0] {
            ask(candidates[0], &lines)
        }
        return lines
    }

    private mutating func ask(_ candidate: PairingCandidate, _ lines: inout [String]) {
        if asked != nil { isReplacement = true }
        asked = candidate
        lines.append(
            "\"\(candidate.name)\" shows \(candidate.digits)? Type y and Enter to let it in, n to send it away."
        )
    }

    /// Somebody has written a line.
    ///
    /// - Returns: `nil` for one without a word, or where nobody waits.
    mutating func answer(_ line: String) -> Decision? {
        let word = line.lowercased().filter { !$0.isWhitespace }
        guard !word.isEmpty, !waiting.isEmpty else { return nil }
        guard ["y", "yes", "n", "no"].contains(word) else {
            guard word.contains(where: \.isNumber) else {
                return .say("Type y to let it in, n to send it away, or the digits it shows.")
            }
            settle(waiting.first { $0.digits == word })
            return .accept(digits: word)
        }
        guard waiting.count == 1 else {
            return .say(
                "\(waiting.count) machines wait: type the digits of the one that is meant")
        }
        // Answered already, and not gone yet.
        guard let asked, asked == waiting[0] else { return nil }
        guard !isReplacement else {
            isReplacement = false
            return .say(
                "This is about another machine than before: does \"\(asked.name)\" show \(asked.digits)? Type y once more if it does."
            )
        }
        settle(asked)
        return word.hasPrefix("y")
            ? .accept(digits: asked.digits) : .decline(digits: asked.digits)
    }

    private mutating func settle(_ candidate: PairingCandidate?) {
        guard let candidate, asked == candidate else { return }
        asked = nil
        isReplacement = false
    }
}
