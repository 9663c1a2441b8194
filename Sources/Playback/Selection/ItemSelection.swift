import TuttiPlayout

/// Which tracks of an item are presented, as a value: what the container asks for, what the player's
/// criteria prefer, and what somebody chose, which counts most.
struct ItemSelection: Equatable, Sendable {
    enum Choice: Equatable, Sendable {
        /// By the player's criteria, else as the container asks.
        case automatic
        case option(Int)
        case nothing
    }

    var tracks: [MediaTrack] = []
    /// The audio track that is heard where nobody chooses; `nil`: all of them are, as of a composition.
    var preset: Int?
    private var choices: [MediaCharacteristic: Choice] = [:]
    var criteria: [MediaCharacteristic: MediaSelectionCriteria] = [:]
    /// Tracks that were switched on or off by themselves.
    private var switches: [Int: Bool] = [:]

    func group(_ characteristic: MediaCharacteristic) -> MediaSelectionGroup? {
        MediaSelectionGroup(characteristic, of: tracks, heard: preset)
    }

    func selected(in characteristic: MediaCharacteristic) -> MediaSelectionOption? {
        guard let group = group(characteristic) else { return nil }
        switch choices[characteristic] ?? .automatic {
        case .nothing: return nil
        case .option(let id): return group.options.first { $0.track.id == id }
        case .automatic:
            return criteria[characteristic]?.choose(from: group) ?? group.defaultOption
        }
    }

    /// What was switched by itself before does not count any more.
    mutating func choose(_ choice: Choice, in characteristic: MediaCharacteristic) {
        choices[characteristic] = choice
        for option in group(characteristic)?.options ?? [] { switches[option.track.id] = nil }
    }

    func isEnabled(_ track: MediaTrack) -> Bool {
        if let isOn = switches[track.id] { return isOn }
        return switch track.kind {
        case .audio where preset == nil && choices[.audible] == nil: true
        case .audio: selected(in: .audible)?.track.id == track.id
        case .text: selected(in: .legible)?.track.id == track.id
        case .video: selected(in: .visual)?.track.id == track.id
        case .other: false
        }
    }

    mutating func setEnabled(_ isOn: Bool, _ id: Int) { switches[id] = isOn }

    /// Those that are heard together; `nil`: what is heard where nobody chooses.
    ///
    /// - Parameter apart: each by itself, also where that is the same: they are to be mixed.
    func heard(apart: Bool) -> [Int]? {
        let audio = tracks.filter { $0.kind == .audio }
        let enabled = audio.filter(isEnabled).map(\.id)
        if audio.isEmpty { return nil }
        guard let preset else { return enabled.count == audio.count && !apart ? nil : enabled }
        return enabled == [preset] ? nil : enabled
    }

    /// Those that are to be read.
    var read: [MediaTrack] { tracks.filter { $0.kind == .text && isEnabled($0) } }
}
