import Dispatch
import Logging
import Synchronization
import TuttiAvahiDiscovery
import TuttiGroupControl
import TuttiTiming

// A group is as it was when the power comes back: whoever leads keeps what it needs for that.

extension Node {
    /// A change is written once it has stood for so long.
    private static let keepingPause = Duration.seconds(1)
    /// While it plays its place is written so often.
    private static let placeInterval = Duration.seconds(15)
    /// Between two looks whether a session still goes on that another node leads.
    static let lookingPause = Duration.seconds(2)
    /// A group that is so often found with another session has begun anew.
    static let mostOthers = 3
    /// Leaders that are up answer within this at the start.
    private static let lookAround = Duration.milliseconds(1_500)
    /// Writing is forced to the disk, which takes as long as it takes.
    private static let disk = DispatchQueue.global(qos: .utility)

    /// Keeps the session that this node leads, until another leads it.
    ///
    /// - Parameter restored: it went on from this, which stays until somebody does something with it:
    ///   a disk that is not there yet is no reason to forget the place.
    func keepSession(_ leading: Leading, after restored: SavedSession? = nil) async {
        guard let sessions else { return }
        var known = restored
        var placeAt = ContinuousClock.now
        var isSaid = false
        func keep() async {
            if restored != nil, known == restored, await leading.core.isUntouched { return }
            guard let session = await savedSession(leading), session != known,
                !leading.isRetired
            else { return }
            // A place that only moves on is written now and then: each time wears a memory card.
            let elapsed = ContinuousClock.now - placeAt
            if let known, known.movesOn(to: session, after: elapsed / .seconds(1)),
                elapsed < Self.placeInterval
            {
                return
            }
            do {
                try await blocking(on: Self.disk) { [known] in
                    try sessions.write(session, after: known)
                }
                known = session
                placeAt = .now
                media.uploads?.keep(session.items.compactMap(\.location))
            } catch {
                if !isSaid {
                    logger.warning("the queue is not kept", metadata: ["reason": "\(error)"])
                }
                isSaid = true
            }
        }
        let bell = Bell()
        let watching = Task {
            for await _ in leading.core.watch() { bell.ring() }
            bell.ring()
        }
        defer { watching.cancel() }
        while !Task.isCancelled, isLeading(leading), !leading.isRetired {
            let change = bell.changes
            await keep()
            try? await Task.sleep(for: Self.keepingPause)
            await bell.wait(after: change, within: .seconds(1))
        }
        guard leading.isRetired else { return }
        // Whoever leads it now keeps it too. But the files that this node has put into the queue it alone
        // can find again, when it is started anew.
        let (number, reader) = (await leading.core.sessionID, leading.reader)
        state.withLock { state in
            let known = state.origins(of: number).merging(reader.items) { $1 }
            state.origins = Node.Origins(session: number, items: known)
        }
        await whileSessionGoesOn(number)
    }

    /// Returns once the group that this node is in, whoever leads it, has another session; what was kept of
    /// this one is forgotten then. While this node leads, ``keepSession(_:after:)`` sees to that.
    func whileSessionGoesOn(_ number: UInt64) async {
        var others = 0
        while (try? await Task.sleep(for: Self.lookingPause)) != nil {
            guard let client = control as? GroupClient else {
                if control is LeaderControl, state.withLock({ $0.origins?.session }) != number {
                    return
                }
                continue
            }
            guard let status = try? await client.status() else { continue }
            others = status.session == GroupStatus.text(of: number) ? 0 : others + 1
            guard others >= Self.mostOthers else { continue }
            state.withLock { if $0.origins?.session == number { $0.origins = nil } }
            // Another one that this node has led since then stays.
            let isForgotten = try? await blocking(on: Self.disk) { [sessions] in
                sessions?.remove(number)
            }
            if isForgotten == true { media.uploads?.keep([]) }
            return
        }
    }

    private func savedSession(_ leading: Leading) async -> SavedSession? {
        guard let now = await leading.core.keepsake else { return nil }
        let number = await leading.core.sessionID
        var session = SavedSession(
            session: number, term: await leading.core.sessionTerm, items: [])
        let origins = state.withLock { $0.origins(of: number) }
        var place = SavedSession.Place()
        var known = now.session.queue.makeIterator()
        for entry in now.handover.items {
            let asset = entry.state == .known ? known.next() : nil
            let found = leading.reader.item(entry.id) ?? origins[entry.id]
            session.items.append(
                SavedSession.Item(
                    id: entry.id,
                    // Where its bytes will be found again: where they came from, or in this node's cache.
                    location: found?.location ?? asset.flatMap { files.path(of: $0.hash) },
                    title: found?.title ?? entry.title, span: found?.span, hash: asset?.hash))
        }
        switch now.session.phase {
        case .playing, .preparing, .waiting: place.phase = .playing
        case .paused: place.phase = .paused
        case .stopped, .ended: break
        }
        if place.phase != .stopped { place.seconds = now.seconds }
        // What has been played to its end begins anew.
        if now.session.phase != .ended, let position = now.position,
            session.items.indices.contains(position)
        {
            place.index = position
        }
        session.place = place
        session.repeats = now.handover.repeats
        session.rate = now.handover.rate
        session.rooms = now.handover.rooms
        session.commonSettings = now.handover.commonSettings
        for (room, settings) in now.settings.sorted(by: { $0.key < $1.key })
            .prefix(Handover.mostSettings)
        { session.settings[room] = settings }
        return session
    }

    /// What becomes of a session that this node led when it ended.
    enum Restored: Sendable {
        /// Nobody goes on with it, or with less than this node knows. Who comes later with more is followed
        /// then (``followsWhenIdle()``).
        case led(SavedSession)
        /// Another node leads it.
        case elsewhere(SavedSession)
    }

    func sessionToRestore() async -> Restored? {
        guard let sessions, configuration.credentials.isSeated, !isGivenLeader else { return nil }
        let saved: SavedSession?
        do {
            saved = try await blocking(on: Self.disk) { try sessions.read() }
        } catch {
            logger.warning("the queue of before is not restored", metadata: ["reason": "\(error)"])
            return nil
        }
        guard let saved, !saved.items.isEmpty else { return nil }
        media.uploads?.keep(saved.items.compactMap(\.location))
        let leaders = (try? await Discovery.leaders(for: Self.lookAround)) ?? []
        let number = GroupStatus.text(of: saved.session)
        let terms = await withTaskGroup(of: UInt64?.self) { group in
            for room in leaders where configuration.credentials.concerns(room.household) {
                let client = GroupClient(
                    address: room.address, timeout: .seconds(1), attempts: .few,
                    configuration.credentials)
                group.addTask {
                    guard let status = try? await client.status(), status.session == number else {
                        return nil
                    }
                    return status.sessionTerm
                }
            }
            return await group.reduce(into: []) { $0.append($1) }.compactMap(\.self)
        }
        return terms.contains { $0 >= saved.term } ? .elsewhere(saved) : .led(saved)
    }
}

extension SavedSession {
    /// A place that is this far from where it is expected was gone to.
    private static let jump = 1.5

    /// Whether nothing has happened from this to `later` but that time went by.
    func movesOn(to later: SavedSession, after seconds: Double) -> Bool {
        let played = place.phase == .playing ? seconds * rate : 0
        guard (later.place.seconds - place.seconds - played).magnitude < Self.jump else {
            return false
        }
        var moved = later
        moved.place.seconds = place.seconds
        return moved == self
    }
}
