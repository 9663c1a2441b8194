import Logging
import Synchronization
import TuttiGroupControl

/// A node that has led goes on reading what it has put into the queue: only it has the files.
extension Node {
    /// Between two looks at what the queue wants next, and two attempts to tell its leader.
    private static let readingPause = Duration.seconds(1)

    /// Until all of it is read, or the node ends.
    func readOn(_ leading: Leading) async {
        guard leading.reader.hasUnread else { return }
        // What was read while the lead went over the next leader has not heard of.
        let known = await leading.core.readItems.filter { $0.id < QueueEntry.firstOwnID }
        await readOn(leading.reader, telling: known)
    }

    private func readOn(_ reader: AssetReader, telling known: [ReadItem] = []) async {
        let queue = CurrentQueue(self)
        reader.follow { ahead, most in
            (try? await queue.now?.wanted(ahead: ahead, most: most)) ?? []
        } tell: { [weak self] inputs in
            // All is listed: the lead does not go over before.
            await self?.tell(inputs.compactMap(ReadItem.init), to: queue)
        }
        await tell(known, to: queue)
        while reader.hasUnread, !Task.isCancelled {
            try? await Task.sleep(for: Self.readingPause)
            reader.lookAgain()
        }
    }

    // MARK: After a restart

    /// Items behind the one that plays, and before it, whose files are looked up and hashed.
    private static let nearItems = 8

    /// A node that led before it was started anew has the files that it put into the queue: it reads on
    /// what nobody has read, and hands out what is near.
    func giveBack(_ saved: SavedSession) async {
        let reader = AssetReader([], library, media, logger: logger)
        reader.takeBack(saved.items)
        let owned = reader.items
        guard !owned.isEmpty else { return }
        state.withLock { $0.origins = Origins(session: saved.session, items: owned) }
        logger.notice(
            "another node leads the group that this one led; it gets the files from here",
            metadata: ["items": "\(owned.count)"])
        begin { await reader.run() }
        begin { await self.readOn(reader) }
        var known: [QueueEntry.ID: ContentHash] = [:]
        for item in saved.items where owned[item.id] != nil { known[item.id] = item.hash }
        await whileSessionGoesOn(saved.session) {
            guard !known.isEmpty, let control else { return }
            guard let status = try? await control.status(),
                let near = try? await control.queue(
                    first: max(0, status.index - 1), count: Self.nearItems)
            else { return }
            for id in near.items.map(\.id) {
                guard let hash = known.removeValue(forKey: id), library.asset(hash) == nil,
                    let item = owned[id]
                else { continue }
                // Another file by now is none that the group knows; its leader finds another holder.
                _ = await reader.readAgain(item)
            }
        }
    }

    private func tell(_ items: [ReadItem], to queue: CurrentQueue) async {
        var rest = items[...]
        while !rest.isEmpty, !Task.isCancelled {
            let part = rest.prefix(ReadItem.mostTogether)
            if let leader = queue.now, (try? await leader.tell(Array(part))) != nil {
                rest = rest.dropFirst(part.count)
            } else {
                try? await Task.sleep(for: Self.readingPause)
            }
        }
    }

    /// The queue of whoever leads, this node again or another; the connection to one is kept.
    private final class CurrentQueue: Sendable {
        private let node: Node
        private let client = Mutex<GroupClient?>(nil)

        init(_ node: Node) { self.node = node }

        var now: (any QueueReading)? {
            switch node.control {
            case let own as LeaderControl: return own
            case let other as GroupClient:
                return client.withLock { client in
                    if let client, client.address == other.address { return client }
                    client = other
                    return other
                }
            default: return nil
            }
        }
    }
}
