import TuttiClockSync
import TuttiTiming
import TuttiWire

extension Harness {
    static let clocks = [clockLeader, clockFollower]

    /// A leader that is asked by peers of all kinds; each byte of a step that is missing is 0.
    private static let clockLeader = Harness(
        name: "clock-leader",
        seeds: { [ClockScript.sane(steps: 12), ClockScript.wild] },
        check: .plain { bytes in
            var script = InputBytes(bytes)
            var now = LocalInstant(nanoseconds: 1_000_000_000)
            var leader = ClockLeader<UInt8, UInt8>(start: now, broadcasts: script.byte() & 1 == 0)
            var (asked, answered) = (0, 0)
            while !script.isEmpty {
                now += Nanoseconds(Int64(script.byte()) << Int64(script.number(below: 24)))
                let peer = script.byte() & 3
                let request = script.request()
                asked += 1
                let instant = now - Nanoseconds(Int64(script.byte()) * 1_000)
                let receipt = leader.receive(
                    request,
                    ClockLeader.Arrival(
                        peer: peer, route: peer, instant: instant, isKernelStamp: peer < 2,
                        medium: Int(peer & 1)), epoch: 3, at: now)
                // The longest hold, and a queue of answers to the same peer.
                try expect(
                    receipt.due.map { $0 - now <= .milliseconds(200) } ?? true,
                    "an answer is due at \(String(describing: receipt.due)), now is \(now)")
                let clock = script.clock(at: now)
                while let answer = leader.advance(
                    to: now, packet: UInt32(answered), clock: clock)
                {
                    try expectEqual(
                        answer.reply.sequence, answer.request.sequence, "what it answers")
                    try expectEqual(answer.reply.t1, answer.request.t1, "a request's own time")
                    let packet = TimePacket.reply(answer.reply)
                    try expect(
                        TimePacket(packet.encoded.span.bytes) != nil, "\(packet) cannot be read")
                    if script.byte() & 1 == 0 {
                        leader.transmitted(packet: UInt32(answered), at: now)
                    }
                    answered += 1
                }
                _ = leader.mayLie(at: now)
            }
            try expect(answered <= asked, "\(answered) answers to \(asked) requests")
        })

    /// A room whose leader says anything.
    private static let clockFollower = Harness(
        name: "clock-follower",
        seeds: { [ClockScript.sane(steps: 40), ClockScript.wild, ClockScript.contradicting] },
        check: .plain { bytes in
            var script = InputBytes(bytes)
            var now = LocalInstant(nanoseconds: 1_000_000_000)
            var follower = ClockFollower(start: now, seed: UInt64(script.byte()))
            follower.setReferenceRefusal(script.byte() & 1 == 0 ? nil : .off)
            var sent: [TimeRequest] = []
            func take(_ effects: [ClockFollower.Effect]) throws {
                for effect in effects {
                    switch effect {
                    case .send(let request): sent.append(request)
                    case .publish(let clock): try ClockScript.check(clock, now)
                    }
                }
            }
            while !script.isEmpty {
                now += Nanoseconds(Int64(script.byte()) << Int64(script.number(below: 24)))
                switch script.number(below: 8) {
                case 0...2: try take(follower.advance(to: max(now, follower.nextDeadline)))
                case 3...5:
                    guard let request = sent.last else { continue }
                    try take(
                        follower.receive(
                            script.reply(to: request), t4: now, isKernelStamp: true, at: now))
                case 6:
                    guard let request = sent.last else { continue }
                    try take(
                        follower.transmitted(
                            sequence: request.sequence,
                            at: request.t1 + Nanoseconds(script.wide()), now: now))
                default:
                    follower.receive(
                        ReferenceBeacon(epoch: 3, number: UInt32(script.byte())), at: now)
                }
                if let clock = follower.sharedClock(at: now) {
                    try ClockScript.check(clock, now)
                }
                sent.removeFirst(max(0, sent.count - 8))
            }
            _ = follower.statistics(at: now)
            _ = follower.storedSkew
        })
}

/// Steps of an exchange of time, as bytes.
enum ClockScript {
    /// Packets of every kind, with values at the ends of their fields.
    static var packets: [TimePacket] {
        [.min, -1, 0, 0x0123_4567_89AB_CDEF, .max].flatMap { (value: Int64) -> [TimePacket] in
            let group = GroupInstant(nanoseconds: value)
            let bits = UInt32(truncatingIfNeeded: value)
            let report = ReferenceReport(
                epoch: 3, reading: group, skewTrillionths: Int32(truncatingIfNeeded: value),
                expectedError: .microseconds(40), newest: bits, ages: SIMD8(repeating: bits))
            let request = TimeRequest(
                sequence: bits, t1: LocalInstant(nanoseconds: value), stamps: .kernel,
                pause: .milliseconds(250), isPrompt: value < 0, reference: report)
            let reply = TimeReply(
                sequence: bits, epoch: 3, t1: request.t1, t2: group, t3: group, stamps: .program,
                previous: .init(sequence: ~bits, t3: group),
                reference: ReferenceVerdict(
                    state: .off, rooms: 2, correction: .microseconds(-9), share: 0.5))
            return [.request(request), .reply(reply)]
        }
    }

    /// As a script of the two harnesses reads it: small numbers.
    static func sane(steps: Int) -> [UInt8] {
        [0, 0]
            + (0..<steps).flatMap { step -> [UInt8] in
                [
                    UInt8(step % 7 + 1), 20, UInt8(step % 8), 2, 3, 232, 2, 0, 100, 1, 1, 1, 0, 0,
                    0, 0,
                ]
            }
    }

    /// Exchanges that contradict each other, as libFuzzer put them together: a bound was negative.
    static var contradicting: [UInt8] {
        let digits = Array(
            ("ffffffff000714050203e8006401010100000000011406140402fffffffffffffffffffffffff7ff"
                + "ff070203e802006400000002010100000000031403e80200740100000414020203e8006401010100"
                + "0000ffffffffffffff3f000514000614040203e80200010101000000000714050203020064010101"
                + "000000000114060203e8020402ffffe80200640101010014000203e8020064000002030074010203"
                + "e8020064010101000000ffffffffffffff3f000514030203e8020001010100000000061404020001"
                + "0101000000000714050200010101000000000114060203e80000060403e802006401010100010000"
                + "0064010101000000000000").utf8)
        return stride(from: 0, to: digits.count, by: 2).compactMap {
            UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)
        }
    }

    static var wild: [UInt8] { (0..<200).map { UInt8(truncatingIfNeeded: $0 * 37) } }

    static func check(_ clock: SharedClock, _ now: LocalInstant) throws {
        try expect(clock.uncertainty >= .zero, "a negative bound: \(clock)")
        // A straight line has an inverse, or nobody can ask when an instant is.
        let there = clock.map(now)
        let back = clock.map.inverted(there) - now
        try expect(back.magnitude <= .milliseconds(1), "there and back is \(back): \(clock)")
    }
}

extension InputBytes {
    fileprivate mutating func request() -> TimeRequest {
        let flags = byte()
        let report = ReferenceReport(
            epoch: 3, reading: GroupInstant(nanoseconds: wide()),
            skewTrillionths: Int32(truncatingIfNeeded: wide()),
            expectedError: Nanoseconds(Int64(UInt32(truncatingIfNeeded: wide()))),
            newest: UInt32(byte()), ages: SIMD8(repeating: UInt32(truncatingIfNeeded: wide())))
        return TimeRequest(
            sequence: UInt32(truncatingIfNeeded: wide()), t1: LocalInstant(nanoseconds: wide()),
            stamps: StampClass(rawValue: flags & 3) ?? .program,
            pause: .microseconds(Int64(UInt32(truncatingIfNeeded: wide()))),
            isPrompt: flags & 4 != 0, reference: flags & 8 == 0 ? report : nil)
    }

    fileprivate mutating func reply(to request: TimeRequest) -> TimeReply {
        let flags = byte()
        // By a clock that is ahead by a second, and by what the script says.
        let base = GroupInstant(nanoseconds: request.t1.nanoseconds) + .seconds(1)
        let t2 = base + Nanoseconds(wide())
        let t3 = t2 + Nanoseconds(wide())
        let verdict = ReferenceVerdict(
            state: ReferenceState(rawValue: flags & 7) ?? .off, rooms: number(below: 5),
            correction: Nanoseconds(Int64(Int32(truncatingIfNeeded: wide()))),
            share: Double(byte()) / 255, noise: Nanoseconds(Int64(byte()) * 1_000),
            spread: Nanoseconds(Int64(byte()) * 1_000))
        return TimeReply(
            sequence: request.sequence, epoch: flags & 8 == 0 ? 3 : UInt64(byte()),
            t1: request.t1, t2: t2, t3: t3, stamps: StampClass(rawValue: flags >> 6) ?? .program,
            previous: flags & 16 == 0
                ? nil : .init(sequence: request.sequence &- 1, t3: t3 - Nanoseconds(wide())),
            reference: flags & 32 == 0 ? nil : verdict)
    }

    fileprivate mutating func clock(at now: LocalInstant) -> SharedClock {
        SharedClock(
            map: ClockMap(from: now, to: GroupInstant(nanoseconds: wide())), uncertainty: .zero,
            estimatedAt: now, epoch: 3,
            quality: byte() & 7 == 7 ? .none : .locked)
    }
}
