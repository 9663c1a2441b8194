public import Observation
public import Playout
import Synchronization
public import Timing

/// How an asset is being presented: one asset may have many items, an item has one player.
public final class PlayerItem: Sendable, Observable {
    public enum Status: Equatable, Sendable {
        case unknown, readyToPlay, failed
    }

    /// Which loudness of its tags an item is played at.
    public enum LoudnessNormalization: Equatable, Sendable {
        /// As it was mastered.
        case off
        /// As loud as other items.
        case track
        /// As loud as other albums: what is quiet on its own stays so.
        case album
    }

    public let asset: Asset
    /// Where playing forward ends, if before the end of the asset; ``MediaTime/invalid`` otherwise.
    public let forwardPlaybackEndTime: MediaTime

    fileprivate struct State {
        var status = Status.unknown
        var error: PlaybackError?
        var format: MediaFormat?
        var metadata: MediaMetadata?
        var normalization = LoudnessNormalization.off
        weak var player: Player?
    }
    private let state = Mutex(State())
    private let observation = ObservationRegistrar()
    /// What it is decoded from.
    let sources = SourcePool()

    /// Reads nothing; the player loads the item when it gets it.
    public init(asset: Asset, forwardPlaybackEndTime: MediaTime = .invalid) {
        self.asset = asset
        self.forwardPlaybackEndTime = forwardPlaybackEndTime
    }

    public var status: Status {
        observation.access(self, keyPath: \.status)
        return state.withLock { $0.status }
    }
    /// Why ``status`` is failed.
    public var error: PlaybackError? {
        observation.access(self, keyPath: \.error)
        return state.withLock { $0.error }
    }
    /// `nil` until the item is ready.
    public var format: MediaFormat? {
        observation.access(self, keyPath: \.format)
        return state.withLock { $0.format }
    }
    /// Tags, chapters, cover picture and loudness; `nil` until the item is ready.
    public var metadata: MediaMetadata? {
        observation.access(self, keyPath: \.metadata)
        return state.withLock { $0.metadata }
    }
    /// By the item's ReplayGain or R 128 tags, the other kind where one is missing; never so loud that
    /// a sample is beyond full scale. May be changed while it plays.
    public var loudnessNormalization: LoudnessNormalization {
        get {
            observation.access(self, keyPath: \.loudnessNormalization)
            return state.withLock { $0.normalization }
        }
        set {
            let player = state.withLock { state in
                state.normalization = newValue
                return state.player
            }
            observation.withMutation(of: self, keyPath: \.loudnessNormalization) {}
            player?.gainDidChange()
        }
    }

    /// ``MediaTime/indefinite`` until the item is ready, and for a live stream.
    public var duration: MediaTime { format?.duration ?? .indefinite }

    /// What can be played now without decoding further.
    public var loadedTimeRanges: [TimeRange] {
        state.withLock { $0.player }?.loadedTimeRanges(of: self) ?? []
    }

    /// The item's whole length: every place in a file can be sought.
    public var seekableTimeRanges: [TimeRange] {
        duration.isNumeric ? [TimeRange(start: .zero, duration: duration)] : []
    }

    /// Loads the item and returns when it is ready to play; at once when it already is.
    ///
    /// - Throws: the asset's error; ``PlaybackError/Code/cancelled`` when the task that waits is
    ///   cancelled, which ends the waiting and leaves the status as it is.
    public func ready() async throws(PlaybackError) {
        if status == .readyToPlay { return }
        do throws(PlaybackError) {
            let facts = try await asset.loadFacts(for: sources)
            state.withLock {
                $0.format = facts.format
                $0.metadata = facts.metadata
                $0.status = .readyToPlay
                $0.error = nil
            }
            tellChange()
        } catch {
            // Another one who asked may have been luckier meanwhile.
            state.withLock {
                guard $0.status != .readyToPlay, error.code != .cancelled else { return }
                $0.status = .failed
                $0.error = error
            }
            tellChange()
            throw error
        }
    }

    /// Says to who observes the item that it has changed; not under a lock.
    func tellChange() {
        observation.withMutation(of: self, keyPath: \.status) {}
        observation.withMutation(of: self, keyPath: \.error) {}
        observation.withMutation(of: self, keyPath: \.format) {}
        observation.withMutation(of: self, keyPath: \.metadata) {}
    }

    /// It was ready, and then could not be played on; ``tellChange()`` is to follow.
    func fail(_ error: PlaybackError) {
        state.withLock {
            $0.status = .failed
            $0.error = error
        }
    }

    /// Makes `player` the item's player; false when it has another one.
    func claim(for player: Player) -> Bool {
        // The last reference to another player may be this one: it must not end under the lock,
        // which that player takes as it goes.
        let owner = state.withLock { state in
            let owner = state.player
            if owner == nil { state.player = player }
            return owner
        }
        return owner == nil || owner === player
    }

    /// Whether no player has it.
    var isFree: Bool {
        let owner = state.withLock { $0.player }
        return owner == nil
    }

    /// - Returns: what was open for it: what was played holds nothing open. Closing may take its
    ///   time, so it ends outside of the player's lock.
    func unclaim(from player: Player) -> [SourcePool.Cursor] {
        let (owner, open) = state.withLock { state -> (Player?, [SourcePool.Cursor]) in
            let owner = state.player
            guard owner === player else { return (owner, []) }
            state.player = nil
            return (owner, sources.empty())
        }
        return withExtendedLifetime(owner) { open }
    }

    /// The same by a player that is going, and which nobody can refer to any more.
    func abandon() {
        let (owner, open) = state.withLock { state -> (Player?, [SourcePool.Cursor]) in
            let owner = state.player
            return (owner, owner == nil ? sources.empty() : [])
        }
        withExtendedLifetime((owner, open)) {}
    }

    /// What a player's machine is told of it.
    var facts: PlayerWorld.Item {
        let (status, error, format, gain) = state.withLock {
            ($0.status, $0.error, $0.format, $0.gain)
        }
        let facts = format.map {
            PlayerWorld.ItemFacts(
                sampleRate: $0.sampleRate, endFrame: endFrame(of: $0), gain: gain)
        }
        let now: PlayerWorld.Item.State =
            switch status {
            case .unknown: .unknown
            case .readyToPlay: .ready
            case .failed: .failed(error ?? PlaybackError(.itemNotReady, "the item failed"))
            }
        return PlayerWorld.Item(state: now, facts: facts)
    }

    /// The first frame that is not played; `nil` when only the source knows.
    private func endFrame(of format: MediaFormat) -> Int64? {
        let forced =
            forwardPlaybackEndTime.isNumeric
            ? forwardPlaybackEndTime.frame(atSampleRate: format.sampleRate) : nil
        guard let forced else { return format.frameCount }
        return max(0, min(forced, format.frameCount ?? .max))
    }
}

extension PlayerItem.State {
    fileprivate var gain: Float {
        let (track, album) = (metadata?.trackLoudness, metadata?.albumLoudness)
        return switch normalization {
        case .off: 1
        case .track: (track ?? album)?.factor ?? 1
        case .album: (album ?? track)?.factor ?? 1
        }
    }
}
