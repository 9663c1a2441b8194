import TuttiChance

/// Other bytes that are like given ones, by seed: what a damaged disk, another program or somebody
/// with bad intentions makes of them.
struct Mutation {
    private let seeds: [[UInt8]]
    private let longest: Int
    private var random: SplitMix64

    init(of seeds: [[UInt8]], longest: Int, seed: UInt64) {
        self.seeds = seeds
        self.longest = longest
        random = SplitMix64(seed: seed)
    }

    mutating func next() -> [UInt8] {
        var bytes = anySeed()
        for _ in 0..<number(1...4) { change(&bytes) }
        return Array(bytes.prefix(longest))
    }

    private mutating func number(_ range: ClosedRange<Int>) -> Int {
        Int.random(in: range, using: &random)
    }

    private mutating func anySeed() -> [UInt8] {
        seeds.isEmpty ? [] : seeds[number(0...seeds.count - 1)]
    }

    private mutating func change(_ bytes: inout [UInt8]) {
        let place = number(0...max(0, bytes.count - 1))
        let end = min(bytes.count, place + number(1...16))
        switch number(0...8) {
        case 0 where !bytes.isEmpty: bytes[place] ^= 1 << UInt8(number(0...7))
        case 1 where !bytes.isEmpty: bytes[place] = UInt8(number(0...255))
        case 2: bytes.insert(UInt8(number(0...255)), at: min(place, bytes.count))
        case 3: bytes.removeSubrange(min(place, end)..<end)
        case 4: bytes.insert(contentsOf: bytes[min(place, end)..<end], at: min(place, end))
        case 5: bytes.removeLast(bytes.count - min(place, bytes.count))
        case 6: write(Self.numbers[number(0...Self.numbers.count - 1)], &bytes, at: place)
        case 7:
            // The end of one behind the beginning of another.
            let other = anySeed()
            bytes = bytes[..<min(place, bytes.count)] + other.suffix(number(0...other.count))
        default:
            let other = anySeed()
            let start = number(0...other.count)
            let piece = other[start..<min(other.count, start + number(1...32))]
            bytes.insert(contentsOf: piece, at: min(place, bytes.count))
        }
    }

    /// Where arithmetic ends, or nearly.
    private static let numbers: [UInt64] = [
        0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF,
        0x7FFF_FFFF_FFFF_FFFF, 0x8000_0000_0000_0000, 0xFFFF_FFFF_FFFF_FFFF,
    ]

    private mutating func write(_ value: UInt64, _ bytes: inout [UInt8], at place: Int) {
        let count = [1, 2, 4, 8][number(0...3)]
        let isLittle = number(0...1) == 0
        for index in 0..<count where place + index < bytes.count {
            let shift = UInt64(8 * (isLittle ? index : count - 1 - index))
            bytes[place + index] = UInt8(truncatingIfNeeded: value >> shift)
        }
    }
}
