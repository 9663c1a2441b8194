import Testing

@testable import tutti

@Suite struct CompletionsTests {
    /// Shells offer what begins with the letters that were typed.
    @Test func `names go on from what was typed, in either case`() {
        let names = ["Kitchen", "kids", "Bath"]
        #expect(Completions.continuing("", names) == names)
        #expect(Completions.continuing("ki", names) == ["kitchen", "kids"])
        #expect(Completions.continuing("KIT", names) == ["KITchen"])
        // In quotes, of which the shell knows.
        #expect(Completions.continuing("\"Ki", names) == names)
    }

    @Test func `the leader that was written is asked`() {
        #expect(
            Completions.value(of: "--leader", in: ["volume", "--leader", "a:1", "k"]) == "a:1")
        #expect(Completions.value(of: "--leader", in: ["volume", "--leader=a:1"]) == "a:1")
        #expect(Completions.value(of: "--leader", in: ["volume", "--leader"]) == nil)
    }
}
