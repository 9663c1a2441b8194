import TuttiGroupControl

/// Work that a room has to begin. None of it is ever dropped: a preparation that is not answered, or a
/// player that is not given back, is missed by somebody.
///
/// What bounds it is what it is about. There is one link, and a machine that orders no more than so
/// many assets and preparations at once; work that was overtaken before it began (the same again, or
/// a preparation that was withdrawn) is replaced or taken out. So a burst of messages, however long,
/// leaves no more here than the room can have.
struct Jobs {
    typealias Work = @Sendable () async -> Void

    enum Subject: Hashable {
        case link
        /// Whether this node leads.
        case lead
        /// Who leads, when the leader is not heard.
        case search
        case asset(ContentHash)
        case preparation(UInt64)
        /// The end of what a preparation made sound.
        case silence(UInt64)
    }

    private var waiting: [(subject: Subject, work: Work)] = []

    var count: Int { waiting.count }

    /// To be begun after what waits already; instead of older work on the same.
    mutating func add(_ subject: Subject, _ work: @escaping Work) {
        remove(subject)
        waiting.append((subject, work))
    }

    /// Nobody needs it any more.
    mutating func remove(_ subject: Subject) { waiting.removeAll { $0.subject == subject } }

    /// All that is to be begun now, oldest first.
    mutating func take() -> [Work] {
        defer { waiting = [] }
        return waiting.map(\.work)
    }
}
