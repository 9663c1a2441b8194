import TuttiTiming

/// What the engine knows about the coming period, for all voices.
struct PeriodTimes: BitwiseCopyable {
    var count: Int
    /// Nominal card seconds of the period, and frames per second.
    var duration: Double
    var sampleRate: Double
    /// When the period's first frame is heard; latency offset included.
    var heard: LocalInstant
    /// When the frame behind the period's last is heard.
    var heardEnd: LocalInstant
    /// The owner's, part of the two above.
    var latencyOffset: Nanoseconds
    /// Local seconds per nominal card second.
    var cardStretch: Double
    /// Whether frames can be placed in time; without it voices stay silent.
    var isPlaceable: Bool

    /// - Parameter first: number of the period's first frame since the card's restart.
    @_noLocks @_noAllocation
    init(first: Int64, count: Int, sampleRate: Int, card: CardClock, latencyOffset: Nanoseconds) {
        self.count = count
        self.sampleRate = Double(sampleRate)
        duration = Double(count) / Double(sampleRate)
        self.latencyOffset = latencyOffset
        heard = card.instant(ofFrame: Double(first)) + latencyOffset
        heardEnd = card.instant(ofFrame: Double(first) + Double(count)) + latencyOffset
        cardStretch = 1 / (1 + card.skew)
        isPlaceable = card.isUsable
    }
}
