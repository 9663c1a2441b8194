/// The whole queue of a session, in order, with what is known of it.
///
/// Rooms hear of the known items alone, which ``SessionState/queue`` lists; an index there and a
/// position here are two numbers, and ``position(of:)`` leads from one to the other.
struct PlayQueue: Equatable, Sendable {
    private(set) var entries: [QueueEntry] = []
    /// Position of each known item.
    private var positions: [Int] = []
    /// Items that are still being looked for; they join the end.
    var coming = 0
    var repeats = RepeatMode.off
    /// Counts changes.
    private(set) var revision: UInt64 = 0
    /// Of items that the machine is given without an identity.
    private var nextID = QueueEntry.firstOwnID

    init(_ assets: [AssetDescriptor], coming: Int, repeats: RepeatMode) {
        self.coming = coming
        self.repeats = repeats
        let entries = assets.prefix(SessionState.longestQueue).map { newEntry($0) }
        set(entries)
    }

    /// Of the leader before, with its identities.
    ///
    /// - Parameters:
    ///   - items: the whole queue as it was a moment before: rooms hear of it less often than of the
    ///     assets.
    ///   - assets: the known items, in order.
    ///   - addresses: of items that every machine can fetch.
    init(
        _ items: [QueueListing.Item], knowing assets: [AssetDescriptor],
        from addresses: [QueueEntry.ID: String] = [:], repeats: RepeatMode
    ) {
        func entry(_ item: QueueListing.Item, _ asset: AssetDescriptor? = nil) -> QueueEntry {
            QueueEntry(item, asset, addresses[item.id])
        }
        self.init([], coming: 0, repeats: repeats)
        var seen: Set<QueueEntry.ID> = []
        let items = items.prefix(SessionState.longestQueue)
            .filter { seen.insert($0.id).inserted }
        nextID = max(nextID, (items.map(\.id).max() ?? 0) &+ 1)
        // Where each asset was a moment before; of several alike the first.
        var places: [KnownItem: ArraySlice<Int>] = [:]
        for place in items.indices where items[place].state == .known {
            places[KnownItem(items[place]), default: []].append(place)
        }
        let found = assets.map { places[KnownItem($0)]?.popFirst() }
        // What nobody had read, or could, stays behind the item that it stood behind.
        let kept = Set(found.compactMap(\.self))
        var behind: [Int: [QueueListing.Item]] = [:]
        var last = -1
        for place in items.indices {
            if kept.contains(place) { last = place }
            if items[place].state != .known { behind[last, default: []].append(items[place]) }
        }
        var entries: [QueueEntry] = []
        var open = (behind[-1] ?? [])[...]
        for (asset, place) in zip(assets, found) {
            if let place {
                entries += open.map { entry($0) }
                entries.append(entry(items[place], asset))
                open = (behind[place] ?? [])[...]
            } else if let read = open.firstIndex(where: { $0.state == .unread }) {
                // It has been read since: items are, in their order.
                entries += open[..<read].map { entry($0) }
                entries.append(entry(open[read], asset))
                open = open[(read + 1)...]
            } else {
                entries.append(newEntry(asset))
            }
        }
        entries += open.map { entry($0) }
        set(Array(entries.prefix(SessionState.longestQueue)))
    }

    mutating func newEntry(_ asset: AssetDescriptor) -> QueueEntry {
        defer { nextID += 1 }
        return QueueEntry(id: nextID, name: asset.title, state: .known(asset))
    }

    mutating func set(_ entries: [QueueEntry]) {
        self.entries = entries
        positions = entries.indices.filter { entries[$0].asset != nil }
        revision += 1
    }

    /// Notes why the group goes on without an item, or that it does not.
    mutating func note(_ obstacle: String?, at position: Int) {
        let obstacle = obstacle?.limited(toBytes: RoomReport.longestText)
        guard entries[position].obstacle != obstacle else { return }
        entries[position].obstacle = obstacle
        revision += 1
    }

    mutating func setRepeats(_ mode: RepeatMode) {
        repeats = mode
        revision += 1
    }

    /// What rooms hear of.
    var assets: [AssetDescriptor] { positions.compactMap { entries[$0].asset } }

    var count: Int { entries.count }

    /// Of the items that every machine can fetch: of those from a position on, and then of those before,
    /// as many as a ``Handover`` holds.
    func addresses(from position: Int) -> [QueueEntry.ID: String] {
        var found: [QueueEntry.ID: String] = [:]
        var bytes = 0
        let start = min(max(0, position), count)
        for entry in entries[start...] + entries[..<start] {
            guard let address = entry.address else { continue }
            bytes += address.utf8.count
            guard found.count < Handover.mostAddresses, bytes <= Handover.mostAddressBytes else {
                break
            }
            found[entry.id] = address
        }
        return found
    }

    /// Of the known item with this index.
    func position(of index: Int) -> Int? {
        positions.indices.contains(index) ? positions[index] : nil
    }

    func id(of index: Int) -> QueueEntry.ID? { position(of: index).map { entries[$0].id } }

    func position(of id: QueueEntry.ID) -> Int? { entries.firstIndex { $0.id == id } }

    /// Of the known item at this position.
    func index(at position: Int) -> Int? {
        var (low, high) = (0, positions.count)
        while low < high {
            let middle = (low + high) / 2
            if positions[middle] < position { low = middle + 1 } else { high = middle }
        }
        return low < positions.count && positions[low] == position ? low : nil
    }

    func index(of id: QueueEntry.ID) -> Int? { position(of: id).flatMap { index(at: $0) } }

    // MARK: Order

    /// What comes next in the queue.
    enum Successor: Equatable {
        /// A known item, by its index.
        case item(Int)
        /// An item that has to be read first.
        case unread(QueueEntry.ID)
        /// Whatever is found next: it is not in the queue yet.
        case unlisted
        case none
    }

    /// The first item from this position on that can be played, or may be.
    func first(from position: Int, wraps: Bool) -> Successor {
        for place in max(0, position)..<max(entries.count, max(0, position)) {
            switch entries[place].state {
            case .known: return index(at: place).map(Successor.item) ?? .none
            case .unread where entries[place].obstacle == nil: return .unread(entries[place].id)
            case .unread, .unplayable: continue
            }
        }
        if coming > 0 { return .unlisted }
        return wraps && position > 0 ? first(from: 0, wraps: false) : .none
    }

    /// What follows an item by itself.
    func successor(of index: Int) -> Successor {
        if repeats == .one, positions.indices.contains(index) { return .item(index) }
        return afterHand(index)
    }

    /// What follows an item when somebody wants the next one.
    func afterHand(_ index: Int) -> Successor {
        first(from: position(of: index).map { $0 + 1 } ?? 0, wraps: repeats != .off)
    }

    /// The known item before this one.
    func before(_ index: Int) -> Int? {
        if index > 0 { return index - 1 }
        return repeats != .off && coming == 0 && !positions.isEmpty ? positions.count - 1 : nil
    }
}

/// What a listing says of an item that is known: as good as unique.
private struct KnownItem: Hashable {
    var title: String
    var duration: Double?

    init(_ item: QueueListing.Item) {
        title = item.title
        duration = item.durationSeconds
    }

    init(_ asset: AssetDescriptor) {
        title = asset.title
        duration = asset.durationSeconds
    }
}

extension QueueEntry {
    fileprivate init(
        _ item: QueueListing.Item, _ asset: AssetDescriptor?, _ address: String?
    ) {
        self.init(id: item.id, name: item.title, address: address)
        if let asset {
            state = .known(asset)
            // It has been read since where it was unread.
            obstacle = item.state == .known ? item.reason : nil
        } else if item.state == .unplayable {
            state = .unplayable(reason: item.reason ?? "")
        } else {
            obstacle = item.reason
        }
    }
}
