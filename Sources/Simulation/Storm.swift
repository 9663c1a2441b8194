import TuttiChance
import TuttiGroupControl

/// Hardships of chance until a moment, then calm: what a house does in the storm, and how it is
/// afterwards, is what it is judged by.
struct Storm: Sendable {
    /// Seconds of the run.
    var begins = 8.0
    var ends = 50.0
    /// From here on all is to be as if nothing had been.
    var rests = 80.0
    /// Of datagrams, while it storms: changed on the way, sent once more by somebody who listens, and
    /// made up by somebody who has no key.
    var corruption = 0.02
    var replay = 0.02
    var forgery = 0.02

    /// Of a hardship, seconds.
    private static let lengths = (shortest: 0.2, longest: 10.0)
    /// Between the end of the storm and the last command.
    private static let breath = 3.0

    /// What happens in a world of that seed. Leaders die, and come back as rooms; the last room is let
    /// alone, and hears how the others fare.
    func script(rooms: Int, seed: UInt64) -> [ScriptLine] {
        var draw = SplitMix64(seed: seed, "storm")
        var lines: [ScriptLine] = []
        var time = begins
        while true {
            time += draw.uniform(0.2, 8)
            let seconds = draw.uniform(Self.lengths.shortest, Self.lengths.longest)
            guard time + seconds < ends else { break }
            let room = Int(draw.next() % UInt64(rooms - 1))
            if draw.chance(0.2) {
                lines.append(.at(time, .kill(room: room)))
                lines.append(.at(time + seconds, .start(room: room)))
            } else {
                lines.append(
                    .at(time, .hardship(hardship(&draw), room: room, seconds: seconds)))
            }
        }
        time = begins
        while true {
            time += draw.uniform(1, 9)
            guard time < ends else { break }
            lines.append(.at(time, command(&draw)))
        }
        lines.append(.at(ends + Self.breath, .play))
        return lines
    }

    private func hardship(_ draw: inout SplitMix64) -> Hardship {
        switch draw.next() % 4 {
        case 0: .freeze
        case 1: .sleep
        case 2: .slowness(times: draw.uniform(20, 200))
        default: .fullDisk
        }
    }

    private func command(_ draw: inout SplitMix64) -> GroupCommand {
        switch draw.next() % 4 {
        case 0: .pause
        case 1: .seek(seconds: draw.uniform(0, 120).rounded())
        case 2: .next
        default: .play
        }
    }
}
