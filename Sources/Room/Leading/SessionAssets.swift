import Glibc
import Logging
import Synchronization
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayout

/// The assets of a session on the leader, by what is in them: where their bytes are, and whether
/// those are still the ones that were hashed.
final class SessionAssets: Sendable {
    struct Asset: Sendable {
        var descriptor: AssetDescriptor
        var item: AssetList.Item
        var file: Member.AssetFile
        var identity: FileIdentity
        /// A file of the cache belongs to it: nobody writes to it, and it may go when it is not held.
        var isCached: Bool

        fileprivate func isSameCopy(as other: Asset) -> Bool {
            item.location == other.item.location
        }
    }

    /// What has become of an asset's file.
    enum Standing: Equatable, Sendable {
        case untouched
        /// Written anew, or another one is in its place.
        case touched
        case gone
    }

    /// Of each, the files that have its bytes, the one that was read last at the end.
    private let assets = Mutex<[ContentHash: [Asset]]>([:])
    let cache: MediaCache
    private let pieces: PieceLists
    private let logger: Logger

    /// - Parameter pieces: take the hashes of what was read.
    init(cache: MediaCache, pieces: PieceLists, logger: Logger) {
        self.cache = cache
        self.pieces = pieces
        self.logger = logger
    }

    func insert(_ asset: Asset) {
        assets.withLock { assets in
            let copies = assets[asset.descriptor.hash, default: []]
            assets[asset.descriptor.hash] = copies.filter { !$0.isSameCopy(as: asset) } + [asset]
        }
    }

    /// One file has these bytes no more.
    ///
    /// - Returns: another one that has.
    func remove(_ copy: Asset) -> Asset? {
        assets.withLock { assets in
            let hash = copy.descriptor.hash
            assets[hash]?.removeAll { $0.isSameCopy(as: copy) }
            if assets[hash]?.isEmpty == true { assets[hash] = nil }
            return assets[hash]?.last
        }
    }

    /// The one that was read last.
    func asset(_ hash: ContentHash) -> Asset? { assets.withLock { $0[hash]?.last } }

    /// All that have these bytes.
    func copies(of hash: ContentHash) -> [Asset] { assets.withLock { $0[hash] ?? [] } }

    /// For the leader's own room.
    func file(of asset: AssetDescriptor) throws(RoomError) -> Member.AssetFile {
        let copies = copies(of: asset.hash)
        guard
            let known = copies.last(where: { Self.standing(of: $0) == .untouched }) ?? copies.last
        else {
            throw RoomError(.badAsset, "\(asset.title): not in this session")
        }
        switch Self.standing(of: known) {
        case .untouched: return known.file
        case .touched:
            throw RoomError(
                .badAsset, "\(asset.title): its file was changed; it is being read again")
        case .gone: throw RoomError(.badAsset, "\(asset.title): its file is not there any more")
        }
    }

    /// Lets files of the cache go that are neither playing nor soon to be.
    func release(except near: Set<ContentHash>) {
        assets.withLock { assets in
            for hash in assets.keys where !near.contains(hash) {
                for place in assets[hash]!.indices where assets[hash]![place].isCached {
                    assets[hash]![place].file.hold = nil
                }
            }
        }
    }

    /// Looks at the disk.
    static func standing(of asset: Asset) -> Standing {
        guard let now = FileIdentity(path: asset.file.path) else { return .gone }
        if asset.isCached {
            return asset.file.hold != nil && now.isSameFile(as: asset.identity)
                ? .untouched : .touched
        }
        return now == asset.identity ? .untouched : .touched
    }

    /// Why the bytes of an asset cannot be read any more, in a sentence: its file is gone, or the disk
    /// that it is on. What was loaded can be loaded again. Blocks.
    static func obstacle(to asset: Asset) -> String? {
        guard !asset.isCached else { return nil }
        let (title, path) = (asset.descriptor.title, asset.file.path)
        func sentence(_ what: String) -> String {
            "\(title): its file \(what) (\(AssetName.known(path))): put it back, or go on with next"
        }
        let descriptor = open(path.cFileName, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let code = errno
            let isGone = code == ENOENT || code == ENOTDIR
            return sentence(
                isGone ? "is not there any more" : "cannot be opened: \(reason(of: code))")
        }
        defer { close(descriptor) }
        var byte: UInt8 = 0
        for place in [0, max(0, asset.descriptor.byteCount - 1)] {
            guard pread(descriptor, &byte, 1, off_t(place)) < 0 else { continue }
            return sentence("cannot be read: \(reason(of: errno))")
        }
        return nil
    }

    private static func reason(of code: Int32) -> String { String(cString: strerror(code)) }

    // MARK: Reading

    /// Opens an item, counts its frames and hashes it; an address is downloaded. Blocks.
    ///
    /// - Throws: `MediaError` about the item in the words of whoever named it.
    func describe(
        _ item: AssetList.Item, _ cancellation: MediaCancellation
    ) throws(MediaError) -> Asset {
        let isRemote = PlaylistPlace.isRemote(item.location)
        var file = Member.AssetFile(path: item.location)
        if isRemote, item.span != nil,
            let known = known(where: { $0.item.location == item.location && $0.file.hold != nil })
        {
            return try known.part(item)
        }
        if isRemote {
            var progress = DownloadProgress(item.location.readableFileName, at: HostClock.now())
            let held = try cache.download(url: item.location, cancellation: cancellation) {
                if let line = progress.line($0, of: $1, at: HostClock.now()) {
                    logger.notice("\(line)")
                }
            }
            file = Member.AssetFile(path: held.path, hold: held)
        }
        do throws(MediaError) {
            return try describe(item, file, isRemote: isRemote, cancellation)
        } catch {
            // The file of the cache means nothing to whoever gave the address.
            var named = error
            guard named.operation != Asset.partOperation else { throw named }
            named.subject = AssetName.known(item.location)
            throw named
        }
    }

    private func describe(
        _ item: AssetList.Item, _ file: Member.AssetFile, isRemote: Bool,
        _ cancellation: MediaCancellation
    ) throws(MediaError) -> Asset {
        let path = file.path
        func failure(_ code: MediaError.Code, _ reason: String) -> MediaError {
            MediaError(code, operation: "open", subject: path, reason: reason)
        }
        for _ in 0..<Self.looks {
            let before = FileIdentity(path: path)
            if item.span != nil, let before,
                let known = known(where: { $0.file.path == path && $0.identity == before })
            {
                return try known.part(item)
            }
            let info = try FFmpegSource(path, cancellation: cancellation).info
            guard let count = info.frameCount, count > 0 else {
                throw failure(
                    .unsupported,
                    "has no end or no sound; give a file or URL of a finished recording")
            }
            let (print, list) = try MediaFingerprint.measure(path, cancellation: cancellation)
            // What is written to while it is read, or was a moment ago, is looked at once more.
            guard let identity = FileIdentity(path: path), isRemote || identity == before,
                isRemote || !identity.isFresh
            else {
                usleep(Self.pauseMicroseconds)
                continue
            }
            pieces.keep(list, of: print.text)
            let title = title(of: item, info, isRemote: isRemote)
            warnIfCut(info, title, item.location)
            do {
                let descriptor = try AssetDescriptor(
                    hash: ContentHash(bytes: print.hash), byteCount: print.byteCount,
                    sampleRate: info.sampleRate, frameCount: count, title: title,
                    fileExtension: AssetName.ending(
                        of: item.location, most: AssetDescriptor.longestExtension),
                    piecesRoot: print.piecesRoot.map { try ContentHash(bytes: $0) })
                let asset = Asset(
                    descriptor: descriptor, item: item, file: file, identity: identity,
                    isCached: isRemote)
                return try item.span == nil ? asset : asset.part(item)
            } catch let error as MediaError {
                throw error
            } catch {
                throw failure(.unsupported, "cannot be played: \(error)")
            }
        }
        throw failure(.notReadable, "is being written to; play it when it is complete")
    }

    /// One that tells all of another part of the same file.
    private func known(where isSameFile: (Asset) -> Bool) -> Asset? {
        assets.withLock { $0.values.lazy.joined().first(where: isSameFile) }
    }

    /// How often a file is read that is written to meanwhile.
    private static let looks = 3
    /// Longer than ``FileIdentity/isFresh`` counts.
    private static let pauseMicroseconds: UInt32 = 100_000

    private func title(
        of item: AssetList.Item, _ info: MediaInfo, isRemote: Bool
    ) -> String {
        guard info.isNamedByFile else { return info.title }
        if let title = item.title, title.showsSomething { return title }
        return isRemote ? AssetName.title(ofAddress: item.location) : info.title
    }

    /// Several files may have one title.
    private func warnIfCut(_ info: MediaInfo, _ title: String, _ location: String) {
        guard let promised = info.promisedFrameCount, let count = info.frameCount else { return }
        func seconds(_ frames: Int64) -> Int {
            Int((Double(frames) / Double(info.sampleRate)).rounded())
        }
        logger.warning(
            "the file was cut off; what is there is played",
            metadata: [
                "asset": "\(title)", "file": "\(AssetName.known(location))",
                "seconds": "\(seconds(count)) of \(seconds(promised))",
            ])
    }
}
