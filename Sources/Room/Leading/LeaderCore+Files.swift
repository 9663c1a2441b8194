import TuttiGroupControl
import TuttiPlayout

/// The files that the items of the queue were read from, which others write to and remove.
extension LeaderCore {
    /// What a file has become that may play now, or is asked for.
    typealias Check =
        @Sendable (ContentHash, _ current: QueueEntry.ID?, _ isAsked: Bool) async ->
        [AssetReader.Change]
    /// What has become of an item that could not be played; `nil` where nothing has.
    typealias Again = @Sendable (QueueEntry.ID) async -> LeaderInput?

    /// What a command goes to is described as it is on the disk now: otherwise rooms that have the
    /// bytes of before would play those, and this node's own room nothing.
    func look(at item: AssetDescriptor) async {
        guard refusal == nil else { return }
        await lookAtFiles(of: item.hash, isAsked: true)
    }

    /// Who asks for an item that could not be played has put its file back, perhaps.
    func look(again id: QueueEntry.ID) async {
        guard refusal == nil,
            case .unplayable? = machine.entries.first(where: { $0.id == id })?.state,
            let input = await again(id)
        else { return }
        take([input])
    }

    /// Items have other bytes now, or none.
    ///
    /// - Parameter items: `nil`: all with these bytes.
    func change(_ hash: ContentHash, of items: Set<QueueEntry.ID>? = nil, to change: ItemChange) {
        step { machine, now in machine.receive(.changed(hash, of: items, to: change), at: now) }
    }

    /// Notices what has become of the files that have the bytes of an asset.
    func lookAtFiles(of hash: ContentHash, isAsked: Bool = false) async {
        for change in await check(hash, machine.currentID, isAsked) {
            self.change(hash, of: change.items, to: change.outcome)
        }
    }

    /// Nobody has the bytes of these items just now.
    func passOver(_ hash: ContentHash, _ reason: String) {
        let items = machine.entries.filter { $0.asset?.hash == hash }.map(\.id)
        step { machine, now in machine.receive(.absent(items, reason: reason), at: now) }
    }
}
