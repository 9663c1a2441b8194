import TuttiTiming

// What sounds when a room comes to a leader, and is of the session that it finds there.

extension RoomMachine {
    func continues(_ state: SessionState) -> Bool {
        state.phase == .playing && !voices(of: state).isEmpty
    }

    /// Lets go of what was committed before this leader, or this link, and is not of the session any
    /// more. The leader cannot take back what it does not know of: each room would play on by itself.
    mutating func dropStrays(from state: SessionState) -> [RoomEffect] {
        guard lines.contains(where: { !$0.isAdopted }) else { return [] }
        let kept = voices(of: state)
        let strays = lines.filter { !$0.isAdopted && !kept.contains($0.voice) }.map(\.voice)
        lines.removeAll { strays.contains($0.voice) }
        for voice in strays { proof.forget(voice) }
        return strays.map(RoomEffect.withdraw)
    }

    /// Of the lines that sound or are armed, those that the session has: what is over when its line
    /// begins, that line, and the items that follow it without a break.
    private func voices(of state: SessionState) -> Set<UInt64> {
        guard let change = state.change, state.current != nil else { return [] }
        var voices: Set<UInt64> = []
        var (index, end) = (state.index, state.endInstant)
        for line in lines.sorted(by: { $0.change.instant < $1.change.instant }) {
            if let end = line.end, end <= change.instant {
                voices.insert(line.voice)
            } else if state.phase != .playing {
                continue
            } else if line.change == change, line.hash == state.queue[state.index].hash {
                voices.insert(line.voice)
            } else if line.change.itemFrame == 0, line.change.instant == end,
                let next = state.queue.follower(of: index, with: line.hash)
            {
                voices.insert(line.voice)
                (index, end) = (next, line.end)
            }
        }
        return voices
    }
}

extension [AssetDescriptor] {
    /// The place of this item where it may follow the one at `index`: behind it, at the beginning behind
    /// the last one, or the same one again, as the queue is repeated.
    fileprivate func follower(of index: Int, with hash: ContentHash) -> Int? {
        [(index + 1) % count, index].first { self[$0].hash == hash }
    }
}

extension AssetDescriptor {
    /// When it is over on a line; `nil` while that stands still.
    func end(on change: RateChange) -> GroupInstant? {
        change.instant(ofFrame: frameCount, sampleRate: sampleRate)
    }
}
