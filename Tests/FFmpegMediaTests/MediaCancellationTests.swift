import Dispatch
import Foundation
import Synchronization
import Testing
import TuttiPlayout

@testable import TuttiFFmpegMedia

@Suite(.timeLimit(.minutes(5))) struct MediaCancellationTests {
    @Test func `whoever asked is told, of the whole as of the part, and who left is not`() {
        let whole = MediaCancellation()
        let part = MediaCancellation(within: whole)
        let calls = Mutex<[String]>([])
        func notice(_ cancellation: MediaCancellation, _ name: String) -> MediaCancellation.Notice {
            cancellation.whenCancelled { calls.withLock { $0.append(name) } }
        }
        let kept = (notice(whole, "whole"), notice(part, "part"))
        do { _ = notice(whole, "gone") }
        part.cancel()
        #expect(calls.withLock { $0 } == ["part"])
        whole.cancel()
        #expect(calls.withLock { Set($0) } == ["whole", "part"])
        let late = notice(part, "late")
        #expect(calls.withLock { $0.last } == "late", "at once")
        withExtendedLifetime((kept, late)) {}
    }

    @Test func `a wait ends with the cancellation`() {
        let cancellation = MediaCancellation()
        let isDone = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            cancellation.wait(.seconds(3_600))
            isDone.signal()
        }
        #expect(isDone.wait(timeout: .now() + 0.1) == .timedOut)
        cancellation.cancel()
        #expect(isDone.wait(timeout: .now() + 30) == .success)
    }
}
