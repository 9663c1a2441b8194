import Testing
import TuttiChance
import TuttiTiming

@testable import TuttiClockSync

struct RequestScheduleTests {
    /// Ten seconds of a settled room's requests.
    ///
    /// - Parameter stall: what every third exchange takes longer.
    private func slots(
        roundTrip usual: Nanoseconds, expectedError: Nanoseconds, stall: Nanoseconds = .zero
    ) -> [RequestSchedule.Slot] {
        let prospect = RequestSchedule.Prospect(
            roundTrip: usual, expectedError: expectedError, skewDeviation: 1e-7)
        var exchanges = 0
        let start = LocalInstant(nanoseconds: 5_000)
        var schedule = RequestSchedule(start: start, random: SplitMix64(seed: 7))
        var slots: [RequestSchedule.Slot] = []
        while schedule.next < start + RequestSchedule.earlySpan + .seconds(15) {
            let now = schedule.next
            let slot = schedule.depart(at: now, prospect)
            exchanges += 1
            let roundTrip = exchanges.isMultiple(of: 3) ? usual + stall : usual
            schedule.answered(
                roundTrip: roundTrip, isNewest: true, at: now + roundTrip)
            if now > start + RequestSchedule.earlySpan + .seconds(5) { slots.append(slot) }
        }
        return slots
    }

    @Test(arguments: [Nanoseconds(300), Nanoseconds(40_000)])
    func `on a path of wires steady requests come in trains, as often on average as asked`(
        expectedError: Nanoseconds
    ) throws {
        let slots = slots(roundTrip: .microseconds(300), expectedError: expectedError)
        let isCalm = expectedError < RequestSchedule.contentment
        let spacing = isCalm ? RequestSchedule.calmSpacing : RequestSchedule.anxiousWireSpacing
        let expected = 10 / spacing.seconds
        let length = RequestSchedule.trainLength(at: spacing, isWire: true)
        #expect(length == (isCalm ? 4 : 16))
        let train = Double(length)
        // A pause is uniform within ±20 % of a train's length; four standard deviations of their
        // sum, a train cut off at the end, and the short pauses, which come on top.
        let scatter = 4 * 0.116 * (expected / train).squareRoot() * train + train
        #expect(spacing.seconds * train < 1, "a jump is found within a second")
        let added = 10 / (spacing.seconds + RequestSchedule.closestSpacing.seconds)
        #expect(Double(slots.count) < expected + scatter)
        #expect(Double(slots.count) > added - scatter)
        let shortest = Nanoseconds(spacing.count * Int64(length) * 4 / 5)
        let first = try #require(slots.firstIndex { $0.pause > .milliseconds(20) }) + 1
        for (index, slot) in slots.dropFirst(first).enumerated() {
            let place = index % length
            #expect(slot.isWaking == (place < RequestSchedule.wakingLength), "request \(index)")
            let isLast = place == length - 1
            #expect(isLast || slot.pause == RequestSchedule.closestSpacing, "request \(index)")
            #expect(slot.isPrompt, "request \(index)")
            #expect(!isLast || slot.pause >= shortest, "request \(index)")
        }
    }

    @Test func `a machine that stalls does not make a wire a long path`() {
        let slots = slots(
            roundTrip: .microseconds(600), expectedError: .microseconds(4),
            stall: .milliseconds(6))
        #expect(slots.allSatisfy { !$0.isPrompt }, "0.6 ms may be a radio's")
        let trains = slots.count { $0.pause > .milliseconds(20) }
        #expect(trains * RequestSchedule.longestTrain <= slots.count + RequestSchedule.longestTrain)
        #expect(trains > 10)
    }

    @Test func `on a path of milliseconds they stay apart`() {
        let slots = slots(roundTrip: .milliseconds(3), expectedError: .microseconds(40))
        #expect(slots.count > 200)
        #expect(slots.allSatisfy { !$0.isWaking })
        #expect(slots.allSatisfy { $0.pause >= .milliseconds(20) })
    }

    @Test(arguments: [100, 140])
    func `on a path that queues they keep half of a round trip`(milliseconds: Int64) {
        let roundTrip = Nanoseconds.milliseconds(milliseconds)
        let slots = slots(roundTrip: roundTrip, expectedError: .milliseconds(1))
        // ± 20 %, and the quartile steps around what it follows: by 1/32 up and 3/32 down.
        let half = Double(roundTrip.count) / 2
        let (least, most) = (half * 0.8 * (1 - 3.0 / 32), half * 1.2 * (1 + 1.0 / 32))
        #expect(slots.allSatisfy { Double($0.pause.count) >= least - 1 })
        #expect(slots.allSatisfy { Double($0.pause.count) <= most + 1 })
    }

    @Test(arguments: [1_000, 4_000])
    func `who joins asks as closely as the path allows as soon as somebody answers`(
        microseconds: Int64
    ) {
        let roundTrip = Nanoseconds.microseconds(microseconds)
        let prospect = RequestSchedule.Prospect(
            roundTrip: roundTrip, expectedError: .microseconds(40), skewDeviation: 5e-5)
        let start = LocalInstant(nanoseconds: 5_000)
        var schedule = RequestSchedule(start: start, random: SplitMix64(seed: 7))
        for _ in 0..<3 {
            #expect(schedule.depart(at: schedule.next, prospect).pause == .milliseconds(10))
        }
        let answeredAt = schedule.next - .milliseconds(10) + roundTrip
        schedule.answered(roundTrip: roundTrip, isNewest: true, at: answeredAt)
        #expect(schedule.next <= answeredAt + .milliseconds(1))
        let first = schedule.next
        var count = 0
        while schedule.next < first + .milliseconds(100) {
            let slot = schedule.depart(at: schedule.next, prospect)
            #expect(!slot.isWaking)
            count += 1
        }
        let closest = max(1, Double(microseconds) / 2_000)
        let expected = Int((100 / closest).rounded(.up))
        #expect(count == expected, "two a round trip, or one a millisecond")
    }

    /// A room on a wire with a line that is not good yet, one exchange old.
    private func joining(
        roundTrip: Nanoseconds
    ) -> (schedule: RequestSchedule, prospect: RequestSchedule.Prospect) {
        let start = LocalInstant(nanoseconds: 5_000)
        var schedule = RequestSchedule(start: start, random: SplitMix64(seed: 7))
        let prospect = RequestSchedule.Prospect(
            roundTrip: roundTrip, expectedError: .microseconds(40), skewDeviation: 5e-5)
        _ = schedule.depart(at: start, prospect)
        schedule.answered(roundTrip: roundTrip, isNewest: true, at: start + roundTrip)
        return (schedule, prospect)
    }

    @Test func `in a train the next request leaves with the answer, and soon without one`() {
        let roundTrip = Nanoseconds.microseconds(300)
        var (schedule, prospect) = joining(roundTrip: roundTrip)
        var now = schedule.next
        var isAwake = false
        for number in 1..<RequestSchedule.burstLength {
            let slot = schedule.depart(at: now, prospect)
            #expect(slot.isPrompt)
            #expect(slot.isWaking == (number <= 2 || !isAwake), "request \(number)")
            let soon = now + RequestSchedule.closestSpacing
            #expect(schedule.next == soon, "request \(number) is not answered")
            schedule.answered(roundTrip: roundTrip, isNewest: false, at: now + .microseconds(100))
            #expect(schedule.next == soon, "a late answer, to the one before \(number)")
            if number.isMultiple(of: 5) {
                now = soon
                isAwake = false
                continue
            }
            schedule.answered(roundTrip: roundTrip, isNewest: true, at: now + roundTrip)
            #expect(schedule.next == now + roundTrip, "\(number)")
            now += roundTrip
            isAwake = true
        }
        let last = schedule.depart(at: now, prospect)
        #expect(last.isPrompt && last.pause > .milliseconds(6))
        schedule.answered(roundTrip: roundTrip, isNewest: true, at: now + roundTrip)
        #expect(schedule.next == now + last.pause, "behind a train there is a pause")
    }

    @Test func `who joins on a wire asks in trains, a thousand times a second`() {
        let roundTrip = Nanoseconds.microseconds(300)
        var (schedule, prospect) = joining(roundTrip: roundTrip)
        let first = schedule.next
        var (count, waking) = (0, 0)
        while schedule.next < first + .milliseconds(200) {
            let now = schedule.next
            if schedule.depart(at: now, prospect).isWaking { waking += 1 }
            schedule.answered(roundTrip: roundTrip, isNewest: true, at: now + roundTrip)
            count += 1
        }
        // 16 × 0.3 ms, then 8 ms ± 20 %; the last train may be cut off.
        let length = RequestSchedule.burstLength
        let fewest = 200 / (15 * 0.3 + 9.6) - 1
        let most = 200 / (15 * 0.3 + 6.4) + 1
        let trains = Double(count) / Double(length)
        #expect((fewest...most).contains(trains), "\(count) requests")
        #expect(waking <= (count + length - 1) / length * RequestSchedule.wakingLength)
        #expect(waking > 2 * RequestSchedule.wakingLength)
    }

    @Test func `an idle room on a wire asks in short trains, three times a second on average`() {
        let roundTrip = Nanoseconds.microseconds(300)
        var (schedule, prospect) = joining(roundTrip: roundTrip)
        schedule.setIdle(true, at: schedule.next)
        prospect.expectedError = .microseconds(1)
        prospect.skewDeviation = 1e-7
        let start = schedule.next + RequestSchedule.joinSpan + .seconds(3)
        var (count, useful, longest) = (0, 0, Nanoseconds.zero)
        while schedule.next < start + .seconds(60) {
            let now = schedule.next
            let slot = schedule.depart(at: now, prospect)
            schedule.answered(roundTrip: roundTrip, isNewest: true, at: now + roundTrip)
            guard now >= start else { continue }
            count += 1
            if !slot.isWaking { useful += 1 }
            longest = max(longest, schedule.next - now)
        }
        #expect((144...216).contains(count), "180 ± 20 %: \(count)")
        #expect(useful * 3 >= count - 2, "one in three says something of the clock")
        #expect(longest + longest < ClockEstimator.silence, "one train may be lost")
    }

    @Test func `on a slow path who joins asks no less often than in any burst`() {
        let prospect = RequestSchedule.Prospect(
            roundTrip: .milliseconds(100), expectedError: .milliseconds(40), skewDeviation: 5e-5)
        var schedule = RequestSchedule(
            start: LocalInstant(nanoseconds: 5_000), random: SplitMix64(seed: 7))
        _ = schedule.depart(at: schedule.next, prospect)
        schedule.answered(
            roundTrip: .milliseconds(100), isNewest: true, at: schedule.next)
        for _ in 0..<10 {
            #expect(schedule.depart(at: schedule.next, prospect).pause <= .milliseconds(10))
        }
    }

    @Test func `a burst after a pause wakes the radio first`() {
        let prospect = RequestSchedule.Prospect(
            roundTrip: .milliseconds(3), expectedError: .microseconds(1), skewDeviation: 1e-7)
        let start = LocalInstant(nanoseconds: 5_000)
        var schedule = RequestSchedule(start: start, random: SplitMix64(seed: 7))
        while schedule.next < start + .seconds(8) {
            let now = schedule.next
            _ = schedule.depart(at: now, prospect)
            schedule.answered(
                roundTrip: .milliseconds(3), isNewest: true, at: now + .milliseconds(3))
        }
        let now = schedule.next - .milliseconds(5)
        schedule.burst(at: now)
        #expect(schedule.next == now)
        let first = schedule.depart(at: now, prospect)
        #expect(first.isWaking && first.pause == RequestSchedule.burstSpacing)
        let second = schedule.depart(at: schedule.next, prospect)
        #expect(second.isWaking && second.pause == RequestSchedule.wakePause)
        let third = schedule.depart(at: schedule.next, prospect)
        #expect(!third.isWaking && third.pause == RequestSchedule.burstSpacing)
    }

    /// A line on a quiet wire is good before it is old enough to be played by.
    @Test func `a good line is measured densely until it is settled`() {
        let start = LocalInstant(nanoseconds: 0)
        var schedule = RequestSchedule(start: start, random: SplitMix64(seed: 1))
        let roundTrip = Nanoseconds.microseconds(100)
        let good = RequestSchedule.Prospect(
            roundTrip: roundTrip, expectedError: Nanoseconds(500), skewDeviation: 1e-7)
        func requests(until end: Nanoseconds) -> Int {
            var count = 0
            while schedule.next < start + end {
                let now = schedule.next
                _ = schedule.depart(at: now, good)
                schedule.answered(roundTrip: roundTrip, isNewest: true, at: now + roundTrip)
                count += 1
            }
            return count
        }
        _ = requests(until: .milliseconds(100))
        let young = requests(until: .milliseconds(300))
        _ = requests(until: .milliseconds(500))
        let settled = requests(until: .milliseconds(2_500))
        // A thousand a second, and then a hundred; two seconds are ten times 0.2.
        #expect(young * 10 > 3 * settled, "\(young) in 0.2 s, \(settled) in 2")
    }
}
