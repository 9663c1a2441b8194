import TuttiTiming
import TuttiTrust

/// How often a leader looks at what somebody says of itself whom it does not know: signatures of up to
/// ``Household/longestExcerpt`` admissions cost some milliseconds.
///
/// A machine that was let in while the leader was away is known after the first time. Who is here too
/// often is told that it is a stranger, and nothing of what it says is looked at.
struct IntroductionPace: Sendable {
    /// For one key, and for one machine of the network.
    static let burst = 5
    static let perSecond = 1
    /// For all together.
    static let burstOfAll = 40
    static let perSecondOfAll = 5
    /// Keys and machines that are told apart; of more, the one that was quiet for longest is
    /// forgotten.
    static let most = 256

    private enum Name: Hashable, Comparable {
        case host(String)
        case key(Fingerprint)
    }

    private var all: TokenBucket
    private var buckets: [Name: TokenBucket] = [:]

    init(at now: LocalInstant) { all = Self.bucketOfAll(at: now) }

    /// - Parameter address: of the other side, without its port; `nil`: this machine.
    mutating func admits(
        _ key: Fingerprint, from address: String?, at now: LocalInstant
    ) -> Bool {
        guard take(.key(key), at: now) else { return false }
        guard let address else { return true }
        return take(.host(HandshakePace.host(address)), at: now) && all.take(at: now)
    }

    var count: Int { buckets.count }

    private mutating func take(_ name: Name, at now: LocalInstant) -> Bool {
        if buckets[name] == nil, buckets.count >= Self.most,
            let quiet = buckets.min(by: { ($0.value.latest, $0.key) < ($1.value.latest, $1.key) })
        {
            buckets[quiet.key] = nil
        }
        var bucket = buckets[name] ?? Self.bucket(at: now)
        defer { buckets[name] = bucket }
        return bucket.take(at: now)
    }

    private static func bucket(at now: LocalInstant) -> TokenBucket {
        TokenBucket(burst: burst, perSecond: perSecond, at: now)
    }

    private static func bucketOfAll(at now: LocalInstant) -> TokenBucket {
        TokenBucket(burst: burstOfAll, perSecond: perSecondOfAll, at: now)
    }
}
