import Foundation
import Testing

@testable import tutti

struct RoomCostTests {
    private let start = ContinuousClock.now

    private func reading(_ seconds: Double, processor: Double, bytes: Int) -> CostMeter.Reading {
        CostMeter.Reading(
            at: start + .seconds(seconds), processorSeconds: processor, residentBytes: bytes)
    }

    @Test func `a cost is the work between the looks by the time between them`() throws {
        var meter = CostMeter()
        meter.note(reading(5, processor: 0.7, bytes: 20_000_000), room: 1)
        meter.note(reading(9, processor: 0.71, bytes: 60_000_000), room: 1)
        #expect(meter.cost(ofRoom: 0) == nil)
        meter.note(reading(15, processor: 0.9, bytes: 30_000_000), room: 1)
        let cost = try #require(meter.cost(ofRoom: 1))
        // 0.2 s of work in 10 s; what the 0.7 s were is not asked.
        #expect(abs(cost.processorPercent - 2) < 1e-9)
        #expect(cost.residentMegabytes == 60)
    }

    @Test func `a short look at a room gives no figure`() {
        var meter = CostMeter()
        meter.note(reading(0, processor: 0, bytes: 1), room: 0)
        meter.note(reading(2.9, processor: 1, bytes: 1), room: 0)
        #expect(meter.cost(ofRoom: 0) == nil)
    }

    @Test func `looking at a process counts what it did and holds`() throws {
        let before = try #require(CostMeter.Reading(process: getpid()))
        var block = [UInt8](repeating: 1, count: 64_000_000)
        var clock = timespec()
        repeat {
            block[Int.random(in: 0..<block.count)] &+= 1
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &clock)
        } while Double(clock.tv_sec) + Double(clock.tv_nsec) / 1e9 < before.processorSeconds + 0.02
        let after = try #require(CostMeter.Reading(process: getpid()))
        #expect(after.processorSeconds >= before.processorSeconds + 0.02)
        // Half of the block: other tests give memory back meanwhile.
        #expect(after.residentBytes > before.residentBytes + block.count / 2)
        #expect(CostMeter.Reading(process: 0x3FFF_FFFF) == nil)
    }
}
