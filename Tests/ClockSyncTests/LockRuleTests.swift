import Testing
import TuttiTiming

@testable import TuttiClockSync

/// When a line is good enough to be played by.
@Suite struct LockRuleTests {
    private static let start = LocalInstant(nanoseconds: 1_000_000_000)
    private static let errors = [1e-6, 6e-6, 1e-5, 3e-5, 6e-5, 9.9e-5, 1.1e-4, 1e-3]

    /// Somebody waits from the line's beginning on.
    private func isSatisfied(
        _ use: ExpectedStart?, error: Double, after seconds: Double, isHeard: Bool = false
    ) -> Bool {
        var patience = LockRule()
        if let use { patience.expectUse(for: use, at: Self.start) }
        let knowledge = LockRule.Knowledge(error: error, skewDeviation: 0, roundTrip: 1e-3)
        return patience.isSatisfied(
            with: knowledge, since: Self.start, at: Self.start + Nanoseconds(seconds: seconds),
            isHeard: isHeard)
    }

    @Test(arguments: [nil, .common, .joining] as [ExpectedStart?])
    func `no line is played by before it is 0_3 s old, and a very good one from then on`(
        use: ExpectedStart?
    ) {
        #expect(!isSatisfied(use, error: 0, after: 0.299))
        #expect(isSatisfied(use, error: LockRule.goodError / 3, after: 0.3))
    }

    @Test func `a good line does for who joins, a common start waits for the dense requests`() {
        let dense = RequestSchedule.denseSpan.seconds
        let good = LockRule.goodError
        #expect(isSatisfied(.joining, error: good, after: 0.3))
        for use in [nil, .common] as [ExpectedStart?] {
            #expect(!isSatisfied(use, error: good, after: 0.3))
            #expect(!isSatisfied(use, error: good / 2, after: dense - 0.001))
            #expect(isSatisfied(use, error: good, after: dense))
        }
    }

    @Test func `a line that has been measured for longer is not waited for`() {
        var patience = LockRule()
        let wanted = Self.start + .seconds(2)
        patience.expectUse(for: .common, at: wanted)
        let isSatisfied = patience.isSatisfied(
            with: .init(error: LockRule.goodError, skewDeviation: 0, roundTrip: 1e-3),
            since: Self.start, at: wanted, isHeard: false)
        #expect(isSatisfied)
    }

    @Test(arguments: [.common, .joining] as [ExpectedStart])
    func `what was good enough stays so, and a better one is too`(use: ExpectedStart) {
        for (better, error) in zip(Self.errors, Self.errors.dropFirst()) {
            var wasSatisfied = false
            for tenths in 3...130 {
                let seconds = Double(tenths) / 10
                let isSatisfied = isSatisfied(use, error: error, after: seconds)
                #expect(isSatisfied || !wasSatisfied, "\(error) at \(seconds)")
                #expect(!isSatisfied || self.isSatisfied(use, error: better, after: seconds))
                wasSatisfied = isSatisfied
            }
            #expect(wasSatisfied, "nobody waits for longer than twelve seconds")
        }
    }

    @Test func `who joins is content sooner than a common start, but never out of step`() {
        for error in Self.errors {
            for tenths in 3...100
            where isSatisfied(.common, error: error, after: Double(tenths) / 10) {
                #expect(isSatisfied(.joining, error: error, after: Double(tenths) / 10))
            }
        }
        // 6 µs × (1 + 5) after 0.3 s, and 8 more for each second.
        #expect(isSatisfied(.joining, error: 35e-6, after: 0.3))
        #expect(!isSatisfied(.joining, error: 37e-6, after: 0.3))
        #expect(!isSatisfied(.common, error: 35e-6, after: 0.3))
        #expect(isSatisfied(.joining, error: 45e-6, after: 0.5))
        #expect(!isSatisfied(.joining, error: 46e-6, after: 0.5))
        #expect(isSatisfied(.joining, error: 99e-6, after: 3))
        #expect(!isSatisfied(.joining, error: 101e-6, after: 3))
    }

    @Test func `a rate that is not known counts for as long as what is queued`() {
        var patience = LockRule()
        patience.expectUse(for: .common, at: Self.start)
        func isSatisfied(skewDeviation: Double) -> Bool {
            patience.isSatisfied(
                with: .init(error: 1e-6, skewDeviation: skewDeviation, roundTrip: 1e-3),
                since: Self.start, at: Self.start + .milliseconds(300), isHeard: false)
        }
        #expect(isSatisfied(skewDeviation: 10e-6))
        #expect(!isSatisfied(skewDeviation: 20e-6))
    }

    @Test func `after a jump that was heard any line is better than none within seconds`() {
        #expect(!isSatisfied(.common, error: 1e-3, after: 5))
        #expect(isSatisfied(.common, error: 1e-4, after: 4.1, isHeard: true))
        #expect(isSatisfied(.common, error: 1e-3, after: 7.5, isHeard: true))
    }

    @Test func `while nobody waits the time counts up to eight seconds`() {
        // A line that has been measured for a minute, and is wanted now.
        func isSatisfied(error: Double, waited: Nanoseconds) -> Bool {
            var patience = LockRule()
            let wanted = Self.start + .seconds(60)
            patience.expectUse(for: .common, at: wanted)
            return patience.isSatisfied(
                with: .init(error: error, skewDeviation: 0, roundTrip: 1e-3), since: Self.start,
                at: wanted + waited, isHeard: false)
        }
        #expect(isSatisfied(error: 20e-6, waited: .zero))
        #expect(!isSatisfied(error: 40e-6, waited: .zero))
        #expect(isSatisfied(error: 1, waited: .seconds(4)))
    }
}
