import TuttiGroupControl

/// What a command did to the queue, as a line for a person.
enum QueueText {
    static let cleared = "removed everything but what plays"
    static let shuffled = "shuffled what comes next"

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
