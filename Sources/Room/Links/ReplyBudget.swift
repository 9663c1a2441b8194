import Synchronization
import TuttiGroupControl

/// What replies that nobody has read yet may hold, of all links together.
///
/// A link waits for its reply to be taken before the next question is read, so that each holds one;
/// but a status of a full house with its histories has a megabyte, and there may be hundreds of
/// links.
final class ReplyBudget: Sendable {
    /// Bytes.
    static let most = 1 << 25
    /// Whoever does not take its reply within this is disconnected.
    static let secondsToTake: Int64 = 5

    private let held = Atomic<Int>(0)

    /// - Returns: false when there is no room for so many more; the asker has to go.
    func take(_ count: Int) -> Bool {
        let isWithin = held.add(count, ordering: .relaxed).newValue <= Self.most
        if !isWithin { give(count) }
        return isWithin
    }

    func give(_ count: Int) { held.subtract(count, ordering: .relaxed) }
}

extension ControlReply {
    /// About how many bytes this has on the wire.
    var roughSize: Int {
        switch self {
        case .done(let effect): 1_024 + effect.rooms.count * 80
        case .wanted(let ids): 64 + ids.count * 10
        case .refused: 1_024
        case .status(let status): status.roughSize
        case .event(let event): event.status.roughSize
        case .queue(let listing): 256 + listing.items.count * 320
        case .datagramKey: 128
        case .lead: 512
        }
    }
}

extension GroupStatus {
    fileprivate var roughSize: Int {
        rooms.reduce(1_024) { $0 + 1_024 + ($1.sync?.history.ages.count ?? 0) * 12 }
    }
}

extension LeaderToRoom {
    /// About how many bytes this has on the wire.
    var roughSize: Int {
        switch self {
        case .state(let state): 256 + state.queue.count * 320
        case .queue(let change): 256 + change.items.count * 320
        case .lead(let handover): handover.roughSize
        case .succession(let next): next.handover.roughSize + next.heirs.count * 320
        case .welcome, .refused, .prepare, .commit, .withdraw, .settings, .progress,
            .latencyOffset, .stop, .alive, .goodbye, .follow,
            .datagramKey, .separate:
            512
        }
    }
}

extension Handover {
    fileprivate var roughSize: Int { 512 + settings.count * 320 + items.count * 320 }
}
