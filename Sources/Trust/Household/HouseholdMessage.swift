/// What is said on a household link: who belongs together, and what members ask one another about it.
///
/// Who calls begins with an excerpt: which household it means, and how it came to sit in it. A member
/// is answered with all records, and sends its own where it has others; both send them again when
/// they change. Who was removed is answered with an excerpt that says so, and anybody else with whose
/// household this is. So nobody but a member gets to know who the others are.
///
/// Big-endian: version 2, kind, then
///
///     1  records    either, to a member: a household, to the end
///     2  stranger   either: the number of the own founding, 32 bytes; the name of who speaks
///     3  accept     member: the digits that a candidate shows, ASCII, to the end
///     4  decline    member: the same
///     5  invite     member: for how many seconds it is good, 32 bits
///     6  question   member: nothing; the answer is 8
///     7  invited    answer to 5: its text, ASCII, to the end
///     8  presence   count, 16 bits; for each: fingerprint, seconds since it was seen, 32 bits;
///                   then candidates: count, 8 bits; for each: six digits, ASCII, and its name
///     9  done       answer to 4
///    10  refused    a sentence, UTF-8, to the end
///    11  excerpt    either: the number of a founding, 32 bytes; count of records, 16 bits; for each
///                   its length, 16 bits, and the record
///    12  candidate  answer to 3: key, 64 bytes, and name of whom the digits belong to; the member
///                   lets it in, and sends its records
///    13  busy       a sentence, UTF-8, to the end: who is paired already comes first, ask again
///
/// A name is its length in 16 bits, and UTF-8.
package enum HouseholdMessage: Equatable, Sendable {
    case records([UInt8])
    case stranger(founding: [UInt8], MemberName)
    case accept(digits: String)
    case decline(digits: String)
    case invite(seconds: UInt32)
    case question
    case invited(String)
    case presence([Presence], [Candidate])
    case done
    case refused(String)
    case excerpt(founding: [UInt8], [MemberRecord])
    case candidate(PublicKey, MemberName)
    case busy(String)

    /// When a member was there last.
    package struct Presence: Equatable, Sendable {
        package var fingerprint: Fingerprint
        /// Zero while it has a link.
        package var secondsAgo: UInt32

        package init(fingerprint: Fingerprint, secondsAgo: UInt32) {
            self.fingerprint = fingerprint
            self.secondsAgo = secondsAgo
        }
    }

    /// Who is being paired, for a person to compare.
    package struct Candidate: Equatable, Sendable {
        package var digits: String
        package var name: MemberName

        package init(digits: String, name: MemberName) {
            self.digits = digits
            self.name = name
        }
    }

    /// Longest message, bytes: a household and what stands before it.
    package static let longest = 2 + Household.longest
    /// Longest message of who is not known for a member, bytes.
    package static let longestOfStranger = 1 << 15
    /// Longest text of any kind, bytes.
    package static let longestText = 1_024
    static let version: UInt8 = 2
    /// What a person may have typed with the digits, too.
    private static let longestDigits = 2 * PairingDigits.count

    package var bytes: [UInt8] {
        switch self {
        case .records(let household): return [Self.version, 1] + household
        case .stranger(let founding, let name):
            var bytes = [Self.version, 2] + founding
            bytes.append(name)
            return bytes
        case .accept(let digits): return [Self.version, 3] + Array(digits.utf8)
        case .decline(let digits): return [Self.version, 4] + Array(digits.utf8)
        case .invite(let seconds):
            var bytes = [Self.version, 5]
            bytes.append(number: seconds)
            return bytes
        case .question: return [Self.version, 6]
        case .invited(let text): return [Self.version, 7] + Array(text.utf8)
        case .presence(let members, let candidates):
            var bytes: [UInt8] = [Self.version, 8]
            bytes.append(number: UInt16(members.count))
            for member in members {
                bytes += member.fingerprint.bytes
                bytes.append(number: member.secondsAgo)
            }
            bytes.append(UInt8(candidates.count))
            for candidate in candidates {
                bytes += Array(candidate.digits.utf8)
                bytes.append(candidate.name)
            }
            return bytes
        case .done: return [Self.version, 9]
        case .refused(let reason): return [Self.version, 10] + Self.shortened(reason)
        case .busy(let reason): return [Self.version, 13] + Self.shortened(reason)
        case .excerpt(let founding, let records):
            var bytes = [Self.version, 11] + founding
            bytes.append(records)
            return bytes
        case .candidate(let key, let name):
            var bytes = [Self.version, 12] + key.bytes
            bytes.append(name)
            return bytes
        }
    }

    private static func shortened(_ reason: String) -> [UInt8] {
        var reason = reason
        while reason.utf8.count > longestText { reason.removeLast() }
        return Array(reason.utf8)
    }

    package init(bytes: [UInt8]) throws(TrustError) {
        guard bytes.count <= Self.longest else {
            throw TrustError(
                .tooMany, "household message", "has \(bytes.count) bytes of at most \(Self.longest)"
            )
        }
        var reader = ByteReader(bytes, "household message")
        let version: UInt8 = try reader.number("version")
        guard version == Self.version else {
            throw TrustError(
                .otherVersion, "household message",
                "is of version \(version) and this Tutti speaks \(Self.version); "
                    + "update the older machine")
        }
        let kind: UInt8 = try reader.number("kind")
        switch kind {
        case 1: self = .records(try reader.bytes(reader.remaining, "household"))
        case 2:
            let founding = try reader.bytes(Fingerprint.byteCount, "founding")
            self = .stranger(founding: founding, try reader.name())
        case 3: self = .accept(digits: try reader.text(Self.longestDigits, "digits"))
        case 4: self = .decline(digits: try reader.text(Self.longestDigits, "digits"))
        case 5: self = .invite(seconds: try reader.number("seconds"))
        case 6: self = .question
        case 7: self = .invited(try reader.text(Self.longestText, "invite"))
        case 8: self = try Self.presence(&reader)
        case 9: self = .done
        case 10: self = .refused(try reader.text(Self.longestText, "reason"))
        case 11:
            let founding = try reader.bytes(Fingerprint.byteCount, "founding")
            self = .excerpt(founding: founding, try reader.records())
        case 12:
            let key = try PublicKey(bytes: try reader.bytes(PublicKey.byteCount, "key"))
            self = .candidate(key, try reader.name())
        case 13: self = .busy(try reader.text(Self.longestText, "reason"))
        default: throw TrustError(.malformed, "household message.kind", "\(kind) is none")
        }
        try reader.end()
    }

    private static func presence(_ reader: inout ByteReader) throws(TrustError) -> Self {
        let count = Int(try reader.number("count", as: UInt16.self))
        guard count <= Household.mostMembers else {
            throw TrustError(
                .tooMany, "household message",
                "tells of \(count) members; there are at most "
                    + "\(Household.mostMembers)")
        }
        var members: [Presence] = []
        for _ in 0..<count {
            let fingerprint = try Fingerprint(
                bytes: try reader.bytes(Fingerprint.byteCount, "fingerprint"))
            members.append(
                Presence(fingerprint: fingerprint, secondsAgo: try reader.number("seconds")))
        }
        let candidateCount: UInt8 = try reader.number("count")
        guard candidateCount <= PairingDesk.mostOpen else {
            throw TrustError(.tooMany, "household message", "tells of \(candidateCount) candidates")
        }
        var candidates: [Candidate] = []
        for _ in 0..<candidateCount {
            let digits = try reader.text(exactly: PairingDigits.count, "digits")
            candidates.append(Candidate(digits: digits, name: try reader.name()))
        }
        return .presence(members, candidates)
    }
}

extension ByteReader {
    /// All that is left, as UTF-8.
    fileprivate mutating func text(_ most: Int, _ part: String) throws(TrustError) -> String {
        guard remaining <= most else {
            throw TrustError(.tooMany, "\(subject).\(part)", "has \(remaining) bytes of \(most)")
        }
        return try text(exactly: remaining, part)
    }

    fileprivate mutating func text(
        exactly count: Int, _ part: String
    ) throws(TrustError) -> String {
        guard let text = String(validating: try bytes(count, part), as: UTF8.self) else {
            throw TrustError(.malformed, "\(subject).\(part)", "is no UTF-8")
        }
        return text
    }
}
