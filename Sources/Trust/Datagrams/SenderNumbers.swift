/// A leader's book of the numbers that it gives to its links: none is given twice in a term.
///
/// The number is what a receiver counts by. A room that was restarted begins to count anew, so it must
/// be somebody else; and the only thing that surely is another one is its link.
package struct SenderNumbers: Sendable {
    /// Numbers of links that have ended, and are still good: a room whose link broke asks on for the
    /// time until it has another link. Beyond, the oldest are let go. Together with a number for every
    /// room that a leader has places for, a gate can hold them.
    package static let mostEnded = 128
    /// The last number that a sender can have; the next one means everybody.
    static let last = SenderNumber.everybody.value - 1

    private var numbers: [Int: SenderNumber] = [:]
    /// The oldest first.
    private var ended: [SenderNumber] = []
    /// Of links that were there when the term began, and keep theirs.
    private var kept: Set<SenderNumber> = []
    private var newest: UInt16 = 0

    package init() {}

    /// A number for a link, and whose is not good any more because of it.
    package struct Entry: Equatable, Sendable {
        package var number: SenderNumber
        package var forgotten: SenderNumber?
    }

    /// The number of this link; asked again, the same one.
    ///
    /// - Returns: `nil` when all numbers of the term are used, or so many links are there that a gate
    ///   cannot hold another: a new term has to begin, or a link to end.
    package mutating func enter(_ link: Int) -> Entry? {
        if let number = numbers[link] { return Entry(number: number) }
        var next = newest
        repeat {
            guard next < Self.last else { return nil }
            next += 1
        } while kept.contains(SenderNumber(next))
        var forgotten: SenderNumber?
        if numbers.count + ended.count >= DatagramGate.mostSenders {
            guard !ended.isEmpty else { return nil }
            forgotten = ended.removeFirst()
        }
        newest = next
        numbers[link] = SenderNumber(next)
        return Entry(number: SenderNumber(next), forgotten: forgotten)
    }

    /// The number of this link, if it has one.
    package subscript(link: Int) -> SenderNumber? { numbers[link] }

    /// All links that have a number.
    package var links: [Int] { numbers.keys.sorted() }

    /// A link has ended.
    ///
    /// - Returns: a number that is not good any more.
    package mutating func end(_ link: Int) -> SenderNumber? {
        guard let number = numbers.removeValue(forKey: link) else { return nil }
        ended.append(number)
        return ended.count > Self.mostEnded ? ended.removeFirst() : nil
    }

    /// A new term: whoever has a link keeps its number, and all others can be given anew.
    ///
    /// - Returns: numbers of links that have ended; they are good in neither term.
    package mutating func beginTerm() -> [SenderNumber] {
        defer { ended = [] }
        kept = Set(numbers.values)
        newest = 0
        return ended
    }
}
