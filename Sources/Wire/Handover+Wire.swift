import GroupControl

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
        return Handover(
            settings: known, commonSettings: try commonSettings.checked("lead.common settings"),
            repeats: try repeats.checked("lead.repeats"),
            rooms: min(max(0, Int(rooms)), LeaderMachine.mostMembers), items: checkedItems)
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

/// Somebody listens there.
private func leaderPort(_ number: UInt32, _ subject: String) throws(WireError) -> UInt16 {
    let port = try port(number, subject)
    guard port > 0 else { throw WireError(.outOfRange, subject, "0") }
    return port
}
