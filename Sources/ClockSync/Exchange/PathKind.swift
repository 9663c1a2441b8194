import TuttiTiming

/// What the way between a room and its leader is made of, as far as round trips tell.
///
/// No interface says it: a room with a cable may have an access point behind the switch. A packet
/// that is held up makes a wire look like air for a while, so whoever asks gives what exchanges
/// take when nothing holds them up (the lower quartile, or the floor), never one round trip.
enum PathKind: Comparable, Sendable {
    /// Round trips that not even quiet air has. Packets that follow each other closely keep both
    /// ends awake and do not share one fate, and jitter is like noise.
    case wire
    /// Wires with much in between, or the quickest radio, which takes a millisecond for a packet.
    case short
    /// Radio, or far away: packets close behind each other wait in the same queues.
    case air

    /// The longest round trip of a ``wire``. With less, trains would not be sent on loaded wires,
    /// whose processors then sleep; with more, quiet air would be asked in trains.
    static let longestWire = Nanoseconds.microseconds(400)
    /// The longest round trip of a ``short`` path: what the quickest radio takes.
    static let longestShort = Nanoseconds.milliseconds(1)

    /// - Parameter roundTrip: of exchanges that nothing held up; `nil`: nobody knows yet.
    init(roundTrip: Nanoseconds?) {
        guard let roundTrip, roundTrip <= Self.longestShort else {
            self = .air
            return
        }
        self = roundTrip <= Self.longestWire ? .wire : .short
    }
}
