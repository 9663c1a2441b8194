import TuttiRealTime
public import TuttiTiming

/// Which use of which slot of an output: what tells one voice from the next in its place.
public struct VoiceID: Hashable, Sendable {
    let slot: Int
    let serial: UInt64

    /// The same as one number.
    public var number: UInt64 { serial << 8 | UInt64(slot) }
}

extension OutputPort {
    /// When what was rendered last leaves the loudspeaker, latency offset included.
    public var renderedUntil: LocalInstant {
        report.queueEnd(sampleRate: format.sampleRate) + latencyOffset
    }

    /// What every slot did in the period rendered last, whoever holds it, or held it and has let go.
    ///
    /// A look from outside: the voices themselves say nothing of one that was forgotten.
    public var voices: [(id: VoiceID, report: VoiceReport)] {
        voiceReports.enumerated().map { slot, latest in
            let snapshot = latest.load()
            return (VoiceID(slot: slot, serial: snapshot.serial), snapshot.report)
        }
    }
}
