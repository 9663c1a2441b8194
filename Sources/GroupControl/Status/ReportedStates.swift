/// A state that a room reports and a person reads. It crosses the network as a number and stands in
/// JSON as its word (`rawValue`), which programs of users compare: a word is never changed.
///
/// A number or word of a newer version becomes ``unknown``, so that one new state does not make a
/// whole status unreadable.
public protocol ReportedState: RawRepresentable<String>, CaseIterable, Codable, Sendable {
    /// What stands for a state that this version does not know.
    static var unknown: Self { get }
}

extension ReportedState {
    public init(from decoder: any Decoder) throws {
        let word = try decoder.singleValueContainer().decode(String.self)
        self = Self(rawValue: word) ?? .unknown
    }
}

/// Who takes the time stamps of a clock's packets.
public enum StampKind: String, ReportedState {
    /// No packet has been exchanged yet.
    case absent = ""
    /// Nobody: the clock is the group's own.
    case own
    /// The program reads its clock around the system call.
    case program
    /// The kernel stamps what arrives, the program what is sent.
    case kernelReceive = "kernel receive"
    /// The kernel stamps both.
    case kernel
    case unknown
}

/// How a card tells its position.
public enum CardKind: String, ReportedState {
    /// There is no card, or it has not been read for long enough.
    case undecided = ""
    /// Frame by frame.
    case fine
    /// At the interrupt of a period only.
    case batch
    /// In larger steps, or irregularly.
    case coarse
    /// Not at all.
    case unreadable
    case unknown
}

/// How well a room knows the group's clock.
public enum ClockState: String, ReportedState {
    /// There is no estimate yet.
    case unmeasured = "none"
    /// Measured, not yet well enough to play by.
    case acquiring
    /// Measured and settled.
    case locked
    /// Was locked and runs on an old estimate: the leader is silent.
    case holdover
    case unknown
}

/// Whether reference broadcasts correct a room's clock, or why not.
public enum BroadcastState: String, ReportedState {
    /// There is no leader to hear: the room leads, or has exchanged nothing yet.
    case absent = ""
    /// Switched off by the settings of the room or of its leader.
    case off
    /// The interface to the leader takes no multicast.
    case noMulticast = "no multicast"
    /// No other room asks for them on this medium.
    case alone
    /// Asked for, and none arrives.
    case notHeard = "not heard"
    /// Heard, and not yet often enough to compare.
    case gathering
    /// Other rooms hear them at other times.
    case scattered
    /// The rooms hear them together but for an offset that stays.
    case standingOffset = "standing offset"
    case inUse = "in use"
    /// Exchanges with the leader are sure enough by themselves, as on wires.
    case unneeded = "not needed"
    case unknown
}
