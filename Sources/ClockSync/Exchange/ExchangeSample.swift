public import TuttiTiming

/// Who took the time stamps: how close to the wire they were.
///
/// A stamp taken by the program instead of the kernel is early when sending and late when
/// receiving. Both only lengthen the measured delay, which the estimator expects anyway, so
/// classes may be mixed; the class says how much jitter to expect (kernel 1 µs, program 40 µs p99).
public enum StampClass: UInt8, Comparable, Sendable, CustomStringConvertible {
    /// The program read its clock around the system call.
    case program = 0
    /// The kernel stamped what arrived, the program what was sent.
    case kernelReceive = 1
    /// The kernel stamped both.
    case kernel = 2

    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }

    public var description: String {
        switch self {
        case .program: "program"
        case .kernelReceive: "kernel receive"
        case .kernel: "kernel"
        }
    }

    /// The class of a pair of stamps.
    public init(receive isKernelReceive: Bool, transmit isKernelTransmit: Bool) {
        self = !isKernelReceive ? .program : isKernelTransmit ? .kernel : .kernelReceive
    }
}

/// One exchange of two packets: four readings of two clocks.
public struct ExchangeSample: Equatable, Sendable {
    /// The request left here.
    public var t1: LocalInstant
    /// The request reached the leader.
    public var t2: GroupInstant
    /// The reply left the leader.
    public var t3: GroupInstant
    /// The reply arrived here.
    public var t4: LocalInstant
    /// The weaker of the two hosts' classes.
    public var stamps: StampClass

    /// One exchange: the four stamps in the order in which they were taken, and who took them.
    public init(
        t1: LocalInstant, t2: GroupInstant, t3: GroupInstant, t4: LocalInstant, stamps: StampClass
    ) {
        self.t1 = t1
        self.t2 = t2
        self.t3 = t3
        self.t4 = t4
        self.stamps = stamps
    }

    /// Time spent on the way, both directions; the leader's time to answer is not in it.
    public var roundTrip: Nanoseconds { (t4 - t1) - (t3 - t2) }
}

extension ExchangeSample {
    /// Whether one leader's clock can lie in both samples' intervals.
    func agrees(with other: ExchangeSample) -> Bool {
        let outward =
            (other.t2.nanoseconds &- other.t1.nanoseconds) &- (t2.nanoseconds &- t1.nanoseconds)
        let homeward =
            (other.t3.nanoseconds &- other.t4.nanoseconds) &- (t3.nanoseconds &- t4.nanoseconds)
        let apart = (Double(outward) + Double(homeward)) / 2 * 1e-9
        let reach = (roundTrip.seconds + other.roundTrip.seconds) / 2
        return apart.magnitude <= reach + 50e-6 + 200e-6 * (other.t1 - t1).seconds.magnitude
    }
}
