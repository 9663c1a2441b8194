import Logging
import Synchronization
import TuttiGroupControl

/// A node that has led goes on reading what it has put into the queue: only it has the files.
extension Node {
    /// Between two looks at what the queue wants next, and two attempts to tell its leader.
    private static let readingPause = Duration.seconds(1)

    /// Until all of it is read, or the node ends.
    func readOn(_ leading: Leading) async {
        let (reader, queue) = (leading.reader, CurrentQueue(self))
        guard reader.hasUnread else { return }
        reader.follow { ahead, most in
            (try? await queue.now?.wanted(ahead: ahead, most: most)) ?? []
        } tell: { [weak self] inputs in
            // All is listed: the lead does not go over before.
            await self?.tell(inputs.compactMap(ReadItem.init), to: queue)
        }
        // What was read while the lead went over the next leader has not heard of.
        let known = await leading.core.readItems.filter { $0.id < QueueEntry.firstOwnID }
        await tell(known, to: queue)
        while reader.hasUnread, !Task.isCancelled {
            try? await Task.sleep(for: Self.readingPause)
            reader.lookAgain()
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
