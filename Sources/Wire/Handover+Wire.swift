import TuttiGroupControl

// What one leader and the next say to each other, and the rooms between them.

extension PBLeadAnswer {
    func checked() throws(WireError) -> LeadAnswer {
        switch content {
        case .port(let number): .leads(port: try leaderPort(number, "lead.port"))
        case .reason(let reason): .cannot(reason: try text(reason, "lead.reason"))
        case nil: throw WireError(.missing, "lead", "the answer is empty")
        }
    }
}

extension PBHandover {
    init(_ handover: Handover) {
        self.init()
        settings = handover.settings.sorted { $0.key < $1.key }.map { room, settings in
            var named = PBHandover.Named()
            named.room = room.name
            named.settings = PBRoomSettings(settings)
            return named
        }
        commonSettings = PBRoomSettings(handover.commonSettings)
        repeats = PBRepeatMode(handover.repeats)
        rooms = Int32(clamping: handover.rooms)
        items = handover.items.map(PBQueueItem.init)
        rate = handover.rate
        session = handover.session
        addresses = handover.addresses
    }

    func checked() throws(WireError) -> Handover {
        guard settings.count <= Handover.mostSettings else {
            throw WireError(.tooLong, "lead.settings", "\(settings.count) rooms")
        }
        var known: [RoomID: RoomSettings] = [:]
        for named in settings {
            let room = try valid("lead.room") { () throws(InvalidValue) in
                try RoomID(named.room)
            }
            known[room] = try named.settings.checked("lead.settings")
        }
        guard items.count <= SessionState.longestQueue else {
            throw WireError(.tooLong, "lead.items", "\(items.count) items")
        }
        var checkedItems: [QueueListing.Item] = []
        for (place, item) in items.enumerated() {
            checkedItems.append(try item.checked("lead.items[\(place)]"))
        }
        guard addresses.count <= Handover.mostAddresses else {
            throw WireError(.tooLong, "lead.addresses", "\(addresses.count) addresses")
        }
        for address in addresses.values {
            _ = try text(address, "lead.address", limit: QueueAddition.longestLocation)
        }
        guard rate == 0 || RateChange.rates.contains(rate) else {
            throw WireError(.outOfRange, "lead.rate", "\(rate)")
        }
        return Handover(
            settings: known, commonSettings: try commonSettings.checked("lead.common settings"),
            repeats: try repeats.checked("lead.repeats"),
            rooms: min(max(0, Int(rooms)), LeaderMachine.mostMembers), items: checkedItems,
            rate: rate == 0 ? 1 : rate, session: session, addresses: addresses)
    }
}

extension PBNextLeader {
    init(_ next: NextLeader) {
        self.init()
        name = next.name.name
        host = next.host
        port = UInt32(next.port)
    }

    func checked() throws(WireError) -> NextLeader {
        NextLeader(
            name: try valid("follow.name") { () throws(InvalidValue) in try RoomID(name) },
            host: try text(host, "follow.host", limit: NextLeader.longestHost),
            port: try leaderPort(port, "follow.port"))
    }
}

extension PBSuccession {
    init(_ succession: Succession) {
        self.init()
        heirs = succession.heirs.map { heir in
            var raw = PBSuccession.Heir()
            raw.room = heir.room.name
            raw.host = heir.host
            raw.port = UInt32(heir.port)
            return raw
        }
        handover = PBHandover(succession.handover)
        reign = succession.precedence.reign
        term = succession.precedence.term
        missed = succession.missed.map(PBNextLeader.init)
    }

    func checked() throws(WireError) -> Succession {
        guard heirs.count <= Succession.mostHeirs else {
            throw WireError(.tooLong, "succession.heirs", "\(heirs.count) rooms")
        }
        var known: [TuttiGroupControl.Heir] = []
        for heir in heirs {
            known.append(
                TuttiGroupControl.Heir(
                    room: try valid("heir.room") { () throws(InvalidValue) in
                        try RoomID(heir.room)
                    },
                    host: try text(heir.host, "heir.host", limit: NextLeader.longestHost),
                    port: try leaderPort(heir.port, "heir.port")))
        }
        guard missed.count <= Succession.mostMissed else {
            throw WireError(.tooLong, "succession.missed", "\(missed.count) nodes")
        }
        var others: [NextLeader] = []
        for node in missed { others.append(try node.checked()) }
        return Succession(
            heirs: known, missed: others,
            precedence: TuttiGroupControl.Precedence(reign: reign, term: term),
            handover: try handover.checked())
    }
}

extension PBLeadQuestion {
    func checked() throws(WireError) -> LeadClaim? {
        guard hasClaim else { return nil }
        return LeadClaim(sight: try claim.checked(), port: try leaderPort(port, "claim.port"))
    }
}

extension PBLeadSight {
    init(_ sight: LeadSight) {
        self.init()
        room = sight.room.name
        origin = sight.origin
        switch sight.lead {
        case .own(let precedence):
            own.reign = precedence.reign
            own.term = precedence.term
        case .heard(let next): heard = PBNextLeader(next)
        case .none: break
        }
    }

    func checked() throws(WireError) -> LeadSight {
        let name = try valid("lead.room") { () throws(InvalidValue) in try RoomID(room) }
        return switch lead {
        case .own(let own):
            LeadSight(
                room: name, origin: origin,
                lead: .own(TuttiGroupControl.Precedence(reign: own.reign, term: own.term)))
        case .heard(let next):
            LeadSight(room: name, origin: origin, lead: .heard(try next.checked()))
        case nil: LeadSight(room: name, origin: origin, lead: .none)
        }
    }
}

/// Somebody listens there.
private func leaderPort(_ number: UInt32, _ subject: String) throws(WireError) -> UInt16 {
    let port = try port(number, subject)
    guard port > 0 else { throw WireError(.outOfRange, subject, "0") }
    return port
}
