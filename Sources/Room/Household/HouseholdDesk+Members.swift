import Logging
import NIOCore
import Synchronization
import TuttiLinuxHost
import TuttiSecureLinks
import TuttiTiming
import TuttiTrust

// What members tell a leader and ask it, and how it gets to know who is one.

extension HouseholdDesk {
    func serveMember(
        _ channel: any Channel, _ peer: LinkPeer, _ visitor: Visitor
    ) async throws {
        let link = try await link(
            channel, limit: HouseholdMessage.longest,
            mostOfStranger: HouseholdMessage.longestOfStranger)
        try await link.executeThenClose { inbound, outbound in
            var messages = inbound.makeAsyncIterator()
            let deadline = link.answerDeadline()
            let first = try await messages.next()
            deadline.cancel()
            guard let bytes = first else { return }
            try hear(HouseholdMessage(bytes: bytes), of: peer, on: channel)
            guard let household = keeper.household else { return }
            switch household.standing(of: peer.fingerprint) {
            case .unknown:
                let greeting = HouseholdMessage.stranger(
                    founding: household.number.bytes, keeper.name)
                return try await outbound.write(greeting.bytes)
            case .removed:
                let news = HouseholdMessage.excerpt(
                    founding: household.number.bytes,
                    household.excerpt(removing: peer.fingerprint))
                return try await outbound.write(news.bytes)
            case .member: break
            }
            guard visitor.becomes(.household) else { return }
            let presence = attendance.enter(peer.fingerprint, channel)
            defer { attendance.leave(presence) }
            try await channel.triggerUserOutboundEvent(MessageCodecHandler.PeerIsMember())
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { [keeper] in
                    // The first is now.
                    for await _ in keeper.changes() {
                        guard keeper.isMember(peer.key), let household = keeper.household else {
                            break
                        }
                        try await outbound.write(HouseholdMessage.records(household.bytes).bytes)
                    }
                    channel.close(promise: nil)
                }
                defer { group.cancelAll() }
                var pace = HouseholdPace(at: HostClock.now())
                while let bytes = try await messages.next() {
                    visitor.isUseful()
                    // It may have been removed by what it or somebody else has said since.
                    guard keeper.isMember(peer.key), pace.take(at: HostClock.now()) else { return }
                    if let answer = try answer(HouseholdMessage(bytes: bytes), of: peer) {
                        try await outbound.write(answer.bytes)
                    }
                }
            }
        }
    }

    /// The first message of somebody. Records are looked at only where they are of a member; of who is
    /// not known, what it says of itself, and not too often.
    private func hear(
        _ first: HouseholdMessage, of peer: LinkPeer, on channel: any Channel
    ) throws(RoomError) {
        guard let household = keeper.household else { return }
        switch (first, household.standing(of: peer.fingerprint)) {
        case (.records(let records), .member): try keeper.merge(records, from: peer.key)
        case (.excerpt(let founding, let records), .unknown)
        where founding == household.number.bytes:
            let address = channel.isFromHere ? nil : channel.remoteAddress?.ipAddress ?? "?"
            let isAdmitted = state.withLock {
                $0.introductions.admits(peer.fingerprint, from: address, at: HostClock.now())
            }
            guard isAdmitted else { return }
            do throws(RoomError) {
                _ = try keeper.seat(peer.key, by: records)
            } catch {
                // A stranger's deed, as often as it likes: nothing for people.
                logger.debug(
                    "what somebody says of itself is not so", metadata: ["reason": "\(error)"])
            }
        default: break
        }
    }

    private func answer(
        _ message: HouseholdMessage, of peer: LinkPeer
    ) throws(RoomError) -> HouseholdMessage? {
        do throws(RoomError) {
            switch message {
            case .records(let records):
                try keeper.merge(records, from: peer.key)
                return nil
            case .accept(let digits): return try candidate(showing: digits)
            case .decline(let digits):
                try decline(digits)
                return .done
            case .invite(let seconds):
                return .invited(
                    try invite(for: .seconds(Int64(seconds)), by: peer.fingerprint).text)
            case .question: return .presence(attendance.presences, present)
            case .stranger, .invited, .presence, .done, .refused, .busy, .excerpt,
                .candidate:
                return nil
            }
        } catch  where error.code == .refused {
            return .refused(error.description)
        }
    }
}
