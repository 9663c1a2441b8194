import CTuttiLinux
import Glibc
import TuttiTiming

/// Brings the kernel's packet stamps into local time.
///
/// Software stamps are CLOCK_REALTIME, which the time daemon steers and the owner may set. So the
/// relation of the two clocks is measured next to every use, and a stamp across a step of REALTIME
/// is not believed.
struct StampConversion {
    /// Two reads of RAW around one of REALTIME: further apart they were interrupted.
    static let bracketLimit: Int64 = 2_000
    static let attempts = 4
    /// How far REALTIME may move against RAW between packets: a step if more.
    static let stepLimit: Int64 = 100_000
    /// What the daemon may slew in the meantime: 1000 ppm, twice the kernel's usual limit.
    static let slewDivisor: Int64 = 1_000
    /// A stamp further back than this is not of the packet at hand.
    static let ageLimit: Int64 = 2_000_000_000

    /// The slope of their relation is measured over at least this: a µs of error there is 2 ppm.
    static let slopeSpan: Int64 = 500_000_000

    /// REALTIME − RAW when last measured, and when that was.
    private var last: (offset: Int64, raw: Int64)?
    /// How fast that changes, and since when it is measured. A packet that waited 100 ms in the
    /// socket would be off by 5 µs where the daemon steers by 50 ppm.
    private var slope = 0.0
    private var slopeFrom: (offset: Int64, raw: Int64)?

    /// Reads a clock; nanoseconds.
    private let read: (clockid_t) -> Int64

    init(read: @escaping (clockid_t) -> Int64 = HostClock.read) { self.read = read }

    /// Local time of a kernel stamp; `nil` when it cannot be told precisely.
    mutating func local(realTime stamp: Int64) -> LocalInstant? {
        guard stamp > 0 else { return nil }
        var best: (offset: Int64, raw: Int64, width: Int64)?
        for _ in 0..<Self.attempts {
            let before = read(CLOCK_MONOTONIC_RAW)
            let realTime = read(CLOCK_REALTIME)
            let after = read(CLOCK_MONOTONIC_RAW)
            let middle = before + (after - before) / 2
            if after - before < best?.width ?? Int64.max {
                best = (realTime - middle, middle, after - before)
            }
            if after - before < Self.bracketLimit { break }
        }
        // On a slow machine four tries may all be wide; half the width is then the error.
        guard let best, best.width < 10 * Self.bracketLimit else { return nil }
        defer { last = (best.offset, best.raw) }
        if let last {
            let moved = best.offset.subtracting(saturating: last.offset).magnitude
            let allowed = Self.stepLimit + max(0, best.raw - last.raw) / Self.slewDivisor
            if moved > UInt64(allowed) {
                (slope, slopeFrom) = (0, nil)
                return nil
            }
        }
        measureSlope(best.offset, best.raw)
        let wait = best.raw - (stamp - best.offset)
        let local = stamp - best.offset + Int64(saturating: slope * Double(wait))
        let age = best.raw - local
        // A stamp from the future by more than the measurement's error is not one.
        guard age > -best.width - 1_000, age < Self.ageLimit else { return nil }
        return LocalInstant(nanoseconds: local)
    }

    private mutating func measureSlope(_ offset: Int64, _ raw: Int64) {
        guard let from = slopeFrom else { return slopeFrom = (offset, raw) }
        guard raw - from.raw >= Self.slopeSpan else { return }
        slope = Double(offset - from.offset) / Double(raw - from.raw)
        slopeFrom = (offset, raw)
    }
}
