import FFmpegMedia
import GroupControl
import LinuxHost
import Logging
import Playout
import Synchronization

/// Finds out what the items of a session are, one after another, while the first ones play.
///
/// An asset is known to the group once its frames are counted and its bytes hashed, which takes as
/// long as reading it. So only the first item is waited for. The others are read behind it by a
/// thread that stands back for everything else, as far ahead of what plays as makes sense: nothing
/// is gained by reading a whole collection for an evening. What cannot be played is said and left
/// out.
final class AssetReader: Sendable {
    /// Known items behind the one that plays: enough for whoever goes through them by hand.
    static let mostAhead = 24
    /// Of addresses: each takes its size of the cache.
    static let mostAheadRemote = 2
    /// How long a leader waits for its first item before it is there without one: what was mistyped
    /// is said before anybody joins.
    static let headStart = Duration.seconds(1)

    private struct State {
        /// Known and not handed over yet.
        var fresh: [AssetDescriptor] = []
        /// All that are known, in order.
        var known: [ContentHash] = []
        var coming: Int
        /// Place of the item that plays.
        var index = 0
        /// Items that somebody misses and that are not played.
        var missed = 0
        /// Items that were known and became something that cannot be played.
        var lost = 0
        /// Why the first of them is not.
        var firstReason: String?
        var isDone = false
    }

    /// One element when there is something to ``take()``.
    let changes: AsyncStream<Void>
    private let changed: AsyncStream<Void>.Continuation
    private let moves: AsyncStream<Void>
    private let moved: AsyncStream<Void>.Continuation
    private let beginnings: AsyncStream<Void>
    private let begun: AsyncStream<Void>.Continuation
    private let isGivenAny: Bool
    private let list: Mutex<AssetList>
    private let state: Mutex<State>
    let library: SessionAssets
    private let media: MediaService
    let logger: Logger

    init(
        _ arguments: [String], _ library: SessionAssets, _ media: MediaService, logger: Logger
    ) {
        (changes, changed) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (moves, moved) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (beginnings, begun) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        isGivenAny = !arguments.isEmpty
        list = Mutex(AssetList(arguments))
        state = Mutex(State(coming: arguments.count))
        self.library = library
        self.media = media
        self.logger = logger
    }

    // MARK: For the leader

    /// Returns once there is something to play, or after a head start when the first item is long.
    ///
    /// - Throws: `RoomError` with code `badAsset` when nothing of it can be played.
    func begin() async throws {
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
        guard now.isDone, now.known.isEmpty, now.lost == 0, let reason = now.firstReason else {
            return
        }
        guard now.missed > 1 else { throw RoomError(.badAsset, reason) }
        throw RoomError(
            .badAsset, "none of \(now.missed) items can be played; the first: \(reason)")
    }

    /// What became known since the last call, and how many items are still to come.
    func take() -> (assets: [AssetDescriptor], coming: Int) {
        state.withLock { state in
            defer { state.fresh = [] }
            return (state.fresh, state.coming)
        }
    }

    /// The session is at this item now.
    func move(to index: Int) {
        let behind = state.withLock { state -> [ContentHash] in
            state.index = index
            let near = Set(state.known.dropFirst(max(0, index - 1)))
            return state.known.prefix(max(0, index - 1)).filter { !near.contains($0) }
        }
        for hash in behind.suffix(Self.mostAhead) { library.release(hash) }
        moved.yield()
    }

    /// Items that were to be played and could not be, and of how many.
    var misses: (count: Int, of: Int) {
        state.withLock { ($0.missed + $0.lost, $0.missed + $0.lost + $0.known.count) }
    }

    // MARK: Reading

    /// Reads until everything is known or the task is cancelled.
    func run() async {
        var number = 0
        while !Task.isCancelled, let step = await nextStep() {
            switch step {
            case .passedOver(let passed): leaveOut(passed.subject, passed.reason, passed.isMissed)
            case .item(let item):
                guard number < SessionState.longestQueue else {
                    logger.warning(
                        "a session holds \(SessionState.longestQueue) items; the rest is left out")
                    return finish()
                }
                await waitUntilNear(item)
                guard !Task.isCancelled else { break }
                number += 1
                await read(item, number: number)
            }
        }
        finish()
    }

    private func finish() {
        guard !Task.isCancelled else { return changed.finish() }
        state.withLock {
            $0.isDone = true
            $0.coming = 0
            if $0.known.isEmpty, $0.firstReason == nil, isGivenAny {
                $0.firstReason = "there is nothing to play in what was given"
            }
        }
        announce()
        changed.finish()
    }

    /// An asset of the session became another, or something that cannot be played.
    func replace(_ old: ContentHash, with new: ContentHash?) {
        state.withLock { state in
            if new == nil { state.lost += state.known.count { $0 == old } }
            state.known = state.known.compactMap { $0 == old ? new : $0 }
        }
    }

    private func announce() {
        changed.yield()
        begun.yield()
    }

    private var isFirstKnown: Bool { state.withLock { !$0.known.isEmpty } }

    private func nextStep() async -> AssetList.Step? {
        let isFirst = !isFirstKnown
        let step = try? await blocking(inBackground: !isFirst) {
            cancellation throws(MediaError) in
            self.list.withLock { $0.next(cancellation) }
        }
        let remaining = list.withLock { $0.remaining }
        let isItem = if case .item? = step { true } else { false }
        state.withLock { $0.coming = remaining + (isItem ? 1 : 0) }
        return step
    }

    private func waitUntilNear(_ item: AssetList.Item) async {
        let most = PlaylistPlace.isRemote(item.location) ? Self.mostAheadRemote : Self.mostAhead
        func isNear() -> Bool { state.withLock { $0.known.count - $0.index <= most } }
        var moves = moves.makeAsyncIterator()
        while !isNear(), await moves.next() != nil {}
    }

    private func read(_ item: AssetList.Item, number: Int) async {
        let name = item.location.readableFileName
        let total = number - 1 + state.withLock { $0.coming }
        logger.notice("reading \(number) of \(total)", metadata: ["asset": "\(name)"])
        do {
            let asset = try await blocking(inBackground: isFirstKnown) {
                cancellation throws(MediaError) in
                try self.library.describe(item, cancellation)
            }
            add(asset)
        } catch let error as MediaError where error.code != .cancelled {
            leaveOut(error.subject, error.reason, item.isMissed)
        } catch {
            return
        }
    }

    private func add(_ asset: SessionAssets.Asset) {
        keep(asset)
        let remaining = list.withLock { $0.remaining }
        state.withLock {
            $0.fresh.append(asset.descriptor)
            $0.known.append(asset.descriptor.hash)
            $0.coming = remaining
        }
        announce()
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
        let remaining = list.withLock { $0.remaining }
        state.withLock {
            $0.coming = remaining
            guard isMissed else { return }
            $0.missed += 1
            if $0.firstReason == nil { $0.firstReason = "\(subject): \(reason)" }
        }
        changed.yield()
    }
}
