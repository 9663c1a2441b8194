import Logging
import Synchronization
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiPlayout

/// Files that are written anew while they are queued.
extension AssetReader {
    /// What has become of items that were read from one file.
    struct Change: Sendable {
        var items: Set<QueueEntry.ID>
        var outcome: ItemChange
    }

    /// Between two looks at a file that is being written.
    private static let settling = Duration.milliseconds(250)
    private static let mostLooks = 12

    /// Looks whether the files of an asset are the ones that were hashed, and reads those again
    /// that are not. Of several with the same bytes each is looked at for itself.
    ///
    /// - Parameters:
    ///   - current: what the session is at is not given up because its name is gone.
    ///   - isAsked: a command waits for the answer. A file that is gone may come back in a moment,
    ///   which
    ///     it does not wait for.
    func check(
        _ hash: ContentHash, current: QueueEntry.ID?, isAsked: Bool
    ) async -> [Change] {
        var changes: [Change] = []
        for copy in library.copies(of: hash) {
            guard let standing = await standing(of: copy), standing != .untouched else { continue }
            if standing == .gone, isAsked, !copy.isCached { continue }
            let items = items.filter { $0.value.location == copy.item.location }
            // A file that was sent here, and has gone with its item, says nothing of others.
            guard !items.isEmpty else {
                forget(copy)
                continue
            }
            let isCurrent = current.map { items[$0] != nil } ?? false
            guard let outcome = await look(at: copy, standing, isCurrent: isCurrent) else {
                continue
            }
            if case .unplayable = outcome { lose(Set(items.keys)) }
            changes.append(Change(items: Set(items.keys), outcome: outcome))
            forget(copy)
        }
        return changes
    }

    /// Reads a file anew that is not the one any more that was hashed; `nil`: nothing has changed
    /// for the group.
    private func look(
        at asset: SessionAssets.Asset, _ standing: SessionAssets.Standing, isCurrent: Bool
    ) async -> ItemChange? {
        if standing == .gone, isCurrent, !asset.isCached { return nil }
        if asset.isCached, let held = await cached(asset) {
            var asset = asset
            asset.file.hold = held
            library.insert(asset)
            return nil
        }
        await settle(asset)
        // Of a cue sheet's track, where it is in the new file nobody knows.
        var item = asset.item
        item.span = nil
        do {
            let anew = try await describeAnew(item)
            guard anew.descriptor.hash != asset.descriptor.hash else { return nil }
            logger.notice(
                "changed on the disk; it is played as it is now",
                metadata: ["title": "\(anew.descriptor.title)"])
            return .other(anew.descriptor)
        } catch let error as MediaError where error.code != .cancelled {
            if isCurrent, error.code == .notFound { return nil }
            logger.error("skipped \(error.subject): it was changed, and \(error.reason)")
            return .unplayable(reason: error.reason)
        } catch {
            return nil
        }
    }

    /// Reads a file of this machine that could not be played: it may be there by now, or be another
    /// one.
    ///
    /// - Returns: what it is; `nil` for what others have, and for addresses.
    func again(_ id: QueueEntry.ID) async -> LeaderInput? {
        guard let item = item(id), !PlaylistPlace.isRemote(item.location) else { return nil }
        do {
            let asset = try await describeAnew(item)
            state.withLock {
                $0.unseen[id] = asset.descriptor.hash
                $0.known += 1
            }
            return .read(id, as: asset.descriptor)
        } catch let error as MediaError where error.code != .cancelled {
            return .unplayable(id, reason: error.reason)
        } catch {
            return nil
        }
    }

    /// Reads an item at once, and serves it as it is now.
    ///
    /// - Throws: `MediaError`, `CancellationError`.
    func describeAnew(_ item: AssetList.Item) async throws -> SessionAssets.Asset {
        let asset = try await blocking { [library] cancellation throws(MediaError) in
            try library.describe(item, cancellation)
        }
        keep(asset)
        return asset
    }

    /// A file has other bytes now, or is gone: others with the same bytes are served in its place.
    private func forget(_ copy: SessionAssets.Asset) {
        if let other = library.remove(copy) { keep(other) }
    }

    /// Why an asset cannot be played from another place, for people; `nil` where nothing is known of.
    func obstacle(to asset: AssetDescriptor) async -> String? {
        let copies = library.copies(of: asset.hash)
        let reasons = try? await blocking { _ throws(MediaError) in
            copies.map { SessionAssets.obstacle(to: $0) }
        }
        guard let reasons, !reasons.contains(nil) else { return nil }
        return reasons.last ?? nil
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

    private func standing(of asset: SessionAssets.Asset) async -> SessionAssets.Standing? {
        try? await blocking { _ throws(MediaError) in SessionAssets.standing(of: asset) }
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
