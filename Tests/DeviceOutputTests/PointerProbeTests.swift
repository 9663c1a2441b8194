import Testing
import Timing

@testable import DeviceOutput

@Suite struct PointerProbeTests {
    /// Looks at a card of 48 kHz whose pointer is rounded down to `grain`, at scattered moments.
    static func verdict(grain: Int, disturbed: Int = 0) -> PointerProbe.Verdict {
        var probe = PointerProbe()
        var phase = 0.0
        for look in 0..<12 {
            phase += 0.618_033_988_749_895
            let first = 480.0 * Double(look) + phase * 480
            // The pause plus a scheduler that is late by up to half of it.
            let pause = PointerProbe.pause.seconds * (1 + 0.5 * (phase - Double(Int(phase))))
            let second = first + pause * 48_000
            let moved = Int(second) / grain * grain - Int(first) / grain * grain
            probe.observe(
                framesMoved: look < disturbed ? moved + 40 : moved,
                in: Nanoseconds(seconds: pause), sampleRate: 48_000)
        }
        return probe.verdict
    }

    @Test func `a pointer that moves with every frame is fine`() {
        #expect(Self.verdict(grain: 1) == .fine)
    }

    @Test func `a few disturbed looks do not change that`() {
        #expect(Self.verdict(grain: 1, disturbed: 4) == .fine)
    }

    @Test(arguments: [32, 48, 64, 480, 1024])
    func `a pointer that jumps is coarse`(grain: Int) {
        #expect(Self.verdict(grain: grain) == .coarse)
    }
}
