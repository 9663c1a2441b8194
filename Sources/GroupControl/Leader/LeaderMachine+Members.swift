import TuttiTiming

// Joining, leaving, falling silent, and what rooms answer.

extension LeaderMachine {
    mutating func receive(_ message: RoomToLeader, from link: LinkID, at now: GroupInstant) {
        if case .hello(let hello) = message {
            return receive(hello, from: link, at: now)
        }
        guard let place = members.firstIndex(where: { $0.link == link }) else {
            send(.refused(reason: "the first message must be a hello"), to: link)
            outbox.append(.close(link))
            return
        }
        members[place].lastHeard = max(now, members[place].lastHeard)
        if members[place].isLost {
            members[place].isLost = false
            tell(.heardAgain, of: members[place])
            if members[place].hello.hasOutput { offerEverything(to: place) }
        }
        switch message {
        case .hello: break
        case .ready(let id, let latency):
            noteAnswer(id, from: place)
            members[place].latency = LeaderMember.believable(latency)
            receiveReady(id, from: place)
        case .notReady(let id, let reason):
            noteAnswer(id, from: place)
            receiveNotReady(id, reason: reason, from: place, at: now)
        case .report(let report):
            let hadNoCard = members[place].report?.isCardLost ?? false
            members[place].take(report, at: now)
            if report.isCardLost != hadNoCard {
                tellOfOthers(.card(isLost: report.isCardLost), of: members[place])
            }
            noteAlarm(report, of: place)
            if members[place].isOffLine ? report.line == .onLine : report.line.isAlarm {
                members[place].isOffLine.toggle()
                tellOfOthers(.line(report.line), of: members[place])
            }
        case .lead(let answer): receiveLead(answer, from: place)
        case .goodbye:
            missed.removeAll { $0.place.name == members[place].hello.room }
            tell(.left, of: members.remove(at: place))
            outbox.append(.close(link))
        }
    }

    private mutating func receive(_ hello: Hello, from link: LinkID, at now: GroupInstant) {
        if let heir {
            send(.follow(heir), to: link)
            outbox.append(.close(link))
            return
        }
        if let reason = objection(to: hello, from: link, at: now) {
            send(.refused(reason: reason), to: link)
            outbox.append(.close(link))
            outbox.append(.news(.refused(reason: reason), of: hello.room))
            return
        }
        guard let room = name(for: hello, from: link, at: now) else {
            send(
                .refused(
                    reason: "every name like \"\(hello.room)\" is taken; choose another --name"),
                to: link)
            outbox.append(.close(link))
            return
        }
        let wanted = hello.room
        var hello = hello
        hello.room = room
        makeRoom(for: hello, at: now)
        var history = SyncHistory()
        var isNew = true
        for member in members where member.hello.room == hello.room {
            if member.link == link { isNew = false } else { outbox.append(.close(member.link)) }
            history = member.history
        }
        members.removeAll { $0.hello.room == hello.room || $0.link == link }
        members.append(LeaderMember(link: link, hello: hello, history: history, at: now))
        missed.removeAll { $0.place.name == hello.room }
        noteCompany(hello)
        // A room that comes from another group is as loud as it was there.
        if let own = hello.settings, settings[hello.room] == nil || takesBack(hello.room, at: now) {
            remember(own, of: hello.room)
            takeGroupVolume(own.groupVolume, at: now)
        }
        let place = members.count - 1
        if isNew { tell(.joined, of: members[place]) }
        if room != wanted { tell(.renamed(from: wanted), of: members[place]) }
        var welcome = welcome
        welcome.room = room == wanted ? nil : room
        send(.welcome(welcome), to: link)
        send(.settings(rememberedSettings(of: hello.room)), to: link)
        send(.state(session), to: link)
        tellSuccession(to: members[place])
        if hello.hasOutput { offerEverything(to: place) }
    }

    private var welcome: Welcome {
        Welcome(
            leaderName: configuration.name, timePort: configuration.timePort,
            mediaPort: configuration.mediaPort, term: session.term,
            groupClockEpoch: configuration.groupClockEpoch,
            groupClockOrigin: configuration.groupClockOrigin, crystal: configuration.crystal)
    }

    /// Why this hello is not welcome; `nil` when it is.
    private func objection(
        to hello: Hello, from link: LinkID, at now: GroupInstant
    ) -> String? {
        if hello.version != protocolVersion {
            return "this group speaks version \(protocolVersion), the room \(hello.version); "
                + "install the same version on both"
        }
        if let own = members.first(where: { $0.link == link }), own.hello.room != hello.room {
            return "this link already belongs to \"\(own.hello.room)\""
        }
        if members.contains(where: { $0.hello.room == hello.room && mayReplace($0, hello, at: now) }
        ) {
            return nil
        }
        if members.count >= Self.mostMembers, memberThatMakesRoom(at: now) == nil {
            return "the group has \(Self.mostMembers) rooms and takes no more"
        }
        return nil
    }

    /// A full group lets go of who has said nothing for long, for one that comes.
    private mutating func makeRoom(for hello: Hello, at now: GroupInstant) {
        guard members.count >= Self.mostMembers,
            !members.contains(where: { $0.hello.room == hello.room }),
            let place = memberThatMakesRoom(at: now)
        else { return }
        outbox.append(.close(members[place].link))
        tell(.left, of: members.remove(at: place))
    }

    /// Of the members silent for ``silenceUntilDisplaced`` the one silent longest; one that has said
    /// nothing since its hello is none much earlier.
    private func memberThatMakesRoom(at now: GroupInstant) -> Int? {
        members.indices.filter { place in
            let patience =
                members[place].report == nil
                ? Self.silenceUntilReplaced : Self.silenceUntilDisplaced
            return now - members[place].lastHeard >= patience
        }.min { members[$0].lastHeard < members[$1].lastHeard }
    }

    /// What the group calls a room: as it calls itself, or the first name like it that is free.
    ///
    /// - Returns: `nil` when there is none.
    private func name(for hello: Hello, from link: LinkID, at now: GroupInstant) -> RoomID? {
        let leader = configuration.ownInstance == nil ? nil : try? RoomID(configuration.name)
        for number in 1...Self.mostNamesakes {
            let name = number == 1 ? hello.room : hello.room.numbered(number)
            if name == leader, configuration.ownInstance != hello.instance { continue }
            let others = members.filter { $0.hello.room == name && $0.link != link }
            // It may have a name here already, though it says its own: what it remembered is lost.
            if others.allSatisfy({ mayReplace($0, hello, at: now) }) { return name }
        }
        return nil
    }

    /// Whether a hello is of this member, which comes back, or of one that is not there any more.
    private func mayReplace(_ member: LeaderMember, _ hello: Hello, at now: GroupInstant) -> Bool {
        member.hello.instance == hello.instance
            || now - member.lastHeard >= Self.silenceUntilReplaced
    }

    /// Prepares a member for whatever the session is doing.
    mutating func offerEverything(to place: Int) {
        if pending != nil {
            let isBeginning = session.phase == .waiting || session.phase == .preparing
            offerPending(to: place, isAwaited: isBeginning)
        } else if isRunning {
            offerLine(to: place)
        }
    }

    /// Asks a member for the line in force; it gets the commit to itself when it is ready.
    mutating func offerLine(to place: Int, attempt: Int = 1) {
        guard let change = session.change else { return }
        let preparation = makePreparation(
            of: session.index, frame: change.itemFrame, change: change)
        members[place].line = Offer(id: preparation.id, attempt: attempt)
        send(.prepare(preparation), to: members[place].link)
    }

    private mutating func receiveReady(_ id: UInt64, from place: Int) {
        if members[place].line?.id == id, members[place].line?.standing == .sent {
            members[place].line?.standing = .committed
            members[place].failure = ""
            commitLine(to: place)
        } else if members[place].pending?.id == id, members[place].pending?.standing == .sent {
            members[place].pending?.standing = .ready
            members[place].failure = ""
        } else if members[place].follow?.id == id, members[place].follow?.standing == .sent {
            members[place].follow?.standing = .committed
            members[place].failure = ""
            commitFollowUp(to: place)
        } else {
            receiveChainReady(id, from: place)
        }
        // Anything else answers an offer that was withdrawn meanwhile, or says it twice.
    }

    /// A room that promises nothing just now, or rests and judges nothing, has not come back to its
    /// target.
    private mutating func noteAlarm(_ report: RoomReport, of place: Int) {
        guard let bound = report.bound, report.sync.quality.isPlayable,
            report.sync.isAlarming != members[place].isAlarming,
            report.sync.isAlarming || bound <= report.sync.target
        else { return }
        members[place].isAlarming = report.sync.isAlarming
        tellOfOthers(.alarm(report.sync.isAlarming, bound: bound), of: members[place])
    }

    /// The node's own room has said it on the same terminal.
    private mutating func tellOfOthers(_ news: RoomNews, of member: LeaderMember) {
        if !isOwn(member) { tell(news, of: member) }
    }

    private mutating func commitLine(to place: Int) {
        guard let change = session.change, let asset = session.current,
            let line = members[place].line
        else { return }
        let commit = Commit(
            id: line.id, index: session.index, hash: asset.hash, change: change, following: false)
        send(commit, to: members[place])
        if followUp != nil, pending == nil, members[place].follow == nil {
            offerFollowUp(to: place)
        }
    }

    private mutating func receiveNotReady(
        _ id: UInt64, reason: String, from place: Int, at now: GroupInstant
    ) {
        let chain = members[place].chain.indices.map { \LeaderMember.chain[$0] }
        for slot in [\LeaderMember.line, \LeaderMember.pending, \LeaderMember.follow] + chain
        where members[place][keyPath: slot]?.id == id {
            if slot == \.line { members[place].noteBreak(at: now) }
            let attempt = members[place][keyPath: slot]?.attempt ?? 1
            members[place][keyPath: slot]?.standing = .failed
            // The same again is no news.
            let failure = reason.limited(toBytes: RoomReport.longestText)
            if failure != members[place].failure {
                tell(.failed(reason: failure), of: members[place])
            }
            members[place].failure = failure
            members[place].retryAt = now + Self.retryInterval * Int64(min(attempt, 10))
        }
    }

    /// Offers again what a member failed at; the world may have changed.
    mutating func retryFailed(at now: GroupInstant) {
        for place in members.indices {
            guard let retryAt = members[place].retryAt, now >= retryAt else { continue }
            members[place].retryAt = nil
            guard members[place].takesPart else { continue }
            let member = members[place]
            if let failed = member.pending, failed.standing == .failed {
                offerPending(to: place, isAwaited: false, attempt: failed.attempt + 1)
            }
            if let failed = member.follow, failed.standing == .failed {
                offerFollowUp(to: place, attempt: failed.attempt + 1)
            }
            if isRunning, let failed = member.line, failed.standing == .failed {
                offerLine(to: place, attempt: failed.attempt + 1)
            } else if isRunning, member.line == nil, member.pending == nil {
                offerLine(to: place)
            }
        }
    }

    /// Marks who has not been heard, and lets go of who has been silent for long.
    mutating func dropSilent(at now: GroupInstant) {
        for place in members.indices.reversed() {
            let silence = now - members[place].lastHeard
            if silence >= Self.silenceUntilClosed {
                miss(members[place], at: now)
                outbox.append(.close(members[place].link))
                tell(.left, of: members.remove(at: place))
            } else if silence >= Self.silenceUntilLost, !members[place].isLost {
                members[place].isLost = true
                miss(members[place], at: now)
                tell(.lost, of: members[place])
                members[place].forgetOffers()
            }
        }
    }

    mutating func tell(_ news: RoomNews, of member: LeaderMember) {
        outbox.append(.news(news, of: member.hello.room))
    }

    func rememberedSettings(of room: RoomID) -> RoomSettings {
        (settings[room] ?? commonSettings).inGroup(of: commonSettings)
    }
}
