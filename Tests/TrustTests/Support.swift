import Synchronization
import Testing
import TuttiChance
import TuttiTiming

@testable import TuttiTrust

/// A node's key, told apart by its number. Made once: it takes longer than most of what is tested.
func key(_ number: UInt64) -> NodeKey {
    keys.withLock { keys in
        if let key = keys[number] { return key }
        var random = SplitMix64(seed: number &* 7_919)
        let key = try! NodeKey(bytes: random.bytes(32))
        keys[number] = key
        return key
    }
}

private let keys = Mutex<[UInt64: NodeKey]>([:])

func name(_ text: String) -> MemberName { try! MemberName(text) }

func instant(_ seconds: Double) -> LocalInstant {
    LocalInstant(nanoseconds: Int64(saturating: seconds * 1e9))
}

extension SplitMix64 {
    mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
    }

    /// Some other byte at some place.
    mutating func mutated(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        let place = Int.random(in: bytes.indices, using: &self)
        bytes[place] ^= UInt8.random(in: 1...255, using: &self)
        return bytes
    }
}

/// One node with its own copy of the household, which may be behind the others'.
struct Node {
    let key: NodeKey
    var household: Household
    var random: SplitMix64

    var fingerprint: Fingerprint { key.publicKey.fingerprint }

    /// The founder of a household of one.
    init(founding number: UInt64) {
        key = TrustTests.key(number)
        random = SplitMix64(seed: number ^ 0xF00D)
        household = try! Household(
            foundedBy: key, name: TrustTests.name("node \(number)"), salt: random.bytes(16),
            at: 1_000)
    }

    /// A node with a copy of somebody's household.
    init(_ number: UInt64, in household: Household) {
        key = TrustTests.key(number)
        random = SplitMix64(seed: number ^ 0xF00D)
        self.household = household
    }

    @discardableResult
    mutating func admit(
        _ number: UInt64, at time: Int64 = 1_000
    ) throws(TrustError) -> MemberRecord {
        try household.admit(
            TrustTests.key(number).publicKey, as: TrustTests.name("node \(number)"), by: key,
            salt: random.bytes(16), at: time)
    }

    @discardableResult
    mutating func remove(
        _ number: UInt64, keepsDeeds: Bool = true, at time: Int64 = 1_000
    ) throws(TrustError) -> [MemberRecord] {
        try household.remove(
            TrustTests.key(number).publicKey.fingerprint, keepsDeeds: keepsDeeds, by: key,
            salt: random.bytes(16), at: time)
    }

    @discardableResult
    mutating func rename(
        _ number: UInt64, _ text: String, at time: Int64 = 1_000
    ) throws(TrustError) -> MemberRecord {
        try household.rename(
            TrustTests.key(number).publicKey.fingerprint, to: TrustTests.name(text), by: key,
            salt: random.bytes(16), at: time)
    }

    func has(_ number: UInt64) -> Bool {
        household.member(TrustTests.key(number).publicKey.fingerprint) != nil
    }

    func name(of number: UInt64) -> String? {
        household.member(TrustTests.key(number).publicKey.fingerprint)?.name.text
    }
}

/// A household of the nodes 1…count, founded by 1, which has admitted all others.
func house(_ count: UInt64) throws -> [Node] {
    var founder = Node(founding: 1)
    for number in 2..<count + 1 where count > 1 { try founder.admit(number) }
    return [founder] + (2..<count + 1).map { Node($0, in: founder.household) }
}

extension Optional {
    /// The value that has to be there, also of a call that changes something.
    func given(sourceLocation: SourceLocation = #_sourceLocation) throws -> Wrapped {
        try #require(self, sourceLocation: sourceLocation)
    }
}
