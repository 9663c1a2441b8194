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
    ///   - items: the whole queue; where they do not fit the assets, those alone count.
    ///   - assets: the known items, in order.
    init(_ items: [QueueListing.Item], knowing assets: [AssetDescriptor], repeats: RepeatMode) {
        guard items.count(where: { $0.state == .known }) == assets.count,
            Set(items.map(\.id)).count == items.count
        else {
            self.init(assets, coming: 0, repeats: repeats)
            return
        }
        self.init([], coming: 0, repeats: repeats)
        var known = assets.makeIterator()
        let entries = items.prefix(SessionState.longestQueue).map { item in
            var entry = QueueEntry(id: item.id, name: item.title)
            switch item.state {
            case .known: if let asset = known.next() { entry.state = .known(asset) }
            case .unread: break
            case .unplayable: entry.state = .unplayable(reason: item.reason ?? "")
            }
            return entry
        }
        nextID = max(nextID, (items.map(\.id).max() ?? 0) &+ 1)
        set(entries)
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

    mutating func setRepeats(_ mode: RepeatMode) {
        repeats = mode
        revision += 1
    }

    /// What rooms hear of.
    var assets: [AssetDescriptor] { positions.compactMap { entries[$0].asset } }

    var count: Int { entries.count }

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
            case .unread: return .unread(entries[place].id)
            case .unplayable: continue
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
