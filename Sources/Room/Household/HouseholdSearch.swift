import Logging
import Synchronization
import TuttiAvahiDiscovery
import TuttiGroupControl
import TuttiTiming
import TuttiTrust

/// How a room that belongs to nobody comes into a household: it looks for one, shows digits, and waits
/// until a person accepts them where the music is.
struct HouseholdSearch: Sendable {
    /// Between two tries; a member takes a few an hour from one machine.
    static let pauses: [Duration] = [
        .seconds(1), .seconds(5), .seconds(60), .seconds(300), .seconds(900),
    ]

    let keeper: HouseholdKeeper
    /// Join by this one; `nil`: by one that is announced.
    let leader: HostPort?
    /// Of those that are announced, only the one of this name counts.
    let leaderName: String?
    /// Founds one where none is announced; `nil`: it looks on.
    var founding: Founding?
    let logger: Logger
    private let meeting = Meeting()

    /// How a house whose machines are switched on together gets one household and not several: each
    /// announces that it may found one, and of those that see each other the first does.
    struct Founding: Sendable {
        /// Those that are started together have heard of each other by then, and the founder leads.
        var patience: Duration
        /// What says so; the room itself is not announced before it belongs somewhere.
        var announcement: Announcement?
    }

    /// So often those that come before this node are waited for: they may be gone without a word.
    private static let mostWaits = 3

    private final class Meeting: Sendable {
        /// There is a household to join.
        let hasMet = Mutex(false)
        /// Others that may found one, by label.
        let founders = Mutex<Set<String>>([])
    }

    init(
        keeper: HouseholdKeeper, leader: HostPort?, leaderName: String?,
        founding: Founding? = nil, logger: Logger
    ) {
        self.keeper = keeper
        self.leader = leader
        self.leaderName = leaderName
        self.founding = founding
        self.logger = logger
    }

    /// Returns when this node belongs to a household that has a leader, or more members than itself,
    /// or that it has founded.
    ///
    /// - Returns: whether it has.
    /// - Throws: `CancellationError`; `RoomError` where leaders cannot be looked for.
    func run(_ session: AvahiSession?) async throws -> Bool {
        guard let founding else {
            try await search(session)
            return false
        }
        founding.announcement?.update(group: "")
        defer { founding.announcement?.withdraw() }
        return try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await self.search(session)
                return false
            }
            group.addTask {
                try await self.waitUntilFirst(founding)
                guard !self.meeting.hasMet.withLock({ $0 }), self.keeper.isFree else {
                    // A person is asked, who takes a while.
                    try await Task.sleep(for: .seconds(86_400 * 365))
                    return false
                }
                try self.keeper.foundIfNone()
                self.logger.notice("no household is announced here; this node founds one")
                return true
            }
            defer { group.cancelAll() }
            return try await group.next() ?? false
        }
    }

    private func waitUntilFirst(_ founding: Founding) async throws {
        var hasWaited = false
        for _ in 0..<Self.mostWaits {
            try await Task.sleep(for: founding.patience)
            guard let announcement = founding.announcement else { return }
            let isFirst = meeting.founders.withLock { announcement.comesFirst(of: $0) }
            // One that was first and is not seen any more has founded just now, as a rule.
            if isFirst, !hasWaited { return }
            if !isFirst { logger.notice("another new machine is here that founds the household") }
            hasWaited = !isFirst
        }
    }

    private func search(_ session: AvahiSession?) async throws {
        var tries = 0
        var isSaid: Set<String> = []
        while keeper.isFree {
            try Task.checkCancellation()
            // Another process of this node may have founded or joined one meanwhile.
            keeper.refresh()
            do {
                let address: HostPort
                if let leader {
                    address = leader
                } else {
                    guard let found = try await find(session) else { return }
                    address = found
                }
                meeting.hasMet.withLock { $0 = true }
                if try await isKnown(at: address) { return }
                try await PairingClient.pair(with: address, keeper) { [logger] in
                    logger.notice("another machine is being paired there; this one is next")
                } show: { [logger] digits, household in
                    logger.notice(
                        "this room shows \(digits) to \"\(household)\": if that shows the same, accept it there, or with `tutti household accept \(digits.filter(\.isNumber))` on any member"
                    )
                }
                logger.notice("this room belongs to the household now")
            } catch let error as RoomError {
                keeper.refresh()
                guard keeper.isFree else { return }
                guard error.code != .unreachable else {
                    // Nobody was asked: it costs no try.
                    if isSaid.insert(error.description).inserted {
                        logger.notice(
                            "looking for a household to join",
                            metadata: ["reason": "\(error.description)"])
                    }
                    try await Task.sleep(for: Self.pauses[0])
                    continue
                }
                let pause = Self.pauses[min(tries, Self.pauses.count - 1)]
                tries += 1
                logger.notice(
                    "this room belongs to no household yet",
                    metadata: ["reason": "\(error.description)", "next try in": "\(pause)"])
                try await Task.sleep(for: pause)
            }
        }
    }

    /// Whether this node is a member already, and hears of it only now. Of who says nothing at all
    /// nothing else is asked.
    private func isKnown(at address: HostPort) async throws -> Bool {
        do {
            let introduction = try await HouseholdLink.introduce(
                to: address, Credentials(kind: .household(keeper)))
            return if case .members = introduction { true } else { false }
        } catch let error as RoomError
            where error == .silence(of: address, isTaken: true, .unreachable)
        {
            throw error
        } catch {
            return false
        }
    }

    /// The leader to be paired with.
    ///
    /// - Returns: `nil`: one of this node's own household is there.
    private func find(_ session: AvahiSession?) async throws -> HostPort? {
        guard let session else {
            throw RoomError(
                .noDiscovery, "no household can be found; give a leader with --leader HOST:PORT")
        }
        logger.notice("looking for a household to join")
        var leaders: [String: DiscoveredRoom] = [:]
        var said: Set<String> = []
        var isComplete = false
        for await event in session.browse() {
            try Task.checkCancellation()
            switch RoomSighting(event) {
            case .found(let room)
            where room.role == .leader && leaderName.map(room.isCalled) ?? true:
                leaders[room.label] = room
            case .found(let room) where room.mayFound:
                leaders[room.label] = nil
                meeting.founders.withLock { _ = $0.insert(room.label) }
            case .gone(let label):
                leaders[label] = nil
                meeting.founders.withLock { _ = $0.remove(label) }
            case .answersTold: isComplete = true
            case .found, .knownTold, .daemonLost, nil: break
            }
            keeper.refresh()
            let own = keeper.seatedHousehold.map(Credentials.announced)
            let reachable = leaders.values.filter { !$0.addresses.isEmpty }
            if !keeper.isFree || reachable.contains(where: { $0.household == own && own != nil }) {
                return nil
            }
            guard isComplete else { continue }
            let houses = Dictionary(
                grouping: reachable.filter { $0.household != nil }, by: \.household)
            if houses.count > 1 {
                let names = reachable.map { "\"\($0.name)\"" }.sorted().joined(separator: ", ")
                if said.insert(names).inserted {
                    logger.notice(
                        "several households are here, led by \(names): say which one with --group NAME"
                    )
                }
            } else if let leader = houses.values.first?.min(by: { $0.label < $1.label }) {
                return leader.address
            }
            for room in reachable where room.household == nil && said.insert(room.label).inserted {
                logger.notice(
                    "\"\(room.name)\" leads a group that is open to everybody: to follow that, start with --open"
                )
            }
        }
        throw CancellationError()
    }
}
