import Glibc
import Logging
import Synchronization
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiPlayout
import TuttiTiming

/// A queue that was kept over a loss of power.
extension AssetReader {
    /// Lists what was kept, and reads the item that the session was at: the others are read when they
    /// are wanted, as ever.
    ///
    /// - Parameter plays: whether it goes on playing where it played.
    func restore(_ saved: SavedSession, plays: Bool) async -> Leading.Resumption {
        let place = saved.place.index
        var current: SessionAssets.Asset?
        if saved.items.indices.contains(place),
            let item = AssetList.Item(saved.items[place])
        {
            do {
                current = try await describeAnew(item)
            } catch {
                logger.error(
                    "what the group was at cannot be played any more",
                    metadata: ["reason": "\(error)"])
            }
        }
        let listing = restore(saved.items, knowing: current, at: place)
        for location in saved.items.compactMap(\.location) { uploads?.use(location) }
        var phase = SessionPhase.stopped
        var change: RateChange?
        if let current {
            switch saved.place.phase {
            case .playing: phase = plays ? .preparing : .paused
            case .paused: phase = .paused
            case .stopped: break
            }
            let frames = saved.place.seconds * Double(current.descriptor.sampleRate)
            change = RateChange(
                itemFrame: min(
                    Int64(saturating: frames), max(0, current.descriptor.frameCount - 1)),
                instant: GroupInstant(nanoseconds: 0), rate: 0)
        }
        return Leading.Resumption(
            session: SessionState(
                term: 0, sequence: 0, queue: current.map { [$0.descriptor] } ?? [], index: 0,
                change: phase == .stopped ? nil : change, phase: phase),
            handover: Handover(
                settings: saved.settings, commonSettings: saved.commonSettings,
                repeats: saved.repeats, rooms: saved.rooms, items: listing, rate: saved.rate))
    }
}

/// Items that were listed elsewhere, or before.
extension AssetReader {
    /// Lists items of before, the first of all, of which one has been read already. What is on
    /// other machines they read.
    private func restore(
        _ items: [SavedSession.Item], knowing current: SessionAssets.Asset?, at index: Int
    ) -> [QueueListing.Item] {
        state.withLock { state in
            var listing: [QueueListing.Item] = []
            for (place, saved) in items.enumerated() {
                let item = AssetList.Item(saved)
                state.items[saved.id] = item
                if place == index, let current {
                    state.unseen[saved.id] = current.descriptor.hash
                    state.known += 1
                    let known = current.descriptor
                    listing.append(
                        QueueListing.Item(
                            id: saved.id, title: known.title, state: .known,
                            durationSeconds: known.durationSeconds))
                } else {
                    if item != nil { state.unread.insert(saved.id) }
                    let name = item.map { AssetName.shown($0.location) } ?? ""
                    listing.append(
                        QueueListing.Item(
                            id: saved.id, title: saved.title ?? name, state: .unread))
                }
            }
            let last = items.map(\.id).filter { $0 < QueueEntry.firstOwnID }.max() ?? 0
            state.nextID = max(state.nextID, last + 1)
            state.isGivenAny = !items.isEmpty
            return listing
        }
    }

    /// Reads on what this node has put into a queue that another one leads: what nobody has read.
    func takeBack(_ items: [SavedSession.Item]) {
        state.withLock { state in
            for saved in items {
                guard let item = AssetList.Item(saved) else { continue }
                state.items[saved.id] = item
                if saved.hash == nil { state.unread.insert(saved.id) }
            }
        }
    }

    /// Reads items of a leader that is gone, of those that every machine can fetch.
    func adopt(
        _ addresses: [QueueEntry.ID: String], of items: [QueueListing.Item],
        unread: Set<QueueEntry.ID>
    ) {
        state.withLock { state in
            for item in items {
                guard let address = addresses[item.id], PlaylistPlace.isRemote(address) else {
                    continue
                }
                state.items[item.id] = AssetList.Item(
                    location: address, title: item.title, isMissed: true)
                if unread.contains(item.id) { state.unread.insert(item.id) }
            }
        }
        lookAgain()
    }

    /// Fetches an item once more whose bytes are nowhere any more.
    ///
    /// - Returns: what it is now; `nil` where it is not to be had.
    func readAgain(_ item: AssetList.Item) async -> AssetDescriptor? {
        do {
            return try await describeAnew(item).descriptor
        } catch {
            logger.error("a file cannot be read again", metadata: ["reason": "\(error)"])
            return nil
        }
    }
}

extension AssetList.Item {
    /// `nil`: it is on another machine.
    init?(_ saved: SavedSession.Item) {
        guard let location = saved.location else { return nil }
        self.init(location: location, title: saved.title, span: saved.span, isMissed: true)
    }
}

extension SavedSession {
    /// A copy that the cache let go of is to be had where it came from.
    func withoutLostCopies(in cache: String) -> SavedSession {
        var session = self
        for place in items.indices where items[place].hash != nil {
            guard let location = items[place].location, location.hasPrefix("\(cache)/"),
                access(location.cFileName, F_OK) != 0
            else { continue }
            session.items[place].location = nil
        }
        return session
    }
}
