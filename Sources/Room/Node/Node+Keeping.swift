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
    /// So long after it has handed over a node may be ended with the others.
    private static let retirement = Duration.seconds(20)
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
                media.uploads?.keep(session.items.map(\.location))
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
        // Whoever leads it now keeps it, unless all are ended together: then this node, which has the
        // files, is the better one to begin with.
        guard leading.isRetired, (try? await Task.sleep(for: Self.retirement)) != nil else {
            return
        }
        if case .following? = state.withLock({ $0.role }) { forgetSession() }
    }

    private func forgetSession() {
        sessions?.remove()
        media.uploads?.keep([])
    }

    private func savedSession(_ leading: Leading) async -> SavedSession? {
        guard let now = await leading.core.keepsake else { return nil }
        var session = SavedSession(session: await leading.core.sessionID, items: [])
        var place = SavedSession.Place()
        var known = now.session.queue.makeIterator()
        var isThere = false
        for (index, entry) in now.handover.items.enumerated() {
            let asset = entry.state == .known ? known.next() : nil
            if index == now.position { place.index = session.items.count }
            guard let item = item(entry, asset, leading.reader) else { continue }
            if index == now.position { isThere = true }
            session.items.append(item)
        }
        if isThere {
            switch now.session.phase {
            case .playing, .preparing, .waiting: place.phase = .playing
            case .paused: place.phase = .paused
            case .stopped, .ended: break
            }
            if place.phase != .stopped { place.seconds = now.seconds }
        }
        if place.index >= session.items.count { place.index = 0 }
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

    /// Where an item's bytes will be found again: where they came from, or in this node's cache.
    private func item(
        _ entry: QueueListing.Item, _ asset: AssetDescriptor?, _ reader: AssetReader
    ) -> SavedSession.Item? {
        if let item = reader.item(entry.id) {
            return SavedSession.Item(location: item.location, title: item.title, span: item.span)
        }
        guard entry.state != .unplayable, let asset, let path = files.path(of: asset.hash) else {
            return nil
        }
        return SavedSession.Item(location: path, title: entry.title)
    }

    /// What this node led when it ended without a word, unless somebody went on with it. Who comes later
    /// with the same session, and has gone on with it, is followed then (``followsWhenIdle()``).
    func sessionToRestore() async -> SavedSession? {
        guard let sessions, configuration.credentials.isSeated, !isGivenLeader else { return nil }
        let saved: SavedSession?
        do {
            saved = try await blocking(on: Self.disk) { try sessions.read() }
        } catch {
            logger.warning("the queue of before is not restored", metadata: ["reason": "\(error)"])
            return nil
        }
        guard let saved, !saved.items.isEmpty else { return nil }
        media.uploads?.keep(saved.items.map(\.location))
        let leaders = (try? await Discovery.leaders(for: Self.lookAround)) ?? []
        let number = GroupStatus.text(of: saved.session)
        let answers = await withTaskGroup(of: Bool.self) { group in
            for room in leaders where configuration.credentials.concerns(room.household) {
                let client = GroupClient(
                    address: room.address, timeout: .seconds(1), attempts: .few,
                    configuration.credentials)
                group.addTask { (try? await client.status())?.session == number }
            }
            return await group.reduce(false) { $0 || $1 }
        }
        guard !answers else {
            forgetSession()
            return nil
        }
        return saved
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
