import Testing
import TuttiTiming

@testable import TuttiRoom

@Suite struct HandshakePaceTests {
    private static func instant(_ seconds: Double) -> LocalInstant {
        LocalInstant(nanoseconds: Int64(seconds * 1e9))
    }

    @Test func `one machine has a burst and a rate of its own`() {
        var pace = HandshakePace(at: Self.instant(0))
        let first = (0..<1_000).count { _ in pace.admits("10.0.0.1", at: Self.instant(0)) }
        #expect(first == HandshakePace.burstOfOneHost)
        // Others are not disturbed by what was refused.
        let isOtherAdmitted = pace.admits("10.0.0.2", at: Self.instant(0))
        #expect(isOtherAdmitted)
        let later = (0..<1_000).count { _ in pace.admits("10.0.0.1", at: Self.instant(1)) }
        #expect(later == HandshakePace.perSecondOfOneHost)
    }

    @Test func `many machines together have one too, and this one always may`() {
        var pace = HandshakePace(at: Self.instant(0))
        let admitted = (0..<10_000).count {
            pace.admits("10.0.\($0 / 250).\($0 % 250)", at: Self.instant(0))
        }
        #expect(admitted == HandshakePace.burst)
        #expect(pace.hostCount <= HandshakePace.mostHosts)
        let isOwnAdmitted = pace.admits(nil, at: Self.instant(0))
        #expect(isOwnAdmitted)
    }

    /// On one network all IPv6 addresses may begin with the same 64 bits.
    @Test func `neighbours cannot use up the share of an address that a member came from`() {
        var pace = HandshakePace(at: Self.instant(0))
        pace.know("2001:db8::7", at: Self.instant(0))
        for count in 0..<1_000 {
            _ = pace.admits("2001:db8::a:\(count)", at: Self.instant(0))
            _ = pace.admits("10.0.\(count / 250).\(count % 250)", at: Self.instant(0))
        }
        let isNeighbourAdmitted = pace.admits("2001:db8::8", at: Self.instant(0))
        #expect(!isNeighbourAdmitted)
        let admitted = (0..<1_000).count { _ in pace.admits("2001:db8::7", at: Self.instant(0)) }
        #expect(admitted == HandshakePace.burstOfOneHost)
        for count in 0..<1_000 { pace.know("2001:db8::b:\(count)", at: Self.instant(1)) }
        #expect(pace.knownCount == HandshakePace.mostKnown)
        #expect(!pace.knows("2001:db8::7") && pace.knows("2001:db8::b:999"))
    }

    /// For as long as it goes on, however the tries are spread.
    @Test(arguments: [1, 7, 40, 300])
    func `a flood gets no more than its rate`(triesPerSecond: Int) {
        var pace = HandshakePace(at: Self.instant(0))
        let seconds = 60
        let admitted = (0..<triesPerSecond * seconds).count {
            pace.admits("10.0.0.1", at: Self.instant(Double($0) / Double(triesPerSecond)))
        }
        #expect(
            admitted <= HandshakePace.burstOfOneHost + HandshakePace.perSecondOfOneHost * seconds)
        #expect(admitted >= min(triesPerSecond, HandshakePace.perSecondOfOneHost) * seconds - 1)
    }

    @Test(arguments: [
        ("192.168.1.7", "192.168.1.7"), ("::ffff:10.0.0.1", "::ffff:10.0.0.1"),
        ("fe80::1:2:3:4%eth0", "fe80:0:0:0"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2"),
        ("2001:db8::1", "2001:db8:0:0"), ("::", "0:0:0:0"), ("::1", "0:0:0:0"), (":", ""),
    ])
    func `addresses of one network card are one machine`(address: String, host: String) {
        #expect(HandshakePace.host(address) == host)
    }

    @Test func `a link that says more about the household than anybody needs ends`() {
        var pace = HouseholdPace(at: Self.instant(0))
        let said = (0..<1_000).count { _ in pace.take(at: Self.instant(0)) }
        #expect(said == HouseholdPace.burst)
        let later = (0..<1_000).count { _ in pace.take(at: Self.instant(1)) }
        #expect(later == HouseholdPace.perSecond)
    }

    @Test func `a clock that stands or goes back gives nothing`() {
        var bucket = TokenBucket(burst: 2, perSecond: 1, at: Self.instant(10))
        let taken = [10, 5, 0, 10, 11].map { bucket.take(at: Self.instant($0)) }
        #expect(taken == [true, true, false, false, true])
    }
}
