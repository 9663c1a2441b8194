import Synchronization
import Testing
import TuttiLinuxHost
import TuttiTiming

@Suite(.timeLimit(.minutes(1))) struct RealTimeThreadTests {
    @Test func `the clock moves forward and sleeping is never early`() {
        var last = HostClock.now()
        for _ in 0..<10_000 {
            let now = HostClock.now()
            #expect(now >= last)
            last = now
        }
        for milliseconds: Int64 in [-5, 0, 1, 7] {
            let wake = HostClock.now() + .milliseconds(milliseconds)
            HostClock.sleep(until: wake)
            #expect(HostClock.now() >= wake)
        }
    }

    @Test func `awake, the suspended time stands still`() {
        let before = HostClock.suspendedTime()
        HostClock.sleep(until: HostClock.now() + .milliseconds(20))
        let grown = HostClock.suspendedTime() - before
        #expect(grown.magnitude < HostClock.suspendThreshold)
    }

    @Test(arguments: [0, 1, 99])
    func `a body runs once, and join waits for it`(priority: Int) throws {
        final class Box: Sendable { let runs = Mutex(0) }
        let box = Box()
        let thread = try RealTimeThread.start(name: "a-name-longer-than-15", priority: priority) {
            HostClock.sleep(until: HostClock.now() + .milliseconds(5))
            box.runs.withLock { $0 += 1 }
        }
        thread.join()
        thread.join()
        let runs = box.runs.withLock(\.self)
        #expect(runs == 1)
        switch thread.scheduling {
        case .ordinary: #expect(priority == 0)
        case .realTime(let given): #expect(given >= 1 && given <= priority)
        case .denied(let reason): #expect(priority > 0 && reason.contains("\(priority)"))
        }
    }
}
