import Glibc
public import TuttiClockSync
public import TuttiTiming
import TuttiWire

/// What time stamps packets to one host really get, and how much they scatter.
public struct ExchangeFacts: Equatable, Sendable {
    /// The host that was asked, as it was named.
    public var peer: String
    /// Requests sent.
    public var sent = 0
    /// Replies that were ours.
    public var answered = 0
    /// What this machine's stack gave, both ways.
    public var stamps = StampClass.program
    /// What the other machine says it has; `nil` when nobody answered.
    public var peerStamps: StampClass?
    /// Stamp to stamp, both ways without the time the other needed: smallest, middle, 90 of 100.
    public var roundTripFloor = Nanoseconds.zero
    /// Half of the exchanges were not slower.
    public var roundTripMedian = Nanoseconds.zero
    /// 90 of 100 exchanges were not slower.
    public var roundTripLate = Nanoseconds.zero

    /// Of a host that nobody has asked yet.
    public init(peer: String) { self.peer = peer }

    /// How much the stamps scatter: most exchanges are within this of the best.
    public var jitter: Nanoseconds { roundTripLate - roundTripFloor }

    static let spacing = Nanoseconds.milliseconds(10)
    static let patience = Nanoseconds.milliseconds(300)

    /// Measures the stack itself: a time service of our own, asked over the loopback interface.
    public static func loopback(count: Int = 50) throws(HostError) -> ExchangeFacts {
        let service = try TimeService.start(port: 0, priority: 0) {
            SharedClock(
                map: ClockMap(
                    from: LocalInstant(nanoseconds: 0), to: GroupInstant(nanoseconds: 0)),
                uncertainty: .zero, estimatedAt: HostClock.now(), epoch: 1, quality: .locked)
        }
        defer { service.stop() }
        return try measure(host: "127.0.0.1", port: service.port, count: count)
    }

    /// Asks a leader for the time, every 10 ms.
    ///
    /// - Parameter host: a name is looked up, which may take seconds.
    /// - Throws: when there is no such host, or no way to it.
    public static func measure(
        host: String, port: Int, count: Int = 50
    ) throws(HostError) -> ExchangeFacts {
        try measure(host: host, port: port, count: count, tags: nil)
    }

    /// The same of a leader that answers members alone.
    package static func measure(
        host: String, port: Int, count: Int = 50, tags: SharedRoomTags?
    ) throws(HostError) -> ExchangeFacts {
        guard let address = try SocketAddress.resolve(host: host, port: port).first else {
            throw HostError("getaddrinfo", code: EAI_NONAME, subject: "\(host):\(port)")
        }
        let socket = try TimeSocket(connectedTo: address)
        var run = Run(socket: socket, tags: tags, peer: "\(address)")
        let start = HostClock.now()
        for number in 0..<count {
            try run.ask(UInt32(number))
            let next = start + spacing * Int64(number + 1)
            while HostClock.now() < next {
                run.listen()
                HostClock.sleep(until: min(next, HostClock.now() + .milliseconds(1)))
            }
        }
        let end = HostClock.now() + patience
        while run.facts.answered < run.facts.sent, HostClock.now() < end {
            run.listen()
            HostClock.sleep(until: HostClock.now() + .milliseconds(1))
        }
        return run.result()
    }

    private struct Run {
        let socket: TimeSocket
        let tags: SharedRoomTags?
        var facts: ExchangeFacts
        var exchanges: [UInt32: Exchange] = [:]
        var receiveStamps = 0
        var transmitStamps = 0

        struct Exchange {
            var asked: LocalInstant
            var t1: LocalInstant
            var t2: GroupInstant?
            var t3: GroupInstant?
            var t4: LocalInstant?
        }

        init(socket: TimeSocket, tags: SharedRoomTags?, peer: String) {
            self.socket = socket
            self.tags = tags
            facts = ExchangeFacts(peer: peer)
        }

        mutating func ask(_ sequence: UInt32) throws(HostError) {
            let now = HostClock.now()
            exchanges[sequence] = Exchange(asked: now, t1: now)
            try socket.send(
                .request(TimeRequest(sequence: sequence, t1: now, stamps: .kernel)), tags)
            facts.sent += 1
        }

        mutating func listen() {
            while let stamp = socket.receiveTransmitStamp() {
                exchanges[stamp.packet]?.t1 = stamp.at
                transmitStamps += 1
            }
            // A refusal by the other host comes as an error here, and then there is no answer.
            while let arrival = try? socket.receive(tags) {
                guard case .reply(let reply)? = arrival.packet,
                    let asked = exchanges[reply.sequence], asked.t4 == nil,
                    asked.asked == reply.t1
                else { continue }
                exchanges[reply.sequence]?.t2 = reply.t2
                exchanges[reply.sequence]?.t3 = reply.t3
                exchanges[reply.sequence]?.t4 = arrival.at
                // Better than what the program knew when it sent the reply before.
                if let previous = reply.previous {
                    exchanges[previous.sequence]?.t3 = previous.t3
                }
                facts.answered += 1
                facts.peerStamps = reply.stamps
                receiveStamps += arrival.isKernelStamp ? 1 : 0
            }
        }

        /// - Returns: with the figures of all complete exchanges.
        func result() -> ExchangeFacts {
            var facts = facts
            // One or two may be lost to a preempted conversion; then the class is still this one.
            facts.stamps = StampClass(
                receive: facts.answered > 0 && receiveStamps * 2 > facts.answered,
                transmit: transmitStamps * 2 > facts.sent)
            let trips = exchanges.values.compactMap { exchange -> Nanoseconds? in
                guard let t2 = exchange.t2, let t3 = exchange.t3, let t4 = exchange.t4 else {
                    return nil
                }
                return (t4 - exchange.t1) - (t3 - t2)
            }.sorted()
            if !trips.isEmpty {
                facts.roundTripFloor = trips[0]
                facts.roundTripMedian = trips[trips.count / 2]
                facts.roundTripLate = trips[min(trips.count - 1, trips.count * 9 / 10)]
            }
            return facts
        }
    }
}
