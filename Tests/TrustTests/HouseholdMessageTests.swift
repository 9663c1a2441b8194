import Testing
import TuttiChance

@testable import TuttiTrust

@Suite struct HouseholdMessageTests {
    private static let messages: [HouseholdMessage] = [
        .records([1, 2, 3]), .stranger(founding: [UInt8](repeating: 7, count: 32), name("kitchen")),
        .accept(digits: "482913"), .decline(digits: "482 913"), .invite(seconds: 600), .question,
        .invited("0400-20G3"),
        .presence(
            [.init(fingerprint: key(1).publicKey.fingerprint, secondsAgo: 12)],
            [.init(digits: "000001", name: name("bedroom"))]),
        .presence([], []), .done, .refused("no: it is not good"),
        .excerpt(
            founding: [UInt8](repeating: 7, count: 32), Node(founding: 1).household.records),
        .excerpt(founding: [UInt8](repeating: 0, count: 32), []),
        .candidate(key(2).publicKey, name("phone")),
        .busy("others are under way"),
    ]

    @Test(arguments: messages)
    func `what is said is heard as it was said`(message: HouseholdMessage) throws {
        #expect(try HouseholdMessage(bytes: message.bytes) == message)
    }

    @Test(arguments: messages)
    func `what is changed or cut is an error or another message, and never more`(
        message: HouseholdMessage
    ) throws {
        var random = SplitMix64(seed: 3)
        for _ in 0..<2_000 {
            let bytes = random.mutated(message.bytes)
            if let other = try? HouseholdMessage(bytes: bytes) { #expect(other.bytes == bytes) }
        }
        for count in 0..<message.bytes.count {
            let cut = Array(message.bytes[..<count])
            if let other = try? HouseholdMessage(bytes: cut) { #expect(other.bytes == cut) }
        }
    }

    @Test func `what is too long, too many or of another version is refused`() {
        let long = [UInt8](repeating: 48, count: HouseholdMessage.longest)
        #expect(throws: TrustError.self) { try HouseholdMessage(bytes: [2, 1, 0] + long) }
        #expect(throws: TrustError.self) { try HouseholdMessage(bytes: [2, 3] + long.prefix(13)) }
        #expect(throws: TrustError.self) {
            try HouseholdMessage(bytes: [2, 10] + long.prefix(1_025))
        }
        #expect(throws: TrustError.self) { try HouseholdMessage(bytes: [3, 6]) }
        #expect(throws: TrustError.self) { try HouseholdMessage(bytes: [2, 99]) }
        #expect(throws: TrustError.self) { try HouseholdMessage(bytes: [2, 8, 255, 255]) }
        #expect(throws: TrustError.self) { try HouseholdMessage(bytes: [2, 6, 0]) }
    }

    /// A sentence is cut where a character ends.
    @Test func `a long reason is shortened and can be read`() throws {
        let reason = String(repeating: "ü", count: 700)
        guard
            case .refused(let read) = try HouseholdMessage(
                bytes: HouseholdMessage.refused(reason).bytes)
        else {
            Issue.record("another message")
            return
        }
        #expect(reason.hasPrefix(read) && read.utf8.count <= HouseholdMessage.longestText)
    }
}
