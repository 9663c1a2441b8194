import Logging
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiPlayout

/// Files that are written anew while they are queued.
extension AssetReader {
    /// What an asset of the session has become.
    enum Change: Equatable, Sendable {
        /// The same as before.
        case none
        case other(AssetDescriptor)
        /// Nothing that can be played.
        case nothing
    }

    /// Between two looks at a file that is being written.
    private static let settling = Duration.milliseconds(250)
    private static let mostLooks = 12

    /// Looks whether the file of an asset is the one that was hashed, and reads it again if not.
    ///
    /// - Parameter isPlaying: what plays is not given up because its name is gone.
    func check(_ hash: ContentHash, isPlaying: Bool) async -> Change {
        guard let asset = library.asset(hash) else { return .none }
        let standing = await standing(of: asset)
        guard standing != .untouched else { return .none }
        // A file that was sent here, and has gone with its item, says nothing of the same bytes elsewhere.
        if standing == .gone, !items.values.contains(where: { $0.location == asset.item.location })
        {
            library.remove(hash)
            return .none
        }
        if standing == .gone, isPlaying, !asset.isCached { return .none }
        if asset.isCached, let held = await cached(asset) {
            var asset = asset
            asset.file.hold = held
            library.insert(asset)
            return .none
        }
        await settle(asset)
        // Of a cue sheet's track, where it is in the new file nobody knows.
        var item = asset.item
        item.span = nil
        do {
            let anew = try await blocking { [item] cancellation throws(MediaError) in
                try self.library.describe(item, cancellation)
            }
            keep(anew)
            guard anew.descriptor.hash != hash else { return .none }
            logger.notice(
                "changed on the disk; it is played as it is now",
                metadata: ["title": "\(anew.descriptor.title)"])
            return .other(anew.descriptor)
        } catch let error as MediaError where error.code != .cancelled {
            if isPlaying, error.code == .notFound { return .none }
            logger.error("skipped \(error.subject): it was changed, and \(error.reason)")
            lose()
            return .nothing
        } catch {
            return .none
        }
    }

    /// Why an asset cannot be played from another place, for people; `nil` where nothing is known of.
    func obstacle(to asset: AssetDescriptor) async -> String? {
        guard let known = library.asset(asset.hash) else { return nil }
        let reason = try? await blocking { _ throws(MediaError) in
            SessionAssets.obstacle(to: known)
        }
        return reason ?? nil
    }

    /// What was let go of and has not been removed since.
    private func cached(_ asset: SessionAssets.Asset) async -> CachedFile? {
        let print = MediaFingerprint(
            hash: asset.descriptor.hash.bytes, byteCount: asset.descriptor.byteCount)
        let held = try? await blocking { [library] _ throws(MediaError) in
            library.cache.contains(print)
        }
        return held ?? nil
    }

    private func standing(of asset: SessionAssets.Asset) async -> SessionAssets.Standing {
        let looked = try? await blocking { _ throws(MediaError) in
            SessionAssets.standing(of: asset)
        }
        return looked ?? .untouched
    }

    /// Editors write for a while, or remove a file before they put another in its place.
    private func settle(_ asset: SessionAssets.Asset) async {
        var last = FileIdentity(path: asset.file.path)
        for _ in 0..<Self.mostLooks {
            try? await Task.sleep(for: Self.settling)
            let now = FileIdentity(path: asset.file.path)
            if now != nil, now == last { return }
            last = now
        }
    }
}
