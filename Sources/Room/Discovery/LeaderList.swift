import TuttiTiming

/// The leaders that a room has heard of, and which of them it would rather follow.
///
/// An announcement is no leader: it may be left over from one that lost its power, or invented. So
/// who answered counts, and who did not is asked last.
struct LeaderList: Sendable {
    /// Leaders remembered; a LAN has one or two.
    static let most = 256

    struct Entry: Sendable {
        var room: DiscoveredRoom
        /// Since when it is known.
        var since: LocalInstant
        /// How often it did not answer, in a row.
        var silences = 0
        /// How often it answered, and did not welcome the room.
        var refusals = 0
    }

    /// Only leaders of this name count; `nil`: all.
    let name: String?
    /// Name of the one that was followed last.
    private(set) var preferred: String?
    private(set) var entries: [String: Entry] = [:]

    init(name: String?, preferred: String? = nil) {
        self.name = name
        self.preferred = preferred
    }

    /// - Returns: whether that changes whom to ask.
    mutating func take(_ room: DiscoveredRoom, at now: LocalInstant) -> Bool {
        guard room.role == .leader, name.map(room.isCalled) ?? true else { return false }
        if let known = entries[room.label] {
            guard known.room != room else { return false }
            entries[room.label]?.room = room
            // What did not answer was somewhere else.
            entries[room.label]?.silences = 0
            return true
        }
        if entries.count >= Self.most {
            guard let dead = entries.max(by: { $0.value.silences < $1.value.silences }),
                dead.value.silences > 0
            else { return false }
            entries[dead.key] = nil
        }
        entries[room.label] = Entry(room: room, since: now)
        return true
    }

    mutating func remove(_ label: String) -> Bool { entries.removeValue(forKey: label) != nil }

    mutating func wasSilent(_ label: String) { entries[label]?.silences += 1 }

    mutating func refused(_ label: String) { entries[label]?.refusals += 1 }

    mutating func welcomed(_ label: String) {
        guard let room = entries[label]?.room else { return }
        preferred = room.name
        entries[label]?.silences = 0
        entries[label]?.refusals = 0
    }

    /// Labels of those that have an address: whom to follow of those that answer, the best first.
    ///
    /// Whom the room followed last, then whom it has known longest.
    var ranked: [String] {
        reachable.sorted { a, b in
            let (isFirst, isSecond) = (a.room.name == preferred, b.room.name == preferred)
            if a.refusals != b.refusals { return a.refusals < b.refusals }
            if isFirst != isSecond { return isFirst }
            return (a.since, a.room.label) < (b.since, b.room.label)
        }.map(\.room.label)
    }

    /// … and whom to ask first.
    var inOrderOfAsking: [String] {
        let ranks = Dictionary(uniqueKeysWithValues: zip(ranked, 0...))
        return ranked.sorted {
            (entries[$0]?.silences ?? 0, ranks[$0] ?? 0)
                < (entries[$1]?.silences ?? 0, ranks[$1] ?? 0)
        }
    }

    /// Whether the one that was followed last is known at all.
    var lacksPreferred: Bool {
        guard let preferred else { return false }
        return !entries.values.contains { $0.room.name == preferred }
    }

    private var reachable: [Entry] { entries.values.filter { !$0.room.addresses.isEmpty } }
}
