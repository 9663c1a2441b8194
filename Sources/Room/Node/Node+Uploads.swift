import TuttiGroupControl

extension Node {
    /// Files of other machines that were sent to this node while it led stay as long as their items
    /// are in the queue, whoever leads it: rooms and the next leader fetch them here.
    func keepUploads(of leading: Leading) async {
        let (reader, number) = (leading.reader, await leading.core.sessionID)
        let session = GroupStatus.text(of: number)
        var leader: (any GroupControlling)?
        // Where the session was seen last: this node may be in another group by now.
        var home: (any GroupControlling)?
        var seen: (leader: String, revision: UInt64)?
        var others = 0
        while reader.hasUploads, (try? await Task.sleep(for: Self.lookingPause)) != nil {
            let current = control
            // The connection to a leader is kept.
            if (leader as? GroupClient)?.address != (current as? GroupClient)?.address
                || leader == nil
            {
                leader = current
            }
            guard var known = leader, var status = try? await known.status() else {
                leader = nil
                continue
            }
            if status.session == session {
                home = known
            } else if let before = home, let there = try? await before.status(),
                there.session == session
            {
                (known, status) = (before, there)
            }
            others = status.session == session ? 0 : others + 1
            if others >= Self.mostOthers { return reader.forget(Array(reader.items.keys)) }
            // Each leader counts anew.
            guard others == 0,
                seen?.leader != status.leader || seen?.revision != status.queueRevision,
                let queue = try? await known.wholeQueue()
            else { continue }
            let listed = Set(queue.items.map(\.id))
            reader.forget(reader.items.keys.filter { !listed.contains($0) })
            seen = (status.leader, queue.revision)
        }
    }
}
