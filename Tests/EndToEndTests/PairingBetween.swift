import CTuttiTap
import Foundation
import Glibc
import Synchronization
import TuttiSecureLinks

@testable import TuttiRoom
@testable import TuttiTrust
@testable import tutti

/// Somebody between a machine that wants to join a household and the member that it is paired with.
/// To each of them it is the other, with a key of its own, and the names that they have.
///
/// The digits are made of both keys and of a nonce of each side. The keys are its own; of the
/// nonces it can pass on one. The candidate says its nonce when it has heard the member's, and the
/// member says its own when whoever is its candidate is bound to one.
final class PairingBetween: Sendable {
    enum PassedOn: CaseIterable, Sendable { case candidatesNonce, membersNonce }

    private struct Wrong: Error {
        var message: [UInt8]
    }

    /// A program on a busy machine takes seconds to begin.
    private static let patienceMilliseconds: Int32 = 30_000

    private let outcome = Mutex<Result<Void, any Error>?>(nil)

    /// Listens where `network` is, and stands between one candidate and the member.
    ///
    /// - Parameters:
    ///   - member: its address.
    ///   - name: what it calls itself.
    init(
        on network: HostNetwork, before member: String, called name: String,
        passing passed: PassedOn
    ) throws {
        let listener = try network.listen()
        let name = try MemberName(name)
        Thread { [self] in
            let result = Result {
                defer { close(listener) }
                try Self.stand(listener, network, member, name, passed)
            }
            outcome.withLock { $0 = result }
        }.start()
    }

    /// Waits until it is over on both sides.
    func end() throws {
        try until("the end of a pairing", seconds: 10) { outcome.withLock { $0 != nil } }
        try outcome.withLock { $0 }?.get()
    }

    private static func stand(
        _ listener: Int32, _ network: HostNetwork, _ member: String, _ memberName: MemberName,
        _ passed: PassedOn
    ) throws {
        let identities = try (0..<2).map { _ in try LinkIdentity(try NodeSecrets.fresh()) }
        var wait = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        guard poll(&wait, 1, patienceMilliseconds) == 1,
            case let accepted = accept(listener, nil, nil), accepted >= 0
        else { throw CommandError("nobody came to be paired") }
        let candidate = try HeldLink(accepted: accepted, as: identities[0])
        let member = try HeldLink(
            connected: try network.connect(to: member), as: identities[1], .pairing)
        guard case .commit(_, let name) = try next(candidate) else { return }
        let ground = PairingDigits.Ground(
            candidate: identities[1].publicKey.fingerprint, member: member.peer.fingerprint,
            candidateName: name)
        func bind(to nonce: [UInt8]) throws -> [UInt8] {
            let hash = PairingDigits.commitment(ground, nonce: nonce)
            member.say(PairingMessage.commit(hash, name).bytes)
            let answer = try next(member)
            guard case .nonce(let membersNonce, _) = answer else {
                throw Wrong(message: answer.bytes)
            }
            return membersNonce
        }
        func candidatesNonce(after nonce: [UInt8]) throws -> [UInt8] {
            candidate.say(PairingMessage.nonce(nonce, memberName).bytes)
            let answer = try next(candidate)
            guard case .reveal(let nonce) = answer else { throw Wrong(message: answer.bytes) }
            return nonce
        }
        let own = randomBytes(PairingMessage.nonceByteCount)
        switch passed {
        case .membersNonce:
            let nonce = try bind(to: own)
            _ = try candidatesNonce(after: nonce)
            member.say(PairingMessage.reveal(own).bytes)
        case .candidatesNonce:
            let nonce = try candidatesNonce(after: own)
            _ = try bind(to: nonce)
            member.say(PairingMessage.reveal(nonce).bytes)
        }
        // A person looks at both.
        candidate.say(try member.message(within: 60))
        _ = try? candidate.message()
    }

    private static func next(_ link: HeldLink) throws -> PairingMessage {
        try PairingMessage(
            bytes: try link.message(), limit: PairingMessage.longestForCandidate)
    }
}
