import Logging
import Synchronization
import TuttiAvahiDiscovery
import TuttiGroupControl

/// What the LAN hears of a room; what Avahi makes of it is said in the log.
final class Announcement: Sendable {
    private struct State {
        var name: RoomID
        var group = ""
        var household: String?
        var isHidden = false
        var isAnnounced = false
        var publication: PublicationID?
    }

    private let session: AvahiSession?
    private let role: DiscoveredRoom.Role
    private let port: Int
    /// It may found a household where there is none; see ``HouseholdSearch``.
    private let mayFound: Bool
    private let logger: Logger
    private let state: Mutex<State>
    private let said = Mutex<Set<String>>([])
    /// Others choose what is said of them: so many lines, and no more.
    static let mostLines = 32
    /// What this room is announced as, and what Avahi made of that, the last one now. Not in
    /// ``state``: Avahi tells of it while that is held.
    private let labels = Mutex<[String]>([])

    /// - Parameters:
    ///   - session: `nil`: nothing is announced.
    ///   - port: of the control service; 0 for a room that has none.
    ///   - household: see ``Credentials/announcedHousehold``.
    init(
        session: AvahiSession?, name: RoomID, role: DiscoveredRoom.Role, port: Int,
        household: String?, mayFound: Bool = false, logger: Logger
    ) {
        self.mayFound = mayFound
        self.session = session
        self.role = role
        self.port = port
        self.logger = logger
        state = Mutex(State(name: name, household: household))
    }

    /// Announces the room as a member of this group.
    func update(group: String) { change { $0.group = group } }

    /// Announces it as one of this household, where it was of another or hidden.
    func update(household: String?) {
        guard state.withLock({ $0.isHidden || $0.household != household }) else { return }
        change {
            $0.household = household
            $0.isHidden = false
        }
    }

    /// Nothing is announced until the household is known again.
    func hide() {
        state.withLock { $0.isHidden = true }
        withdraw()
    }

    /// Whether it has the first of all labels: no two on one LAN are the same.
    ///
    /// - Parameter others: may hold its own ones.
    func comesFirst(of others: Set<String>) -> Bool {
        let own = labels.withLock { $0.last ?? "" }
        return others.subtracting([own]).allSatisfy { own < $0 }
    }

    /// Whether the LAN hears of it, where there is Avahi.
    var isAnnounced: Bool { state.withLock(\.isAnnounced) }

    /// Nothing is announced any more.
    func withdraw() {
        state.withLock { state in
            state.isAnnounced = false
            if let publication = state.publication.take() { session?.withdraw(publication) }
        }
    }

    /// Announces it under another name.
    func rename(_ name: RoomID) { change { $0.name = name } }

    private func change(_ change: (inout State) -> Void) {
        state.withLock { state in
            change(&state)
            state.isAnnounced = !state.isHidden
            guard let session else { return }
            if let old = state.publication.take() { session.withdraw(old) }
            guard !state.isHidden else { return }
            let name = state.name.name
            // Its leader's word, on the way to everybody's terminal.
            let group = state.group.shown(limit: RoomID.longestBytes)
            var attributes = ["role": role.rawValue, "v": "1"]
            attributes["household"] = state.household
            attributes["founds"] = mayFound ? "1" : nil
            attributes.merge(AnnouncedText.attributes("name", name)) { $1 }
            attributes.merge(AnnouncedText.attributes("group", group)) { $1 }
            let label = AnnouncedText.label(for: name)
            labels.withLock { $0 = [label] }
            state.publication = session.advertise(
                Advertisement(name: label, port: port, attributes: attributes)
            ) { [weak self] news in
                self?.take(news)
            }
        }
    }

    /// Says once that another leader has this one's name: who comes second is told by Avahi.
    func notice(_ sighting: RoomSighting) {
        guard role == .leader, case .found(let room) = sighting, room.role == .leader else {
            return
        }
        let name = state.withLock { $0.name.name }
        guard room.name.foldedName == name.foldedName,
            !labels.withLock({ $0.contains(room.label) })
        else { return }
        say(
            .warning,
            "another leader of this network is called \"\(name)\" too: \"\(room.label)\" on \(room.host) (choose another --name to tell them apart)"
        )
    }

    private func take(_ news: PublicationNews) {
        switch news {
        case .renamed(let old, let new):
            labels.withLock { $0.append(new) }
            say(
                .warning,
                "another room of this network is announced as \"\(old)\"; this one as \"\(new)\" (choose another --name to tell them apart)"
            )
        case .refused(let error):
            say(.warning, "Avahi does not announce this room: \(error.reason)")
        }
    }

    /// Each line once.
    private func say(_ level: Logger.Level, _ text: String) {
        guard said.withLock({ $0.count < Self.mostLines && $0.insert(text).inserted }) else {
            return
        }
        logger.log(level: level, "\(text)")
    }
}
