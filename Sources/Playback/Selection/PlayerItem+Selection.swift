import Observation
import Synchronization
public import TuttiPlayout
import TuttiTiming

/// A track as an item presents it.
public struct PlayerItemTrack: Sendable, Identifiable {
    /// What the container says of the track.
    public let assetTrack: MediaTrack
    private let item: PlayerItem

    init(_ track: MediaTrack, of item: PlayerItem) { (assetTrack, self.item) = (track, item) }

    /// The track's number in its container.
    public var id: Int { assetTrack.id }

    /// Whether it is heard, or read. Audio tracks that are enabled together are added up. Changing it
    /// while the item plays is heard as soon as the track is decoded, in step with what sounds.
    public var isEnabled: Bool {
        get { item.selection.isEnabled(assetTrack) }
        nonmutating set { item.changeSelection { $0.setEnabled(newValue, id) } }
    }
}

extension PlayerItem {
    /// Empty until the item is ready.
    public var tracks: [PlayerItemTrack] {
        selection.tracks.map { PlayerItemTrack($0, of: self) }
    }

    /// Options of which one is heard, read or seen; `nil` where there are none, and until the item is
    /// ready.
    public func mediaSelectionGroup(
        for characteristic: MediaCharacteristic
    ) -> MediaSelectionGroup? {
        selection.group(characteristic)
    }

    /// Presents an option instead of the one of its group that was; `nil`: none of them.
    ///
    /// - Throws: ``PlaybackError/Code/noSuchTrack`` for an option of another group;
    ///   ``PlaybackError/Code/selectionNotEmpty`` for none in a group that does not allow that.
    public func select(
        _ option: MediaSelectionOption?, in group: MediaSelectionGroup
    ) throws(PlaybackError) {
        guard let option else {
            guard group.allowsEmptySelection else {
                throw PlaybackError(
                    .selectionNotEmpty,
                    "one of the sounds is always selected: mute the player instead")
            }
            return changeSelection { $0.choose(.nothing, in: group.characteristic) }
        }
        guard group.options.contains(option) else {
            throw PlaybackError(
                .noSuchTrack,
                "\(option.displayName) is not one of the \(group.options.count) options")
        }
        changeSelection { $0.choose(.option(option.track.id), in: group.characteristic) }
    }

    /// Lets the player's criteria, or the asset, choose again.
    public func selectAutomatically(in group: MediaSelectionGroup) {
        changeSelection { $0.choose(.automatic, in: group.characteristic) }
    }

    /// What is selected in the group, by somebody or by itself; `nil`: nothing.
    public func selectedMediaOption(in group: MediaSelectionGroup) -> MediaSelectionOption? {
        selection.selected(in: group.characteristic)
    }
}

extension Asset {
    /// Options of which one is heard, read or seen; `nil` where there are none.
    ///
    /// - Throws: as ``load(_:)`` does.
    public func loadMediaSelectionGroup(
        for characteristic: MediaCharacteristic
    ) async throws(PlaybackError) -> MediaSelectionGroup? {
        let facts = try await loadFacts()
        return MediaSelectionGroup(characteristic, of: facts.tracks, heard: facts.track)
    }
}

extension Player {
    /// What is preferred of every item's sounds or texts, unless something is selected at the item.
    public func setMediaSelectionCriteria(
        _ criteria: MediaSelectionCriteria?, for characteristic: MediaCharacteristic
    ) {
        turn { state in
            state.criteria[characteristic] = criteria
            applyCriteria(&state)
        }
    }

    /// What was asked for with ``setMediaSelectionCriteria(_:for:)``; `nil`: nothing.
    public func mediaSelectionCriteria(
        for characteristic: MediaCharacteristic
    ) -> MediaSelectionCriteria? {
        mediaSelectionCriteria[characteristic]
    }

    var mediaSelectionCriteria: [MediaCharacteristic: MediaSelectionCriteria] {
        observation.access(self, keyPath: \.mediaSelectionCriteria)
        return state.withLock { $0.criteria }
    }

    /// Whether the criteria hold; true at first.
    public var appliesMediaSelectionCriteriaAutomatically: Bool {
        get {
            observation.access(self, keyPath: \.appliesMediaSelectionCriteriaAutomatically)
            return state.withLock { $0.appliesCriteria }
        }
        set {
            turn { state in
                state.appliesCriteria = newValue
                applyCriteria(&state)
            }
        }
    }

    private func applyCriteria(_ state: inout State) {
        for item in state.items.values { item.setCriteria(state.criteriaInForce) }
        perform(.refresh, &state)
    }
}

extension Player.State {
    var criteriaInForce: [MediaCharacteristic: MediaSelectionCriteria] {
        appliesCriteria ? criteria : [:]
    }
}
