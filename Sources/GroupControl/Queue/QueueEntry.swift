/// An item of a queue as its leader keeps it: known, still to be read, or of no use.
public struct QueueEntry: Equatable, Sendable, Identifiable {
    /// Names an item for as long as the session lasts, wherever it is moved.
    public typealias ID = UInt64

    /// Identities from here on are given by the leader's machine, those below by who lists items.
    package static let firstOwnID: ID = 1 << 62

    /// What the leader knows of an item.
    public enum State: Equatable, Sendable {
        /// Nobody has looked at its bytes yet.
        case unread
        case known(AssetDescriptor)
        /// It is left out, and stays in the list with the reason.
        case unplayable(reason: String)
    }

    /// Stays with the entry wherever it is moved.
    public let id: ID
    /// What people see of it until its title is known.
    public let name: String
    /// Where every machine can fetch it; `nil` for a file of one machine.
    public let address: String?
    /// Whether it can be played, as far as is known.
    public internal(set) var state: State
    /// Why the group went on without it the last time, though it may be played later: no room could
    /// play it just then, or the machine that has its file was away. `nil` where it did not, and
    /// once it plays.
    public internal(set) var obstacle: String?

    /// An entry; the name is cut to ``AssetDescriptor/longestTitle`` bytes.
    public init(id: ID, name: String, state: State = .unread, address: String? = nil) {
        self.id = id
        self.address = address
        self.name = name.limited(toBytes: AssetDescriptor.longestTitle)
        self.state = state
    }

    /// The item once it is known; `nil` while nobody has read it, and where it cannot be played.
    public var asset: AssetDescriptor? {
        if case .known(let asset) = state { asset } else { nil }
    }
}

/// What follows the last item, or each.
public enum RepeatMode: String, CaseIterable, Codable, Sendable {
    case off
    /// The same item, until somebody goes on by hand.
    case one
    /// The whole queue.
    case all
}

/// Where in a queue something is put.
public enum QueuePlace: Equatable, Sendable {
    case end
    /// Behind what plays, and behind what is about to begin.
    case next
    /// Before what is there; from 0. Beyond the end: the end.
    case position(Int)
    /// Behind this item; at the end where it is gone.
    case behind(QueueEntry.ID)
}

/// A change of a queue. Items are named by their identities: positions may have moved since somebody
/// looked.
public enum QueueEdit: Equatable, Sendable {
    /// What plays may be among them: then the next item begins.
    case remove([QueueEntry.ID])
    /// To this position, from 0, of the queue without the item.
    case move(QueueEntry.ID, to: Int)
    /// Everything but what plays.
    case clear
    /// What comes behind the playing item, in an order that the seed decides.
    case reorder(seed: UInt64)
    case repeating(RepeatMode)
    /// Go to this item, and play.
    case play(QueueEntry.ID)

    /// Most items that one edit names: they fit a message to a leader.
    public static let mostItems = 1_000
}

/// What somebody wants in a queue.
public struct QueueAddition: Equatable, Sendable {
    /// Most files, folders, playlists and addresses of one request; a folder may hold any number.
    public static let mostLocations = 1_000
    /// Bytes of one.
    public static let longestLocation = 8_192
    /// Bytes of all of a request's locations together: they fit a message to a leader.
    public static let mostBytes = 12_288

    /// Paths of the leader's machine, or addresses.
    public var locations: [String]
    /// Where in the queue they go.
    public var place: QueuePlace

    /// A wish; what of it is allowed is checked before it is sent.
    public init(locations: [String], place: QueuePlace) {
        self.locations = locations
        self.place = place
    }

    /// Why a location can be none, in a sentence; `nil` where it may be one.
    public static func obstacle(to location: String) -> String? {
        let start = location.lowercased()
        guard let scheme = ["http://", "https://"].first(where: start.hasPrefix) else { return nil }
        let authority = location.dropFirst(scheme.count).prefix { !"/?#".contains($0) }
        let host = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        return host.isEmpty || host.hasPrefix(":")
            ? "\(location) names no machine: an address is http://nas.local/song.flac" : nil
    }

    /// The same as requests that each fit a message, in the order in which they are to be made.
    public var parts: [QueueAddition] {
        var parts: [[String]] = []
        var bytes = 0
        for location in locations {
            let size = location.utf8.count + 4
            if parts.isEmpty || bytes + size > Self.mostBytes
                || parts[parts.count - 1].count >= Self.mostLocations
            {
                parts.append([])
                bytes = 0
            }
            parts[parts.count - 1].append(location)
            bytes += size
        }
        // What is put before what is there goes in from its end.
        let isAtEnd = place == .end
        return (isAtEnd ? parts : parts.reversed()).map {
            QueueAddition(locations: $0, place: place)
        }
    }
}

/// A part of a queue, as shown to a person; the JSON of `tutti queue --json`.
public struct QueueListing: Equatable, Codable, Sendable {
    /// One entry of the queue.
    public struct Item: Equatable, Codable, Sendable, Identifiable {
        /// What is known of the item.
        public enum State: String, CaseIterable, Codable, Sendable {
            case known
            case unread
            case unplayable
        }

        /// Stays with the entry wherever it is moved; commands name it.
        public var id: QueueEntry.ID
        /// The item's title, or its name until it is read.
        public var title: String
        /// Whether it can be played, as far as is known.
        public var state: State
        /// `nil` where nobody knows yet.
        public var durationSeconds: Double?
        /// Why it is left out; of an item in another state than `unplayable`, why it was the last
        /// time: it is tried again.
        public var reason: String?

        /// One entry; `reason` belongs to one that is, or was, left out.
        public init(
            id: QueueEntry.ID, title: String, state: State, durationSeconds: Double? = nil,
            reason: String? = nil
        ) {
            self.id = id
            self.title = title
            self.state = state
            self.durationSeconds = durationSeconds
            self.reason = reason
        }
    }

    /// Counts the changes of the queue under one leader; the next one begins anew.
    public var revision: UInt64
    /// Items of the whole queue.
    public var count: Int
    /// Items that are still being looked for in folders and playlists, at least.
    public var coming: Int
    /// Position of the current item, from 0; `nil` when there is none.
    public var current: Int?
    /// Where the session stands.
    public var phase: SessionPhase
    /// What follows the last item, or each.
    public var repeats: RepeatMode
    /// Position of the first of `items`.
    public var first: Int
    /// A part of the queue in its order; at most ``mostItems``.
    public var items: [Item]
    /// What was to be added lately and is not in the queue: an empty folder, a broken playlist, an
    /// entry that may not be read. A sentence each, the latest last; at most ``mostLeftOut``.
    public var leftOut: [String]
    /// So many there were under this leader: who has seen fewer sees which of ``leftOut`` are new.
    public var leftOutCount: UInt64

    /// Most sentences of one listing; older ones are in the leader's log.
    public static let mostLeftOut = 16
    /// Bytes of one of them: a path and its reason.
    public static let longestSentence = 1_024
    /// Most items of one listing; one message holds them.
    public static let mostItems = 500

    /// A part of a queue of `count` items, from position `first` on.
    public init(
        revision: UInt64, count: Int, coming: Int, current: Int?, phase: SessionPhase,
        repeats: RepeatMode, first: Int, items: [Item], leftOut: [String] = [],
        leftOutCount: UInt64 = 0
    ) {
        self.leftOut = leftOut
        self.leftOutCount = leftOutCount
        self.revision = revision
        self.count = count
        self.coming = coming
        self.current = current
        self.phase = phase
        self.repeats = repeats
        self.first = first
        self.items = items
    }
}

extension QueueListing.Item {
    init(_ entry: QueueEntry) {
        switch entry.state {
        case .unread:
            self.init(id: entry.id, title: entry.name, state: .unread, reason: entry.obstacle)
        case .known(let asset):
            self.init(
                id: entry.id, title: asset.title.isEmpty ? entry.name : asset.title, state: .known,
                durationSeconds: asset.durationSeconds, reason: entry.obstacle)
        case .unplayable(let reason):
            self.init(id: entry.id, title: entry.name, state: .unplayable, reason: reason)
        }
    }
}
