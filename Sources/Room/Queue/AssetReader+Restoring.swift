import Glibc
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
        let place = saved.place.index
        var current: SessionAssets.Asset?
        if saved.place.phase != .stopped, saved.items.indices.contains(place),
            let item = AssetList.Item(saved.items[place])
        {
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
        let listing = restore(saved.items, knowing: current, at: place)
        for location in saved.items.compactMap(\.location) { uploads?.use(location) }
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

extension AssetList.Item {
    /// `nil`: it is on another machine.
    init?(_ saved: SavedSession.Item) {
        guard let location = saved.location else { return nil }
        self.init(location: location, title: saved.title, span: saved.span, isMissed: true)
    }
}

extension SavedSession {
    /// A copy that the cache let go of is to be had where it came from.
    func withoutLostCopies(in cache: String) -> SavedSession {
        var session = self
        for place in items.indices where items[place].hash != nil {
            guard let location = items[place].location, location.hasPrefix("\(cache)/"),
                access(location.cFileName, F_OK) != 0
            else { continue }
            session.items[place].location = nil
        }
        return session
    }
}
