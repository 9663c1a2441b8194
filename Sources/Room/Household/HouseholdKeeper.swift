import Glibc
import Logging
import NIOCore
import Synchronization
import TuttiSecureLinks
import TuttiTrust

/// Who this node is, and whom it belongs to: what it holds in memory is what its file has.
///
/// Other processes of the same state folder are other hands of the same node: what one of them
/// changes the others notice (``refresh()``).
final class HouseholdKeeper: Sendable {
    let key: NodeKey
    let identity: LinkIdentity
    /// What this node calls itself where it founds or joins a household.
    let name: MemberName
    private let secrets: NodeSecrets?
    private let logger: Logger
    private let changed = Watchers()
    /// Links that this node has made.
    private let outgoing = Attendance()

    private struct State {
        var household: Household?
        var stamp: UInt64 = 0
    }
    private let state: Mutex<State>

    /// - Parameters:
    ///   - folder: where key and household are kept; `nil`: they end with the process.
    ///   - name: shortened to what a member may be called.
    init(_ folder: StateFolder?, name: String, logger: Logger) throws(RoomError) {
        self.logger = logger
        self.name = Self.memberName(name)
        let secrets = folder.map { NodeSecrets(folder: $0, logger: logger) }
        self.secrets = secrets
        var state = State()
        if let secrets {
            key = try secrets.key()
            state.stamp = secrets.householdStamp
            state.household = try secrets.household()
        } else {
            key = try NodeSecrets.fresh()
        }
        do throws(TrustError) {
            identity = try LinkIdentity(key)
        } catch {
            throw RoomError(.badState, "\(error)")
        }
        self.state = Mutex(state)
    }

    var fingerprint: Fingerprint { key.publicKey.fingerprint }

    /// `nil` for a node that belongs to nobody.
    var household: Household? { state.withLock { $0.household } }

    /// Whether it is a member of the household that it holds.
    var isSeated: Bool { seatedHousehold != nil }

    /// … and which that is.
    var seatedHousehold: Household? {
        household.flatMap { $0.member(fingerprint) == nil ? nil : $0 }
    }

    /// What this node is to the household that it holds.
    var ownStanding: Household.Standing? { household?.standing(of: fingerprint) }

    /// Whether it could move to another household without leaving anybody: it has none, is out of it,
    /// or is alone in it.
    var isFree: Bool {
        guard let household, case .member = household.standing(of: fingerprint) else {
            return true
        }
        return household.members.count == 1
    }

    func isMember(_ key: PublicKey) -> Bool { household?.member(key.fingerprint) != nil }

    /// Each time that the household has changed; begins with one.
    func changes() -> AsyncStream<Void> { changed.watch() }

    /// Closes a link that this node has made, once who is at its other end is no member any more.
    func bind(_ channel: any Channel, to peer: PublicKey) {
        let presence = outgoing.enter(peer.fingerprint, channel)
        channel.closeFuture.whenComplete { [outgoing] _ in outgoing.leave(presence) }
        // It may have been removed since it was looked up.
        if !isMember(peer) { channel.close(promise: nil) }
    }

    // MARK: Deeds

    /// A household of one, unless there is one that this node belongs to.
    func foundIfNone() throws(RoomError) {
        if case .member? = ownStanding { return }
        try exclusively { household throws(TrustError) in
            if case .member? = household?.standing(of: self.fingerprint) { return }
            household = try Household(
                foundedBy: self.key, name: self.name, salt: randomBytes(MemberRecord.saltByteCount),
                at: Self.now)
        }
    }

    /// This node belongs to it from now on, instead of to its own.
    func adopt(_ other: Household) throws(RoomError) {
        try exclusively { household throws(TrustError) in household = other }
    }

    func admit(_ key: PublicKey, _ name: MemberName) throws(RoomError) -> Household {
        try change { household throws(TrustError) in
            if household.member(key.fingerprint) == nil {
                _ = try household.admit(
                    key, as: name, by: self.key, salt: randomBytes(MemberRecord.saltByteCount),
                    at: Self.now)
            }
            return household
        }
    }

    /// Lets in who has an invite, unless it or who has asked for the invite was removed meanwhile.
    func admit(
        _ key: PublicKey, _ name: MemberName, invitedBy issuer: Fingerprint
    ) throws(RoomError) -> Household {
        try change { household throws(TrustError) in
            guard household.member(issuer) != nil else {
                throw TrustError(.refused, "invite", "is of somebody who is no member any more")
            }
            switch household.standing(of: key.fingerprint) {
            case .member: break
            case .removed:
                throw TrustError(.refused, "invite", "leads back nobody who was removed")
            case .unknown:
                _ = try household.admit(
                    key, as: name, by: self.key, salt: randomBytes(MemberRecord.saltByteCount),
                    at: Self.now)
            }
            return household
        }
    }

    func rename(_ member: Fingerprint, to name: MemberName) throws(RoomError) {
        try change { household throws(TrustError) in
            _ = try household.rename(
                member, to: name, by: self.key, salt: randomBytes(MemberRecord.saltByteCount),
                at: Self.now)
        }
    }

    func remove(_ member: Fingerprint, keepsDeeds: Bool) throws(RoomError) {
        try change { household throws(TrustError) in
            _ = try household.remove(
                member, keepsDeeds: keepsDeeds, by: self.key,
                salt: randomBytes(MemberRecord.saltByteCount), at: Self.now)
        }
    }

    /// Belongs to nobody any more; its own records are those with which it left.
    func forget() throws(RoomError) {
        try exclusively { household throws(TrustError) in household = nil }
    }

    /// Looks whether another process of this node has written the household.
    func refresh() {
        guard let secrets, secrets.householdStamp != state.withLock({ $0.stamp }) else { return }
        try? exclusively { _ in }
    }

    func change<T>(
        _ body: (inout Household) throws(TrustError) -> T
    ) throws(RoomError) -> T {
        try exclusively { household throws(TrustError) in
            guard var present = household else {
                throw TrustError(
                    .refused, "household",
                    "this machine belongs to none; pair it with one (tutti join)")
            }
            let result = try body(&present)
            household = present
            return result
        }
    }

    /// Reads, changes and writes it while nobody else does.
    private func exclusively<T>(
        _ body: (inout Household?) throws(TrustError) -> T
    ) throws(RoomError) -> T {
        guard let secrets else { return try replace(household, body, keep: { _ in }) }
        return try secrets.exclusively { () throws(RoomError) in
            // What the file has and what this process knows are one household, or the file is right.
            try replace(try secrets.household(), body) { household throws(RoomError) in
                try secrets.write(household)
            }
        }
    }

    private func replace<T>(
        _ before: Household?, _ body: (inout Household?) throws(TrustError) -> T,
        keep: (Household?) throws(RoomError) -> Void
    ) throws(RoomError) -> T {
        var household = before
        let result: T
        do throws(TrustError) {
            result = try body(&household)
        } catch {
            throw RoomError(.refused, "\(error)")
        }
        if household?.bytes != before?.bytes { try keep(household) }
        let stamp = secrets?.householdStamp ?? 0
        let isNews = state.withLock { state in
            defer { state = State(household: household, stamp: stamp) }
            return state.household?.bytes != household?.bytes
        }
        if isNews {
            outgoing.close { household?.member($0) != nil }
            changed.ring()
        }
        return result
    }

    /// Seconds since 1970.
    private static var now: Int64 { Int64(time(nil)) }

    private static func memberName(_ text: String) -> MemberName {
        if let name = try? MemberName(text) { return name }
        let shown = text.unicodeScalars.filter { (try? MemberName(String($0) + "x")) != nil }
        var short = String(String.UnicodeScalarView(shown)).prefix(MemberName.longest)
        while short.utf8.count > MemberName.longestBytes { short.removeLast() }
        return (try? MemberName(String(short))) ?? Self.nameless
    }

    private static let nameless = {
        guard let name = try? MemberName("node") else { preconditionFailure("\"node\" is no name") }
        return name
    }()

    /// Who is told of changes; of many that come at once one is enough.
    private final class Watchers: Sendable {
        private let streams = Mutex<[Int: AsyncStream<Void>.Continuation]>([:])
        private let next = Atomic(0)

        func watch() -> AsyncStream<Void> {
            AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
                let id = next.add(1, ordering: .relaxed).newValue
                continuation.onTermination = { [weak self] _ in
                    self?.streams.withLock { _ = $0.removeValue(forKey: id) }
                }
                streams.withLock { $0[id] = continuation }
                continuation.yield()
            }
        }

        func ring() { for stream in streams.withLock({ Array($0.values) }) { stream.yield() } }
    }
}
