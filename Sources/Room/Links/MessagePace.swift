import NIOCore
import Synchronization

/// How many messages of one link are read: a token bucket (as ITU-T I.371 has it), so that a burst
/// passes at once and a flood goes on at a rate that a room can need.
///
/// What is over it is not dropped: the bytes wait, the connection is not read meanwhile, and TCP
/// slows down the other end.
struct MessagePace: Sendable {
    /// Messages that may come at once.
    var burst: Double
    /// Messages a second in the long run.
    var perSecond: Double

    /// What a leader reads of a room or a client. A room answers once for each item, and says one
    /// message a second otherwise; a person gives a few commands. Items may be as short as 5 ms.
    static let toLeader = MessagePace(burst: 64, perSecond: 250)
    /// What others read of a leader: it has a house of rooms, and sliders are dragged.
    static let fromLeader = MessagePace(burst: 2_000, perSecond: 500)
    /// Messages a second of all links together that are held back.
    static let together = 500.0
    /// However many flood, each is heard this often a second.
    static let leastPerSecond = 2.0

    private var allowance: Double
    private var refilledAt: NIODeadline?

    init(burst: Double, perSecond: Double) {
        self.burst = burst
        self.perSecond = perSecond
        allowance = burst
    }

    /// Messages that may be read now.
    ///
    /// - Parameter crowd: links that are held back, this one included.
    mutating func allowed(at now: NIODeadline, crowd: Int) -> Int {
        let rate = max(Self.leastPerSecond, min(perSecond, Self.together / Double(max(1, crowd))))
        let passed = refilledAt.map { Double((now - $0).nanoseconds) * 1e-9 } ?? 0
        refilledAt = now
        allowance = min(burst, allowance + max(0, passed) * rate)
        return Int(allowance)
    }

    mutating func spend(_ count: Int) { allowance -= Double(count) }
}

/// How many links of a port are held back at the moment.
final class Crowd: Sendable {
    private let links = Atomic<Int>(0)
    var count: Int { links.load(ordering: .relaxed) }
    func grow() { links.add(1, ordering: .relaxed) }
    func shrink() { links.subtract(1, ordering: .relaxed) }
}
