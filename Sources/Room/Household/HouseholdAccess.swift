import Logging
import TuttiGroupControl
import TuttiTiming
import TuttiTrust

/// One that belongs to a household.
public struct HouseholdMember: Equatable, Sendable {
    /// Decoration: what people call it.
    public var name: String
    /// Who it is: 56 characters in fourteen groups.
    public var fingerprint: String
    /// The first groups of that.
    public var shortFingerprint: String
    /// Seconds since 1970, by the clock of who let it in.
    public var since: Int64
    /// Whether it is this machine.
    public var isSelf: Bool
    /// Zero while it has a link to the leader; `nil`: not since the leader started, or nobody leads.
    public var seenSecondsAgo: Int?
}

/// A machine that shows digits and waits for a person to accept them.
public struct PairingCandidate: Equatable, Sendable {
    /// Six, without a blank.
    public var digits: String
    /// What it calls itself, which proves nothing.
    public var name: String
}

/// A code that lets one machine in, once.
public struct HouseholdInvite: Sendable {
    /// 32 characters in eight groups.
    public var text: String
    /// A QR symbol of half blocks, for a dark terminal: a line each two rows of modules.
    public var drawing: [String]
}

/// What people do about the household of this machine.
///
/// A deed of this machine is signed by its key, kept in its state folder and told to the leader; where
/// none can be reached, it is told with the next link.
public struct HouseholdAccess: Sendable {
    private let keeper: HouseholdKeeper

    /// - Throws: `RoomError`, code `badState`, for credentials of an open group.
    public init(_ credentials: Credentials) throws(RoomError) {
        guard let keeper = credentials.keeper else {
            throw RoomError(.badState, "an open group has no household: leave out --open")
        }
        self.keeper = keeper
    }

    /// Whether this machine belongs to a household.
    public var isMember: Bool { keeper.isSeated }

    /// Whether it could join another one without leaving anybody.
    public var isFree: Bool { keeper.isFree }

    /// This machine's own fingerprint.
    public var fingerprint: String { "\(keeper.fingerprint)" }

    /// Which household of a network it is, as leaders announce it; `nil` where this machine belongs to
    /// none.
    public var announced: String? { keeper.seatedHousehold.map(Credentials.announced) }

    /// Removals by which members have put each other out: then who belongs to it is not the same on
    /// every machine, until somebody else says once more who is to go.
    public var contradictionCount: Int { keeper.household?.verdicts.contradictionCount ?? 0 }

    // MARK: Coming and going

    /// Pairs this machine by digits that a person compares, with the household of the leader at
    /// `address`.
    ///
    /// - Parameters:
    ///   - waits: called once where others are paired there first.
    ///   - show: the digits, and what the leader calls itself.
    /// - Throws: `RoomError`, code `refused`, when nobody accepts within a minute.
    public func pair(
        at address: HostPort, waits: @escaping @Sendable () -> Void = {},
        show: @escaping @Sendable (_ digits: String, _ household: String) -> Void
    ) async throws {
        try checkIsFree()
        try await PairingClient.pair(with: address, keeper, waits: waits, show: show)
    }

    /// Pairs this machine by an invite.
    ///
    /// - Throws: `RoomError`, code `refused`, for one that is not good, or no longer.
    public func join(code: String, at address: HostPort) async throws {
        try checkIsFree()
        let invite: Invite
        do {
            invite = try Invite(code)
        } catch {
            throw RoomError(.refused, "\(error)")
        }
        try await PairingClient.join(invite, at: address, keeper)
    }

    private func checkIsFree() throws(RoomError) {
        guard keeper.isFree else {
            throw RoomError(
                .refused,
                "this machine belongs to a household already: `tutti household leave` first")
        }
    }

    /// Leaves the household; the others are told by `leader`.
    ///
    /// - Returns: whether the leader has heard of it.
    public func leave(telling leader: HostPort?) async throws -> Bool {
        try keeper.remove(keeper.fingerprint, keepsDeeds: true)
        var isTold = false
        if let leader {
            isTold =
                (try? await HouseholdLink.introduce(
                    to: leader, Credentials(kind: .household(keeper)))) != nil
        }
        try keeper.forget()
        return isTold
    }

    // MARK: Who belongs to it

    /// By name.
    ///
    /// - Parameter leader: is asked who was seen when.
    public func members(asking leader: HostPort?) async throws -> [HouseholdMember] {
        var seen: [Fingerprint: Int] = [:]
        if let leader,
            case .presence(let presences, _) = try await HouseholdLink.ask(
                .question, of: leader, keeper)
        {
            for presence in presences { seen[presence.fingerprint] = Int(presence.secondsAgo) }
        }
        let members = keeper.household?.members ?? []
        return members.map { member in
            HouseholdMember(
                name: member.name.text, fingerprint: "\(member.fingerprint)",
                shortFingerprint: member.fingerprint.short, since: member.addedAt,
                isSelf: member.fingerprint == keeper.fingerprint,
                seenSecondsAgo: seen[member.fingerprint])
        }.sorted { ($0.name.foldedName, $0.fingerprint) < ($1.name.foldedName, $1.fingerprint) }
    }

    /// Who waits to be accepted.
    public func candidates(at leader: HostPort) async throws -> [PairingCandidate] {
        guard
            case .presence(_, let candidates) = try await HouseholdLink.ask(
                .question, of: leader, keeper)
        else { return [] }
        return candidates.map { PairingCandidate(digits: $0.digits, name: $0.name.text) }
    }

    /// Lets in whom the digits belong to; a person has seen that both sides show the same. It is this
    /// machine's deed, and goes with it where it is removed as stolen.
    ///
    /// - Throws: `RoomError`, code `refused`, when no candidate shows them.
    public func accept(_ digits: String, at leader: HostPort) async throws {
        try await HouseholdLink.accept(digits: digits, at: leader, keeper)
    }

    /// Sends away whom the digits belong to.
    ///
    /// - Throws: `RoomError`, code `refused`, when no candidate shows them.
    public func decline(_ digits: String, at leader: HostPort) async throws {
        _ = try await HouseholdLink.ask(.decline(digits: digits), of: leader, keeper)
    }

    /// A code that lets one machine in, once.
    ///
    /// - Parameter minutes: 1 to 1440.
    public func invite(minutes: Int, at leader: HostPort) async throws -> HouseholdInvite {
        guard (1...1_440).contains(minutes) else {
            throw RoomError(.refused, "an invite is good for 1 to 1440 minutes, not \(minutes)")
        }
        guard
            case .invited(let text) = try await HouseholdLink.ask(
                .invite(seconds: UInt32(minutes * 60)), of: leader, keeper),
            let invite = try? Invite(text), let symbol = try? QRSymbol(invite.symbolText)
        else { throw RoomError(.protocolViolation, "\(leader) answered without an invite") }
        return HouseholdInvite(text: invite.text, drawing: symbol.lines())
    }

    /// Calls a member something else.
    ///
    /// - Parameter member: its name, or its fingerprint.
    public func rename(
        _ member: String, to name: String, telling leader: HostPort?
    ) async throws {
        let fingerprint = try find(member)
        do {
            try keeper.rename(fingerprint, to: try MemberName(name))
        } catch let error as TrustError {
            throw RoomError(.refused, "\(error)")
        }
        await tell(leader)
    }

    /// Removes a member, at once: it has no links any more, and knows no keys.
    ///
    /// - Parameters:
    ///   - member: its name, or its fingerprint.
    ///   - isStolen: whom it has let in goes too.
    /// - Returns: whether the leader has heard of it; if not, it does with the next link.
    public func remove(
        _ member: String, isStolen: Bool, telling leader: HostPort?
    ) async throws -> Bool {
        let fingerprint = try find(member)
        guard fingerprint != keeper.fingerprint else {
            throw RoomError(.refused, "this is this machine: `tutti household leave`")
        }
        try keeper.remove(fingerprint, keepsDeeds: !isStolen)
        return await tell(leader)
    }

    @discardableResult
    private func tell(_ leader: HostPort?) async -> Bool {
        guard let leader else { return false }
        let told = try? await HouseholdLink.introduce(
            to: leader, Credentials(kind: .household(keeper)))
        if case .members? = told { return true }
        return false
    }

    /// Fewest characters of a fingerprint that stand for all, as lists print them. Whoever makes a key
    /// that begins like another's only makes that both are to be named in full.
    private static let leastOfFingerprint = 8

    private func find(_ text: String) throws(RoomError) -> Fingerprint {
        let members = keeper.household?.members ?? []
        let named = members.filter { $0.name.text.foldedName == text.foldedName }
        if named.count == 1 { return named[0].fingerprint }
        if named.count > 1 { throw Self.several(named, "are called \"\(text)\"") }
        let letters = text.uppercased().filter { $0 != "-" && $0 != " " }
        let fitting = members.filter {
            "\($0.fingerprint)".filter { $0 != "-" }.hasPrefix(letters)
        }
        if letters.count >= Self.leastOfFingerprint {
            if fitting.count == 1 { return fitting[0].fingerprint }
            if fitting.count > 1 {
                throw Self.several(fitting, "have a fingerprint that begins so")
            }
        }
        let names = members.map { "\"\($0.name)\"" }.joined(separator: ", ")
        throw RoomError(.refused, "no member is called \"\(text)\": there are \(names)")
    }

    private static func several(_ members: [Household.Member], _ what: String) -> RoomError {
        let list = members.map { "\($0.fingerprint)" }.joined(separator: " or ")
        return RoomError(
            .refused, "\(members.count) members \(what): give the whole fingerprint, \(list)")
    }
}

extension HouseholdAccess {
    /// Makes one household of nodes whose state folders are all here, without links: for what starts
    /// several nodes on one machine, like a demonstration or a test.
    ///
    /// - Parameter nodes: state folder and name of each; the first founds it.
    package static func prepare(_ nodes: [(folder: String, name: String)]) throws(RoomError) {
        var keepers: [HouseholdKeeper] = []
        for node in nodes {
            keepers.append(
                try HouseholdKeeper(
                    StateFolder(path: node.folder), name: node.name, logger: Logger(label: "tutti"))
            )
        }
        guard let founder = keepers.first else { return }
        try founder.foundIfNone()
        for keeper in keepers.dropFirst() {
            _ = try founder.admit(keeper.key.publicKey, keeper.name)
        }
        guard let household = founder.household else { return }
        for keeper in keepers.dropFirst() { try keeper.adopt(household) }
    }
}
