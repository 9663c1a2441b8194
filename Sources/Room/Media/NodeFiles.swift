import Dispatch
import Synchronization
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiPlayout

/// The assets of a node in any role: its own files, those that it fetched, and where the others are.
///
/// What a node has fetched it hands out, in any role. What a node that took over the lead is asked for and
/// does not have it fetches from whoever has it (``Holders``), and hands on while it arrives.
final class NodeFiles: AssetSource {
    /// Items that are looked for, and fetched, at once; each has a thread and some files. The
    /// machine that follows asks for no more.
    private static let fetchesMax = 8
    /// Fetched items that a leader hands out: what plays, what is next, and some that rooms still load.
    private static let mostLent = 6
    /// … and another room: what plays, and what is next.
    private static let mostLentByRoom = 2
    /// What nobody has for so long is lost: a node that was only slow has answered by then.
    private static let lostAfter = Duration.seconds(3)

    /// Where the assets of others are.
    private enum Source: Sendable {
        case leader(LeaderFinder)
        /// For a node that took over the lead.
        case holders(Holders)
    }

    private struct State {
        /// For the node's own room.
        var source: Source?
        /// For what other rooms ask this node for.
        var holders: Holders?
        /// Since when nobody has them.
        var missed: [ContentHash: ContinuousClock.Instant] = [:]
        var lent: [(hash: ContentHash, file: Member.AssetFile)] = []
        /// On their way here while this node leads: one of each, for its own room and for all others.
        var arriving: [ContentHash: Arriving] = [:]
    }

    private struct Arriving {
        var incoming: IncomingFile
        /// Wanted by this node's own room, which says when it is given up.
        var isOwn: Bool
        var isAlive: Bool { incoming.failure == nil && !incoming.cancellation.isCancelled }
    }
    private let state = Mutex(State())
    private let library: SessionAssets
    private let media: MediaService
    private let cache: MediaCache
    private let client: MediaClient
    private let looking = Workers(NodeFiles.fetchesMax, cancelsOldest: false)
    private let fetching = Workers(NodeFiles.fetchesMax)

    init(
        _ library: SessionAssets, _ media: MediaService, _ cache: MediaCache,
        _ credentials: Credentials
    ) {
        client = MediaClient(credentials: credentials)
        self.library = library
        self.media = media
        self.cache = cache
    }

    /// What is not here is where the leader is that this finds.
    func follow(_ finder: LeaderFinder) {
        state.withLock {
            $0.source = .leader(finder)
            $0.arriving = [:]
        }
    }

    /// This node leads, and nobody has led before.
    func leadAfresh() {
        state.withLock {
            $0.source = nil
            $0.holders = nil
        }
    }

    /// This node leads after another one; what is not here these may have.
    func lead(after holders: Holders) {
        state.withLock {
            $0.source = .holders(holders)
            $0.holders = holders
            $0.missed = [:]
        }
    }

    /// The leader before has ended since: it is not waited for any more.
    func losePredecessor() {
        state.withLock { state in
            guard case .holders(var holders)? = state.source else { return }
            holders.isLost = true
            state.source = .holders(holders)
            state.holders = holders
        }
    }

    // MARK: For the node's own room

    /// Its own, from the cache, or on its way there.
    ///
    /// - Parameter welcome: of the leader that is followed.
    func file(of asset: AssetDescriptor, _ welcome: Welcome?) async throws -> Member.AssetFile {
        let file = try await file(of: asset, welcome) { self.state.withLock { $0.source } }
        guard let incoming = file.incoming, leads else { return file }
        let shared = arriving(incoming, of: asset.hash, isOwn: true)
        return Member.AssetFile(path: file.path, incoming: shared)
    }

    private var follows: Bool {
        state.withLock { if case .leader? = $0.source { true } else { false } }
    }

    private var leads: Bool {
        state.withLock { if case .holders? = $0.source { true } else { false } }
    }

    private func file(
        of asset: AssetDescriptor, _ welcome: Welcome?,
        from source: @escaping @Sendable () -> Source?
    ) async throws -> Member.AssetFile {
        if library.asset(asset.hash) != nil {
            do {
                return try library.file(of: asset)
            } catch  where follows {
                // Who leads may have what it was: all rooms play the same.
            }
        }
        if let held = try await held(asset) {
            let file = Member.AssetFile(path: held.path, hold: held)
            lend(file, of: asset.hash)
            return file
        }
        let url = try await address(of: asset, welcome, at: source(), mustBeThere: false)
        let incoming = try IncomingFile(
            url: url, asset.fingerprint,
            pace: FetchPace(
                byteCount: asset.byteCount,
                seconds: Double(asset.fileFrameCount) / Double(asset.sampleRate)),
            server: client, mayAskFirst: true)
        return Member.AssetFile(path: url, incoming: incoming)
    }

    func complete(
        _ incoming: IncomingFile, of asset: AssetDescriptor, _ welcome: Welcome?
    ) async throws -> Member.AssetFile {
        let file = try await complete(incoming, of: asset, welcome) {
            self.state.withLock { $0.source }
        }
        hasArrived(file, incoming, asset.hash)
        if follows { lend(file, of: asset.hash) }
        return file
    }

    /// One of those that are fetched at once, until it is whole or nobody wants it.
    private func complete(
        _ incoming: IncomingFile, of asset: AssetDescriptor, _ welcome: Welcome?,
        from source: @escaping @Sendable () -> Source?
    ) async throws -> Member.AssetFile {
        try await fetching.run {
            try await withTaskCancellationHandler {
                try await self.fetch(incoming, of: asset, welcome, from: source)
            } onCancel: {
                incoming.cancellation.cancel()
            }
        }
    }

    /// The whole of an asset, from wherever the leader is: its old address may be gone without a
    /// word, and then nothing would break off.
    private func fetch(
        _ incoming: IncomingFile, of asset: AssetDescriptor, _ welcome: Welcome?,
        from source: @escaping @Sendable () -> Source?
    ) async throws -> Member.AssetFile {
        while true {
            let place = source()
            try incoming.move(to: try await address(of: asset, welcome, at: place))
            let queue = DispatchQueue(label: "tutti-fetch")
            let fetch: @Sendable () async throws -> CachedFile = { [cache] in
                try await blocking(
                    on: queue, cancellation: MediaCancellation(within: incoming.cancellation)
                ) { cancellation throws(MediaError) in
                    try cache.fetch(
                        incoming, fileExtension: asset.fileExtension, cancellation: cancellation)
                }
            }
            let file: CachedFile? =
                switch place {
                case .leader(let finder):
                    try await finder.whileItStays(at: finder.currentHost ?? "", fetch)
                case .holders, nil: try await fetch()
                }
            if let file { return Member.AssetFile(path: file.path, hold: file) }
            try Task.checkCancellation()
            if case .leader(let finder)? = source(), finder.hasEnded {
                throw RoomError(.noLeader, "the leader is gone")
            }
        }
    }

    func objection(to asset: AssetDescriptor) -> RoomError? {
        guard library.asset(asset.hash) != nil else { return nil }
        do {
            _ = try library.file(of: asset)
            return nil
        } catch {
            return error
        }
    }

    func removePart(of incoming: IncomingFile) { cache.removePart(of: incoming.fingerprint) }

    /// Where it is served.
    ///
    /// - Parameter mustBeThere: whether somebody has to have it now.
    private func address(
        of asset: AssetDescriptor, _ welcome: Welcome?, at source: Source?, mustBeThere: Bool = true
    ) async throws -> String {
        let place: HostPort?
        switch source {
        case .leader(let finder):
            place = finder.currentHost.flatMap { host in
                welcome.map { HostPort(host: host, port: Int($0.mediaPort)) }
            }
        case .holders(let holders):
            place =
                mustBeThere
                ? try await holder(of: asset, holders)
                : (try? await holder(of: asset, holders)) ?? holders.predecessor
        case nil: place = nil
        }
        guard let place else { throw RoomError(.noLeader, "the leader is gone") }
        return place.address(of: asset)
    }

    private func holder(
        of asset: AssetDescriptor, _ holders: Holders
    ) async throws -> HostPort {
        do {
            let place = try await holders.holder(of: asset, client)
            state.withLock { $0.missed[asset.hash] = nil }
            return place
        } catch {
            state.withLock { $0.missed[asset.hash] = $0.missed[asset.hash] ?? .now }
            throw error
        }
    }

    /// Whether nobody has all of an asset any more, for a while already; looks for it, and fetches it
    /// where it is found.
    func isLost(_ asset: AssetDescriptor) async -> Bool {
        guard library.asset(asset.hash) == nil, let holders = state.withLock({ $0.holders }),
            holders.isLost, (try? await held(asset)) == nil
        else { return false }
        if (try? await holder(of: asset, holders)) != nil {
            _ = await fetch(asset)
            return false
        }
        let since = state.withLock { $0.missed[asset.hash] }
        return since.map { $0 + Self.lostAfter <= .now } ?? false
    }

    /// All of it in the cache, where it stays meanwhile.
    private func held(_ asset: AssetDescriptor) async throws -> CachedFile? {
        let print = asset.fingerprint
        return try await looking.run { [cache] in
            try await blocking { cancellation throws(MediaError) in
                cache.contains(print, cancellation: cancellation)
            }
        }
    }

    /// A file on this machine with these bytes, that was read or fetched lately.
    func path(of hash: ContentHash) -> String? {
        library.asset(hash)?.file.path ?? media.path(ofHash: hash.hex)
    }

    // MARK: For the other rooms

    /// Others may have what was fetched, which stays in the cache meanwhile, and what is on its way.
    func lend(_ file: Member.AssetFile, of hash: ContentHash) {
        guard library.asset(hash) == nil else { return }
        if let incoming = file.incoming {
            _ = arriving(incoming, of: hash, isOwn: true)
            return
        }
        guard file.hold != nil else { return }
        let gone = state.withLock { state -> ContentHash? in
            state.lent.removeAll { $0.hash == hash }
            state.lent.append((hash, file))
            var most = Self.mostLent
            if case .leader? = state.source { most = Self.mostLentByRoom }
            return state.lent.count > most ? state.lent.removeFirst().hash : nil
        }
        media.share(hash: hash.hex, path: file.path)
        if let gone { media.withdraw(hash: gone.hex) }
    }

    /// What another room asks for and is not here, while it arrives; `nil` when it is shared by now, or
    /// cannot be had.
    func fetch(_ asset: AssetDescriptor) async -> IncomingFile? {
        guard library.asset(asset.hash) == nil else { return nil }
        let (known, holders) = state.withLock { ($0.arriving[asset.hash], $0.holders) }
        if let known, known.isAlive { return known.incoming }
        guard let holders,
            let file = try? await file(of: asset, nil, from: { .holders(holders) })
        else { return nil }
        guard let incoming = file.incoming else {
            lend(file, of: asset.hash)
            return nil
        }
        let shared = arriving(incoming, of: asset.hash, isOwn: false)
        // Otherwise somebody else has begun.
        if shared === incoming {
            Task { await self.fetchForOthers(incoming, asset, from: holders) }
        }
        return shared
    }

    /// The one that arrives already, or this one from now on.
    private func arriving(
        _ incoming: IncomingFile, of hash: ContentHash, isOwn: Bool
    ) -> IncomingFile {
        state.withLock { state in
            if state.arriving[hash]?.isAlive != true {
                state.arriving[hash] = Arriving(incoming: incoming, isOwn: isOwn)
            }
            if isOwn { state.arriving[hash]?.isOwn = true }
            return state.arriving[hash]?.incoming ?? incoming
        }
    }

    private func fetchForOthers(
        _ incoming: IncomingFile, _ asset: AssetDescriptor, from holders: Holders
    ) async {
        do {
            let whole = try await complete(incoming, of: asset, nil) { .holders(holders) }
            hasArrived(whole, incoming, asset.hash)
        } catch {
            let isOwn = state.withLock { state in
                guard let arriving = state.arriving[asset.hash], arriving.incoming === incoming
                else { return false }
                if !arriving.isOwn { state.arriving[asset.hash] = nil }
                return arriving.isOwn
            }
            // This node's own room tries again; others come again by themselves.
            guard !isOwn else { return }
            incoming.abandon(
                error as? MediaError
                    ?? MediaError(
                        .network, operation: "fetch", subject: asset.title, reason: "\(error)"))
        }
    }

    /// All of it is here.
    private func hasArrived(
        _ file: Member.AssetFile, _ incoming: IncomingFile, _ hash: ContentHash
    ) {
        guard state.withLock({ $0.arriving[hash]?.incoming === incoming }) else { return }
        if let pieces = incoming.pieceHashes { media.pieces.keep(pieces, of: hash.hex) }
        lend(file, of: hash)
        state.withLock { $0.arriving[hash] = nil }
    }
}

extension AssetDescriptor {
    /// By which the bytes are known to be right.
    fileprivate var fingerprint: MediaFingerprint {
        MediaFingerprint(
            hash: hash.bytes, byteCount: byteCount, piecesRoot: piecesRoot?.bytes)
    }
}
