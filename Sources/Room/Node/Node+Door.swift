import Synchronization
import TuttiGroupControl

// What comes to a node's port, and what it asks others.

extension Node {
    var door: NodeServer? { state.withLock { $0.door } }

    /// Whoever comes there is answered, whatever role the node has.
    func open(_ door: NodeServer) {
        state.withLock { $0.door = door }
        begin {
            do {
                try await door.run()
            } catch {
                // A follower goes on without.
                guard self.address != nil else { return }
                throw error
            }
        }
    }

    func openDoorAsFollower() {
        guard let door else { return }
        let signpost = Signpost { [weak self] in await self?.knowledge }
        door.serve(
            by: NodeServer.Handlers(
                links: { await signpost.serve($0, $1) }, media: media.handler))
    }

    private var knowledge: Signpost.Knowledge? {
        get async {
            let (role, member) = state.withLock { ($0.role, $0.member) }
            guard let member else { return nil }
            var leader: NextLeader?
            if case .following(let following)? = role, let welcome = await member.welcome,
                let name = try? RoomID(welcome.leaderName),
                let address = following.finder.currentAddress
            {
                leader = NextLeader(
                    name: name, host: address.isThisMachine ? "" : address.host,
                    port: UInt16(clamping: address.port))
            }
            let sight = await member.sight(leader: leader)
            // One that is not heard is not to be gone to.
            if case .none = sight.lead { leader = nil }
            return Signpost.Knowledge(sight: sight, leader: leader)
        }
    }

    func isOwnDoor(_ place: HostPort) -> Bool { place.isThisMachine && place.port == door?.port }

    func askWhoLeads(
        _ places: [NextLeader], claim: LeadClaim? = nil
    ) async -> [SightAnswer] {
        let hosts: [String] =
            switch state.withLock({ $0.role }) {
            case .following(let following)?: following.finder.currentHosts
            case .leading?: ["127.0.0.1"]
            case nil: []
            }
        return await SightQuestion(credentials: configuration.credentials, claim: claim)
            .ask(places, hosts: hosts)
    }
}
