import Logging
import Synchronization
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayout
import TuttiTiming

/// Fills the queue of a session: looks what is in folders and playlists, and finds out what the items
/// are while the first ones play.
///
/// An asset is known to the group once its frames are counted and its bytes hashed, which takes as
/// long as reading it. So only the first item is waited for. The others are listed at once and read
/// by a thread that stands back for everything else, in the order in which they will be played and
/// as far ahead as makes sense: nothing is gained by reading a whole collection for an evening. What
/// cannot be played is said and left out.
final class AssetReader: Sendable {
    /// Known items behind the one that plays: enough for whoever goes through them by hand.
    static let mostAhead = 24
    /// Of addresses: each takes its size of the cache.
    static let mostAheadRemote = 2
    /// How long a leader waits for its first item before it is there without one: what was mistyped
    /// is said before anybody joins.
    static let headStart = Duration.seconds(1)
    /// Items that join the queue together.
    private static let batch = 64
    /// Longest that an item waits for others to join with.
    private static let batchTime = Nanoseconds.milliseconds(50)

    /// The items that are to be read next, the most urgent first.
    typealias Wanted =
        @Sendable (_ ahead: Int, _ most: Int) async -> [QueueEntry.ID]

    /// Takes what has become known; returns when it has it.
    typealias Tell = @Sendable (_ inputs: [LeaderInput]) async -> Void

    /// One element when there is something to ``take()``, or somebody who takes it.
    private let changes: AsyncStream<Void>
    private let changed: AsyncStream<Void>.Continuation
    private let (jobSignals, jobSignal) = AsyncStream<Void>.makeStream(
        bufferingPolicy: .bufferingNewest(1))
    private let (readSignals, readSignal) = AsyncStream<Void>.makeStream(
        bufferingPolicy: .bufferingNewest(1))
    private let (beginnings, begun) = AsyncStream<Void>.makeStream(
        bufferingPolicy: .bufferingNewest(1))
    let state = Mutex(State())
    let library: SessionAssets
    private let media: MediaService
    let logger: Logger

    /// Files of other machines, which are kept as long as they are listed.
    var uploads: Uploads? { media.uploads }

    /// - Parameter firstID: of the items that will be listed here; those before are others'.
    init(
        _ arguments: [String], _ library: SessionAssets, _ media: MediaService, logger: Logger,
        firstID: QueueEntry.ID = 1
    ) {
        (changes, changed) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        self.library = library
        self.media = media
        self.logger = logger
        state.withLock { $0.nextID = firstID }
        if !arguments.isEmpty { add(arguments.map(AssetList.Argument.location), at: .end) }
    }

    // MARK: For the leader

    /// Looks into what is given, and puts what it finds into the queue.
    func add(_ arguments: [AssetList.Argument], at place: QueuePlace) {
        state.withLock {
            $0.jobs.append(Job(arguments: arguments, place: place))
            $0.coming += arguments.count
            $0.isGivenAny = true
        }
        jobSignal.yield()
    }

    /// Where an item that is listed here came from; `nil` for those of others.
    func item(_ id: QueueEntry.ID) -> AssetList.Item? { state.withLock { $0.items[id] } }

    /// Everything that is listed here.
    var items: [QueueEntry.ID: AssetList.Item] { state.withLock { $0.items } }

    /// From now on items are read in the order that this leader wants, and it is told of them.
    func follow(_ wanted: @escaping Wanted, tell: @escaping Tell) {
        state.withLock {
            $0.wanted = wanted
            $0.tell = tell
        }
        readSignal.yield()
        changed.yield()
    }

    /// The session is elsewhere, or its queue another: these are near, and their files are kept.
    func move(near: Set<ContentHash>) {
        let unseen = state.withLock { state in
            state.unseen = state.unseen.filter { !near.contains($0.value) }
            return state.unseen.values
        }
        library.release(except: near.union(unseen))
        readSignal.yield()
    }

    /// Whether something that was given is not known to the leader yet.
    var isListing: Bool {
        state.withLock {
            $0.isListing || $0.isTelling || !$0.jobs.isEmpty || $0.fresh.contains(where: \.isListed)
        }
    }

    /// Whether items are listed that it has not read.
    var hasUnread: Bool { state.withLock { !$0.unread.isEmpty } }

    /// Whether files of other machines are kept for what it lists.
    var hasUploads: Bool {
        guard let kept = uploads?.paths, !kept.isEmpty else { return false }
        return items.values.contains { kept.contains($0.location) }
    }

    /// What is wanted may be something else by now.
    func lookAgain() { readSignal.yield() }

    /// These items have left the queue: they are read no more, and there is room for others.
    func forget(_ removed: [QueueEntry.ID]) {
        let gone = state.withLock { state in
            state.unread.subtract(removed)
            for id in removed { state.unseen[id] = nil }
            return removed.compactMap { state.items.removeValue(forKey: $0) }
        }
        noteDone()
        guard let uploads, uploads.hasAny else { return }
        // A disk takes its time to remove a large file.
        Task {
            try? await blocking { _ throws(MediaError) in
                for item in gone { uploads.release(item.location) }
            }
        }
    }

    /// Returns once there is something to play, or after a head start when the first item is long.
    ///
    /// - Throws: `RoomError` with code `badAsset` when nothing of it can be played.
    func begin() async throws {
        guard state.withLock({ $0.isGivenAny }) else { return }
        await withTaskGroup { group in
            group.addTask { for await _ in self.beginnings { break } }
            group.addTask { try? await Task.sleep(for: Self.headStart) }
            await group.next()
            group.cancelAll()
        }
        try checkSomethingPlays()
    }

    /// - Throws: `RoomError` when all has been read and nothing of it can be played.
    func checkSomethingPlays() throws(RoomError) {
        let now = state.withLock { $0 }
        guard now.isDone, now.known == 0, now.lost == 0, let reason = now.reasonOfNothing else {
            return
        }
        guard now.missed > 1 else { throw RoomError(.badAsset, reason) }
        throw RoomError(
            .badAsset, "none of \(now.missed) items can be played; the first: \(reason)")
    }

    /// What is to be told to the leader since the last call.
    func take() -> [LeaderInput] {
        state.withLock { state in
            defer { state.fresh = [] }
            return state.fresh
        }
    }

    /// Items of the session so far; for the leader, before it is there.
    var coming: Int { state.withLock { $0.coming } }

    /// Items that were to be played and could not be, and of how many.
    var misses: (count: Int, of: Int) {
        state.withLock { ($0.missed + $0.lost, $0.missed + $0.lost + $0.known) }
    }

    // MARK: Listing

    /// Lists and reads until the task is cancelled.
    func run() async {
        async let _ = readItems()
        async let _ = passOn()
        var signals = jobSignals.makeAsyncIterator()
        while !Task.isCancelled {
            if let job = state.withLock({ $0.nextJob() }) {
                await list(job)
            } else {
                guard await signals.next() != nil else { break }
            }
        }
        changed.finish()
    }

    private func passOn() async {
        for await _ in changes {
            guard let tell = state.withLock({ $0.tell }) else { continue }
            let fresh = state.withLock { state in
                defer { state.fresh = [] }
                state.isTelling = state.fresh.contains(where: \.isListed)
                return state.fresh
            }
            if !fresh.isEmpty { await tell(fresh) }
            state.withLock { $0.isTelling = false }
        }
    }

    private func list(_ job: Job) async {
        let list = Mutex(AssetList(job.arguments))
        var place = job.place
        var batch: [(item: AssetList.Item, id: QueueEntry.ID)] = []
        var since = HostClock.now()
        /// - Parameter isLast: nothing follows. What is listed and that it was all become known
        ///   together: between the two it would look as if everything had been read.
        func flush(isLast: Bool = false) {
            let remaining = list.withLock { $0.remaining }
            let entries = batch.map { QueueEntry(id: $0.id, $0.item) }
            state.withLock { state in
                if isLast { state.isListing = false }
                state.coming = remaining + state.jobs.reduce(0) { $0 + $1.arguments.count }
                for (item, id) in batch {
                    state.items[id] = item
                    state.unread.insert(id)
                }
                state.fresh.append(.listed(entries, at: place, coming: state.coming))
            }
            if let last = batch.last { place = .behind(last.id) }
            batch = []
            since = HostClock.now()
            changed.yield()
            readSignal.yield()
        }
        listing: while !Task.isCancelled {
            let isFirst = state.withLock { $0.known == 0 }
            let step = try? await blocking(inBackground: !isFirst) {
                cancellation throws(MediaError) in list.withLock { $0.next(cancellation) }
            }
            guard let step = step ?? nil else { break }
            switch step {
            case .passedOver(let passed):
                leaveOut(passed.subject, passed.reason, passed.isMissed)
                guard passed.isMissed else { continue }
                state.withLock { $0.noteLeftOut("\(passed.subject): \(passed.reason)") }
            case .item(let item):
                guard
                    let id = state.withLock({ state -> QueueEntry.ID? in
                        guard
                            state.items.count + batch.count < SessionState.longestQueue
                        else { return nil }
                        defer { state.nextID += 1 }
                        return state.nextID
                    })
                else {
                    logger.warning(
                        "a queue holds \(SessionState.longestQueue) items; the rest is left out")
                    break listing
                }
                uploads?.use(item.location)
                batch.append((item, id))
                if id == 1 || batch.count >= Self.batch || HostClock.now() - since > Self.batchTime
                {
                    flush()
                }
            }
        }
        guard !Task.isCancelled else { return }
        flush(isLast: true)
        noteDone()
    }

    // MARK: Reading

    private func readItems() async {
        var signals = readSignals.makeAsyncIterator()
        while !Task.isCancelled {
            if let (id, item) = await next() {
                await read(item, id)
            } else {
                guard await signals.next() != nil else { return }
            }
        }
    }

    /// The item that is to be read now; of addresses fewer are read ahead.
    private func next() async -> (QueueEntry.ID, AssetList.Item)? {
        guard let wanted = state.withLock({ $0.wanted }) else {
            // Nobody has asked yet: the first one that can be played is enough.
            return state.withLock { state in
                guard state.known == 0, let id = state.unread.min() else { return nil }
                return state.items[id].map { (id, $0) }
            }
        }
        for (ahead, takesRemote) in [(Self.mostAheadRemote, true), (Self.mostAhead, false)] {
            for id in await wanted(ahead, Self.mostAhead) {
                guard let item = state.withLock({ $0.unread.contains(id) ? $0.items[id] : nil }),
                    takesRemote || !PlaylistPlace.isRemote(item.location)
                else { continue }
                return (id, item)
            }
        }
        return nil
    }

    private func read(_ item: AssetList.Item, _ id: QueueEntry.ID) async {
        let name = AssetName.known(item.location)
        let (number, total) = state.withLock { state in
            let done = state.items.count - state.unread.count
            return (done + 1, state.items.count + state.coming)
        }
        logger.notice("reading \(number) of \(total)", metadata: ["asset": "\(name)"])
        do {
            let isFirst = state.withLock { $0.known == 0 }
            let asset = try await blocking(inBackground: !isFirst) {
                cancellation throws(MediaError) in
                try self.library.describe(item, cancellation)
            }
            state.withLock { $0.unseen[id] = asset.descriptor.hash }
            keep(asset)
            state.withLock {
                $0.known += 1
                guard $0.unread.remove(id) != nil else {
                    $0.unseen[id] = nil
                    return
                }
                $0.fresh.append(.read(id, as: asset.descriptor))
            }
            begun.yield()
        } catch let error as MediaError where error.code != .cancelled {
            leaveOut(error.subject, error.reason, item.isMissed)
            state.withLock {
                guard $0.unread.remove(id) != nil else { return }
                $0.fresh.append(.unplayable(id, reason: error.reason))
            }
        } catch {
            return
        }
        changed.yield()
        noteDone()
    }

    /// Nothing is left to be listed or read: who waits for something to play waits in vain.
    private func noteDone() {
        if state.withLock({ $0.isDone }) { begun.yield() }
    }

    /// Items of the session became something that cannot be played.
    func lose(_ items: Set<QueueEntry.ID>) {
        state.withLock {
            // What nobody has read yet is not known, and says itself what it is.
            let count = items.subtracting($0.unread).count
            $0.lost += count
            $0.known -= count
        }
    }

    func keep(_ asset: SessionAssets.Asset) {
        library.insert(asset)
        media.share(
            hash: asset.descriptor.hash.hex, path: asset.file.path,
            identity: asset.isCached ? nil : asset.identity)
    }

    /// One line for each.
    private func leaveOut(_ subject: String, _ reason: String, _ isMissed: Bool) {
        logger.log(
            level: isMissed ? .error : .notice, "skipped \(subject): \(reason)")
        state.withLock {
            guard isMissed else { return }
            $0.missed += 1
            if $0.firstReason == nil { $0.firstReason = "\(subject): \(reason)" }
        }
    }
}

extension QueueEntry {
    /// A part of a file is not fetched as one.
    fileprivate init(id: ID, _ item: AssetList.Item) {
        let isFetched = item.span == nil && PlaylistPlace.isRemote(item.location)
        self.init(
            id: id, name: item.title ?? AssetName.shown(item.location),
            address: isFetched ? item.location : nil)
    }
}
