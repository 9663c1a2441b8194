import FFmpegMedia
import Dispatch
import GroupControl
import Playout
import Synchronization

/// The assets of a node in any role: its own files, those that it fetched, and where the others are.
///
/// A node that took over the lead hands out what it fetched, and fetches what it is asked for and does
/// not have from the leader before, which has the files.
final class NodeFiles: AssetSource {
    /// Items that are looked for, and fetched, at once; each has a thread and some files. The
    /// machine that follows asks for no more.
    private static let fetchesMax = 8
    /// Fetched items that are handed out: what plays, what is next, and some that rooms still load.
    private static let mostLent = 6

    /// Where the assets of others are.
    private enum Source: Sendable {
        case leader(LeaderFinder)
        /// Who led when this node took over.
        case predecessor(HostPort)
    }

    private struct State {
        /// For the node's own room.
        var source: Source?
        /// For what other rooms ask this node for.
        var predecessor: HostPort?
        var lent: [(hash: ContentHash, file: Member.AssetFile)] = []
        /// Fetched for others, once for all who ask.
        var lending: [ContentHash: Task<Void, Never>] = [:]
    }
    private let state = Mutex(State())
    private let library: SessionAssets
    private let media: MediaService
    private let cache: MediaCache
    private let client = MediaClient()
    private let looking = Workers(NodeFiles.fetchesMax, cancelsOldest: false)
    private let fetching = Workers(NodeFiles.fetchesMax)

    init(_ library: SessionAssets, _ media: MediaService, _ cache: MediaCache) {
        self.library = library
        self.media = media
        self.cache = cache
    }

    /// What is not here is where the leader is that this finds.
    func follow(_ finder: LeaderFinder) { state.withLock { $0.source = .leader(finder) } }

    /// This node leads; what is not here is at the media service of the leader before.
    func lead(after address: HostPort) {
        state.withLock {
            $0.source = .predecessor(address)
            $0.predecessor = address
        }
    }

    // MARK: For the node's own room

    /// Its own, from the cache, or on its way there.
    ///
    /// - Parameter welcome: of the leader that is followed.
    func file(of asset: AssetDescriptor, _ welcome: Welcome?) async throws -> Member.AssetFile {
        try await file(of: asset, welcome) { self.state.withLock { $0.source } }
    }

    private func file(
        of asset: AssetDescriptor, _ welcome: Welcome?,
        from source: @escaping @Sendable () -> Source?
    ) async throws -> Member.AssetFile {
        if library.asset(asset.hash) != nil { return try library.file(of: asset) }
        let print = MediaFingerprint(
            hash: asset.hash.bytes, byteCount: asset.byteCount,
            piecesRoot: asset.piecesRoot?.bytes)
        let held = try await looking.run { [cache] in
            try await blocking { cancellation throws(MediaError) in
                cache.contains(print, cancellation: cancellation)
            }
        }
        if let held { return Member.AssetFile(path: held.path, hold: held) }
        let url = try Self.address(of: asset, welcome, at: source())
        let incoming = try IncomingFile(
            url: url, print,
            pace: FetchPace(
                byteCount: asset.byteCount,
                seconds: Double(asset.fileFrameCount) / Double(asset.sampleRate)),
            server: client, mayAskFirst: true)
        return Member.AssetFile(path: url, incoming: incoming)
    }

    func complete(
        _ incoming: IncomingFile, of asset: AssetDescriptor, _ welcome: Welcome?
    ) async throws -> Member.AssetFile {
        try await complete(incoming, of: asset, welcome) { self.state.withLock { $0.source } }
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
            try incoming.move(to: Self.address(of: asset, welcome, at: place))
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
                case .predecessor, nil: try await fetch()
                }
            if let file { return Member.AssetFile(path: file.path, hold: file) }
            try Task.checkCancellation()
        }
    }

    func removePart(of incoming: IncomingFile) { cache.removePart(of: incoming.fingerprint) }

    /// Where it is served.
    private static func address(
        of asset: AssetDescriptor, _ welcome: Welcome?, at source: Source?
    ) throws(RoomError) -> String {
        let place: HostPort?
        switch source {
        case .leader(let finder):
            place = finder.currentHost.flatMap { host in
                welcome.map { HostPort(host: host, port: Int($0.mediaPort)) }
            }
        case .predecessor(let address): place = address
        case nil: place = nil
        }
        guard let place else { throw RoomError(.noLeader, "the leader is gone") }
        return "http://\(place)/asset/\(asset.hash.hex)"
    }

    // MARK: For the other rooms

    /// Others may have what was fetched; it stays in the cache meanwhile.
    func lend(_ file: Member.AssetFile, of hash: ContentHash) {
        guard file.hold != nil, library.asset(hash) == nil else { return }
        let gone = state.withLock { state -> ContentHash? in
            state.lent.removeAll { $0.hash == hash }
            state.lent.append((hash, file))
            return state.lent.count > Self.mostLent ? state.lent.removeFirst().hash : nil
        }
        media.share(hash: hash.hex, path: file.path)
        if let gone { media.withdraw(hash: gone.hex) }
    }

    /// Fetches what another room asks for and is not here.
    func fetch(_ asset: AssetDescriptor) async {
        guard library.asset(asset.hash) == nil else { return }
        let task = state.withLock { state in
            if let task = state.lending[asset.hash] { return task }
            let task = Task { await self.lendFetched(asset) }
            state.lending[asset.hash] = task
            return task
        }
        await task.value
    }

    private func lendFetched(_ asset: AssetDescriptor) async {
        defer { state.withLock { $0.lending[asset.hash] = nil } }
        guard let predecessor = state.withLock({ $0.predecessor }),
            var file = try? await file(of: asset, nil, from: { .predecessor(predecessor) })
        else { return }
        if let incoming = file.incoming {
            let whole = try? await complete(incoming, of: asset, nil) { .predecessor(predecessor) }
            guard let whole else { return }
            file = whole
        }
        lend(file, of: asset.hash)
    }
}
