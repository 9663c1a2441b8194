public import TuttiPlayout

/// Options of an asset of which one is heard, read or seen at a time (AVFoundation's
/// `AVMediaSelectionGroup`).
public struct MediaSelectionGroup: Equatable, Sendable {
    /// ``MediaCharacteristic/audible``, ``MediaCharacteristic/legible`` or
    /// ``MediaCharacteristic/visual``.
    public let characteristic: MediaCharacteristic
    /// Its alternatives, in the container's order; at least one.
    public let options: [MediaSelectionOption]
    /// What the asset asks for where nobody chooses.
    public let defaultOption: MediaSelectionOption?
    /// Whether there may be none of them.
    public var allowsEmptySelection: Bool { characteristic != .audible }

    /// - Returns: `nil` where the asset has nothing of the kind.
    init?(_ characteristic: MediaCharacteristic, of tracks: [MediaTrack], heard: Int?) {
        let kind: MediaTrack.Kind
        switch characteristic {
        case .audible: kind = .audio
        case .legible: kind = .text
        case .visual: kind = .video
        default: return nil
        }
        options = tracks.filter { $0.kind == kind }.map(MediaSelectionOption.init)
        guard !options.isEmpty else { return nil }
        self.characteristic = characteristic
        switch kind {
        case .audio: defaultOption = options.first { $0.track.id == heard } ?? options.first
        case .text:
            // What is only a help is not shown unless somebody wants it.
            defaultOption = options.first {
                $0.track.isDefault && $0.hasMediaCharacteristic(.containsOnlyForcedSubtitles)
            }
        case .video, .other: defaultOption = options.first { $0.track.isDefault } ?? options.first
        }
    }

    /// Those that this build can play.
    public var playableOptions: [MediaSelectionOption] { options.filter(\.isPlayable) }

    /// Those in one of the languages, the first language's first and of each the nearest first; languages
    /// are compared as what they mean: `de`, `deu`, `ger`.
    public static func options(
        _ options: [MediaSelectionOption], filteredAndSortedBy languages: [String]
    ) -> [MediaSelectionOption] {
        var chosen: [MediaSelectionOption] = []
        for wanted in languages.compactMap(LanguageTag.init) {
            let matches = options.enumerated().compactMap { place, option in
                option.languageTag.flatMap { wanted.match($0) }.map { (option, $0, place) }
            }
            for (option, _, _) in matches.sorted(by: { ($1.1, $0.2) < ($0.1, $1.2) })
            where !chosen.contains(option) {
                chosen.append(option)
            }
        }
        return chosen
    }

    /// Those that have all of the characteristics.
    public static func options(
        _ options: [MediaSelectionOption], with characteristics: Set<MediaCharacteristic>
    ) -> [MediaSelectionOption] {
        options.filter { characteristics.allSatisfy($0.hasMediaCharacteristic) }
    }

    /// Those that have none of them.
    public static func options(
        _ options: [MediaSelectionOption], without characteristics: Set<MediaCharacteristic>
    ) -> [MediaSelectionOption] {
        options.filter { !characteristics.contains(where: $0.hasMediaCharacteristic) }
    }
}

/// One of the alternatives of a ``MediaSelectionGroup``: a track.
public struct MediaSelectionOption: Equatable, Sendable {
    /// The track that is chosen with it.
    public let track: MediaTrack

    init(_ track: MediaTrack) { self.track = track }

    /// For people: what the container calls it, or its language, or its number.
    public var displayName: String { track.title ?? track.language ?? "track \(track.id)" }
    /// As the container says it; see ``MediaTrack/language``.
    public var extendedLanguageTag: String? { track.language }
    /// Whether this build can decode the track.
    public var isPlayable: Bool { track.isDecodable }

    /// Whether the container says that the track is for that.
    public func hasMediaCharacteristic(_ characteristic: MediaCharacteristic) -> Bool {
        track.characteristics.contains(characteristic)
    }

    var languageTag: LanguageTag? { track.language.flatMap(LanguageTag.init) }
}

/// What somebody prefers of all items: a player chooses by it (AVFoundation's
/// `AVPlayerMediaSelectionCriteria`).
public struct MediaSelectionCriteria: Equatable, Sendable {
    /// The most wanted first, as BCP 47 or ISO 639 tags; empty: no preference.
    public var preferredLanguages: [String]
    /// Of options in one language, the one with most of these is taken.
    public var preferredMediaCharacteristics: Set<MediaCharacteristic>
    /// Before languages: options that have all of these, where there are such.
    public var principalMediaCharacteristics: Set<MediaCharacteristic>

    /// Wishes; what is left out is all the same.
    public init(
        preferredLanguages: [String] = [],
        preferredMediaCharacteristics: Set<MediaCharacteristic> = [],
        principalMediaCharacteristics: Set<MediaCharacteristic> = []
    ) {
        self.preferredLanguages = preferredLanguages
        self.preferredMediaCharacteristics = preferredMediaCharacteristics
        self.principalMediaCharacteristics = principalMediaCharacteristics
    }

    /// What they choose of a group; `nil`: nothing fits, and what the asset asks for holds.
    public func choose(from group: MediaSelectionGroup) -> MediaSelectionOption? {
        var candidates = group.playableOptions
        let principal = MediaSelectionGroup.options(
            candidates, with: principalMediaCharacteristics)
        if !principal.isEmpty { candidates = principal }
        if !preferredLanguages.isEmpty {
            let spoken = MediaSelectionGroup.options(
                candidates, filteredAndSortedBy: preferredLanguages)
            guard let best = spoken.first else {
                return principalMediaCharacteristics.isEmpty || principal.isEmpty
                    ? nil : mostFitting(candidates, group.defaultOption)
            }
            // Of the language that is most wanted of those that there are.
            candidates = spoken.filter { $0.languageTag?.language == best.languageTag?.language }
        } else if principalMediaCharacteristics.isEmpty, preferredMediaCharacteristics.isEmpty {
            return nil
        }
        return mostFitting(candidates, group.defaultOption)
    }

    private func mostFitting(
        _ options: [MediaSelectionOption], _ preset: MediaSelectionOption?
    ) -> MediaSelectionOption? {
        func fit(_ option: MediaSelectionOption) -> Int {
            preferredMediaCharacteristics.count { option.hasMediaCharacteristic($0) }
        }
        let most = options.map(fit).max() ?? 0
        let best = options.filter { fit($0) == most }
        return best.first { $0 == preset } ?? best.first
    }
}
