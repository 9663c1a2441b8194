import TuttiGroupControl

/// Whose queue it is that an ``AssetReader`` fills: a leader's in this process, or the one that leads
/// after it.
protocol QueueReading: Sendable {
    /// The items that are to be read next, the most urgent first; also of other readers.
    func wanted(ahead: Int, most: Int) async throws -> [QueueEntry.ID]

    /// - Parameter items: at most ``ReadItem/mostTogether``.
    func tell(_ items: [ReadItem]) async throws
}

extension LeaderControl: QueueReading {
    func wanted(ahead: Int, most: Int) async throws -> [QueueEntry.ID] {
        await core.wanted(ahead: ahead, most: min(most, QueueListing.mostItems))
    }

    func tell(_ items: [ReadItem]) async throws { await core.take(items.map(LeaderInput.init)) }
}

extension GroupClient: QueueReading {
    func wanted(ahead: Int, most: Int) async throws -> [QueueEntry.ID] {
        guard case .wanted(let ids) = try await ask(.wanted(ahead: ahead, most: most)) else {
            throw unexpected()
        }
        return ids
    }

    func tell(_ items: [ReadItem]) async throws {
        guard case .done = try await ask(.read(items)) else { throw unexpected() }
    }
}

extension LeaderInput {
    init(_ item: ReadItem) {
        switch item.outcome {
        case .known(let asset): self = .read(item.id, as: asset)
        case .unplayable(let reason): self = .unplayable(item.id, reason: reason)
        }
    }
}

extension ReadItem {
    /// - Returns: `nil` for what is no item that has been read.
    init?(_ input: LeaderInput) {
        switch input {
        case .read(let id, let asset): self.init(id: id, outcome: .known(asset))
        case .unplayable(let id, let reason):
            self.init(id: id, outcome: .unplayable(reason: reason))
        default: return nil
        }
    }
}
