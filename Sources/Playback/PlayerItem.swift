public import Observation
import Synchronization
public import TuttiPlayout
public import TuttiTiming

/// How an asset is being presented: one asset may have many items, an item has one player.
public final class PlayerItem: Sendable, Observable {
    /// Whether the item can be played.
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

    /// What it presents; other items may present it too.
    public let asset: Asset

    fileprivate struct State {
        var status = Status.unknown
        var error: PlaybackError?
        var format: MediaFormat?
        var metadata: MediaMetadata?
        var selection = ItemSelection()
        var packetFrames = 0
        var mix: AudioMix?
        var tap: (any AudioTap)?
        /// What the tap is called by, once the sample rate is known.
        var attachment: TapAttachment?
        /// Counts mixes and taps.
        var edition = 0
        var normalization = LoudnessNormalization.off
        var algorithm = TimePitchAlgorithm.timeDomain
        var forwardEnd: MediaTime
        var reverseEnd = MediaTime.invalid
        weak var player: Player?
    }
    private let state: Mutex<State>
    private let observation = ObservationRegistrar()
    /// What it is decoded from.
    let sources = SourcePool()

    /// Reads nothing; the player loads the item when it gets it.
    public init(asset: Asset, forwardPlaybackEndTime: MediaTime = .invalid) {
        self.asset = asset
        state = Mutex(State(forwardEnd: forwardPlaybackEndTime))
    }

    // MARK: What it is

    /// Whether it can be played: unknown until it was opened.
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
            set(\.loudnessNormalization, { $0.normalization = newValue }) { $0.gainDidChange() }
        }
    }

    /// What becomes of the pitch at rates other than 1. May be changed while it plays: what sounds goes
    /// over to it.
    public var audioTimePitchAlgorithm: TimePitchAlgorithm {
        get {
            observation.access(self, keyPath: \.audioTimePitchAlgorithm)
            return state.withLock { $0.algorithm }
        }
        set { set(\.audioTimePitchAlgorithm, { $0.algorithm = newValue }) { $0.itemDidChange() } }
    }

    /// Where playing forward ends, if before the end of the asset; ``MediaTime/invalid`` otherwise. May
    /// be changed while it plays.
    public var forwardPlaybackEndTime: MediaTime {
        get {
            observation.access(self, keyPath: \.forwardPlaybackEndTime)
            return state.withLock { $0.forwardEnd }
        }
        set { set(\.forwardPlaybackEndTime, { $0.forwardEnd = newValue }) { $0.itemDidChange() } }
    }

    /// Where playing backwards ends, if behind the beginning of the asset; ``MediaTime/invalid``
    /// otherwise. May be changed while it plays.
    public var reversePlaybackEndTime: MediaTime {
        get {
            observation.access(self, keyPath: \.reversePlaybackEndTime)
            return state.withLock { $0.reverseEnd }
        }
        set { set(\.reversePlaybackEndTime, { $0.reverseEnd = newValue }) { $0.itemDidChange() } }
    }

    /// Changes a setting, and says so to whoever observes it and to the player.
    private func set(
        _ property: KeyPath<PlayerItem, some Any>, _ change: (inout State) -> Void,
        _ tell: (Player) -> Void
    ) {
        let player = state.withLock { state in
            change(&state)
            return state.player
        }
        observation.withMutation(of: self, keyPath: property) {}
        if let player { tell(player) }
    }

    /// ``MediaTime/indefinite`` until the item is ready, and for a live stream.
    public var duration: MediaTime { format?.duration ?? .indefinite }

    /// What is at hand: of a file all of it, once the item is ready; of what comes from a server, what is
    /// decoded ahead. In order, and apart from each other.
    public var loadedTimeRanges: [TimeRange] {
        observation.access(self, keyPath: \.loadedTimeRanges)
        return asset.isLocal ? seekableTimeRanges : decodedTimeRanges
    }

    /// What can be played now without decoding further; in order, and apart from each other.
    package var decodedTimeRanges: [TimeRange] {
        state.withLock { $0.player }?.decodedTimeRanges(of: self) ?? []
    }

    /// Whether playing could begin, or goes on, without having to wait before the end, by how fast frames
    /// have come so far. This and what follows are of a player's current item.
    public var isPlaybackLikelyToKeepUp: Bool { buffer(\.isPlaybackLikelyToKeepUp).keepsUp }
    /// Whether there is nothing to play on with.
    public var isPlaybackBufferEmpty: Bool { buffer(\.isPlaybackBufferEmpty).isEmpty }
    /// Whether as much is decoded ahead as there is room for, or as there is.
    public var isPlaybackBufferFull: Bool { buffer(\.isPlaybackBufferFull).isFull }

    private func buffer(_ property: KeyPath<PlayerItem, Bool>) -> PlayerMachine.Buffer {
        observation.access(self, keyPath: property)
        return player?.buffer(of: self) ?? PlayerMachine.Buffer()
    }

    /// Says to who observes the item that more of it is at hand, or less; not under a lock.
    func tellLoaded() { observation.withMutation(of: self, keyPath: \.loadedTimeRanges) {} }

    /// Says to who observes the item that another line is in force; not under a lock.
    func tellTimebase() { observation.withMutation(of: self, keyPath: \.timebase) {} }

    /// Says to who observes the item that its supply has changed; not under a lock.
    func tellBuffer() {
        observation.withMutation(of: self, keyPath: \.isPlaybackLikelyToKeepUp) {}
        observation.withMutation(of: self, keyPath: \.isPlaybackBufferEmpty) {}
        observation.withMutation(of: self, keyPath: \.isPlaybackBufferFull) {}
    }

    /// How item time follows from the clock of the item's player, ``Player/hostTime()``: what is in force
    /// now. Stands still while the item does not play, and at 0 for an item that is not a player's current
    /// one.
    public var timebase: Timebase<GroupClock> {
        observation.access(self, keyPath: \.timebase)
        return state.withLock { $0.player }?.timebase(of: self) ?? Timebase()
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
                $0.selection.tracks = facts.tracks
                $0.selection.preset = facts.track
                $0.packetFrames = facts.packetFrames
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
        observation.withMutation(of: self, keyPath: \.tracks) {}
    }

    var packetFrames: Int { state.withLock { $0.packetFrames } }

    /// Which player has it.
    var player: Player? { state.withLock { $0.player } }

    // MARK: What becomes of it

    var selection: ItemSelection {
        observation.access(self, keyPath: \.tracks)
        return state.withLock { $0.selection }
    }

    /// Other tracks are heard from now on.
    func changeSelection(_ change: (inout ItemSelection) -> Void) {
        set(\.tracks, { change(&$0.selection) }) { $0.itemDidChange() }
    }

    /// Of the player, under whose lock this is called: it looks again by itself.
    func setCriteria(_ criteria: [MediaCharacteristic: MediaSelectionCriteria]) {
        state.withLock { $0.selection.criteria = criteria }
    }

    /// How loud its tracks are over item time; `nil`: as they are. May be changed while it plays: what
    /// sounds goes over to it within some milliseconds.
    public var audioMix: AudioMix? {
        get {
            observation.access(self, keyPath: \.audioMix)
            return state.withLock { $0.mix }
        }
        set {
            set(
                \.audioMix,
                {
                    $0.mix = newValue
                    $0.edition += 1
                }
            ) { $0.itemDidChange() }
        }
    }

    /// Sees, and may change, what is decoded before it is heard. May be changed while the item plays.
    public var audioTap: (any AudioTap)? {
        get {
            observation.access(self, keyPath: \.audioTap)
            return state.withLock { $0.tap }
        }
        set {
            set(
                \.audioTap,
                {
                    $0.tap = newValue
                    $0.attachment = nil
                    $0.edition += 1
                }
            ) { $0.itemDidChange() }
        }
    }

    /// What its frames are made by: mix, tap and tracks.
    ///
    /// - Parameter layout: of the output.
    /// - Returns: one for each two of the output's channels that are played to. That is one, unless both
    ///   item and output have more than two: a tap sees stereo, and what keeps the pitch would move each
    ///   two of the channels by themselves.
    func makePipelines(
        _ recipe: FeedRecipe, _ format: MediaFormat, for layout: ChannelLayout
    ) -> [FramePipeline] {
        let (selection, mix, attachment) = state.withLock { state in
            if state.attachment == nil, let tap = state.tap {
                state.attachment = TapAttachment(tap, sampleRate: format.sampleRate)
            }
            return (state.selection, state.mix, state.attachment)
        }
        let isWide =
            asset.opener.opensChannels && format.channelCount > 2 && layout.channels.count > 2
            && attachment == nil && recipe.keepsChannelsTogether
        let pairs: [ChannelPair?] =
            isWide ? (0..<layout.pairCount).map { ChannelPair(of: layout, $0) } : [nil]
        return pairs.map {
            FramePipeline(recipe, format, selection, mix: mix, tap: attachment, channels: $0)
        }
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
        let (status, error, facts) = state.withLock { ($0.status, $0.error, $0.facts) }
        let now: PlayerWorld.Item.State =
            switch status {
            case .unknown: .unknown
            case .readyToPlay: .ready
            case .failed: .failed(error ?? PlaybackError(.itemNotReady, "the item failed"))
            }
        return PlayerWorld.Item(state: now, facts: facts)
    }
}

extension PlayerItem.State {
    fileprivate var facts: PlayerWorld.ItemFacts? {
        guard let format else { return nil }
        func frame(_ time: MediaTime) -> Int64? {
            if time == .negativeInfinity { return 0 }
            guard time.isNumeric, let frame = time.frame(atSampleRate: format.sampleRate) else {
                return nil
            }
            return max(0, min(frame, format.frameCount ?? .max))
        }
        return PlayerWorld.ItemFacts(
            sampleRate: format.sampleRate, frameCount: format.frameCount,
            endFrame: frame(forwardEnd) ?? format.frameCount, startFrame: frame(reverseEnd) ?? 0,
            algorithm: algorithm, tracks: selection.heard(apart: mix != nil), edition: edition,
            gain: gain)
    }

    fileprivate var gain: Float {
        let (track, album) = (metadata?.trackLoudness, metadata?.albumLoudness)
        return switch normalization {
        case .off: 1
        case .track: (track ?? album)?.factor ?? 1
        case .album: (album ?? track)?.factor ?? 1
        }
    }
}
