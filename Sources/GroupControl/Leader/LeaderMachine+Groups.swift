// Rooms that go from one group to another. What the others play is not touched: a room that leaves is
// one that nobody waits for.

extension LeaderMachine {
    /// Sends a room to another leader. It plays on until that one has welcomed it, and is then prepared
    /// for what plays there.
    mutating func move(_ wanted: RoomID, to next: NextLeader) -> CommandOutcome {
        switch movable(wanted) {
        case .failure(let refusal): return .refused(reason: refusal.reason)
        case .success(let member):
            guard next.name.name != configuration.name else {
                return .refused(reason: "\"\(member.hello.room)\" is in this group already")
            }
            var next = next
            if next.isLoopback { next.host = "" }
            if isOwn(member) {
                // The last one takes its group with it.
                outbox.append(.yield(to: next))
            } else {
                send(.follow(next), to: member.link)
                letGo(of: member, .moved(to: next.name))
            }
            return .accepted
        }
    }

    /// Lets a room lead a group of its own.
    mutating func separate(_ wanted: RoomID) -> CommandOutcome {
        switch movable(wanted) {
        case .failure(let refusal): return .refused(reason: refusal.reason)
        case .success(let member):
            guard !isOwn(member) else {
                return .refused(reason: "\"\(member.hello.room)\" is alone in its group already")
            }
            guard member.hello.canLead else {
                return .refused(
                    reason: "\"\(member.hello.room)\" only follows (succession: false)")
            }
            send(.separate, to: member.link)
            letGo(of: member, .moved(to: member.hello.room))
            return .accepted
        }
    }

    private func movable(_ wanted: RoomID) -> Result<LeaderMember, Refusal> {
        member(wanted).flatMap { member in
            guard isOwn(member) else { return .success(member) }
            let others = members.filter { !isOwn($0) && !$0.isLost }.map(\.hello.room).sorted()
            guard let other = others.first else { return .success(member) }
            return .failure(
                Refusal(
                    reason:
                        "\"\(member.hello.room)\" leads this group: let another room lead it first "
                        + "(tutti handover \"\(other)\")"))
        }
    }

    private mutating func letGo(of member: LeaderMember, _ news: RoomNews) {
        outbox.append(.close(member.link))
        members.removeAll { $0.link == member.link }
        missed.removeAll { $0.place.name == member.hello.room }
        outbox.append(.news(news, of: member.hello.room))
    }
}
