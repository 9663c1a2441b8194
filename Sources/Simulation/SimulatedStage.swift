import TuttiGroupControl
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// The players of a simulated room: what the effects of its machine ask of voices.
///
/// A preparation becomes a voice whose ring holds the item from where it will sound; a commit gives
/// it its line and, unless it follows, ends at the same instant whatever else sounds. Decoding is
/// a copy of the frames of a synthetic item.
final class SimulatedStage {
    /// Frames by which a ring begins before the wanted one: more than half of any filter's length.
    private static let leadIn: Int64 = 256
    /// Frames before the place of a running line at which a room that joins it begins to load.
    private static let joinSlack: Int64 = 4_096

    private struct Part {
        let preparation: Preparation
        let voice: Voice
        let trace: VoiceTrace
        var isStarted = false
        var sounds = false
    }

    private let port: OutputPort
    private var parts: [Part] = []

    init(port: OutputPort) { self.port = port }

    enum Outcome {
        case ready
        /// No voice is free, or the clock by which the line runs is not known yet.
        case later
    }

    /// Takes a voice and loads what it will need first.
    func prepare(_ preparation: Preparation, clock: ClockCell, now: LocalInstant) -> Outcome {
        var first = preparation.itemFrame
        if let change = preparation.change {
            let shared = clock.load()
            guard shared.quality.isPlayable else { return .later }
            let exact = change.itemFrame(
                at: shared.map(now), sampleRate: preparation.asset.sampleRate)
            first = max(change.itemFrame, Int64(saturating: exact) - Self.joinSlack)
        }
        guard
            let voice = port.makeVoice(
                sampleRate: preparation.asset.sampleRate, rate: preparation.rate)
        else { return .later }
        voice.ring.reset(firstFrame: max(0, first - Self.leadIn))
        let part = Part(
            preparation: preparation, voice: voice, trace: VoiceTrace(preparation.id))
        fill(part)
        parts.append(part)
        return .ready
    }

    /// Puts a prepared voice on its line, or ends one at the instant of a pause.
    func apply(_ commit: Commit, clock: ClockCell) -> Bool {
        guard let place = parts.firstIndex(where: { $0.preparation.id == commit.id }) else {
            return false
        }
        if commit.isPause {
            end(place, at: commit.change)
            return true
        }
        let asset = parts[place].preparation.asset
        let line = Line(
            itemFrame: Double(commit.change.itemFrame), instant: commit.change.instant,
            rate: commit.change.rate)
        let isTaken = parts[place].voice.start(
            line, clock: clock, endFrame: asset.frameCount, fadeIn: commit.change.itemFrame > 0)
        parts[place].isStarted = true
        parts[place].sounds = true
        parts[place].trace.start(
            LineKey(index: commit.index, change: commit.change), asset: asset)
        if !commit.following {
            for other in parts.indices where other != place && parts[other].sounds {
                end(other, at: commit.change)
            }
        }
        return isTaken
    }

    private func end(_ place: Int, at change: RateChange) {
        _ = parts[place].voice.stop(at: change.instant)
        parts[place].sounds = false
        parts[place].trace.stop(at: change.instant)
    }

    func withdraw(_ id: UInt64) {
        guard let place = parts.firstIndex(where: { $0.preparation.id == id }) else { return }
        parts.remove(at: place).voice.release()
    }

    func withdrawAll() {
        for part in parts { part.voice.release() }
        parts = []
    }

    /// Decodes ahead in every voice.
    func feed() {
        for part in parts { fill(part) }
    }

    /// Gives back what has fallen silent.
    ///
    /// - Returns: the preparations whose item has been played to its end.
    func settle() -> [UInt64] {
        var ended: [UInt64] = []
        for place in parts.indices.reversed() where parts[place].isStarted {
            switch parts[place].voice.report.state {
            case .ended: ended.append(parts[place].preparation.id)
            case .stopped: break
            case .idle, .armed, .playing, .starved: continue
            }
            parts.remove(at: place).voice.release()
        }
        return ended
    }

    /// What every started voice did in the period rendered last.
    func reports() -> [(trace: VoiceTrace, report: VoiceReport)] {
        parts.filter(\.isStarted).map { ($0.trace, $0.voice.report) }
    }

    /// What the output plays, as the machine of the room is told.
    func look(by clock: ClockCell, _ port: OutputPort, at now: LocalInstant) -> OutputLook {
        let report = port.report
        let shared = clock.load()
        let rendered = port.renderedUntil
        guard report.cardSettled, shared.quality.isPlayable, now - report.at < .milliseconds(500)
        else { return OutputLook(until: shared.map(now), voices: nil) }
        let owners = Dictionary(uniqueKeysWithValues: parts.map { ($0.voice.id, $0.preparation) })
        let voices = port.voices.compactMap { id, voice -> HeardVoice? in
            let isOnLine = voice.state == .playing || voice.state == .starved
            guard isOnLine, rendered - voice.at < .milliseconds(500) else { return nil }
            return HeardVoice(
                voice: owners[id]?.id, source: id.number, hash: owners[id]?.asset.hash,
                isSupplied: voice.state == .playing, itemFrame: voice.itemFrame,
                at: shared.map(voice.at),
                knownError: Nanoseconds(Int64(saturating: voice.errorNanoseconds)))
        }
        return OutputLook(until: shared.map(rendered), voices: voices)
    }

    private func fill(_ part: Part) {
        let ring = part.voice.ring
        guard !ring.isFinished else { return }
        while ring.writableFrames > 0 {
            let left = part.preparation.asset.frameCount - ring.endFrame
            guard left > 0 else { return ring.finish() }
            SyntheticItem.write(to: ring, atMost: Int(min(left, Int64(SyntheticItem.blockFrames))))
        }
    }
}
