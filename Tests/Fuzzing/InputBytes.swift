/// An input as a script: what is to be done is read from it, byte by byte, and ends with it.
struct InputBytes {
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    var isEmpty: Bool { rest.isEmpty }

    /// 0 behind the end.
    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    /// A number below `limit`.
    mutating func number(below limit: Int) -> Int { Int(byte()) % limit }

    /// As many as there are.
    mutating func bytes(_ count: Int) -> [UInt8] {
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    /// A signed number of any size: its first byte says how many bytes it has.
    mutating func wide() -> Int64 {
        let count = number(below: 9)
        let bits = bytes(count).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard count > 0, count < 8 else { return Int64(bitPattern: bits) }
        let shift = UInt64(64 - 8 * count)
        return Int64(bitPattern: bits << shift) >> Int64(shift)
    }

    mutating func all() -> [UInt8] { bytes(rest.count) }
}
