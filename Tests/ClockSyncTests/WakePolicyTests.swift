import Testing
import TuttiTiming

@testable import TuttiClockSync

@Suite struct WakePolicyTests {
    private let start = LocalInstant(nanoseconds: 5_000)
    private var quiet: LocalInstant { start + WakePolicy.hurryMemory + .milliseconds(1) }

    private func request(pause: Nanoseconds, isPrompt: Bool = false) -> TimeRequest {
        TimeRequest(
            sequence: 1, t1: start, stamps: .kernel, pause: pause, isPrompt: isPrompt)
    }

    @Test func `requests on the air may lie until the next answer, and not for long`() {
        var patience = WakePolicy(start: start)
        patience.take(request(pause: .milliseconds(25)), isKernelStamp: true, at: quiet)
        #expect(patience.mayLie(until: quiet + .milliseconds(12), at: quiet))
        #expect(!patience.mayLie(until: quiet + .milliseconds(50), at: quiet))
        #expect(!patience.mayLie(until: nil, at: quiet), "nothing would wake the thread")
    }

    @Test func `nothing lies while it is unknown who asks`() {
        let patience = WakePolicy(start: start)
        #expect(!patience.mayLie(until: start + .milliseconds(5), at: start))
    }

    /// Wires, in a train and at its end; a room that does not say; a kernel that does not stamp.
    @Test(arguments: [(1, false, true), (640, true, true), (0, false, true), (25, false, false)])
    func `nothing lies for two seconds after a request in a hurry`(
        milliseconds: Int64, isPrompt: Bool, isKernelStamp: Bool
    ) {
        var patience = WakePolicy(start: start)
        patience.take(
            request(pause: .milliseconds(milliseconds), isPrompt: isPrompt),
            isKernelStamp: isKernelStamp, at: quiet)
        #expect(!patience.mayLie(until: quiet + .milliseconds(5), at: quiet))
        let later = quiet + WakePolicy.hurryMemory + .milliseconds(1)
        #expect(patience.mayLie(until: later + .milliseconds(5), at: later))
    }
}
