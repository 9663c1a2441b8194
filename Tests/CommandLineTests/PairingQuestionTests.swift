import Testing

@testable import TuttiRoom
@testable import tutti

@Suite struct PairingQuestionTests {
    private let attic = PairingCandidate(digits: "482913", name: "attic")
    private let stranger = PairingCandidate(digits: "000111", name: "attic")

    private func asking(_ candidates: PairingCandidate...) -> PairingQuestion {
        var question = PairingQuestion()
        for count in 1...candidates.count {
            _ = question.change(to: Array(candidates.prefix(count)))
        }
        return question
    }

    @Test func `y is for the one whose digits are shown`() {
        var question = PairingQuestion()
        #expect(question.answer("y\n") == nil)
        let lines = question.change(to: [attic])
        #expect(lines.count == 1 && lines[0].contains("482913"))
        #expect(question.answer("\n") == nil)
        #expect(question.answer(" Yes\n") == .accept(digits: "482913"))
        // It is being let in; the same answer once more is for nobody.
        #expect(question.answer("y\n") == nil)
        #expect(question.change(to: []) == [])
    }

    @Test func `who is turned away at the door throws away nothing that is being typed`() {
        var question = asking(attic)
        #expect(!question.isNews([attic]))
        #expect(question.isNews([stranger, attic]) && question.isNews([]))
        _ = question.change(to: [])
        #expect(!question.isNews([]))
    }

    @Test func `n sends away the one whose digits are shown`() {
        var question = asking(attic)
        #expect(question.answer("n\n") == .decline(digits: "482913"))
    }

    @Test func `y that was meant for another lets in nobody, and it is asked again`() {
        var question = asking(attic)
        let lines = question.change(to: [stranger])
        #expect(lines.count == 2)
        #expect(lines[0].contains("482913") && lines[1].contains("000111"))
        guard case .say(let again)? = question.answer("y\n") else {
            Issue.record("the one that came in its place was let in")
            return
        }
        #expect(again.contains("000111"))
        #expect(question.answer("y\n") == .accept(digits: "000111"))
    }

    @Test func `y for one that went is not for the next that comes`() {
        var question = asking(attic)
        #expect(question.change(to: []).count == 1)
        #expect(question.answer("y\n") == nil)
        _ = question.change(to: [stranger])
        guard case .say? = question.answer("y\n") else {
            Issue.record("the next one was let in")
            return
        }
    }

    @Test func `one that goes away and leaves another: y is asked for again`() {
        var question = asking(attic, stranger)
        let lines = question.change(to: [attic])
        #expect(lines.last?.contains("482913") == true)
        guard case .say? = question.answer("y\n") else {
            Issue.record("a y that may be for either was taken")
            return
        }
        #expect(question.answer("y\n") == .accept(digits: "482913"))
    }

    @Test func `an answer that is none is answered with what would be one`() {
        var question = asking(attic)
        guard case .say(let help)? = question.answer("maybe\n") else {
            Issue.record("\"maybe\" was taken for an answer")
            return
        }
        #expect(help.contains("Type y"))
        #expect(question.answer("y\n") == .accept(digits: "482913"))
    }

    @Test func `where several wait their digits decide`() {
        var question = asking(attic, stranger)
        guard case .say? = question.answer("y\n") else {
            Issue.record("one of two was let in")
            return
        }
        #expect(question.answer("482 913\n") == .accept(digits: "482913"))
        #expect(question.answer("123456\n") == .accept(digits: "123456"))
    }

    @Test func `after an answer the next question takes y at once`() {
        var question = asking(attic)
        #expect(question.answer("n") == .decline(digits: "482913"))
        _ = question.change(to: [])
        _ = question.change(to: [stranger])
        #expect(question.answer("y") == .accept(digits: "000111"))
    }
}
