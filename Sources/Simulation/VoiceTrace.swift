import TuttiGroupControl
import TuttiPlayout
import TuttiTiming

/// Which line of the session: the item's place in the queue and the change that set it going.
struct LineKey: Hashable, Sendable {
    var index: Int
    var change: RateChange
}

/// What one voice was told, in frames of its item: from where to where it is to be heard.
final class VoiceTrace {
    let id: UInt64
    private(set) var key: LineKey?
    private(set) var sampleRate = 1.0
    /// The item is heard from here …
    private(set) var from = 0.0
    /// … up to here.
    private(set) var to = 0.0
    /// Position at the end of the period before; `nil` while it was not playing.
    var lastEnd: Double?
    var hasBegun = false
    var hasEnded = false

    init(_ id: UInt64) { self.id = id }

    func start(_ key: LineKey, asset: AssetDescriptor) {
        self.key = key
        sampleRate = Double(asset.sampleRate)
        from = Double(key.change.itemFrame)
        to = Double(asset.frameCount)
    }

    /// The instant of a stop as a position: the line says where it will be then.
    func stop(at instant: GroupInstant) {
        guard let key else { return }
        to = min(to, key.change.itemFrame(at: instant, sampleRate: Int(sampleRate)))
    }
}

/// One period of one card: what every voice played in it.
struct PeriodTrace {
    struct Part {
        var voice: VoiceTrace
        /// Position of the frame behind the period's last.
        var end: Double
        /// Frames of the item per frame of the card.
        var step: Double
        /// The part of the item heard in the period, as far as the voice was able to.
        var heard: Range<Double>
    }

    /// Frame of the card, counted from its last restart.
    var firstFrame: Int64
    var count: Int
    var parts: [Part] = []

    var endFrame: Int64 { firstFrame + Int64(count) }

    /// What is heard at a frame of the card, with its fraction.
    func sounding(at frame: Double) -> (voice: VoiceTrace, position: Double)? {
        for part in parts {
            let position = part.end - part.step * (Double(endFrame) - frame)
            if part.heard.contains(position), position < part.voice.to {
                return (part.voice, position)
            }
        }
        return nil
    }
}
