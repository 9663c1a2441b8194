import Logging
import NIOCore
import TuttiGroupControl
import TuttiWire

/// What a node that follows says at its door: who leads, as far as it knows. Rooms and clients that
/// come to it are sent there.
struct Signpost: Sendable {
    /// What the node knows at this moment.
    struct Knowledge: Sendable {
        var sight: LeadSight
        /// Who is followed, and heard just now; an empty host is this machine.
        var leader: NextLeader?
    }

    /// A question takes no longer to read and to answer.
    private static let patience = TimeAmount.seconds(5)
    /// Questions of one connection; a client that asks on is one that did not understand.
    private static let mostQuestions = 64

    let know: @Sendable () async -> Knowledge?

    func serve(_ channel: any Channel, _ visitor: Visitor) async {
        let deadline = channel.eventLoop.scheduleTask(in: Self.patience) {
            channel.close(promise: nil)
        }
        defer { deadline.cancel() }
        guard
            let client = try? await channel.asyncChannel(
                of: EnvelopeChannel.self,
                addHandlers: {
                    try EnvelopeCodec.add(to: $0, limit: FrameDecoder.leaderLimit, pace: .toLeader)
                })
        else { return }
        try? await client.executeThenClose { inbound, outbound in
            var questions = 0
            for try await envelope in inbound {
                questions += 1
                guard questions <= Self.mostQuestions, let knowledge = await know() else { return }
                switch envelope {
                case .request(.lead):
                    guard visitor.becomes(.client) else { return }
                    try await outbound.write(.reply(.lead(knowledge.sight)))
                case .request:
                    guard visitor.becomes(.client) else { return }
                    try await outbound.write(
                        .reply(.refused(reason: knowledge.leader?.refusal ?? Self.nobody)))
                case .toLeader(.hello):
                    guard visitor.becomes(.room) else { return }
                    // Without a leader there is nothing to say: the room asks again.
                    guard let leader = knowledge.leader else { return }
                    try await outbound.write(.toRoom(.follow(leader)))
                    return
                case .toLeader, .toRoom, .reply: return
                }
            }
        }
    }

    private static let nobody = "this node follows, and knows of no leader just now"
}

extension HostPort {
    /// Whether it can be this machine alone.
    public var isThisMachine: Bool { NextLeader.isLoopback(host) }
}
