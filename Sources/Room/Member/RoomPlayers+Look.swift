import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayback
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// What the players of a room make sound.
extension RoomPlayers {
    struct VoiceFigures {
        var bufferedSeconds = 0.0
    }

    /// What the output plays, read behind all that decides it. Nobody can tell while the clock is
    /// not known, or the card's position is not.
    ///
    /// - Parameters:
    ///   - clock: the room's, by which a voice is read that nobody holds.
    ///   - isRunning: the card is there.
    func look(by clock: ClockCell, isRunning: Bool, at now: LocalInstant) -> OutputLook {
        let report = output.port.report
        let shared = clock.load()
        let rendered = output.port.renderedUntil
        let canTell =
            isRunning && isCardDecided && shared.quality.isPlayable
            && now - report.at < Self.lookPatience
        guard canTell else { return OutputLook(until: shared.map(now), voices: nil) }
        var owners: [VoiceID: (part: Part, map: FrameMap)] = [:]
        for part in parts.values {
            for (voice, map) in part.player?.voices(of: part.item) ?? [:] {
                owners[voice] = (part, map)
            }
        }
        let voices = output.port.voices.compactMap { id, voice -> HeardVoice? in
            let isOnLine = voice.state == .playing || voice.state == .starved
            // One that is not rendered, since its card has just come back, says what once was.
            guard isOnLine, rendered - voice.at < Self.lookPatience else { return nil }
            let part = owners[id]?.part
            // Where the pitch is kept a voice's frames are made of the item's.
            let map = owners[id]?.map ?? .identity
            return HeardVoice(
                voice: part?.order.id, source: id.number, hash: part?.order.asset.hash,
                isSupplied: voice.state == .playing, itemFrame: map.itemFrame(voice.itemFrame),
                at: (part?.clock.load() ?? shared).map(voice.at),
                knownError: Nanoseconds(Int64(saturating: voice.errorNanoseconds)),
                isAltered: part?.hold?.holdsItsBytes == false)
        }
        return OutputLook(until: shared.map(rendered), voices: voices)
    }

    /// Older than this a report says nothing of now: an output reports once a period, and those of a
    /// card with a long queue are long.
    private static let lookPatience = Nanoseconds.milliseconds(1_500)

    /// Of the player that sounds.
    var figures: VoiceFigures {
        // What follows has its line too, and plays once it is the current one.
        guard let sounding = parts.values.first(where: { $0.sounds && !$0.isQueued }) else {
            return VoiceFigures()
        }
        let seconds = sounding.item.decodedTimeRanges.reduce(0) { $0 + $1.duration.seconds }
        return VoiceFigures(bufferedSeconds: seconds)
    }
}
