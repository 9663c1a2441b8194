import Logging
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
        let items = saved.items.map { item in
            AssetList.Item(
                location: item.location, title: item.title, span: item.span, isMissed: true)
        }
        var current: SessionAssets.Asset?
        if saved.place.phase != .stopped, items.indices.contains(saved.place.index) {
            let item = items[saved.place.index]
            do {
                current = try await blocking { [library] cancellation throws(MediaError) in
                    try library.describe(item, cancellation)
                }
            } catch {
                logger.error(
                    "what the group was at cannot be played any more",
                    metadata: ["reason": "\(error)"])
            }
        }
        if let current { keep(current) }
        let listing = restore(items, knowing: current, at: saved.place.index)
        for item in items { uploads?.use(item.location) }
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
