package import TuttiTiming

/// Where a member takes candidates: all pairings under way, and how many there may be.
///
/// Strangers can knock as often as they like; what it costs is counted before anything is computed.
package struct PairingDesk: Sendable {
    /// Pairings at once, one from each address: more than a person can tell apart.
    package static let mostOpen = 4
    /// Tries an hour from one address. Somebody in the middle wins each with 10⁻⁶.
    package static let mostOfAddress = 5
    /// Tries an hour from everywhere: an address costs nothing where there is IPv6.
    package static let mostInAll = 20
    package static let interval = Nanoseconds.seconds(3_600)
    /// Of an address's text; what is beyond is not looked at.
    private static let longestAddress = 64

    /// One of the shell's links.
    package typealias Link = UInt64

    package struct Effect: Sendable {
        package var link: Link
        package var effect: PairingEffect
    }

    private struct Entry: Sendable {
        var address: String
        var pairing: MemberPairing
    }

    private let own: PublicKey
    package var name: MemberName
    private var open: [Link: Entry] = [:]
    /// At most ``mostInAll``.
    private var tries: [(address: String, at: LocalInstant)] = []

    package init(own: PublicKey, name: MemberName) {
        self.own = own
        self.name = name
    }

    /// Somebody who is no member has made a link.
    ///
    /// - Parameters:
    ///   - link: not used by any other pairing under way.
    ///   - address: what tells one machine of the network from another, without its port.
    ///   - nonce: 32 bytes that nobody can guess.
    /// - Throws: what to tell them; then the link is closed.
    package mutating func arrive(
        _ link: Link, from address: String, key: PublicKey, nonce: [UInt8], at now: LocalInstant
    ) throws(TrustError) {
        let address = String(decoding: address.utf8.prefix(Self.longestAddress), as: UTF8.self)
        precondition(open[link] == nil, "link \(link) is in use")
        tries.removeAll { now - $0.at >= Self.interval }
        guard open.count < Self.mostOpen, !open.values.contains(where: { $0.address == address })
        else {
            throw TrustError(
                .busy, "pairing", "others are under way; wait a minute and try again")
        }
        guard tries.count < Self.mostInAll,
            tries.count(where: { $0.address == address }) < Self.mostOfAddress
        else {
            throw TrustError(
                .tooMany, "pairing",
                "was tried too often; use `tutti household invite`, or wait an hour")
        }
        tries.append((address, now))
        let parties = PairingParties(own: own, peer: key, ownName: name)
        open[link] = Entry(
            address: address, pairing: MemberPairing(parties, nonce: nonce, at: now))
    }

    /// Takes in what happened to one pairing; nothing for one that is over.
    package mutating func receive(
        _ input: PairingInput, on link: Link, at now: LocalInstant
    ) -> [Effect] {
        guard var entry = open[link] else { return [] }
        let effects = entry.pairing.receive(input, at: now)
        return keep(entry, link, effects)
    }

    /// A person at any member has typed the digits that a candidate shows.
    ///
    /// - Throws: where no candidate shows them. Nothing else happens then: who types is one of us
    ///   and may slip.
    package mutating func accept(
        _ digits: String, at now: LocalInstant
    ) throws(TrustError) -> [Effect] {
        receive(.accepted(digits: digits), on: try link(showing: digits), at: now)
    }

    private func link(showing digits: String) throws(TrustError) -> Link {
        let matching = open.filter { $0.value.pairing.digits?.matches(digits) == true }
        guard let link = matching.keys.first else {
            throw TrustError(
                .unknown, "pairing",
                "no machine that is being paired shows these digits; "
                    + "compare them, and decline where they differ")
        }
        guard matching.count == 1 else {
            throw TrustError(
                .refused, "pairing", "two machines show the same digits; decline and pair again")
        }
        return link
    }

    /// Whom a person at another member means, who lets them in by itself.
    ///
    /// - Throws: where no candidate shows these digits, or two do.
    package func candidate(
        showing digits: String
    ) throws(TrustError) -> (key: PublicKey, name: MemberName) {
        let entry = open[try link(showing: digits)]
        guard let entry, case .comparing(_, let name) = entry.pairing.state else {
            preconditionFailure("digits are shown by a pairing that has none")
        }
        return (entry.pairing.candidate, name)
    }

    /// Some of those who wait have become members meanwhile, by the word of another member: they are
    /// told so.
    package mutating func settle(
        at now: LocalInstant, isMember: (PublicKey) -> Bool
    ) -> [Effect] {
        var effects: [Effect] = []
        for link in open.keys.sorted() {
            guard let pairing = open[link]?.pairing, let digits = pairing.digits,
                isMember(pairing.candidate)
            else { continue }
            effects += receive(.accepted(digits: digits.text), on: link, at: now)
        }
        return effects
    }

    package mutating func advance(to now: LocalInstant) -> [Effect] {
        var effects: [Effect] = []
        for link in open.keys.sorted() {
            guard var entry = open[link] else { continue }
            let due = entry.pairing.advance(to: now)
            effects += keep(entry, link, due)
        }
        return effects
    }

    /// `nil` while nothing waits.
    package var nextDeadline: LocalInstant? {
        open.values.compactMap(\.pairing.nextDeadline).min()
    }

    /// How many pairings are under way.
    package var openCount: Int { open.count }

    private mutating func keep(
        _ entry: Entry, _ link: Link, _ effects: [PairingEffect]
    ) -> [Effect] {
        if case .ended = entry.pairing.state { open[link] = nil } else { open[link] = entry }
        return effects.map { Effect(link: link, effect: $0) }
    }
}
