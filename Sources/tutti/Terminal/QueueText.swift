import TuttiGroupControl

/// What a command did to the queue, as a line for a person.
enum QueueText {
    /// - Parameters:
    ///   - before: the queue as it was, and as it is now; their items do not count.
    static func cleared(from before: QueueListing, to now: QueueListing) -> String {
        let count = max(0, before.count - now.count)
        if before.count == 0 { return "the queue was empty already" }
        if now.count == 0 { return "removed \(items(count)): the queue is empty" }
        let rest = now.count == 1 ? "what plays stays" : "what plays, and begins soon, stays"
        return count == 0 ? "removed nothing: \(rest)" : "removed \(items(count)): \(rest)"
    }

    /// - Parameter before: the queue as it was.
    static func shuffled(_ before: QueueListing) -> String {
        let first = before.phase == .ended ? 0 : before.current.map { $0 + 1 } ?? 0
        switch before.count {
        case 0: return "the queue is empty: there is nothing to shuffle"
        case ...(first + 1): return "there is nothing to shuffle: fewer than two items come next"
        default: return "shuffled what comes next"
        }
    }

    /// A line for each that was to be added since then and is not in the queue, as far as they are
    /// kept.
    static func leftOut(from before: QueueListing, to now: QueueListing) -> [String] {
        // Each leader counts anew.
        let known = before.leftOutCount <= now.leftOutCount ? before.leftOutCount : 0
        let count = Int(clamping: now.leftOutCount - known)
        let lines = now.leftOut.suffix(count).map { "tutti: skipped \($0)" }
        let older = count - lines.count
        return (older > 0 ? ["tutti: skipped \(older) more"] : []) + lines
    }

    /// - Parameters:
    ///   - before: the queue as it was, and as it is now; their items do not count.
    static func added(from before: QueueListing, to now: QueueListing) -> String {
        let count = max(0, now.count - before.count)
        let more = now.coming > 0 ? ", and is still looking" : ""
        return count == 0 && now.coming > 0
            ? "is looking for what is to be added"
            : "added \(items(count))\(more): the queue has \(now.count)"
    }

    static func removed(_ items: [QueueListing.Item]) -> String {
        items.count == 1 ? "removed \"\(items[0].title)\"" : "removed \(Self.items(items.count))"
    }

    static func moved(_ item: QueueListing.Item, in queue: QueueListing) -> String {
        let place = queue.items.firstIndex { $0.id == item.id }
        return "\"\(item.title)\" is at \(place.map { "\($0 + 1)" } ?? "no place any more")"
    }

    static func repeats(_ mode: RepeatMode) -> String {
        switch mode {
        case .off: "repeats nothing"
        case .one: "repeats the item that plays"
        case .all: "repeats the queue"
        }
    }

    private static func items(_ count: Int) -> String { count == 1 ? "1 item" : "\(count) items" }
}
