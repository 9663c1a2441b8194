import TuttiTiming

/// How many handshakes a node takes part in. Each costs it about a millisecond of a processor, before
/// it is known who asks for it.
///
/// One machine has its own share, so that it does not use up that of the others; IPv6 addresses with
/// the same first 64 bits are one machine. All of a network may have those in common: an address from
/// which a member came lately has a share to itself, which nobody else can use up.
struct HandshakePace: Sendable {
    /// For one machine of the network: what a script of commands needs.
    static let burstOfOneHost = 64
    static let perSecondOfOneHost = 20
    /// For all together: less than a tenth of a core.
    static let burst = 256
    static let perSecond = 80
    /// Machines that are told apart; of more, the one that was quiet for longest is forgotten.
    static let mostHosts = 1_024

    /// Addresses of members; of more, the one that was quiet for longest is forgotten.
    static let mostKnown = 256

    private var all: TokenBucket
    private var known: [String: TokenBucket] = [:]
    private var hosts: [String: TokenBucket] = [:]

    init(at now: LocalInstant) {
        all = TokenBucket(burst: Self.burst, perSecond: Self.perSecond, at: now)
    }

    /// - Parameter address: of the other side, without its port; `nil`: this machine, which may
    ///   always.
    /// - Returns: whether to go on.
    mutating func admits(_ address: String?, at now: LocalInstant) -> Bool {
        guard let address else { return true }
        if var own = known[address] {
            defer { known[address] = own }
            return own.take(at: now)
        }
        let host = Self.host(address)
        if hosts[host] == nil, hosts.count >= Self.mostHosts,
            let quiet = hosts.min(by: { ($0.value.latest, $0.key) < ($1.value.latest, $1.key) })
        {
            hosts[quiet.key] = nil
        }
        var bucket =
            hosts[host]
            ?? TokenBucket(
                burst: Self.burstOfOneHost, perSecond: Self.perSecondOfOneHost, at: now)
        // Who is too fast takes nothing from the others.
        let isAdmitted = bucket.take(at: now)
        hosts[host] = bucket
        return isAdmitted && all.take(at: now)
    }

    /// A member has come from there.
    mutating func know(_ address: String?, at now: LocalInstant) {
        guard let address, known[address] == nil else { return }
        if known.count >= Self.mostKnown,
            let quiet = known.min(by: { ($0.value.latest, $0.key) < ($1.value.latest, $1.key) })
        {
            known[quiet.key] = nil
        }
        known[address] = TokenBucket(
            burst: Self.burstOfOneHost, perSecond: Self.perSecondOfOneHost, at: now)
    }

    func knows(_ address: String?) -> Bool { address.map { known[$0] != nil } ?? false }

    var hostCount: Int { hosts.count }
    var knownCount: Int { known.count }

    /// The first 64 bits of an IPv6 address, as text; others as they are.
    static func host(_ address: String) -> String {
        guard address.contains(":"), !address.hasPrefix("::ffff:") else { return address }
        let plain = address.prefix { $0 != "%" }
        let zeros = plain.firstRange(of: "::")
        let front = plain[..<(zeros?.lowerBound ?? plain.endIndex)].split(separator: ":")
        let back = zeros.map { plain[$0.upperBound...].split(separator: ":") } ?? []
        let missing = zeros == nil ? 0 : max(0, 8 - front.count - back.count)
        let all = front + Array(repeating: "0", count: missing) + back
        return all.prefix(4).joined(separator: ":")
    }
}

/// Messages about the household on one link: records that came with each would cost a tenth of a
/// second.
struct HouseholdPace: Sendable {
    static let burst = 50
    static let perSecond = 10

    private var bucket: TokenBucket

    init(at now: LocalInstant) {
        bucket = TokenBucket(burst: Self.burst, perSecond: Self.perSecond, at: now)
    }

    /// - Returns: false for a link that says more than anybody needs to.
    mutating func take(at now: LocalInstant) -> Bool { bucket.take(at: now) }
}
