import Testing
import TuttiTiming

@testable import TuttiRoom

@Suite struct `Places of a port` {
    private func instant(_ seconds: Double) -> LocalInstant {
        LocalInstant(nanoseconds: Int64(seconds * 1e9))
    }

    private let small = ConnectionPlaces.Limits(
        strangers: 4, clients: 3, localClients: 1, rooms: 3, media: 2)

    private func settle(
        _ places: inout ConnectionPlaces, _ kind: ConnectionPlaces.Kind, isLocal: Bool = false,
        at seconds: Double
    ) -> (id: ConnectionPlaces.ID, verdict: ConnectionPlaces.Verdict) {
        let (id, _) = places.enter(isLocal: isLocal, at: instant(seconds))
        return (id, places.become(kind, id, at: instant(seconds)))
    }

    @Test func `there is always a place for a newcomer, and the stranger waiting longest goes`() {
        var places = ConnectionPlaces(small)
        let ids = (0..<4).map { places.enter(isLocal: false, at: instant(Double($0))).id }
        #expect(places.enter(isLocal: false, at: instant(4)).insteadOf == ids[0])
        #expect(places.count(of: .stranger) == 4)
        #expect(places.become(.client, ids[0], at: instant(5)) == .refused, "it was sent away")
    }

    @Test func `a machine that opens more than others takes its own places`() {
        var places = ConnectionPlaces(ConnectionPlaces.Limits(strangers: 64))
        let quiet = (0..<8).map {
            places.enter(isLocal: false, host: "192.0.2.\($0)", at: instant(0)).id
        }
        var greedy: [ConnectionPlaces.ID] = []
        for number in 0..<500 {
            let (id, gone) = places.enter(
                isLocal: false, host: "198.51.100.1", at: instant(Double(number)))
            if let gone { #expect(greedy.contains(gone)) }
            greedy.append(id)
        }
        #expect(places.count(of: .stranger) == quiet.count + places.limits.strangersOfOneHost)
        for id in quiet {
            #expect(places.become(.room, id, at: instant(600)) == .admitted(insteadOf: nil))
        }
    }

    /// On one network all IPv6 addresses may begin with the same 64 bits.
    @Test func `who has many addresses has the places of one machine, and a member its own`() {
        var places = ConnectionPlaces(ConnectionPlaces.Limits(strangers: 64))
        let member = places.enter(
            isLocal: false, host: "2001:db8::7", isKnown: true, at: instant(0)
        ).id
        for number in 0..<500 {
            let (_, gone) = places.enter(
                isLocal: false, host: "2001:db8::a:\(number)", at: instant(Double(number)))
            #expect(gone != member)
        }
        #expect(places.count(of: .stranger) == 1 + places.limits.strangersOfOneHost)
        // Nor do machines that are many send it away.
        for number in 0..<500 {
            let (_, gone) = places.enter(
                isLocal: false, host: "10.0.\(number / 250).\(number % 250)", at: instant(500))
            #expect(gone != member)
        }
        #expect(places.become(.room, member, at: instant(600)) == .admitted(insteadOf: nil))
    }

    @Test func `a candidate keeps its place while strangers and other candidates come`() {
        var places = ConnectionPlaces()
        func come(_ host: String) -> (id: ConnectionPlaces.ID, isIn: Bool) {
            let id = places.enter(isLocal: false, host: host, at: instant(0)).id
            let verdict = places.become(.candidate, id, at: instant(0))
            if verdict == .refused { places.leave(id) }
            return (id, verdict == .admitted(insteadOf: nil))
        }
        let first = come("192.0.2.1")
        #expect(first.isIn)
        let greedy = (0..<100).count { _ in come("192.0.2.2").isIn }
        #expect(greedy == places.limits.candidatesOfOneHost)
        let many = (0..<100).count { come("198.51.100.\($0)").isIn }
        #expect(many == places.limits.candidates - greedy - 1)
        for _ in 0..<1_000 {
            let (_, gone) = places.enter(isLocal: false, host: "203.0.113.1", at: instant(60))
            #expect(gone != first.id)
        }
        #expect(places.count(of: .candidate) == places.limits.candidates)
    }

    @Test func `one machine of the network cannot have all places of the readers`() {
        var places = ConnectionPlaces(ConnectionPlaces.Limits(media: 64))
        func come(_ host: String, isLocal: Bool = false) -> ConnectionPlaces.Verdict {
            let id = places.enter(isLocal: isLocal, host: host, at: instant(0)).id
            let verdict = places.become(.media, id, at: instant(0))
            places.note(id, isBusy: true, at: instant(0))
            return verdict
        }
        let greedy = (0..<100).map { _ in come("192.0.2.1") }
        #expect(greedy.count { $0 != .refused } == places.limits.mediaOfOneHost)
        #expect(come("192.0.2.2") == .admitted(insteadOf: nil))
        // Rooms of this machine are as many as there is place for.
        let own = (0..<places.limits.mediaOfOneHost + 1).map { _ in
            come("127.0.0.1", isLocal: true)
        }
        #expect(own.allSatisfy { $0 == .admitted(insteadOf: nil) })
    }

    @Test func `rooms that speak are never sent away, however many come`() {
        var places = ConnectionPlaces(small)
        let rooms = (0..<3).map { _ in settle(&places, .room, at: 0).id }
        for second in 1...30 {
            for room in rooms { places.note(room, isBusy: false, at: instant(Double(second))) }
            #expect(settle(&places, .room, at: Double(second)).verdict == .refused)
            for _ in 0..<8 { _ = settle(&places, .client, at: Double(second)) }
        }
        #expect(places.count(of: .room) == 3)
    }

    @Test func `a silent room makes room after ten seconds, not before`() {
        var places = ConnectionPlaces(small)
        let silent = settle(&places, .room, at: 0).id
        let others = (0..<2).map { _ in settle(&places, .room, at: 0).id }
        for room in others { places.note(room, isBusy: false, at: instant(9)) }
        #expect(settle(&places, .room, at: 9.9).verdict == .refused)
        #expect(settle(&places, .room, at: 10).verdict == .admitted(insteadOf: silent))
    }

    @Test func `of clients the one idle longest goes at once, one being answered does not`() {
        var places = ConnectionPlaces(small)
        let busy = settle(&places, .client, at: 0).id
        places.note(busy, isBusy: true, at: instant(0))
        let idle = settle(&places, .client, at: 1).id
        _ = settle(&places, .client, at: 2)
        #expect(settle(&places, .client, at: 3).verdict == .admitted(insteadOf: idle))
    }

    @Test func `a client of this machine finds a place where all others are busy`() {
        var places = ConnectionPlaces(small)
        for _ in 0..<3 {
            places.note(settle(&places, .client, at: 0).id, isBusy: true, at: instant(0))
        }
        #expect(settle(&places, .client, at: 1).verdict == .refused)
        #expect(
            settle(&places, .client, isLocal: true, at: 1).verdict == .admitted(insteadOf: nil))
    }

    @Test func `a transfer that moves stays, one that stands still makes room`() {
        var places = ConnectionPlaces(small)
        let moving = settle(&places, .media, at: 0).id
        let stuck = settle(&places, .media, at: 0).id
        places.note(stuck, isBusy: true, at: instant(0))
        places.note(moving, isBusy: true, at: instant(9))
        #expect(settle(&places, .media, at: 9).verdict == .refused)
        #expect(settle(&places, .media, at: 10).verdict == .admitted(insteadOf: stuck))
        #expect(settle(&places, .media, at: 11).verdict != .admitted(insteadOf: moving))
    }

    @Test func `places that were left can be taken again, and few files mean few places`() {
        var places = ConnectionPlaces(small)
        for _ in 0..<50 { places.leave(settle(&places, .room, at: 0).id) }
        #expect(places.count(of: .room) == 0)
        let limits = ConnectionPlaces.Limits()
        #expect(limits.fitting(1 << 20) == limits)
        let few = limits.fitting(100)
        #expect(few.total + few.media <= 110)
        #expect(limits.fitting(-50).rooms >= 2)
    }
}

@Suite struct `Work that is bounded` {
    @Test(.timeLimit(.minutes(1)))
    func `thousands of orders run a few at once, and the last of them is done`() async throws {
        let workers = Workers(4)
        let (most, running) = (Counter(), Counter())
        let isLastDone = Counter()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<2_000 {
                group.addTask {
                    try? await workers.run {
                        most.raise(to: running.add(1))
                        defer { running.add(-1) }
                        // Until it is told to give way.
                        try await Task.sleep(for: .milliseconds(number == 1_999 ? 1 : 200))
                        if number == 1_999 { isLastDone.add(1) }
                    }
                }
                if number == 1_998 { try? await Task.sleep(for: .milliseconds(50)) }
            }
        }
        #expect(most.value <= 4)
        #expect(isLastDone.value == 1)
    }

    @Test(.timeLimit(.minutes(1)))
    func `what waits or runs ends when its task is cancelled`() async throws {
        let workers = Workers(1, cancelsOldest: false)
        let all = Task {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        try await workers.run { try await Task.sleep(for: .seconds(600)) }
                    }
                }
                try await group.waitForAll()
            }
        }
        try await Task.sleep(for: .milliseconds(50))
        all.cancel()
        await #expect(throws: CancellationError.self) { try await all.value }
        let answer = try await workers.run { 7 }
        #expect(answer == 7, "the place was given back")
    }
}
