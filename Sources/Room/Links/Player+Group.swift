import TuttiGroupControl
public import TuttiPlayback
import TuttiPlayout
import TuttiTiming

/// What a player plays here, played by a group's rooms instead, and back (AVFoundation's external
/// playback).
extension Player {
    /// How long the leader may take to have the item in its queue.
    private static let patience = Duration.seconds(10)

    /// Hands the current item over to a group: its rooms go on from the same item time at the same rate,
    /// paused if the player is, and the player pauses. What the group played stays in its queue.
    ///
    /// ``Player/isExternalPlaybackActive`` is true until ``takeBack(from:)``.
    ///
    /// - Parameters:
    ///   - group: its leader reads the item's path itself, or is sent the bytes.
    ///   - news: what there is to say meanwhile.
    /// - Throws: `RoomError`: nothing plays, ``Player/allowsExternalPlayback`` is false, or the group
    ///   cannot take it; the player then goes on as before.
    public func handOver(
        to group: GroupClient, news: @escaping @Sendable (AdditionNews) -> Void = { _ in }
    ) async throws {
        guard allowsExternalPlayback else {
            throw RoomError(.refused, "the player does not allow external playback")
        }
        guard let item = currentItem else {
            throw RoomError(.refused, "the player has no item to hand over")
        }
        let pace = rate
        let isPlaying = pace != 0
        guard !isPlaying || RateChange.rates.contains(pace) else {
            throw RoomError(.refused, "a group plays at 0.25 to 4 times the pace, not at \(pace)")
        }
        pause()
        // What was queued is heard; then item time stands where the sound ended.
        try await Task.sleep(for: .nanoseconds(output.latency.count))
        do {
            let entry = try await entry(for: item.asset.location, in: group, news)
            if isPlaying { try await group.perform(.rate(pace)) }
            try await go(to: currentTime().seconds, of: entry, in: group)
            if !isPlaying { try await group.perform(.pause) }
            setExternalPlayback(true)
        } catch {
            if isPlaying { try? setRate(pace) }
            throw error
        }
    }

    /// Pauses the group, and goes on here from the same item time; plays as fast as the group did, if it
    /// did.
    ///
    /// - Throws: `RoomError` where the group does not pause; the player stays as it is.
    public func takeBack(from group: GroupClient) async throws {
        var status = try await group.status()
        let wasPlaying = status.phase == .playing
        let pace = status.rate
        var place: Double?
        if wasPlaying {
            place = try await group.perform(.pause).positionSeconds
            status = try await group.status()
        }
        let seconds = place ?? status.positionSeconds
        setExternalPlayback(false)
        await seek(to: MediaTime(seconds: seconds))
        guard wasPlaying else { return }
        do throws(PlaybackError) { try setRate(pace) } catch { play() }
    }

    /// Puts a location into the group's queue.
    private func entry(
        for location: String, in group: GroupClient,
        _ news: @escaping @Sendable (AdditionNews) -> Void
    ) async throws -> QueueEntry.ID {
        let before = Set(try await group.queue().items.map(\.id))
        try await group.add([location], at: .next, news: news)
        let deadline = ContinuousClock.now + Self.patience
        while true {
            let new = try await group.queue().items.first { !before.contains($0.id) }
            if let new {
                if new.state == .unplayable {
                    throw RoomError(.badAsset, new.reason ?? "\(new.title) cannot be played there")
                }
                return new.id
            }
            guard ContinuousClock.now < deadline else {
                throw RoomError(.timedOut, "the leader has not read \(location) in ten seconds")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    /// The place is asked for while the item is being prepared: its beginning is not heard.
    private func go(
        to seconds: Double, of entry: QueueEntry.ID, in group: GroupClient
    ) async throws {
        async let started = group.perform(.queue(.play(entry)))
        try await Task.sleep(for: .milliseconds(10))
        try await group.perform(.seek(seconds: seconds))
        _ = try await started
    }
}
