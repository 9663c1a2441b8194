import TuttiGroupControl
import TuttiPlayout

/// What a group needs to be as it was after the power has failed: its queue as places of files, what was
/// set, and how far it was. The clock begins anew, and files are read anew.
///
/// Two files of the state folder, as lines of words with percent signs where a word could not hold a
/// byte. `session` changes with the queue:
///
///     tutti session 1
///     session NUMBER TERM                 which one it is, whoever leads it, and who led it last
///     repeats off|one|all
///     rate NUMBER
///     rooms NUMBER                        with an output; so many are waited for
///     common VOLUME MUTED GROUP ROLE      for rooms without a line of their own
///     room NAME VOLUME MUTED ROLE
///     item ID LOCATION TITLE FIRST END HASH       - stands for nothing
///     end
///
/// and `session-place` with the place, and while it plays every quarter of a minute:
/// `place SECONDS playing|paused|stopped SESSION ID`, the last of the item that is meant: a cut may
/// come between the two.
struct SavedSession: Equatable, Sendable {
    static let queueFile = "session"
    static let placeFile = "session-place"
    private static let heading = "tutti session 1"
    /// Bytes of the queue's file: ten thousand items with long names.
    static let longest = 8 << 20

    struct Item: Equatable, Sendable {
        /// As its group names it, whoever leads.
        var id: QueueEntry.ID
        /// A path or an address; `nil`: another machine has put it into the queue.
        var location: String?
        var title: String?
        var span: CueSpan?
        /// Of its bytes; `nil`: nobody has read it.
        var hash: ContentHash?
    }

    /// How far the session is.
    struct Place: Equatable, Sendable {
        enum Phase: String, Sendable { case playing, paused, stopped }

        /// Of the item, from 0.
        var index = 0
        var seconds = 0.0
        var phase = Phase.stopped
    }

    /// Which one it is; whoever goes on with it has the same.
    var session: UInt64
    /// In which it was led when this was kept: of two, the later one knows more.
    var term: UInt64 = 0
    var items: [Item]
    var repeats = RepeatMode.off
    var rate = 1.0
    var rooms = 1
    var commonSettings = RoomSettings.standard
    var settings: [RoomID: RoomSettings] = [:]
    var place = Place()
}

extension SavedSession {
    private static func word(_ text: String?) -> String {
        guard let text, !text.isEmpty else { return "-" }
        // A name that is a dash is none for nothing.
        let word = AssetName.escaped(text) { (0x21...0x7E).contains($0) && $0 != 0x25 }
        return word == "-" ? "%2D" : word
    }

    private static func text(_ word: Substring) -> String? {
        guard word != "-" else { return nil }
        return String(fileName: PlaylistPlace.unescaped(Array(word.utf8)[...]))
    }

    /// The file of the queue.
    var queueText: String {
        var lines = [
            Self.heading, "session \(session) \(term)", "repeats \(repeats.rawValue)",
            "rate \(rate)", "rooms \(rooms)",
            "common \(commonSettings.volume) \(commonSettings.muted) \(commonSettings.groupVolume) \(Self.word(commonSettings.role?.rawValue))",
        ]
        for (room, settings) in settings.sorted(by: { $0.key < $1.key }) {
            lines.append(
                "room \(Self.word(room.name)) \(settings.volume) \(settings.muted) \(Self.word(settings.role?.rawValue))"
            )
        }
        for item in items {
            let first = item.span.map { "\($0.first)" } ?? "-"
            let end = item.span?.end.map { "\($0)" } ?? "-"
            lines.append(
                "item \(item.id) \(Self.word(item.location)) \(Self.word(item.title)) \(first) \(end) \(item.hash?.hex ?? "-")"
            )
        }
        return (lines + ["end", ""]).joined(separator: "\n")
    }

    /// The file of the place.
    var placeText: String {
        "place \(place.seconds) \(place.phase.rawValue) \(session) "
            + (items.indices.contains(place.index) ? "\(items[place.index].id)" : "-") + "\n"
    }

    /// - Parameter placeText: `nil`, or of another session: from the beginning, and stopped.
    /// - Returns: `nil` for a file that is damaged, or of another version.
    init?(queueText: String, placeText: String?) {
        var lines = queueText.split(separator: "\n")[...]
        guard lines.popFirst() == Self.heading[...], lines.popLast() == "end" else { return nil }
        self.init(session: 0, items: [])
        for line in lines {
            let words = line.split(separator: " ")
            guard take(words) else { return nil }
        }
        guard items.count <= SessionState.longestQueue,
            Set(items.map(\.id)).count == items.count
        else { return nil }
        place = placeText.flatMap(place(_:)) ?? Place()
    }

    private mutating func take(_ words: [Substring]) -> Bool {
        switch (words.first, words.count) {
        case ("session", 3):
            guard let number = UInt64(words[1]), let term = UInt64(words[2]) else { return false }
            session = number
            self.term = term
        case ("repeats", 2):
            guard let mode = RepeatMode(rawValue: String(words[1])) else { return false }
            repeats = mode
        case ("rate", 2):
            guard let number = Double(words[1]), RateChange.rates.contains(number) else {
                return false
            }
            rate = number
        case ("rooms", 2):
            guard let number = Int(words[1]), (0...LeaderMachine.mostMembers).contains(number)
            else { return false }
            rooms = number
        case ("common", 5):
            guard let known = Self.settings(words[1], words[2], group: words[3], role: words[4])
            else { return false }
            commonSettings = known
        case ("room", 5):
            guard let name = Self.text(words[1]).flatMap({ try? RoomID($0) }),
                settings.count < Handover.mostSettings,
                let known = Self.settings(words[2], words[3], group: "100", role: words[4])
            else { return false }
            settings[name] = known
        case ("item", 7):
            let hash = try? ContentHash(hex: String(words[6]))
            guard let id = QueueEntry.ID(words[1]), hash != nil || words[6] == "-" else {
                return false
            }
            items.append(
                Item(
                    id: id, location: Self.text(words[2]), title: Self.text(words[3]),
                    span: Int64(words[4]).map { CueSpan(first: $0, end: Int64(words[5])) },
                    hash: hash))
        default: return false
        }
        return true
    }

    private static func settings(
        _ volume: Substring, _ muted: Substring, group: Substring, role: Substring
    ) -> RoomSettings? {
        guard let volume = Int(volume), let muted = Bool(String(muted)), let group = Int(group)
        else { return nil }
        return try? RoomSettings(
            volume: volume, muted: muted, groupVolume: group,
            role: RoomRole(rawValue: String(role)))
    }

    private func place(_ text: String) -> Place? {
        let words = text.split(whereSeparator: \.isWhitespace)
        guard words.count == 5, words[0] == "place", UInt64(words[3]) == session,
            let seconds = Double(words[1]), (0...1e9).contains(seconds),
            let phase = Place.Phase(rawValue: String(words[2]))
        else { return nil }
        return items.firstIndex { $0.id == QueueEntry.ID(words[4]) }
            .map { Place(index: $0, seconds: seconds, phase: phase) }
    }
}

/// Where a node keeps the session that it leads.
struct SessionFolder: Sendable {
    let folder: StateFolder

    /// What was kept; `nil` where there is nothing.
    ///
    /// - Throws: what is wrong with it, for a person. What cannot be understood is set aside, so that the
    ///   next start is not troubled by it.
    func read() throws -> SavedSession? {
        guard let bytes = try folder.readBytes(SavedSession.queueFile, most: SavedSession.longest)
        else { return nil }
        let place = try? folder.read(SavedSession.placeFile)
        guard
            let session = SavedSession(
                queueText: String(decoding: bytes, as: UTF8.self), placeText: place)
        else {
            folder.setAside(SavedSession.queueFile)
            folder.remove(SavedSession.placeFile)
            throw RoomError(
                .badState,
                "\(folder.path)/\(SavedSession.queueFile) is damaged, or of another version of Tutti: it is set aside as \(SavedSession.queueFile).bad, and the queue begins empty"
            )
        }
        return session
    }

    /// - Parameter known: what was written last.
    func write(_ session: SavedSession, after known: SavedSession?) throws {
        var queue = session
        queue.place = known?.place ?? SavedSession.Place()
        if queue != known {
            try folder.write(SavedSession.queueFile, session.queueText)
        }
        if session.place != known?.place || queue != known {
            try folder.write(SavedSession.placeFile, session.placeText)
        }
    }

    /// - Returns: whether it is this session that was kept, and is not any more.
    func remove(_ session: UInt64) -> Bool {
        guard (try? read())?.session == session else { return false }
        remove()
        return true
    }

    func remove() {
        folder.remove(SavedSession.queueFile)
        folder.remove(SavedSession.placeFile)
    }
}
