import TuttiGroupControl

/// A queue as lines of a terminal.
struct QueueView {
    let listing: QueueListing

    init(_ listing: QueueListing) { self.listing = listing }

    func lines(width: Int) -> [String] {
        guard !listing.items.isEmpty else {
            return [
                listing.coming > 0
                    ? "The queue is being read." : "The queue is empty: tutti add FILE"
            ]
        }
        var table = Table(columns: [
            Table.Column(title: "", rank: 2, least: 1),
            Table.Column(title: "", alignsRight: true, rank: 4, least: 1),
            Table.Column(title: "title", rank: 3, most: 100),
            Table.Column(title: "length", alignsRight: true, rank: 1),
        ])
        table.rows = listing.items.enumerated().map { offset, item in
            let position = listing.first + offset
            return [
                position == listing.current ? mark : "", "\(position + 1)", item.title.printable,
                length(item),
            ]
        }
        var lines = table.lines(width: width)
        for (offset, item) in listing.items.enumerated() {
            guard let reason = item.reason else { continue }
            let verdict = item.state == .unplayable ? "cannot be played" : "was left out"
            lines.append("\(listing.first + offset + 1) \(verdict): \(reason.printable)")
        }
        if listing.coming > 0 { lines.append("More is being looked for.") }
        switch listing.repeats {
        case .off: break
        case .one: lines.append("The item that plays is repeated.")
        case .all: lines.append("The queue is repeated.")
        }
        return lines
    }

    private var mark: String {
        switch listing.phase {
        case .playing, .preparing, .waiting: "▶"
        case .paused: "⏸"
        case .stopped, .ended: "■"
        }
    }

    private func length(_ item: QueueListing.Item) -> String {
        switch item.state {
        case .known:
            (item.reason == nil ? "" : "✗ ")
                + (item.durationSeconds.map {
                    String(PositionArgument.text($0).split(separator: ".")[0])
                } ?? "")
        case .unread where item.reason == nil: "…"
        case .unread, .unplayable: "✗"
        }
    }
}
