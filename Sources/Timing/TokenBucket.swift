/// So many of something in a while, and a few at once.
package struct TokenBucket: Sendable {
    package let burst: Double
    package let perSecond: Double
    private var left: Double
    package private(set) var latest: LocalInstant

    package init(burst: Int, perSecond: Int, at now: LocalInstant) {
        self.burst = Double(burst)
        self.perSecond = Double(perSecond)
        left = Double(burst)
        latest = now
    }

    /// - Returns: false when it is too often; nothing is taken then.
    package mutating func take(at now: LocalInstant) -> Bool {
        let elapsed = max(0, Double((now - latest).count) / 1e9)
        left = min(burst, left + elapsed * perSecond)
        latest = max(latest, now)
        guard left >= 1 else { return false }
        left -= 1
        return true
    }
}
