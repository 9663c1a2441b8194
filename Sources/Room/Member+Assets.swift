import ClockSync
import FFmpegMedia
import GroupControl
import LinuxHost
import Logging
import Playout
import RealTime
import Timing

/// The assets of a room: here, or on their way.
extension Member {
    /// Turns an asset into a local file, or into one that is on its way.
    typealias Fetch = @Sendable (AssetDescriptor, Welcome?) async throws -> AssetFile

    /// An asset on this machine; held, it stays there.
    struct AssetFile: Sendable {
        var path: String
        /// Keeps a file of the cache from being evicted.
        var hold: CachedFile?
        var arrival: Arrival?
    }

    /// An asset that can be played while it is fetched.
    struct Arrival: Sendable {
        var file: ArrivingFile
        /// Fetches it, or goes on with that, from this leader; returns when all of it is there.
        var complete: @Sendable (Welcome?) async throws -> AssetFile
    }

    /// A leader that comes back does so within these.
    private static let transferRetries = 30
    private static let transferPause = Nanoseconds.seconds(1)

    func load(_ asset: AssetDescriptor, _ welcome: Welcome?) async {
        var arrival: ArrivingFile?
        do {
            let file = try await fetch(asset, welcome)
            files[asset.hash] = file
            arrival = file.arrival?.file
            if let arrival = file.arrival {
                receiveInput(.fetched(asset.hash, .arriving))
                await clockKnown()
                logger.debug(
                    "fetching",
                    metadata: [
                        "title": "\(asset.title)", "clock": "\(clock.cell.load().quality)",
                    ])
                files[asset.hash] = try await complete(arrival, asset)
            }
            receiveInput(.fetched(asset.hash, .done))
        } catch {
            if let arrival, files[asset.hash]?.arrival?.file === arrival { files[asset.hash] = nil }
            if Task.isCancelled { return }
            logger.error(
                "cannot fetch", metadata: ["title": "\(asset.title)", "error": "\(error)"])
            receiveInput(.fetched(asset.hash, .failed(reason: "\(error)")))
        }
    }

    /// Returns once the clock can be played by, or has had its time: what is fetched takes the path
    /// on which it is measured. Three rooms on emulated busy air that fetched meanwhile began after
    /// 12.5 s and 0.85 ms apart, and after 4.5 s and 18 µs when the clock came first. The few parts
    /// that a reader asks for to find its place do not matter so much.
    private func clockKnown() async {
        let deadline = HostClock.now() + Stage.settlingLimit
        while !clock.cell.load().quality.isPlayable, HostClock.now() < deadline,
            !Task.isCancelled
        {
            await LoopExecutor.shared.sleep(for: .milliseconds(10))
        }
    }

    /// The rest of an asset. Somebody may be playing it: a transfer that breaks off is tried again,
    /// from whoever leads by then.
    private func complete(
        _ arrival: Arrival, _ asset: AssetDescriptor
    ) async throws -> AssetFile {
        var failures = 0
        while true {
            do {
                return try await arrival.complete(welcome)
            } catch {
                failures += 1
                // The leader does not answer, or there is none at the moment.
                let failure = error as? MediaError
                let mayPass = failure.map { $0.code == .network } ?? (error is RoomError)
                guard mayPass, arrival.file.hasBytes, failures <= Self.transferRetries,
                    !Task.isCancelled
                else {
                    arrival.file.abandon(
                        failure
                            ?? MediaError(
                                .network, operation: "fetch", subject: asset.title,
                                reason: "\(error)"))
                    throw error
                }
                logger.warning(
                    "the rest of an item does not come; trying again",
                    metadata: ["title": "\(asset.title)", "reason": "\(error)"])
                await LoopExecutor.shared.sleep(for: Self.transferPause)
            }
        }
    }
}
