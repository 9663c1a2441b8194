import Testing
import TuttiGroupControl

@testable import TuttiRoom

/// What a room has to begin: bounded by what it is about, never by dropping.
struct JobsTests {
    @Test func `of a thousand preparations that were not withdrawn each is begun`() async {
        var jobs = Jobs()
        let begun = Begun()
        for id in 0..<1_000 { jobs.add(.preparation(UInt64(id))) { await begun.add(id) } }
        for work in jobs.take() { await work() }
        #expect(await begun.numbers == Array(0..<1_000))
        #expect(jobs.count == 0)
    }

    @Test func `a burst of orders and withdrawals leaves what is still wanted`() async {
        var jobs = Jobs()
        let begun = Begun()
        for id in 0..<1_000 {
            jobs.add(.preparation(UInt64(id))) { await begun.add(id) }
            if id % 100 != 7 { jobs.remove(.preparation(UInt64(id))) }
            jobs.add(.link) { await begun.add(-id) }
        }
        #expect(jobs.count == 11)
        for work in jobs.take() { await work() }
        #expect(await begun.numbers == (0..<10).map { 100 * $0 + 7 } + [-999])
    }

    @Test func `the end of a player is another matter than its preparation`() {
        var jobs = Jobs()
        jobs.add(.silence(3)) {}
        jobs.add(.preparation(3)) {}
        jobs.remove(.preparation(3))
        #expect(jobs.count == 1)
    }

    private actor Begun {
        private(set) var numbers: [Int] = []
        func add(_ number: Int) { numbers.append(number) }
    }
}
