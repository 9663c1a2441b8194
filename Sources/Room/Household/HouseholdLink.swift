import NIOCore
import TuttiSecureLinks
import TuttiTrust

/// Makes a link; where the other side is unknown, the two tell each other first who belongs to their
/// households, and it is tried once more.
///
/// One of the two may have been let in while the other was away.
///
/// - Throws: `RoomError`, code `stranger`, that says whose the other side is and what to do.
func introduced<Link>(
    to address: HostPort, _ credentials: Credentials, _ connect: () async throws -> Link
) async throws -> Link {
    do {
        return try await connect()
    } catch is StrangerError {
        switch try await HouseholdLink.introduce(to: address, credentials) {
        case .members: break
        case .strangers(let reason): throw reason
        }
    }
    do {
        return try await connect()
    } catch let error as StrangerError {
        throw RoomError(
            .stranger,
            "what listens at \(address) is \(error.peer.fingerprint.short), and no member of this household"
        )
    }
}

/// The other side ended a link because it had not heard that this node is a member; it has now, and
/// may be asked again, once.
struct IntroducedError: Error {}

/// The way to what another node knows of the household.
enum HouseholdLink {
    /// For an answer of the other side.
    static let patience = TimeAmount.seconds(5)

    /// What two nodes are to each other, now that they have told what they know.
    enum Introduction {
        case members
        case strangers(RoomError)
    }

    /// Tells the other side what this node knows, and takes in what that knows.
    static func introduce(
        to address: HostPort, _ credentials: Credentials
    ) async throws -> Introduction {
        guard let keeper = credentials.keeper else { return .members }
        return try await withConversation(with: address, keeper) { conversation in
            .members
        } strangers: {
            .strangers($0)
        }
    }

    /// Why a leader ends a link without a word.
    ///
    /// - Returns: ``IntroducedError`` where it did not know this node and does now; `nil`: not because
    ///   of who this node is.
    static func reasonForRefusal(
        by address: HostPort, _ credentials: Credentials
    ) async -> (any Error)? {
        guard credentials.keeper != nil else { return nil }
        switch try? await introduce(to: address, credentials) {
        case .members?: return IntroducedError()
        case .strangers(let reason)?: return reason
        case nil: return nil
        }
    }

    /// Asks a member something.
    ///
    /// - Throws: `RoomError`: with code `stranger` for another household's, with `refused` and a
    ///   reason where the member does not do it.
    static func ask(
        _ question: HouseholdMessage, of address: HostPort, _ keeper: HouseholdKeeper
    ) async throws -> HouseholdMessage {
        try await withConversation(with: address, keeper) { conversation in
            try await conversation.send(question)
            while true {
                switch try await conversation.next() {
                case .records(let records):
                    try keeper.merge(records, from: conversation.peer.key)
                case .refused(let reason): throw RoomError(.refused, reason)
                case let answer: return answer
                }
            }
        } strangers: {
            throw $0
        }
    }

    /// Lets in whom the digits belong to: this node does, so it answers for it.
    ///
    /// - Throws: `RoomError`, code `refused`, where nobody shows them.
    static func accept(
        digits: String, at address: HostPort, _ keeper: HouseholdKeeper
    ) async throws {
        try await withConversation(with: address, keeper) { conversation in
            try await conversation.send(.accept(digits: digits))
            while true {
                switch try await conversation.next() {
                case .records(let records):
                    try keeper.merge(records, from: conversation.peer.key)
                case .candidate(let key, let name):
                    let household = try keeper.admit(key, name)
                    return try await conversation.tell(household, keeper)
                case .refused(let reason): throw RoomError(.refused, reason)
                case .stranger, .excerpt, .accept, .decline, .invite, .question, .invited,
                    .presence, .done, .busy:
                    throw RoomError(
                        .protocolViolation, "\(address) answered something else: update it")
                }
            }
        } strangers: {
            throw $0
        }
    }

    private static let retryPause = Duration.seconds(10)

    /// Keeps both sides' knowledge the same for as long as the task lives.
    ///
    /// - Parameter strange: called when the other side is no member any more: nothing of it counts.
    static func keep(
        with address: HostPort, _ credentials: Credentials, strange: @Sendable () -> Void
    ) async {
        guard let keeper = credentials.keeper else { return }
        while !Task.isCancelled {
            let isMember = try? await withConversation(with: address, keeper) { conversation in
                try await keep(conversation, keeper)
            } strangers: { _ in
                false
            }
            if isMember == false { return strange() }
            try? await Task.sleep(for: retryPause)
        }
    }

    /// - Returns: false when the other side is no member any more.
    private static func keep(
        _ conversation: Conversation, _ keeper: HouseholdKeeper
    ) async throws -> Bool {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                for await _ in keeper.changes() {
                    guard keeper.isMember(conversation.peer.key), let household = keeper.household
                    else { return false }
                    try await conversation.send(.records(household.bytes))
                }
                return true
            }
            group.addTask {
                while case .records(let records) = try await conversation.next() {
                    try keeper.merge(records, from: conversation.peer.key)
                }
                return true
            }
            defer { group.cancelAll() }
            return try await group.next() ?? true
        }
    }

    // MARK: Talking

    /// One link on which two nodes have told each other what they know.
    final class Conversation: Sendable {
        let peer: LinkPeer
        private let outbound: NIOAsyncChannelOutboundWriter<[UInt8]>
        private let replies: AsyncThrowingStream<HouseholdMessage, any Error>

        fileprivate init(
            _ peer: LinkPeer, _ outbound: NIOAsyncChannelOutboundWriter<[UInt8]>,
            _ replies: AsyncThrowingStream<HouseholdMessage, any Error>
        ) {
            self.peer = peer
            self.outbound = outbound
            self.replies = replies
        }

        func send(_ message: HouseholdMessage) async throws {
            try await outbound.write(message.bytes)
        }

        /// Tells all that this node knows, and waits until the other side has taken it in.
        ///
        /// Who tells of its own leaving is not answered: the other side closes the link.
        func tell(_ household: Household, _ keeper: HouseholdKeeper) async throws {
            try await send(.records(household.bytes))
            try await send(.question)
            do {
                while true {
                    switch try await next() {
                    case .records(let records): try keeper.merge(records, from: peer.key)
                    case .refused(let reason): throw RoomError(.refused, reason)
                    case .presence: return
                    case .stranger, .excerpt, .accept, .decline, .invite, .question, .invited,
                        .candidate, .done, .busy:
                        break
                    }
                }
            } catch let error as ChannelError {
                guard case .removed? = keeper.ownStanding else { throw error }
            }
        }

        /// - Throws: when there is none any more.
        func next() async throws -> HouseholdMessage {
            for try await message in replies { return message }
            throw ChannelError.eof
        }
    }

    private static func withConversation<Result: Sendable>(
        with address: HostPort, _ keeper: HouseholdKeeper,
        members: @Sendable (Conversation) async throws -> Result,
        strangers: @Sendable (RoomError) throws -> Result
    ) async throws -> Result {
        let (link, peer) = try await MessageChannel.connect(
            to: address, keeper, .household, limit: HouseholdMessage.longest)
        return try await link.executeThenClose { inbound, outbound in
            let (replies, reply) = AsyncThrowingStream.makeStream(
                of: HouseholdMessage.self, bufferingPolicy: .bufferingOldest(64))
            return try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    do {
                        for try await bytes in inbound {
                            reply.yield(try HouseholdMessage(bytes: bytes))
                        }
                        reply.finish()
                    } catch {
                        reply.finish(throwing: error)
                    }
                }
                defer { group.cancelAll() }
                let conversation = Conversation(peer, outbound, replies)
                try await conversation.send(keeper.greeting)
                let deadline = link.answerDeadline()
                defer { deadline.cancel() }
                let heard = try keeper.take(
                    try await conversation.next(), of: peer, at: address)
                if heard.hasNewsForPeer, let household = keeper.household {
                    try await conversation.tell(household, keeper)
                }
                if let reason = heard.reason { return try strangers(reason) }
                deadline.cancel()
                return try await members(conversation)
            }
        }
    }
}
