import Testing
import TuttiChance
import TuttiTiming

@testable import TuttiTrust

@Suite struct `The desk where candidates knock` {
    private let nonce = [UInt8](repeating: 1, count: 32)

    private func desk() -> PairingDesk {
        PairingDesk(own: key(1).publicKey, name: name("attic"))
    }

    /// Arrives, and leaves at once.
    private func knock(
        _ desk: inout PairingDesk, _ link: UInt64, _ address: String, at now: LocalInstant
    ) -> Bool {
        do {
            try desk.arrive(link, from: address, key: key(2).publicKey, nonce: nonce, at: now)
        } catch {
            #expect(error.code == .tooMany)
            return false
        }
        _ = desk.receive(.closed, on: link, at: now)
        return true
    }

    @Test func `an address has a few tries an hour, and all together some more`() {
        var desk = desk()
        // One address alone uses up its own.
        var single = desk
        let own = (0..<50 as Range<UInt64>).count {
            knock(&single, $0, "10.0.0.1", at: instant(10 + Double($0)))
        }
        #expect(own == PairingDesk.mostOfAddress)
        #expect(knock(&single, 60, "10.0.0.2", at: instant(60)))
        var taken: [String: Int] = [:]
        for link in 0..<200 as Range<UInt64> {
            let address = "10.0.0.\(link % 9)"
            let now = instant(10 + Double(link))
            if knock(&desk, link, address, at: now) { taken[address, default: 0] += 1 }
        }
        #expect(taken.values.reduce(0, +) == PairingDesk.mostInAll)
        #expect(!knock(&desk, 300, "10.0.0.99", at: instant(3_600)))
        // An hour after the first ones there are as many again, not more.
        let later = (300..<400 as Range<UInt64>).count {
            knock(&desk, $0, "10.0.1.\($0)", at: instant(3_620))
        }
        #expect(later > 0 && later <= 11)
    }

    @Test func `an address has one pairing at a time, and there are a few`() throws {
        var desk = desk()
        for link in 0..<10 as Range<UInt64> {
            let address = "10.0.0.\(link)"
            func arrive(_ link: UInt64) throws(TrustError) {
                try desk.arrive(
                    link, from: address, key: key(2).publicKey, nonce: nonce, at: instant(1))
            }
            if link < PairingDesk.mostOpen { try arrive(link) }
            #expect(throws: TrustError.self) { try arrive(100 + link) }
        }
        #expect(desk.openCount == PairingDesk.mostOpen)
        #expect(desk.nextDeadline == instant(61))
        let ended = desk.advance(to: instant(61))
        #expect(Set(ended.map(\.link)).count == PairingDesk.mostOpen)
        #expect(desk.openCount == 0 && desk.nextDeadline == nil)
    }

    @Test func `a person's digits find the machine that shows them, and a slip harms none`() throws
    {
        var desk = desk()
        var candidates: [UInt64: CandidatePairing] = [:]
        var random = SplitMix64(seed: 5)
        var shown: [UInt64: PairingDigits] = [:]
        for number in 2...4 as ClosedRange<UInt64> {
            let link = number
            try desk.arrive(
                link, from: "10.0.0.\(number)", key: key(number).publicKey,
                nonce: random.bytes(32), at: instant(1))
            var candidate = CandidatePairing(
                PairingParties(
                    own: key(number).publicKey, peer: key(1).publicKey, ownName: name("room")),
                nonce: random.bytes(32), at: instant(1))
            var toMember = sent(candidate.advance(to: instant(1)))
            while !toMember.isEmpty {
                let answers = desk.receive(
                    .message(toMember.removeFirst()), on: link, at: instant(2))
                for answer in sent(answers.map(\.effect)) {
                    let effects = candidate.receive(.message(answer), at: instant(2))
                    toMember += sent(effects)
                    for case .show(let digits, _) in effects { shown[link] = digits }
                }
            }
            candidates[link] = candidate
        }
        let texts = Set(shown.values.map(\.text))
        try #require(texts.count == 3)
        let wrong = (0...3).map { "00000\($0)" }.first { !texts.contains($0) }!
        #expect(throws: TrustError.self) { try desk.accept(wrong, at: instant(3)) }
        #expect(desk.openCount == 3)
        let effects = try desk.accept(shown[3]!.description, at: instant(3))
        #expect(effects.map(\.link) == [3])
        guard case .admit(let admitted, _) = effects[0].effect else {
            Issue.record("\(effects)")
            return
        }
        #expect(admitted == key(3).publicKey)
        // The same word twice admits once.
        #expect(throws: TrustError.self) { try desk.accept(shown[3]!.text, at: instant(3)) }
        // A person at another member means somebody, and that member lets it in.
        #expect(throws: TrustError.self) { try desk.candidate(showing: wrong) }
        let meant = try desk.candidate(showing: shown[4]!.text)
        #expect(meant.key == key(4).publicKey && meant.name.text == "room")
        #expect(desk.settle(at: instant(4)) { _ in false }.isEmpty)
        let settled = desk.settle(at: instant(4)) { $0 == key(4).publicKey }
        #expect(settled.map(\.link) == [4])
        guard case .admit(let known, _)? = settled.first?.effect else {
            Issue.record("\(settled)")
            return
        }
        #expect(known == key(4).publicKey)
        #expect(desk.settle(at: instant(4)) { $0 == key(4).publicKey }.isEmpty)
    }

    private func sent(_ effects: [PairingEffect]) -> [[UInt8]] {
        effects.compactMap { if case .send(let bytes) = $0 { bytes } else { nil } }
    }
}
