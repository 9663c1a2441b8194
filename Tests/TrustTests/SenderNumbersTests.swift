import Testing
import TuttiChance

@testable import TuttiTrust

@Suite struct `Numbers of senders` {
    /// A model: every number that was given in this term, and to whom.
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `no number is given twice in a term, and links keep theirs into the next`(
        seed: UInt64
    ) throws {
        var random = SplitMix64(seed: seed)
        var numbers = SenderNumbers()
        var links: [Int: SenderNumber] = [:]
        var given: Set<SenderNumber> = []
        var good: Set<SenderNumber> = []
        for link in 0..<3_000 {
            let isRoomLeft = links.count < DatagramGate.mostSenders
            switch Int.random(in: 0..<10, using: &random) {
            case 0...4 where isRoomLeft:
                let entry = try numbers.enter(link).given()
                #expect(given.insert(entry.number).inserted)
                #expect(entry.number != .leader && entry.number != .everybody)
                links[link] = entry.number
                good.insert(entry.number)
                if let forgotten = entry.forgotten { good.remove(forgotten) }
                #expect(good.count <= DatagramGate.mostSenders)
            case 5...7:
                guard let (link, number) = links.randomElement(using: &random) else { continue }
                #expect(numbers.enter(link) == SenderNumbers.Entry(number: number))
                links[link] = nil
                if let forgotten = numbers.end(link) { good.remove(forgotten) }
                // A link that broke is good for a while.
                #expect(good.contains(number))
            case 8 where link % 300 == 0:
                let over = Set(numbers.beginTerm())
                given = Set(links.values)
                #expect(over == good.subtracting(given))
                good = given
            default: break
            }
            for (link, number) in links { #expect(numbers[link] == number) }
            #expect(numbers.links == links.keys.sorted())
        }
    }

    @Test func `there is an end to links, and the oldest that ended make way`() {
        var numbers = SenderNumbers()
        for link in 0..<DatagramGate.mostSenders { _ = numbers.enter(link) }
        #expect(numbers.enter(9_999) == nil)
        #expect(numbers.end(3) == nil)
        #expect(numbers.enter(9_999)?.forgotten == SenderNumber(4))
        #expect(numbers.enter(10_000) == nil)
        for link in 4..<4 + SenderNumbers.mostEnded { #expect(numbers.end(link) == nil) }
        #expect(numbers.end(200) == SenderNumber(5))
        #expect(numbers.end(200) == nil, "it has ended")
    }

    @Test func `when all numbers are used, nobody gets one until there is a new term`() {
        var numbers = SenderNumbers()
        _ = numbers.enter(-1)
        var link = 0
        while numbers.enter(link) != nil {
            _ = numbers.end(link)
            link += 1
        }
        #expect(link == Int(UInt16.max) - 2, "0 is the leader, the last is everybody")
        _ = numbers.beginTerm()
        #expect(numbers[-1] == SenderNumber(1))
        #expect(numbers.enter(link)?.number == SenderNumber(2))
    }
}
