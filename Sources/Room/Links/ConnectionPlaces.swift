import TuttiTiming
import TuttiTrust

/// Who may be connected at once, and who makes room for whom comes.
///
/// Anybody on the network can open connections and leave them. So there is a number of places for
/// each kind, and a full house does not turn everybody away: who does nothing with a place loses it
/// to a newcomer.
///
/// - A stranger has not said what it is. The one that has waited longest goes, of a machine that has
///   many already one of its own.
///   Machines are told apart as for handshakes; who comes from where a member came lately is sent
///   away last.
/// - A candidate waits for a person. It has one of a few places, and stays: who comes later is refused.
/// - A client asks and is answered. The one whose last question is longest ago goes; some places are
///   for clients of this machine alone.
/// - A room reports each second. One that has said nothing for ``silence`` goes, and no other: who
///   plays is not disturbed.
/// - A member that keeps a link for news of the household goes as a client does.
/// - A reader of assets goes when nothing is on its way to it, or has not moved for ``silence``. One
///   machine of the network has some of their places, not all.
///
/// A value without clock and sockets; ``Doorkeeper`` has those.
struct ConnectionPlaces: Sendable {
    typealias ID = UInt64

    enum Kind: CaseIterable, Sendable { case stranger, candidate, client, room, media, household }

    enum Verdict: Equatable, Sendable {
        /// Come in; who is named, if any, has to go for it.
        case admitted(insteadOf: ID?)
        case refused
    }

    /// Places for each kind.
    struct Limits: Equatable, Sendable {
        var strangers = 256
        /// Of them for one machine of the network: who asks for more takes the places of its own.
        var strangersOfOneHost: Int { max(Self.fewest, strangers / 8) }
        /// Pairings under way, and as many that are told why not, or have an invite.
        var candidates = 4 * PairingDesk.mostOpen
        /// Of them for one machine of the network.
        var candidatesOfOneHost: Int { max(Self.fewest, candidates / 4) }
        var clients = 160
        /// More, for clients of this machine: its owner can always tell it something.
        var localClients = 16
        /// All of a group, and some that are about to take the place of their own dead link.
        var rooms = 288
        /// More than a group has rooms: a LAN guest cannot use up our files.
        var media = MediaService.connectionsMax
        /// Each member once, and once more while its dead link is still there.
        var households = 2 * Household.mostMembers
        /// Of them for one machine: some rooms, each with what plays, what follows and a seek.
        var mediaOfOneHost: Int { max(Self.fewest, media / 8) }

        var total: Int {
            strangers + candidates + clients + localClients + rooms + media + households
        }

        /// For a process that may have no more than so many files: each kind gets its share.
        ///
        /// - Parameter files: left for connections, and for the files that are read for them.
        func fitting(_ files: Int) -> Limits {
            let needed = total + media
            guard files < needed else { return self }
            func share(_ count: Int) -> Int { max(Self.fewest, count * max(0, files) / needed) }
            return Limits(
                strangers: share(strangers), candidates: share(candidates),
                clients: share(clients),
                localClients: share(localClients), rooms: share(rooms), media: share(media),
                households: share(households))
        }

        /// Of any kind; below, a house with a few rooms does not work.
        static let fewest = 2
    }

    /// Who has said nothing useful for so long may be sent away by somebody who comes.
    static let silence = Nanoseconds.seconds(10)

    private struct Place {
        var kind = Kind.stranger
        var isLocal: Bool
        /// Its address; `nil`: not known.
        var host: String?
        /// What tells its machine from others: its address where a member came from it lately.
        var machine: String?
        var isKnown = false
        /// Something is being done for it just now.
        var isBusy = false
        var usefulAt: LocalInstant
    }

    let limits: Limits
    private var places: [ID: Place] = [:]
    private var nextID: ID = 0

    init(_ limits: Limits = Limits()) { self.limits = limits }

    func count(of kind: Kind) -> Int { places.values.count { $0.kind == kind } }

    /// Somebody has connected and said nothing yet: there is always a place.
    ///
    /// - Parameters:
    ///   - host: its address, without its port.
    ///   - isKnown: whether a member has come from there lately.
    mutating func enter(
        isLocal: Bool, host: String? = nil, isKnown: Bool = false, at now: LocalInstant
    ) -> (id: ID, insteadOf: ID?) {
        var sentAway: ID?
        let machine = isKnown ? host : host.map(HandshakePace.host)
        func isNeighbour(_ place: Place) -> Bool {
            place.kind == .stranger && place.machine == machine && place.isKnown == isKnown
        }
        if machine != nil, !isLocal,
            places.values.count(where: isNeighbour) >= limits.strangersOfOneHost
        {
            sentAway = oldest(isNeighbour)
        } else if count(of: .stranger) >= limits.strangers {
            sentAway =
                oldest { $0.kind == .stranger && !$0.isKnown } ?? oldest { $0.kind == .stranger }
        }
        if let sentAway { places[sentAway] = nil }
        nextID += 1
        places[nextID] = Place(
            isLocal: isLocal, host: host, machine: machine, isKnown: isKnown, usefulAt: now)
        return (nextID, sentAway)
    }

    /// It has said what it is.
    ///
    /// - Returns: `.refused` also for one that was sent away meanwhile.
    mutating func become(_ kind: Kind, _ id: ID, at now: LocalInstant) -> Verdict {
        guard let place = places[id] else { return .refused }
        if place.kind == kind {
            places[id]?.usefulAt = now
            return .admitted(insteadOf: nil)
        }
        var sentAway: ID?
        if kind == .candidate {
            let ofMachine = places.values.count {
                $0.kind == kind && $0.machine == place.machine && place.machine != nil
            }
            guard count(of: kind) < limits.candidates,
                place.isLocal || ofMachine < limits.candidatesOfOneHost
            else { return .refused }
        } else if kind == .media, let host = place.host, !place.isLocal,
            places.values.count(where: { $0.kind == kind && $0.host == host })
                >= limits.mediaOfOneHost
        {
            sentAway = whoGoes(at: now) { $0.kind == kind && $0.host == host }
            guard let sentAway else { return .refused }
            places[sentAway] = nil
        } else if count(of: kind) >= limit(kind, isLocal: place.isLocal) {
            sentAway = whoGoes(at: now) { $0.kind == kind }
            guard let sentAway else { return .refused }
            places[sentAway] = nil
        }
        places[id]?.kind = kind
        places[id]?.usefulAt = now
        // A reader says what it is by asking for something.
        places[id]?.isBusy = kind == .media
        return .admitted(insteadOf: sentAway)
    }

    /// It said something useful, or took what it had asked for.
    ///
    /// - Parameter isBusy: there is something to be done for it now.
    mutating func note(_ id: ID, isBusy: Bool, at now: LocalInstant) {
        places[id]?.usefulAt = now
        places[id]?.isBusy = isBusy
    }

    mutating func leave(_ id: ID) { places[id] = nil }

    private func limit(_ kind: Kind, isLocal: Bool) -> Int {
        switch kind {
        case .stranger: limits.strangers
        case .candidate: limits.candidates
        case .client: limits.clients + (isLocal ? limits.localClients : 0)
        case .room: limits.rooms
        case .media: limits.media
        case .household: limits.households
        }
    }

    private func whoGoes(at now: LocalInstant, among isMeant: (Place) -> Bool) -> ID? {
        oldest { isMeant($0) && now - $0.usefulAt >= Self.silence }
            ?? oldest { isMeant($0) && $0.kind != .room && !$0.isBusy }
    }

    private func oldest(_ isMeant: (Place) -> Bool) -> ID? {
        places.filter { isMeant($0.value) }
            .min { ($0.value.usefulAt, $0.key) < ($1.value.usefulAt, $1.key) }?.key
    }
}
