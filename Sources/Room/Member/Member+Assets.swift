import Logging
import TuttiClockSync
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// The assets of a room: here, or on their way.
extension Member {
    /// An asset on this machine, or on its way here.
    struct AssetFile: Sendable {
        /// Where it is, or where it comes from.
        var path: String
        /// Keeps a file of the cache from being evicted.
        var hold: CachedFile?
        /// Can be played while it is fetched; `nil` when all of it is here.
        var incoming: IncomingFile?

        /// Somebody on this machine may write to it.
        var isOwn: Bool { hold == nil && incoming == nil }
    }

    /// A leader that comes back does so within these.
    private static let transferRetries = 30
    private static let transferPause = Nanoseconds.seconds(1)

    /// Lets go of what is neither playing nor next: it may leave the cache, and what is still coming
    /// of it need not.
    func forgetFiles(but needed: Set<ContentHash>) {
        for (hash, file) in files where !needed.contains(hash) {
            file.incoming?.cancellation.cancel()
            files[hash] = nil
        }
    }

    /// Whether the file is still what it was when it was verified.
    func isThere(_ file: AssetFile?, of asset: AssetDescriptor) async -> Bool {
        guard let file else { return false }
        // A disk may take its time to say so.
        let isThere = try? await blocking { [isLeaders, assets] _ throws(MediaError) in
            if file.isOwn, assets.objection(to: asset) != nil { return false }
            // A leader has nobody to fetch it from; it asks the session, which says what is wrong.
            if isLeaders, file.incoming == nil { return FileIdentity(path: file.path) != nil }
            return file.hold?.isUntouched ?? true
        }
        return isThere ?? false
    }

    /// Why a preparation failed, for people: a file that was written to meanwhile, before what its
    /// bytes were taken for.
    func reason(of error: any Error, for asset: AssetDescriptor) async -> String {
        guard files[asset.hash]?.isOwn ?? true else { return asset.words(for: error) }
        let objection = try? await blocking { [assets] _ throws(MediaError) in
            assets.objection(to: asset)
        }
        return asset.words(for: (objection ?? nil) ?? error)
    }

    /// Says once for each queue when the cache has no room for two items of it, one that plays and
    /// the next.
    func checkCache(for state: SessionState) {
        let largest = state.largestItems
        guard let limit = options.cacheLimit, largest != checkedItems else { return }
        checkedItems = largest
        guard largest.reduce(0, +) > limit else { return }
        let sizes = largest.map(\.megabytes).joined(separator: " and ")
        logger.warning(
            "the cache is too small for this queue: its largest items have \(sizes) MB, the limit is \(limit.megabytes) MB; raise --cache-limit-mb"
        )
    }

    func load(_ asset: AssetDescriptor, _ welcome: Welcome?) async {
        var file: AssetFile?
        do {
            let found = try await assets.file(of: asset, welcome)
            file = found
            files[asset.hash] = found
            if let incoming = found.incoming {
                receiveInput(.fetched(asset.hash, .arriving))
                await clockKnown(incoming)
                logger.debug(
                    "fetching",
                    metadata: [
                        "title": "\(asset.title)", "clock": "\(clock.cell.load().quality)",
                    ])
                files[asset.hash] = try await complete(incoming, asset)
            }
            receiveInput(.fetched(asset.hash, .done))
        } catch {
            let incoming = file?.incoming
            if let incoming, files[asset.hash]?.incoming === incoming { files[asset.hash] = nil }
            if Task.isCancelled { return }
            // The machine does not wait for it any more, or for another load of the same by now.
            if let incoming, incoming.cancellation.isCancelled {
                if !isQueued(asset.hash) { await removePart(of: incoming) }
                return
            }
            logger.log(
                level: complaintLevel, "cannot fetch",
                metadata: ["reason": "\(asset.words(for: error))"])
            receiveInput(.fetched(asset.hash, .failed(reason: asset.words(for: error))))
        }
    }

    /// Nobody asks again for what was rewritten on the leader.
    private func removePart(of incoming: IncomingFile) async {
        _ = try? await blocking { [assets] _ throws(MediaError) in assets.removePart(of: incoming) }
    }

    /// Returns once the clock can be played by, or has had its time: what is fetched takes the path
    /// on which it is measured. On busy air rooms that fetch meanwhile begin three times as late, and a
    /// millisecond apart. The few parts that a reader asks for to find its place do not matter so much.
    private func clockKnown(_ incoming: IncomingFile) async {
        let deadline = HostClock.now() + RoomPlayers.settlingLimit
        while !clock.cell.load().quality.isPlayable, HostClock.now() < deadline,
            !Task.isCancelled, !incoming.cancellation.isCancelled, incoming.failure == nil
        {
            await LoopExecutor.shared.sleep(for: .milliseconds(10))
        }
    }

    /// The rest of an asset. Somebody may be playing it: a transfer that breaks off is tried again,
    /// from whoever leads by then.
    private func complete(
        _ incoming: IncomingFile, _ asset: AssetDescriptor
    ) async throws -> AssetFile {
        var failures = 0
        while true {
            do {
                // A reader found out before that this is not what was announced.
                if let failure = incoming.failure { throw failure }
                return try await assets.complete(incoming, of: asset, welcome)
            } catch {
                failures += 1
                // The leader does not answer, or there is none at the moment.
                let failure = error as? MediaError
                let mayPass = failure.map { $0.code == .network } ?? (error is RoomError)
                guard mayPass, incoming.hasBytes, failures <= Self.transferRetries,
                    !Task.isCancelled, !incoming.cancellation.isCancelled
                else {
                    incoming.abandon(
                        failure
                            ?? MediaError(
                                .network, operation: "fetch", subject: asset.title,
                                reason: "\(error)"))
                    throw error
                }
                // Of a leader that has left nobody expects it.
                logger.log(
                    level: welcome == nil ? .info : .warning,
                    "the rest of an item does not come; trying again",
                    metadata: ["reason": "\(asset.words(for: error))"])
                await LoopExecutor.shared.sleep(for: Self.transferPause)
            }
        }
    }
}

/// Where a room gets assets from.
protocol AssetSource: Sendable {
    /// A local file, or one that is on its way.
    ///
    /// - Parameter welcome: of the leader that is followed.
    func file(of asset: AssetDescriptor, _ welcome: Welcome?) async throws -> Member.AssetFile

    /// Fetches the rest of a file, or goes on with that, from this leader; returns when all of it is
    /// there.
    func complete(
        _ incoming: IncomingFile, of asset: AssetDescriptor, _ welcome: Welcome?
    ) async throws -> Member.AssetFile

    /// Removes what came of a file; blocks.
    func removePart(of incoming: IncomingFile)

    /// Why a file of this node's own is not the one described any more; `nil` where it is, and for
    /// those of others. Looks at the disk.
    func objection(to asset: AssetDescriptor) -> RoomError?
}

extension AssetSource {
    func objection(to asset: AssetDescriptor) -> RoomError? { nil }
}
