import TuttiGroupControl

// The queue between a control client and a leader.

extension PBRepeatMode {
    init(_ mode: RepeatMode) {
        self =
            switch mode {
            case .off: .off
            case .one: .one
            case .all: .all
            }
    }

    func checked(_ subject: String) throws(WireError) -> RepeatMode {
        switch self {
        case .off, .unspecified: .off
        case .one: .one
        case .all: .all
        case .UNRECOGNIZED:
            throw WireError(.outOfRange, subject, "this is no way to repeat: \(rawValue)")
        }
    }
}

extension PBQueueEdit {
    init(_ edit: QueueEdit) {
        self.init()
        switch edit {
        case .remove(let ids):
            var items = PBQueueItems()
            items.ids = ids
            remove = items
        case .move(let id, let position):
            var raw = PBQueueMove()
            raw.id = id
            raw.position = Int32(clamping: position)
            move = raw
        case .clear: clear = PBNothing()
        case .reorder(let seed): reorder = seed
        case .repeating(let mode): repeating = PBRepeatMode(mode)
        case .play(let id): play = id
        }
    }

    func checked() throws(WireError) -> QueueEdit {
        switch content {
        case .remove(let items):
            guard items.ids.count <= QueueEdit.mostItems else {
                throw WireError(.tooLong, "queue.remove", "\(items.ids.count) items")
            }
            return .remove(items.ids)
        case .move(let move):
            return .move(move.id, to: try TuttiWire.index(move.position, "queue.move"))
        case .clear: return .clear
        case .reorder(let seed): return .reorder(seed: seed)
        case .repeating(let mode): return .repeating(try mode.checked("queue.repeating"))
        case .play(let id): return .play(id)
        case nil: throw WireError(.missing, "queue edit", "the message is empty")
        }
    }
}

extension PBQueueAddition {
    init(_ addition: QueueAddition) {
        self.init()
        locations = addition.locations
        switch addition.place {
        // Nobody but a leader puts something behind a certain item.
        case .end, .behind: end = PBNothing()
        case .next: next = PBNothing()
        case .position(let position): self.position = Int32(clamping: position)
        }
    }

    func checked() throws(WireError) -> QueueAddition {
        guard locations.count <= QueueAddition.mostLocations else {
            throw WireError(.tooLong, "add", "\(locations.count) files and addresses")
        }
        var checkedLocations: [String] = []
        for (place, location) in locations.enumerated() {
            checkedLocations.append(
                try text(
                    location, "add.locations[\(place)]", limit: QueueAddition.longestLocation))
        }
        let place: QueuePlace
        switch self.place {
        case .end, nil: place = .end
        case .next: place = .next
        case .position(let position):
            place = .position(try TuttiWire.index(position, "add.position"))
        }
        return QueueAddition(locations: checkedLocations, place: place)
    }
}

extension PBQueueListing {
    init(_ listing: QueueListing) {
        self.init()
        revision = listing.revision
        count = Int32(clamping: listing.count)
        coming = Int32(clamping: listing.coming)
        if let current = listing.current { self.current = Int32(clamping: current) }
        phase = PBPhase(listing.phase)
        repeats = PBRepeatMode(listing.repeats)
        first = Int32(clamping: listing.first)
        items = listing.items.map(PBQueueItem.init)
        leftOut = listing.leftOut
        leftOutCount = listing.leftOutCount
    }

    func checked() throws(WireError) -> QueueListing {
        guard items.count <= QueueListing.mostItems else {
            throw WireError(.tooLong, "queue.items", "\(items.count) items")
        }
        var checkedItems: [QueueListing.Item] = []
        for (place, item) in items.enumerated() {
            checkedItems.append(try item.checked("queue.items[\(place)]"))
        }
        guard leftOut.count <= QueueListing.mostLeftOut else {
            throw WireError(.tooLong, "queue.leftOut", "\(leftOut.count) sentences")
        }
        var checkedLeftOut: [String] = []
        for sentence in leftOut {
            checkedLeftOut.append(try text(sentence, "queue.leftOut", limit: longestReason))
        }
        return QueueListing(
            revision: revision, count: try TuttiWire.index(count, "queue.count"),
            coming: try TuttiWire.index(coming, "queue.coming"),
            current: hasCurrent ? try TuttiWire.index(current, "queue.current") : nil,
            phase: try phase.checked("queue.phase"),
            repeats: try repeats.checked("queue.repeats"),
            first: try TuttiWire.index(first, "queue.first"), items: checkedItems,
            leftOut: checkedLeftOut, leftOutCount: leftOutCount)
    }
}

extension PBQueueItem {
    init(_ item: QueueListing.Item) {
        self.init()
        id = item.id
        title = item.title
        switch item.state {
        case .known: known = item.durationSeconds ?? 0
        case .unread: unread = PBNothing()
        case .unplayable: unplayable = item.reason ?? ""
        }
        if item.state != .unplayable { obstacle = item.reason ?? "" }
    }

    func checked(_ subject: String) throws(WireError) -> QueueListing.Item {
        let title = try text(title, "\(subject).title", limit: AssetDescriptor.longestTitle)
        let obstacle = try text(obstacle, "\(subject).obstacle", limit: longestReason)
        let reason = obstacle.isEmpty ? nil : obstacle
        return switch state {
        case .known(let seconds):
            QueueListing.Item(
                id: id, title: title, state: .known,
                durationSeconds: try figure(seconds, Figures.position, "\(subject).length"),
                reason: reason)
        case .unread: QueueListing.Item(id: id, title: title, state: .unread, reason: reason)
        case .unplayable(let reason):
            QueueListing.Item(
                id: id, title: title, state: .unplayable,
                reason: try text(reason, "\(subject).reason", limit: longestReason))
        case nil: throw WireError(.missing, "\(subject).state", "the message is empty")
        }
    }
}
