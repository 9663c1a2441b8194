import Logging
import Synchronization
import TuttiAvahiDiscovery
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

import func Glibc.time

// How a node comes to lead: asked to, since its leader is lost, or since there is none.

extension Node {
    /// Leads from now on, as it was asked to.
    func takeOver(_ handover: Handover, _ session: SessionState) async -> LeadAnswer {
        await lead(Leading.Resumption(session: session, handover: handover)) { member in
            await member.isJoined ? nil : "it has lost its leader"
        } began: { leading, before in
            self.begin { [weak self] in await self?.confirm(leading, after: before) }
        }
    }

    /// Leads from now on, since nobody else does.
    func succeed(
        _ inheritance: Inheritance, _ session: SessionState
    ) async -> LeadAnswer {
        guard case .following(let following)? = state.withLock({ $0.role }),
            let host = following.finder.currentHost
        else {
            return .cannot(reason: "it has no leader")
        }
        let others = inheritance.others.map { other in
            var other = other
            other.host = other.host(toldBy: host)
            return other
        }
        return await lead(
            Leading.Resumption(
                session: session, handover: inheritance.handover, missing: others,
                reign: inheritance.reign, isPredecessorLost: true)
        ) { member in await member.isSucceeding ? nil : "it has a leader again" }
    }

    func isFollowing(_ following: Following) -> Bool {
        if case .following(let current)? = state.withLock({ $0.role }) {
            current === following
        } else {
            false
        }
    }

    /// The session goes on, and so does the group clock as this node knows it.
    ///
    /// - Parameters:
    ///   - objection: asked last: why the member does not lead after all.
    ///   - began: told of the leader before.
    private func lead(
        _ resumption: Leading.Resumption,
        unless objection: (Member) async -> String? = { _ in nil },
        began: (Leading, NextLeader) -> Void = { _, _ in }
    ) async -> LeadAnswer {
        guard configuration.credentials.isSeated else {
            return .cannot(reason: "it belongs to no household any more")
        }
        let now = state.withLock { $0 }
        let session = resumption.session
        guard !now.isEnding else { return .cannot(reason: "it is ending") }
        guard case .following(let following)? = now.role, let member = now.member,
            let door = now.door
        else {
            return .cannot(reason: "it does not follow")
        }
        guard let before = await member.welcome, let host = following.finder.currentHost else {
            return .cannot(reason: "it has no leader")
        }
        guard following.clock.cell.load().quality.isPlayable else {
            return .cannot(reason: "it is still measuring the clock")
        }
        // The port of its time service is needed.
        now.retired?.close()
        let services: Leading.Services
        do {
            services = try await Leading.Services.open(
                configuration, media, door, term: session.nextTerm, takesAnyPort: true)
        } catch {
            return .cannot(reason: "\(error)")
        }
        var obstacle = await objection(member)
        if !isFollowing(following) { obstacle = "it does not follow" }
        if let reason = obstacle {
            services.close()
            return .cannot(reason: reason)
        }
        guard let (known, cell, skew) = following.clock.release() else {
            services.close()
            return .cannot(reason: "it has lost the clock")
        }
        // One name is announced once.
        following.announcement.withdraw()
        let clock = LeaderClock(
            .continuing(known, at: HostClock.now(), skew: skew, epoch: .random(in: 1 ... .max)),
            in: cell)
        let label = now.options?.identity?.name ?? name
        // What was listed before keeps its identity.
        let last =
            resumption.handover.items.map(\.id).filter { $0 < QueueEntry.firstOwnID }.max() ?? 0
        let reader = AssetReader([], library, media, logger: logger, firstID: last + 1)
        let leading = Leading(
            services, clock, reader, name: label, session: self.session, configuration,
            LeaderConfiguration(
                name: label.name, queue: [], term: session.nextTerm,
                groupClockEpoch: clock.current().epoch,
                timePort: services.timePort, mediaPort: services.port,
                ownInstance: now.options?.identity?.number,
                groupClockOrigin: before.groupClockOrigin, reign: resumption.reign),
            resuming: resumption, events: events)
        await leading.begin()
        files.lead(
            after: Holders(
                predecessor: HostPort(host: host, port: Int(before.mediaPort)),
                isLost: resumption.isPredecessorLost,
                rooms: { [core = leading.core] in
                    await core.doors.map {
                        HostPort(host: $0.host(toldBy: "127.0.0.1"), port: Int($0.port))
                    }
                }))
        state.withLock {
            $0.role = .leading(leading)
            $0.retired = nil
            $0.hostBefore = host
        }
        await member.change(
            to: Member.Role(
                clock: OwnClock(clock), uplink: leading.uplink, isLeaders: true))
        following.end()
        begin { await reader.run() }
        begin { try await self.run(leading) }
        begin { await self.keepSession(leading) }
        for file in await member.heldFiles { files.lend(file.file, of: file.hash) }
        media.provide { [files] hash in
            guard let asset = await leading.core.asset(ofHash: hash) else { return nil }
            return await files.fetch(asset)
        }
        if let name = try? RoomID(before.leaderName) {
            let predecessor = NextLeader(name: name, host: host, port: before.mediaPort)
            begin { await self.lookAfterInheritance(leading, of: predecessor, resumption) }
            began(leading, predecessor)
        }
        logger.notice(
            "leading",
            metadata: [
                "name": "\(label)", "port": "\(services.port)", "term": "\(session.nextTerm)",
            ])
        return .leads(port: services.port)
    }

    private static let inheritanceInterval = Duration.seconds(1)
    /// An item that only the lost leader could read is waited for so long: it may be back, or be started
    /// anew.
    private static let readingPatience = Duration.seconds(10)
    /// … and that another machine put into the queue before the power failed: it is started like this one.
    private static let bootPatience = Duration.seconds(90)

    /// What only the leader before had does not hold up the group once that one is gone: what every machine
    /// can fetch this node fetches. Where the bytes of what plays are nowhere, and rooms are silent for it,
    /// or an item comes that nobody has read, the group goes on without.
    private func lookAfterInheritance(
        _ leading: Leading, of predecessor: NextLeader, _ resumption: Leading.Resumption
    ) async {
        let gone = "its file went with \(predecessor.name.name.shown())"
        var answers = PredecessorAnswers()
        while !resumption.isPredecessorLost, !answers.haveEnded {
            guard (try? await Task.sleep(for: Self.inheritanceInterval)) != nil,
                isLeading(leading), !leading.isRetired
            else { return }
            if let answer = await askWhoLeads([predecessor]).first { answers.take(answer) }
        }
        files.losePredecessor()
        leading.reader.adopt(
            resumption.handover.addresses, of: resumption.handover.items,
            unread: Set(await leading.core.unreadItems))
        begin { await self.leaveOutUnread(leading, after: Self.readingPatience, gone) }
        while (try? await Task.sleep(for: Self.inheritanceInterval)) != nil, isLeading(leading),
            !leading.isRetired
        {
            for asset in await leading.core.upcomingAssets {
                guard await files.isLost(asset), await leading.core.isStarving(for: asset) else {
                    continue
                }
                let source = await leading.core.item(of: asset.hash)
                    .flatMap { leading.reader.item($0) }
                if let source, let anew = await leading.reader.readAgain(source) {
                    if anew.hash != asset.hash {
                        await leading.core.change(asset.hash, to: .other(anew))
                    }
                    continue
                }
                logger.error("\(asset.title): \(gone), and no room has all of it")
                await leading.core.passOver(asset.hash, gone)
            }
        }
    }

    /// An item that another machine has to read, and does not, is not waited for without end.
    private func leaveOutUnread(
        _ leading: Leading, after patience: Duration, _ reason: String
    ) async {
        var awaited: (id: QueueEntry.ID, since: ContinuousClock.Instant)?
        while (try? await Task.sleep(for: Self.inheritanceInterval)) != nil, isLeading(leading),
            !leading.isRetired
        {
            let id = await leading.core.awaitedItem
            if awaited?.id != id { awaited = id.map { ($0, .now) } }
            // What was put in here this node reads itself, however long that takes.
            guard let now = awaited, now.since + patience <= .now,
                leading.reader.item(now.id) == nil
            else { continue }
            await leading.core.take([.absent([now.id], reason: reason)])
        }
    }

    // MARK: A group of its own

    /// A node that finds nobody to follow begins a group with nothing in its queue, which others may
    /// join. Of several that have nothing to play yet one goes on, and its group is that of all.
    ///
    /// - Parameters:
    ///   - first: how long it looks for a leader at the start.
    ///   - patience: … and when it has lost one.
    func leadsWhenAlone(after first: Duration, then patience: Duration) async {
        var pause = first
        while (try? await Task.sleep(for: pause)) != nil {
            pause = patience
            guard case .following(let following)? = state.withLock({ $0.role }),
                let member = state.withLock({ $0.member })
            else { continue }
            // Who was removed, or has left, leads nobody.
            guard configuration.credentials.isSeated else { continue }
            let isAlone =
                await member.isWithoutLeader && following.isLooking
                && !following.finder.knowsLeaders
            // What still sounds goes on by itself to its end.
            guard isAlone, await member.isIdle else { continue }
            await leadAlone(mayGiveUp: true)
        }
    }

    /// Begins a group with nothing in its queue.
    ///
    /// - Parameters:
    ///   - mayGiveUp: nobody asked for it, and it ends where another group is found before it is used.
    ///   - saved: goes on instead.
    func leadAlone(mayGiveUp: Bool = false, restoring saved: SavedSession? = nil) async {
        guard case .following(let following)? = state.withLock({ $0.role }),
            let member = state.withLock({ $0.member })
        else { return }
        do {
            try await leadAfresh(following, member, mayGiveUp: mayGiveUp, restoring: saved)
        } catch {
            logger.warning("this node cannot lead", metadata: ["reason": "\(error)"])
        }
    }

    private func leadAfresh(
        _ following: Following, _ member: Member, mayGiveUp: Bool, restoring saved: SavedSession?
    ) async throws {
        let (options, retired) = state.withLock { ($0.options, $0.retired) }
        guard let door else { return }
        guard configuration.credentials.isSeated else {
            throw RoomError(.stranger, "it belongs to no household: `tutti join` pairs it with one")
        }
        retired?.close()
        let term = UInt64(max(1, time(nil)))
        let services = try await Leading.Services.open(
            configuration, media, door, term: term, takesAnyPort: true)
        guard isFollowing(following) else { return services.close() }
        _ = following.clock.release()
        following.announcement.withdraw()
        let clock = LeaderClock(epoch: .random(in: 1 ... .max))
        let label = options?.identity?.name ?? name
        let reader = AssetReader([], library, media, logger: logger)
        var resumption: Leading.Resumption?
        if let saved {
            let cache = configuration.cacheFolder
            resumption = await reader.restore(
                saved.withoutLostCopies(in: cache), plays: configuration.playsAfterRestart)
        }
        let leading = Leading(
            services, clock, reader, name: label, session: session, configuration,
            LeaderConfiguration(
                name: label.name, queue: [], term: term, groupClockEpoch: clock.current().epoch,
                timePort: services.timePort, mediaPort: services.port,
                crystal: configuration.crystal(), ownInstance: options?.identity?.number,
                session: saved?.session),
            resuming: resumption, events: events)
        await leading.begin()
        if mayGiveUp || saved != nil {
            await leading.core.mayBeGivenUp(restoredFrom: saved?.term)
        }
        // It was asked for: after a restart it is one again.
        if !mayGiveUp { options?.identity?.keep(leader: label.name) }
        files.leadAfresh()
        state.withLock {
            $0.role = .leading(leading)
            $0.retired = nil
            $0.hostBefore = nil
        }
        await member.change(
            to: Member.Role(clock: OwnClock(clock), uplink: leading.uplink, isLeaders: true))
        following.end()
        await member.receiveInput(.leadsAfresh)
        begin { await reader.run() }
        begin { try await self.run(leading) }
        begin { await self.keepSession(leading, after: saved) }
        if saved != nil {
            begin {
                await self.leaveOutUnread(
                    leading, after: Self.bootPatience,
                    "its file is on another machine, which is not here")
            }
        }
        logger.notice(
            saved == nil
                ? "leading a group with nothing in its queue, which others may join"
                : "leading the group of before, with its queue",
            metadata: ["name": "\(label)", "port": "\(services.port)"])
    }

    /// While this node leads a group that has nothing to play it looks for others that lead, and
    /// follows one that goes before it.
    func followsWhenIdle() async {
        guard let session else { return }
        let known = SeenLeaders()
        await withDiscardingTaskGroup { group in
            group.addTask {
                for await event in session.browse() {
                    switch RoomSighting(event) {
                    case .found(let room) where room.role == .leader:
                        known.rooms.withLock { rooms in
                            // Each is asked: a stranger can announce any number.
                            if rooms.count < Self.mostMet || rooms[room.label] != nil {
                                rooms[room.label] = room
                            }
                        }
                    case .found(let room): known.rooms.withLock { $0[room.label] = nil }
                    case .gone(let label): known.rooms.withLock { $0[label] = nil }
                    case .answersTold, .knownTold, .daemonLost, nil: break
                    }
                }
            }
            group.addTask {
                while (try? await Task.sleep(for: Self.idleInterval)) != nil {
                    await self.meet(known.rooms.withLock { Array($0.values) })
                }
            }
        }
    }

    private static let mostMet = 32
    private static let idleInterval = Duration.milliseconds(700)

    private func meet(_ rooms: [DiscoveredRoom]) async {
        guard case .leading(let leading)? = state.withLock({ $0.role }) else { return }
        let isUntouched = await leading.core.isUntouched
        let mayGiveUp = await leading.core.canBeGivenUp
        guard isUntouched || mayGiveUp else { return }
        let own = GroupStatus.text(of: await leading.core.sessionID)
        let label = state.withLock { $0.options?.identity?.name } ?? name
        for room in rooms
        where configuration.credentials.concerns(room.household)
            && room.name.foldedName != label.name.foldedName
        {
            guard let other = try? RoomID(room.name), let port = UInt16(exactly: room.address.port),
                let status = try? await GroupClient(
                    address: room.address, timeout: .seconds(1), attempts: .few,
                    configuration.credentials
                ).status(), status.leader.foldedName == room.name.foldedName
            else { continue }
            if isUntouched {
                // The same session, restored twice, or gone on with elsewhere.
                let term = await leading.core.sessionTerm
                guard status.session == own,
                    status.sessionTerm > term || status.sessionTerm == term && other < label
                else { continue }
            } else {
                // Of two that have nothing to play the one whose name comes first goes on.
                guard !status.isUnused || other < label else { continue }
            }
            let next = NextLeader(name: other, host: room.address.host, port: port)
            // Something may have been put into its queue meanwhile.
            guard await leading.core.giveUp(before: next) else { return }
            return logger.notice(
                "another leads; this node follows", metadata: ["leader": "\(room.name)"])
        }
    }
}

/// Who is announced as a leader, by what Avahi calls it.
private final class SeenLeaders: Sendable {
    let rooms = Mutex<[String: DiscoveredRoom]>([:])
}

extension GroupStatus {
    /// Nothing was played or is to be, so that nobody would miss the group.
    var isUnused: Bool { count == 0 && phase == .stopped }
}
