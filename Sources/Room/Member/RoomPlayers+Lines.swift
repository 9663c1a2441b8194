import Logging
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayback
import TuttiPlayout
import TuttiTiming

/// Committed lines, in a queue and alone.
///
/// What a commit says of an item that follows is held against what its player has planned by itself: the
/// same instant, and it is joined there. Otherwise the commit is right: the item gets a player of its
/// own on that line. So does one whose player ends before it, or that was prepared somewhere else.
extension RoomPlayers {
    /// Puts a prepared item on its line, or pauses the one that sounds.
    ///
    /// - Returns: items that fall silent at the commit's instant, and that nobody waits for yet; see
    ///   ``dropEnded(_:at:)``.
    func apply(_ commit: Commit) throws -> [Ticket] {
        guard let part = parts[commit.id], let player = part.player else {
            throw RoomError(.protocolViolation, "no preparation \(commit.id) here")
        }
        if commit.isPause {
            player.end(atHostTime: commit.change.instant)
        } else {
            try put(part, on: commit.change)
        }
        parts[commit.id]?.sounds = !commit.isPause
        parts[commit.id]?.ends = commit.isPause ? commit.change.instant : nil
        endJoining(commit.id)
        // A pause is resumed by another preparation, which follows at once.
        guard !commit.isPause else { return awaitSilence(of: [commit.id]) }
        guard !commit.following else { return [] }
        return awaitSilence(of: endOthers(than: commit.id, at: commit.change.instant))
    }

    private func put(_ part: Part, on change: RateChange) throws {
        let id = part.order.id
        let line = Line(
            itemFrame: Double(change.itemFrame), instant: change.instant, rate: change.rate)
        parts[id]?.line = change
        guard part.isQueued else { return try start(part.item, of: playAlone(id), by: change) }
        if part.player?.join(part.item, by: line) == true { return }
        logger.debug("a commit is not where the item before ends", metadata: ["id": "\(id)"])
        for follower in followers(of: part) { goOnAlone(follower) }
        try start(part.item, of: playAlone(id), by: change)
    }

    private func start(
        _ item: PlayerItem, of player: QueuePlayer, by change: RateChange
    ) throws(PlaybackError) {
        let sampleRate = item.format?.sampleRate ?? 1
        try player.setRate(
            change.rate, time: MediaTime(frame: change.itemFrame, sampleRate: sampleRate),
            atHostTime: change.instant)
    }

    /// Whatever else sounds is silent from `instant` on.
    private func endOthers(than id: UInt64, at instant: GroupInstant) -> [UInt64] {
        let others = parts.filter { $0.key != id && $0.value.sounds }
        guard let part = parts[id] else { return [] }
        let behind = Set(followers(of: part))
        for (other, ending) in others {
            parts[other]?.sounds = false
            parts[other]?.ends = instant
            if ending.player !== part.player {
                ending.player?.end(atHostTime: instant)
            } else if behind.contains(other) {
                ending.player?.remove(ending.item)
            }
            // One that was before it in its queue ends by itself where it begins.
        }
        return Array(others.keys)
    }

    private func awaitSilence(of ids: [UInt64]) -> [Ticket] {
        ids.compactMap { id in
            guard let part = parts[id], !part.isAwaited else { return nil }
            parts[id]?.isAwaited = true
            return part.ticket
        }
    }

    /// When a player is to be silent for good; `nil` when it is gone, or is to sound again: then
    /// nobody waits for it any more.
    func end(of ticket: Ticket) -> GroupInstant? {
        guard parts[ticket.id]?.ticket == ticket else { return nil }
        if parts[ticket.id]?.ends == nil { parts[ticket.id]?.isAwaited = false }
        return parts[ticket.id]?.ends
    }

    /// Gives back a player that has fallen silent at `instant`, unless it was started again: an
    /// output has few voices.
    func dropEnded(_ ticket: Ticket, at instant: GroupInstant) {
        if parts[ticket.id]?.ticket == ticket, parts[ticket.id]?.ends == instant {
            withdraw(ticket.id)
        }
    }

    // MARK: Queues

    /// The player in whose queue a preparation belongs: its last item ends at the instant at which the
    /// prepared one is to begin, on the same clock at the same rate. `nil`: it is to have one of its
    /// own.
    func player(before order: Preparation, by clock: ClockCell) -> QueuePlayer? {
        guard let change = order.change, change.itemFrame == 0, change.rate == order.rate,
            order.asset.frameCount > 0
        else { return nil }
        return parts.values.lazy.compactMap { part -> QueuePlayer? in
            guard let player = part.player, part.clock === clock, part.ends == nil,
                let line = part.sounds ? part.line : part.isQueued ? part.order.change : nil,
                line.rate == change.rate,
                let end = line.instant(
                    ofFrame: part.order.asset.frameCount,
                    sampleRate: part.order.asset.sampleRate),
                max(end - change.instant, change.instant - end) <= QueuePlayer.joinTolerance
            else { return nil }
            // Of a chain of short items the rest begins another queue.
            let items = player.items()
            return items.last === part.item && items.count <= QueuePlayer.mostFollowing
                ? player : nil
        }.first
    }

    /// Preparations whose items stand behind this one's in its player's queue.
    func followers(of part: Part) -> [UInt64] {
        guard let items = part.player?.items(),
            let place = items.firstIndex(where: { $0 === part.item })
        else { return [] }
        let behind = items[(place + 1)...]
        return parts.filter { _, other in behind.contains { $0 === other.item } }.map(\.key)
    }

    func give(_ item: PlayerItem, to player: QueuePlayer, of id: UInt64) {
        parts[id]?.player = player
        parts[id]?.notices = player.notices(of: item)
    }

    /// Makes a player for an item alone, unless it is the current one of its player; takes it out of the
    /// queue that it is in.
    @discardableResult
    func playAlone(_ id: UInt64) throws -> QueuePlayer {
        guard let part = parts[id] else { throw CancellationError() }
        if let player = part.player {
            if !part.isQueued { return player }
            player.remove(part.item)
        }
        let player = try QueuePlayer(items: [part.item], output: output)
        player.automaticallyWaitsToMinimizeStalling = false
        player.sourceClock = .group(part.clock, now: { HostClock.now() })
        player.joinsByLines = true
        give(part.item, to: player, of: id)
        return player
    }

    /// The item before it ends otherwise than was planned: this one keeps its line, or stays ready for
    /// one.
    func goOnAlone(_ id: UInt64) {
        guard let part = parts[id] else { return }
        // It is not to sound, or not any more.
        if part.ends != nil { return part.player?.remove(part.item) ?? () }
        do {
            let player = try playAlone(id)
            if let line = part.line {
                try start(part.item, of: player, by: line)
            } else {
                let place = place(of: part.order, by: part.clock)
                try player.prepare(
                    atRate: part.order.rate,
                    time: MediaTime(frame: place, sampleRate: part.order.asset.sampleRate))
            }
        } catch {
            let failure =
                error as? PlaybackError ?? PlaybackError(.itemNotReady, "\(error)")
            parts[id]?.notices = AsyncStream {
                $0.yield(.failedToPlayToEnd(failure))
                $0.finish()
            }
        }
    }
}
