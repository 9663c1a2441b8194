import TuttiPlayout
import TuttiTiming

/// Where a card is: what it says of its ring and of what is heard, and how far that can be true.
///
/// A card says two things. *Room*: what has left its ring; it decides when the thread must write.
/// *Delay*: what has not been heard; it decides what is played. The delay is at least what is in
/// the ring; a bus, a DSP, a sound server or the air add to it, up to seconds.
///
/// Two kinds of nonsense come from sound servers. While their sink has not taken the stream up
/// (PulseAudio's null sink: two seconds), the delay counts down as if it played. And as PulseAudio
/// never lets time go back, such a stream's delay stays at 0 for as long again: only another stream
/// says something else. So nothing is believed before the ring has moved, and no delay that is
/// shorter than the ring by more than a pointer's steps explain.
struct CardPlace {
    /// Frames of the ring that are kept filled, and of the ring.
    let bufferFrames: Int
    let cardFrames: Int

    /// Since the last start.
    private(set) var hasMoved = false
    /// The ring as it was seen last: frames that had left it, and when.
    private(set) var taken: Int64 = 0
    private(set) var seenAt = LocalInstant(nanoseconds: 0)
    /// The ring is always empty: nothing paces it.
    private(set) var isUnpaced = false
    /// When the ring was seen first, and how long it took to move.
    private var begunAt: LocalInstant?
    private var stood = Nanoseconds.zero
    /// Before it moved, the delay had shrunk below what was in it.
    private var ranAhead = false
    private var implausible = 0
    /// No delay of this card is believed: only the ring is.
    var ignoresDelay = false

    /// Readings in a row that cannot be true, from which on no true one is waited for.
    private static let implausibleMax = 8
    /// A stream whose time ran ahead for so long is not waited for: for that span it would say nothing.
    private static let longestRun = Nanoseconds.milliseconds(150)

    init(bufferFrames: Int, cardFrames: Int) {
        self.bufferFrames = bufferFrames
        self.cardFrames = cardFrames
    }

    /// The card begins anew.
    mutating func restart() {
        self = CardPlace(bufferFrames: bufferFrames, cardFrames: cardFrames, ignoresDelay)
    }

    private init(bufferFrames: Int, cardFrames: Int, _ ignoresDelay: Bool) {
        self.init(bufferFrames: bufferFrames, cardFrames: cardFrames)
        self.ignoresDelay = ignoresDelay
    }

    /// How far the delay may be shorter than what is in the ring: the ring's pointer moves by
    /// periods, or by what a server takes at once.
    private var tolerance: Int { bufferFrames / 2 }

    /// Takes in one look.
    ///
    /// - Parameters:
    ///   - written: frames since the start.
    ///   - delay: frames that are not heard yet, as the card says.
    ///   - room: frames that can be written.
    /// - Returns: frames that are heard, and that are neither in the ring nor heard; `nil` where
    ///   that is not known.
    mutating func look(
        written: Int64, delay: Int, room: Int, at instant: LocalInstant
    ) -> (heard: Int64, ahead: Int)? {
        let fill = max(0, cardFrames - room)
        taken = max(0, written - Int64(fill))
        seenAt = instant
        isUnpaced = fill == 0
        guard hasMoved || taken > 0 else {
            if delay < fill - tolerance { ranAhead = true }
            begunAt = begunAt ?? instant
            return nil
        }
        if !hasMoved, let begunAt { stood = instant - begunAt }
        hasMoved = true
        if ignoresDelay { return (taken, 0) }
        if delay < fill - tolerance {
            implausible += 1
            return nil
        }
        implausible = 0
        ranAhead = false
        return (written - Int64(delay), max(0, delay - fill))
    }

    /// Whether another stream would say more: this one's time stands still.
    var needsRenewal: Bool {
        hasMoved && !ignoresDelay
            && (ranAhead && stood > Self.longestRun || implausible >= Self.implausibleMax)
    }

    /// When the ring will be down to `frames`, if the thread writes nothing more.
    func instant(whenDownTo frames: Int, written: Int64, sampleRate: Double) -> LocalInstant {
        seenAt + Nanoseconds(seconds: Double(written - taken - Int64(frames)) / sampleRate)
    }
}
