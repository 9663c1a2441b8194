import Testing

@testable import TuttiGroupControl

@Suite struct SuggestionTests {
    @Test(arguments: [
        ("", "abc", 3), ("abc", "abc", 0), ("abc", "acb", 1), ("abc", "abd", 1), ("abc", "ab", 1),
        ("ca", "abc", 3), ("kitten", "sitting", 3), ("paly", "play", 1),
    ])
    func `the distance is the number of slips`(a: String, b: String, count: Int) {
        #expect(Suggestion.distance(Array(a), Array(b)) == count)
        #expect(Suggestion.distance(Array(b), Array(a)) == count)
    }

    @Test func `a slip finds the word, and something else finds none`() {
        let words = ["kitchen", "bedroom", "living room"]
        #expect(Suggestion.nearest(to: "kichten", among: words) == "kitchen")
        #expect(Suggestion.nearest(to: "BEDROM", among: words) == "bedroom")
        #expect(Suggestion.nearest(to: "living", among: words) == "living room")
        #expect(Suggestion.nearest(to: "garage", among: words) == nil)
        #expect(Suggestion.nearest(to: "", among: words) == nil)
        #expect(Suggestion.nearest(to: "x", among: []) == nil)
        // Nobody waits for a name that is as long as a book.
        #expect(Suggestion.nearest(to: String(repeating: "k", count: 100_000), among: words) == nil)
    }
}
