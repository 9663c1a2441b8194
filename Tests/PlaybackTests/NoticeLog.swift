import Synchronization
import TuttiPlayback
import TuttiTiming

/// What a player says while it is used, as text and in order. Unlike ``Notices`` it takes nothing away
/// from the player to know that it has heard all; what is on its way is there after a step or two.
final class NoticeLog: Sendable {
    private let texts = Mutex<[String]>([])
    private let task = Mutex<Task<Void, Never>?>(nil)

    /// - Parameter items: which number an item has, for notices about one.
    init(_ player: Player, items: [PlayerItem] = []) {
        let notices = player.notices()
        let reading = Task { [weak self] in
            for await notice in notices {
                guard let text = Self.text(notice, items) else { continue }
                self?.texts.withLock { $0.append(text) }
            }
        }
        task.withLock { $0 = reading }
    }

    deinit { task.withLock { $0 }?.cancel() }

    var all: [String] { texts.withLock { $0 } }
    func count(_ text: String) -> Int { all.count { $0.hasPrefix(text) } }
    func forget() { texts.withLock { $0 = [] } }

    private static func text(_ notice: PlayerNotice, _ items: [PlayerItem]) -> String? {
        func number(_ item: PlayerItem?) -> String {
            item.map { item in items.firstIndex { $0 === item }.map(String.init) ?? "?" } ?? "none"
        }
        switch notice {
        case .itemStatusDidChange(let status): return "status \(status.map { "\($0)" } ?? "none")"
        case .rateDidChange(let rate, let reason): return "rate \(rate) \(reason)"
        case .timeJumped: return "jumped"
        case .didPlayToEnd(let item): return "end \(number(item))"
        case .currentItemDidChange(let item): return "item \(number(item))"
        case .failedToPlayToEnd(let error): return "failed \(error.code)"
        case .textFailed(let error): return "text \(error.code)"
        case .playbackStalled: return "stalled"
        case .outputDidChange(let isAvailable): return "card \(isAvailable)"
        }
    }
}
