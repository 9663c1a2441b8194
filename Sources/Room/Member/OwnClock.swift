import TuttiClockSync
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayout
import TuttiTiming

/// The clock of the leader's own room: the group clock itself.
final class OwnClock: Member.ClockSource {
    let cell: ClockCell
    let changes: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init(_ clock: LeaderClock) {
        (changes, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        cell = clock.cell
    }

    func follow(_ welcome: Welcome, _ tags: SharedRoomTags?) { continuation.yield() }
    func burst() {}
    func expectStart(_ start: ExpectedStart) {}
    func setIdle(_ isIdle: Bool) {}
    func remember() {}
    var figures: ClockFigures {
        ClockFigures(roundTrip: .zero, stamps: .own, quality: .locked)
    }
    func stop() { continuation.finish() }
}
