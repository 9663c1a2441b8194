import CTuttiALSA
import Glibc
import TuttiLinuxHost
import TuttiTiming

/// The clock that a driver stamps its position with.
///
/// Asked for is CLOCK_MONOTONIC_RAW, which is our local clock. Others are translated next to the
/// reading: both clocks are read around each other and the tightest of three tries counts, an
/// error below a microsecond. What a driver says it uses is not always what it uses; the first
/// stamp is therefore compared with all three clocks.
enum StampClock: CaseIterable {
    case raw, monotonic, realTime

    static var preferred: [(snd_pcm_tstamp_type_t, StampClock)] {
        [
            (SND_PCM_TSTAMP_TYPE_MONOTONIC_RAW, .raw),
            (SND_PCM_TSTAMP_TYPE_MONOTONIC, .monotonic),
            (SND_PCM_TSTAMP_TYPE_GETTIMEOFDAY, .realTime),
        ]
    }

    /// A stamp taken just now is not older than this, nor younger than now.
    static let plausibleAge = Nanoseconds.milliseconds(200)

    /// The clock on which `stamp` lies in the last moment: this one if it can be, else another.
    func confirmed(by stamp: timespec) -> StampClock? {
        for clock in [self] + Self.allCases {
            let age = HostClock.now() - clock.localInstant(of: stamp)
            if age >= .microseconds(-100), age <= Self.plausibleAge { return clock }
        }
        return nil
    }

    func localInstant(of stamp: timespec) -> LocalInstant {
        let count = Int64(stamp.tv_sec) * 1_000_000_000 + Int64(stamp.tv_nsec)
        switch self {
        case .raw: return LocalInstant(nanoseconds: count)
        case .monotonic: return Self.translated(count, from: CLOCK_MONOTONIC)
        case .realTime: return Self.translated(count, from: CLOCK_REALTIME)
        }
    }

    private static func translated(_ count: Int64, from clock: clockid_t) -> LocalInstant {
        var narrowest = Int64.max
        var instant = LocalInstant(nanoseconds: 0)
        for _ in 0..<3 {
            let before = HostClock.now()
            var there = timespec()
            unsafe clock_gettime(clock, &there)
            let width = HostClock.now() - before
            guard width.count < narrowest else { continue }
            narrowest = width.count
            let now = Int64(there.tv_sec) * 1_000_000_000 + Int64(there.tv_nsec)
            instant = before + width / 2 - Nanoseconds(now - count)
        }
        return instant
    }
}
