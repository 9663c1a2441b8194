import Testing
import TuttiTiming
import TuttiTrust

@testable import TuttiRoom

@Suite struct IntroductionPaceTests {
    private static func instant(_ seconds: Double) -> LocalInstant {
        LocalInstant(nanoseconds: Int64(seconds * 1e9))
    }

    private static func key(_ number: Int) throws -> Fingerprint {
        try Fingerprint(
            bytes: (0..<32).map { UInt8(truncatingIfNeeded: $0 < 8 ? number >> ($0 * 8) : 0) })
    }

    @Test func `a key has a few, wherever it comes from`() throws {
        var pace = IntroductionPace(at: Self.instant(0))
        let key = try Self.key(1)
        let admitted = (0..<100).count {
            pace.admits(key, from: "10.0.0.\($0)", at: Self.instant(0))
        }
        #expect(admitted == IntroductionPace.burst)
        let later = (0..<100).count { _ in pace.admits(key, from: nil, at: Self.instant(1)) }
        #expect(later == IntroductionPace.perSecond)
    }

    @Test func `a machine has a few, with whatever keys`() throws {
        var pace = IntroductionPace(at: Self.instant(0))
        let admitted = try (0..<100).count {
            try pace.admits(Self.key($0), from: "fe80::\($0)", at: Self.instant(0))
        }
        #expect(admitted == IntroductionPace.burst)
        let isOwnAdmitted = try pace.admits(Self.key(101), from: nil, at: Self.instant(0))
        #expect(isOwnAdmitted)
    }

    @Test func `all together have a rate, and what is remembered is bounded`() throws {
        var pace = IntroductionPace(at: Self.instant(0))
        let admitted = try (0..<5_000).count {
            try pace.admits(
                Self.key($0), from: "10.0.\($0 / 250).\($0 % 250)", at: Self.instant(0))
        }
        #expect(admitted == IntroductionPace.burstOfAll)
        #expect(pace.count <= IntroductionPace.most)
    }
}
