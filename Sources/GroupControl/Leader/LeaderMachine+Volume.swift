import TuttiTiming

// How loud the rooms are, and how late what hangs on them is. Rooms are named as people write them.

extension LeaderMachine {
    mutating func setVolume(_ percent: Int, of room: RoomID?) -> CommandOutcome {
        guard RoomSettings.volumes.contains(percent) else {
            return .refused(reason: "the volume is 0 to 100, not \(percent)")
        }
        guard let room else { return setGroupVolume(percent) }
        return change(room) { old in (try? old.with(volume: percent)) ?? old }
    }

    mutating func changeVolume(by percent: Int, of room: RoomID?) -> CommandOutcome {
        guard (-100...100).contains(percent) else {
            return .refused(reason: "the volume changes by −100 to 100, not by \(percent)")
        }
        func changed(_ volume: Int) -> Int { min(max(0, volume + percent), 100) }
        guard let room else { return setGroupVolume(changed(commonSettings.groupVolume)) }
        return change(room) { old in (try? old.with(volume: changed(old.volume))) ?? old }
    }

    /// How loud rooms were when their leader was lost: they know it better than its last word to its heirs,
    /// until somebody changes it.
    struct InheritedVolumes: Equatable, Sendable {
        var rooms: Set<RoomID>
        /// The group's is not known yet.
        var lacksGroup = true
        var until: GroupInstant
    }

    /// Whether the room's own word counts.
    mutating func takesBack(_ room: RoomID, at now: GroupInstant) -> Bool {
        guard let known = inheritedVolumes, now < known.until else { return false }
        return inheritedVolumes?.rooms.remove(room) != nil
    }

    /// What the first room says that is back.
    mutating func takeGroupVolume(_ percent: Int, at now: GroupInstant) {
        guard let known = inheritedVolumes, known.lacksGroup, now < known.until else { return }
        inheritedVolumes?.lacksGroup = false
        commonSettings = (try? commonSettings.with(groupVolume: percent)) ?? commonSettings
    }

    /// The rooms keep theirs: so they keep their balance.
    private mutating func setGroupVolume(_ percent: Int) -> CommandOutcome {
        inheritedVolumes?.lacksGroup = false
        commonSettings = (try? commonSettings.with(groupVolume: percent)) ?? commonSettings
        tellSettings(of: nil)
        return .accepted
    }

    mutating func setMuted(_ muted: Bool, of room: RoomID?) -> CommandOutcome {
        change(room) { $0.with(muted: muted) }
    }

    /// Changes the settings of one room, or of all rooms there are and will be.
    mutating func change(
        _ room: RoomID?, _ changed: (RoomSettings) -> RoomSettings
    ) -> CommandOutcome {
        let known = Set(members.map(\.hello.room)).union(settings.keys)
        var meant: RoomID?
        if let room {
            switch find(room, among: known) {
            case .success(let found): meant = found
            case .failure(let refusal): return .refused(reason: refusal.reason)
            }
        } else {
            commonSettings = changed(commonSettings)
        }
        for name in known where meant == nil || name == meant {
            inheritedVolumes?.rooms.remove(name)
            remember(changed(rememberedSettings(of: name)), of: name)
        }
        tellSettings(of: meant)
        return .accepted
    }

    /// - Parameter room: `nil`: all of them.
    private mutating func tellSettings(of room: RoomID?) {
        for member in members where room == nil || member.hello.room == room {
            send(.settings(rememberedSettings(of: member.hello.room)), to: member.link)
        }
    }

    struct Refusal: Error {
        var reason: String
    }

    /// The member that a person means.
    func member(_ wanted: RoomID) -> Result<LeaderMember, Refusal> {
        find(wanted, among: Set(members.map(\.hello.room))).map { room in
            guard let member = members.first(where: { $0.hello.room == room }) else {
                preconditionFailure("a room found among the members is one: \(room)")
            }
            return member
        }
    }

    /// The room that a person means: the one of that name, or the only one whose name differs in
    /// capitals alone.
    func find(_ room: RoomID, among known: Set<RoomID>) -> Result<RoomID, Refusal> {
        if known.contains(room) { return .success(room) }
        let alike = known.filter { $0.name.lowercased() == room.name.lowercased() }.sorted()
        if alike.count == 1 { return .success(alike[0]) }
        let names = (alike.isEmpty ? known.sorted() : alike).map(\.name)
        let list = names.prefix(20).map { "\"\($0)\"" }.joined(separator: ", ")
        if !alike.isEmpty {
            return .failure(
                Refusal(reason: "\"\(room)\" may be \(list); write it as it is written"))
        }
        guard !names.isEmpty else {
            return .failure(
                Refusal(reason: "there is no room \"\(room)\" here; no room has joined yet"))
        }
        let question = Suggestion.question(for: room.name, among: names)
        return .failure(
            Refusal(reason: "there is no room \"\(room)\" here; there are \(list)\(question)"))
    }

    /// The room keeps its offset itself, since it belongs to what hangs on its output: one that is
    /// not here cannot be told.
    mutating func setOffset(
        _ offset: LatencyOffset, of wanted: RoomID
    ) -> CommandOutcome {
        let member: LeaderMember
        switch self.member(wanted) {
        case .success(let found): member = found
        case .failure(let refusal): return .refused(reason: refusal.reason)
        }
        let room = member.hello.room
        guard member.takesPart else {
            return .refused(
                reason: "\"\(room)\" "
                    + (member.isLost ? "is not heard just now" : "has no output to delay"))
        }
        if member.report?.sync.isLatencyOffsetFixed == true {
            return .refused(
                reason: "the settings of \"\(room)\" give its offset (latency-offset-us); "
                    + "change it there, or remove it to set it from here")
        }
        send(.latencyOffset(offset), to: member.link)
        return .accepted
    }

    mutating func remember(_ new: RoomSettings, of room: RoomID) {
        if settings[room] == nil, settings.count >= Self.mostSettings {
            let present = Set(members.map(\.hello.room))
            if let absent = settings.keys.filter({ !present.contains($0) }).min() {
                settings[absent] = nil
            }
        }
        settings[room] = new
    }
}
