import TuttiTiming
import TuttiTrust
import TuttiWire

extension Benchmark {
    /// What a tag costs a leader for each exchange: the request is opened behind the stamp of its
    /// arrival, the reply is sealed between t3 and its departure.
    static var tagBenchmarks: [Benchmark] {
        [
            Benchmark(
                name: "tags/seal-reply", operation: "a time packet of 96 bytes, written and sealed",
                unit: "packet"
            ) {
                var leader = try leader()
                guard leader.grant(to: 1) != nil else { throw CommandError("no number") }
                let asker = LeaderTags.Asker(number: SenderNumber(1), term: leader.term)
                let now = LocalInstant(nanoseconds: 0)
                return { count in
                    var sum: UInt64 = 0
                    for i in 0..<count {
                        let packet = reply(UInt32(truncatingIfNeeded: i)).encoded
                        let sealed = leader.seal(reply: packet, to: asker, at: now)
                        sum &+= UInt64(sealed?.last ?? 0)
                    }
                    return sum
                }
            },
            Benchmark(
                name: "tags/open-request",
                operation: "a time packet of 96 bytes, sealed and opened", unit: "packet"
            ) {
                var leader = try leader()
                guard let grant = leader.grant(to: 1) else { throw CommandError("no number") }
                var room = try RoomTags(grant)
                let now = LocalInstant(nanoseconds: 0)
                let packet = request(1).encoded
                return { count in
                    var sum: UInt64 = 0
                    for _ in 0..<count {
                        let sealed = room.seal(request: packet) ?? []
                        if let opened = leader.open(request: sealed, at: now) {
                            sum &+= UInt64(opened.payload.count)
                        }
                    }
                    return sum
                }
            },
        ]
    }

    private static func leader() throws -> LeaderTags {
        LeaderTags(try GroupKey(term: 1, secret: Array(1...32)))
    }
}
