import Logging
import TuttiLinuxHost
import TuttiTiming

/// When a room that joins what already sounds had what it needs: says what it waited for.
struct JoinProgress {
    enum Step: String {
        case welcome = "msToWelcome"
        case clock = "msToClock"
        case item = "msToItem"
        case sound = "msSinceFound"
    }

    private let foundAt: LocalInstant
    private var steps: [(step: Step, at: LocalInstant)] = []

    /// - Parameter foundAt: when the leader was found.
    init(foundAt: LocalInstant) { self.foundAt = foundAt }

    /// Counts the first time; nothing does before the leader has welcomed the room.
    mutating func reach(_ step: Step, at instant: LocalInstant = HostClock.now()) {
        guard step == .welcome || !steps.isEmpty, !steps.contains(where: { $0.step == step })
        else { return }
        steps.append((step, instant))
    }

    /// Of each step that was reached, ms since the leader was found.
    var metadata: Logger.Metadata {
        var metadata: Logger.Metadata = [:]
        for (step, instant) in steps {
            metadata[step.rawValue] = "\((instant - foundAt).count / 1_000_000)"
        }
        return metadata
    }
}
