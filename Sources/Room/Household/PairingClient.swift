import NIOCore
import TuttiGroupControl
import TuttiLinuxHost
import TuttiSecureLinks
import TuttiTiming
import TuttiTrust

/// The side of a machine that wants to belong to a household.
enum PairingClient {
    /// To the next try, where others are paired first.
    private static let turnPause = Duration.seconds(2)

    /// By digits, which a person compares. Waits while others are paired there.
    ///
    /// - Parameters:
    ///   - waits: called once where it has to wait.
    ///   - show: the digits as people read them, and what the other side calls itself.
    /// - Throws: `RoomError`: with code `refused` where nobody accepted, or it was too often; with
    ///   `unreachable` where the other side has gone.
    static func pair(
        with address: HostPort, _ keeper: HouseholdKeeper, waits: @Sendable () -> Void,
        show: @escaping @Sendable (_ digits: String, _ household: String) -> Void
    ) async throws {
        var isSaid = false
        while true {
            do {
                return try await pairOnce(with: address, keeper, show: show)
            } catch let error as RoomError where error.code == .busy {
                if !isSaid { waits() }
                isSaid = true
                try await Task.sleep(for: turnPause)
            } catch  where isBrokenOff(error) {
                throw RoomError(.unreachable, "\(address) ended the pairing without a word")
            }
        }
    }

    private static func pairOnce(
        with address: HostPort, _ keeper: HouseholdKeeper,
        show: @escaping @Sendable (_ digits: String, _ household: String) -> Void
    ) async throws {
        let (link, peer) = try await MessageChannel.connect(
            to: address, keeper, .pairing, limit: HouseholdMessage.longest)
        let joined: Household = try await link.executeThenClose { inbound, outbound in
            var pairing = CandidatePairing(
                PairingParties(
                    own: keeper.key.publicKey, peer: peer.key, ownName: keeper.name),
                nonce: randomBytes(32), at: HostClock.now())
            // Its limit is a minute; a link that says nothing for longer is dead.
            let deadline = link.channel.eventLoop.scheduleTask(in: .seconds(65)) {
                link.channel.close(promise: nil)
            }
            defer { deadline.cancel() }
            var joined: Household?
            func act(_ effects: [PairingEffect]) async -> PairingOutcome? {
                for effect in effects {
                    switch effect {
                    // Who refused has closed, and its reason is still to be read.
                    case .send(let bytes): try? await outbound.write(bytes)
                    case .show(let digits, let name): show("\(digits)", name.text)
                    case .join(let household): joined = household
                    case .end(let outcome): return outcome
                    case .admit: break
                    }
                }
                return nil
            }
            var outcome = await act(pairing.advance(to: HostClock.now()))
            var messages = inbound.makeAsyncIterator()
            while outcome == nil {
                let message = try await messages.next()
                switch message.flatMap({ try? HouseholdMessage(bytes: $0) }) {
                case .refused(let reason)?: throw RoomError(.refused, reason)
                case .busy(let reason)?: throw RoomError(.busy, reason)
                default: break
                }
                outcome = await act(
                    pairing.receive(message.map { .message($0) } ?? .closed, at: HostClock.now()))
            }
            if case .failed(let reason)? = outcome {
                throw RoomError(.refused, "pairing: \(reason)")
            }
            guard let joined else { throw RoomError(.protocolViolation, "paired with nobody") }
            return joined
        }
        try keeper.adopt(joined)
    }

    /// By an invite.
    ///
    /// - Throws: `RoomError`, code `refused`, where it is not good.
    static func join(
        _ invite: Invite, at address: HostPort, _ keeper: HouseholdKeeper
    ) async throws {
        let (link, peer) = try await MessageChannel.connect(
            to: address, keeper, .invite, limit: InviteGrant.longest)
        let answer = try await link.executeThenClose { inbound, outbound in
            let deadline = link.answerDeadline()
            defer { deadline.cancel() }
            try await outbound.write(
                InviteClaim(invite, own: keeper.key.publicKey, peer: peer.key).bytes)
            var messages = inbound.makeAsyncIterator()
            return try await messages.next()
        }
        guard let answer else {
            throw RoomError(.unreachable, "\(address) closed the link without an answer")
        }
        if case .refused(let reason)? = try? HouseholdMessage(bytes: answer) {
            throw RoomError(.refused, reason)
        }
        do {
            let household = try InviteGrant(bytes: answer).household(
                by: invite, own: keeper.key.publicKey, peer: peer.key)
            try keeper.adopt(household)
        } catch let error as TrustError {
            throw RoomError(.refused, "\(error)")
        }
        // An invite says nothing of who uses it.
        try keeper.rename(keeper.fingerprint, to: keeper.name)
        _ = try? await HouseholdLink.introduce(to: address, Credentials(kind: .household(keeper)))
    }
}
