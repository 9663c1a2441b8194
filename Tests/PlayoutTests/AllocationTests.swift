import CTuttiAllocations
import Testing
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// What `@_noAllocation` promises at compile time, counted at run time: the annotation says nothing
/// about what the optimiser, the runtime or an unchecked call adds.
@Suite(.enabled(if: countsAllocations() == 1, "this build does not count allocations"))
struct AllocationTests {
    /// Calls of malloc, its kin and free by this thread in `body`.
    private func heapCalls(_ body: () -> Void) -> UInt {
        let before = allocationsOfThisThread() + releasesOfThisThread()
        body()
        return allocationsOfThisThread() + releasesOfThisThread() - before
    }

    private final class Growing {
        var samples: [Float] = []
    }

    @Test func `an allocation is seen, and so is one that is given back at once`() {
        let growing = Growing()
        #expect(heapCalls { growing.samples.append(1) } > 0)
        #expect(heapCalls { _ = Growing() } >= 2)
        #expect(heapCalls {} == 0)
    }

    /// A small period, as a debug build is slow.
    private static let format = OutputFormat(
        sampleRate: 48_000, channelCount: 2, periodFrames: 48, bufferFrames: 192)

    /// Two voices through everything that an output thread meets: silence, an armed start, a second
    /// voice, ramps of volume and latency, a jump of the line, starvation, a card that broke off,
    /// stop and release.
    ///
    /// - Parameter intrusion: called in each period, where the output thread works.
    /// - Returns: calls to the heap, and the states that were seen.
    private func play(
        intrusion: () -> Void = {}
    ) -> (heapCalls: UInt, periods: Int, states: Set<String>) {
        let engine = OutputEngine(format: Self.format)
        let port = engine.port
        var now = LocalInstant(nanoseconds: 1_000_000_000)
        let clock = ClockCell(
            SharedClock(
                map: ClockMap(from: now, to: GroupInstant(nanoseconds: 0), skew: 30e-6),
                uncertainty: .zero, estimatedAt: now, epoch: 1, quality: .locked))
        let first = port.makeVoice(sampleRate: 48_000)!
        let second = port.makeVoice(sampleRate: 44_100)!
        let tone = (0..<9_600).map { Float($0 % 97) / 100 }
        for voice in [first, second] {
            _ = tone.withUnsafeBufferPointer { voice.ring.write($0) }
        }
        var period = [Float](repeating: 0, count: 96)
        var frames: Int64 = 0
        var calls: UInt = 0
        var states: Set<String> = []
        func line(_ milliseconds: Int64) -> Line {
            Line(itemFrame: 0, instant: GroupInstant(nanoseconds: milliseconds * 1_000_000))
        }
        for step in 0..<400 {
            switch step {
            case 50: first.start(line(200), clock: clock)
            case 60: second.start(line(205), clock: clock)
            case 210: port.setGain(0.3)
            case 215: first.setGain(0.5)
            case 220: port.setLatencyOffset(.milliseconds(1))
            case 230: port.setRole(.mono)
            case 240: first.start(line(230), clock: clock)
            case 270: second.stop(at: nil)
            case 280: second.release()
            case 390: first.stop(at: GroupInstant(nanoseconds: 395_000_000))
            default: break
            }
            period.withUnsafeMutableBufferPointer { buffer in
                let base = buffer.baseAddress!
                calls += heapCalls {
                    if step == 360 {
                        engine.restarted()
                        frames = 0
                    }
                    engine.observe(CardReading(framesHeard: Double(frames), instant: now))
                    engine.render(into: base, now: now)
                    intrusion()
                }
            }
            states.insert("\(first.report.state)")
            states.insert("\(second.report.state)")
            frames += 48
            now += .milliseconds(1)
        }
        return (calls, 400, states)
    }

    @Test func `a period takes nothing from the heap and gives nothing back`() {
        let result = play()
        #expect(result.heapCalls == 0)
        #expect(result.states.isSuperset(of: ["idle", "armed", "playing", "starved", "stopped"]))
    }

    @Test func `one object in a period would be seen`() {
        let result = play { _ = Growing() }
        #expect(result.heapCalls >= UInt(2 * result.periods))
    }
}
