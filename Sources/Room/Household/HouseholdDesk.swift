import Logging
import NIOCore
import Synchronization
import TuttiGroupControl
import TuttiLinuxHost
import TuttiSecureLinks
import TuttiTiming
import TuttiTrust

/// Where a leader hears of its household: members that tell and ask, and strangers that want to come in.
final class HouseholdDesk: Sendable {
    /// A stranger that is being paired, as a person sees it.
    typealias Candidate = HouseholdMessage.Candidate

    let keeper: HouseholdKeeper
    let logger: Logger

    struct Visit {
        var outbox: AsyncStream<PairingEffect>.Continuation
        var shown: Candidate?
    }
    struct State {
        var desk: PairingDesk
        var invites: InviteBook
        var visits: [PairingDesk.Link: Visit] = [:]
        var lastLink: PairingDesk.Link = 0
        var introductions = IntroductionPace(at: HostClock.now())
    }
    let state: Mutex<State>
    private let shown = Mutex<[Int: AsyncStream<[Candidate]>.Continuation]>([:])
    let attendance: Attendance

    init(_ keeper: HouseholdKeeper, _ attendance: Attendance, logger: Logger) {
        self.keeper = keeper
        self.logger = logger
        self.attendance = attendance
        state = Mutex(
            State(
                desk: PairingDesk(own: keeper.key.publicKey, name: keeper.name),
                invites: InviteBook(own: keeper.key.publicKey)))
    }

    /// This leader itself is out; its rooms go, and it leads nobody.
    func tellOfRemoval() {
        logger.error(
            "this machine was removed from the household: its rooms follow it no more; `tutti join` pairs it anew"
        )
    }

    /// Others belong to it than before: invites of who does not are withdrawn, and who waits and was
    /// let in by another member is told so.
    func householdChanged() {
        guard let household = keeper.household else { return }
        state.withLock { $0.invites.withdraw(household) }
        try? decide { [keeper] desk throws(TrustError) in
            desk.settle(at: HostClock.now()) { keeper.isMember($0) }
        }
    }

    // MARK: For a person

    /// Accepts whom the digits belong to, as a deed of this node.
    func accept(_ digits: String) throws(RoomError) {
        try decide { desk throws(TrustError) in try desk.accept(digits, at: HostClock.now()) }
    }

    func decline(_ digits: String) throws(RoomError) {
        let links = state.withLock { state in
            state.visits.filter { $0.value.shown?.digits == digits.filter(\.isNumber) }.map(\.key)
        }
        guard let link = links.first else {
            throw RoomError(.refused, "no machine that is being paired shows these digits")
        }
        take(.declined, on: link)
    }

    /// Whom a person at another member means by these digits: that member lets it in.
    func candidate(showing digits: String) throws(RoomError) -> HouseholdMessage {
        do throws(TrustError) {
            let (key, name) = try state.withLock { state throws(TrustError) in
                try state.desk.candidate(showing: digits)
            }
            return .candidate(key, name)
        } catch {
            throw RoomError(.refused, "\(error)")
        }
    }

    func invite(
        for life: Nanoseconds, by issuer: Fingerprint
    ) throws(RoomError) -> Invite {
        do throws(TrustError) {
            return try state.withLock { state throws(TrustError) in
                try state.invites.issue(
                    secret: randomBytes(Invite.secretByteCount), for: life, by: issuer,
                    at: HostClock.now())
            }
        } catch {
            throw RoomError(.refused, "\(error)")
        }
    }

    /// Who is being paired; begins with those of now.
    var candidates: AsyncStream<[Candidate]> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let id = Int.random(in: 0 ... .max)
            shown.withLock { $0[id] = continuation }
            continuation.onTermination = { [weak self] _ in
                self?.shown.withLock { _ = $0.removeValue(forKey: id) }
            }
            continuation.yield(present)
        }
    }

    var present: [Candidate] {
        state.withLock { $0.visits.values.compactMap(\.shown) }
            .sorted { $0.digits < $1.digits }
    }

    private func tell() {
        let present = present
        for stream in shown.withLock({ Array($0.values) }) { stream.yield(present) }
    }

    // MARK: Links

    /// Serves a link of which the handshake is over, until it ends.
    ///
    /// - Parameter visitor: has the place of a stranger, and gets that of a member.
    func serve(_ channel: any Channel, _ peer: LinkPeer, _ visitor: Visitor) async {
        do {
            switch peer.spoken {
            case .household: try await serveMember(channel, peer, visitor)
            case .pairing: try await pair(channel, peer)
            case .invite: try await redeem(channel, peer)
            case .control, .media: break
            }
        } catch {
            logger.debug("a household link ended", metadata: ["reason": "\(reason(of: error))"])
        }
        try? await channel.close()
    }

    func link(
        _ channel: any Channel, limit: Int, mostOfStranger: Int? = nil
    ) async throws -> MessageChannel {
        try await channel.asyncChannel(of: MessageChannel.self) {
            try $0.pipeline.syncOperations.addHandler(
                MessageCodecHandler(limit: limit, mostOfStranger: mostOfStranger))
        }
    }

    // MARK: Strangers

    private func redeem(_ channel: any Channel, _ peer: LinkPeer) async throws {
        let link = try await link(channel, limit: InviteClaim.byteCount)
        try await link.executeThenClose { inbound, outbound in
            var messages = inbound.makeAsyncIterator()
            let deadline = link.answerDeadline()
            let first = try await messages.next()
            deadline.cancel()
            guard let bytes = first else { return }
            guard let known = keeper.household else { return }
            let grant: InviteGrant?
            do {
                let claim = try InviteClaim(bytes: bytes)
                let issuer = try state.withLock { state throws(TrustError) in
                    try state.invites.redeem(claim, of: peer.key, known, at: HostClock.now())
                }
                let household = try keeper.admit(
                    peer.key, try MemberName(peer.fingerprint.short), invitedBy: issuer)
                grant = state.withLock { $0.invites.grant(claim, to: peer.key, household) }
                logger.notice(
                    "a machine has joined the household by an invite",
                    metadata: [
                        "fingerprint": "\(peer.fingerprint.short)",
                        "asked for by": "\(household.member(issuer)?.name.text ?? issuer.short)",
                    ])
            } catch {
                // A stranger's deed, as often as it likes: nothing for people.
                logger.debug(
                    "an invite was refused", metadata: ["to": "\(peer.fingerprint.short)"])
                let reason = (error as? RoomError)?.description ?? "\(error)"
                try await outbound.write(HouseholdMessage.refused(reason).bytes)
                return await link.untilClosed()
            }
            guard let grant else { return }
            try await outbound.write(grant.bytes)
            // The candidate closes when it has read it.
            _ = try await messages.next()
        }
    }

    private func pair(_ channel: any Channel, _ peer: LinkPeer) async throws {
        let link = try await link(channel, limit: HouseholdMessage.longestText)
        try await link.executeThenClose { inbound, outbound in
            let (effects, effect) = AsyncStream.makeStream(
                of: PairingEffect.self, bufferingPolicy: .bufferingOldest(16))
            let id = state.withLock { state in
                state.lastLink += 1
                state.visits[state.lastLink] = Visit(outbox: effect)
                return state.lastLink
            }
            defer {
                take(.closed, on: id)
                state.withLock { _ = $0.visits.removeValue(forKey: id) }
                tell()
            }
            do {
                // Those whose time is over make room.
                try? decide { desk throws(TrustError) in desk.advance(to: HostClock.now()) }
                try state.withLock { state throws(TrustError) in
                    try state.desk.arrive(
                        id, from: channel.remoteAddress?.ipAddress ?? "?",
                        key: peer.key,
                        nonce: randomBytes(32), at: HostClock.now())
                }
            } catch {
                let answer: HouseholdMessage =
                    (error as? TrustError)?.code == .busy ? .busy("\(error)") : .refused("\(error)")
                try await outbound.write(answer.bytes)
                return await link.untilClosed()
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    // Also where the link breaks: nobody else would say so for a minute.
                    defer { self.take(.closed, on: id) }
                    for try await message in inbound { self.take(.message(message), on: id) }
                }
                group.addTask {
                    while let due = self.state.withLock({ $0.desk.nextDeadline }) {
                        let wait = max(.milliseconds(50), due - HostClock.now())
                        try await Task.sleep(for: .nanoseconds(wait.count))
                        try? self.decide { desk throws(TrustError) in
                            desk.advance(to: HostClock.now())
                        }
                    }
                }
                defer { group.cancelAll() }
                for await effect in effects {
                    switch effect {
                    case .send(let bytes): try await outbound.write(bytes)
                    case .end(let outcome):
                        say(outcome, peer)
                        return
                    case .show, .admit, .join: break
                    }
                }
            }
        }
    }

    private func say(_ outcome: PairingOutcome, _ peer: LinkPeer) {
        switch outcome {
        case .paired:
            let name = keeper.household?.member(peer.fingerprint)?.name
            logger.notice(
                "\"\(name?.text ?? peer.fingerprint.short)\" belongs to the household now")
        case .failed(let reason):
            logger.notice("a machine was not paired", metadata: ["reason": "\(reason)"])
        }
    }

    private func take(_ input: PairingInput, on link: PairingDesk.Link) {
        try? decide { desk throws(TrustError) in
            desk.receive(input, on: link, at: HostClock.now())
        }
    }

    /// Lets the desk decide, and does what it says.
    private func decide(
        _ body: (inout PairingDesk) throws(TrustError) -> [PairingDesk.Effect]
    ) throws(RoomError) {
        var effects: [PairingDesk.Effect]
        do throws(TrustError) {
            effects = try state.withLock { state throws(TrustError) in try body(&state.desk) }
        } catch {
            throw RoomError(.refused, "\(error)")
        }
        while !effects.isEmpty {
            let effect = effects.removeFirst()
            switch effect.effect {
            case .show(let digits, let name):
                let candidate = Candidate(digits: digits.text, name: name)
                state.withLock { $0.visits[effect.link]?.shown = candidate }
                logger.notice(
                    "\"\(name)\" wants to join the household and should show \(digits): if it does, `tutti household accept \(digits.text)`"
                )
                tell()
            case .admit(let key, let name):
                let input: PairingInput
                do throws(RoomError) {
                    input = .admitted(try keeper.admit(key, name).bytes)
                } catch {
                    input = .notAdmitted(reason: error.description)
                }
                effects += state.withLock {
                    $0.desk.receive(input, on: effect.link, at: HostClock.now())
                }
            case .send, .end, .join:
                _ = state.withLock { $0.visits[effect.link]?.outbox.yield(effect.effect) }
            }
        }
    }
}
