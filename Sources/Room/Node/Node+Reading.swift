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

    /// A node that led before it was started anew has the files that it put into the queue: it reads on
    /// what nobody has read, and hands out what others ask for once it has seen that it is the same.
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
        let known = OwnedFiles(saved.items.filter { owned[$0.id] != nil })
        media.own { [weak self] hash in
            switch known.standing(of: hash) {
            case .unknown: return false
            case .asked: return true
            case .new(let item):
                self?.begin {
                    // Another file by now is none that the group knows: that one is not shared.
                    _ = await reader.readAgain(item)
                    known.forget(hash)
                }
                return self != nil
            }
        }
        await whileSessionGoesOn(saved.session)
        media.own(nil)
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

/// What a node can look up again, by its hash, and what of it is being read.
private final class OwnedFiles: Sendable {
    enum Standing {
        case unknown
        case asked
        case new(AssetList.Item)
    }

    private struct State {
        var items: [String: AssetList.Item] = [:]
        var asked: Set<String> = []
    }
    private let state = Mutex(State())

    init(_ items: [SavedSession.Item]) {
        state.withLock { state in
            for item in items {
                guard let hash = item.hash else { continue }
                state.items[hash.hex] = AssetList.Item(item)
            }
        }
    }

    func standing(of hash: String) -> Standing {
        state.withLock { state in
            guard let item = state.items[hash] else { return .unknown }
            return state.asked.insert(hash).inserted ? .new(item) : .asked
        }
    }

    /// It was read, whatever came of it.
    func forget(_ hash: String) {
        state.withLock { state in
            state.items[hash] = nil
            state.asked.remove(hash)
        }
    }
}
