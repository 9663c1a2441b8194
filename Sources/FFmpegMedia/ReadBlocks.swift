/// Parts of a file that readers got from the server, right ones: a few, the latest last.
struct ReadBlocks {
    /// Who looks for a place by halving comes back to one of these.
    private static let most = 4

    struct Block {
        var begin: Int64
        var bytes: [UInt8]
        var end: Int64 { begin + Int64(bytes.count) }
    }

    private var blocks: [Block] = []

    var isEmpty: Bool { blocks.isEmpty }

    mutating func keep(_ block: Block) {
        if blocks.count >= Self.most { blocks.removeFirst() }
        blocks.append(block)
    }

    /// The disk has what is before `offset`.
    mutating func forget(below offset: Int64) { blocks.removeAll { $0.end <= offset } }

    func block(at offset: Int64) -> Block? {
        blocks.last { ($0.begin..<$0.end).contains(offset) }
    }

    /// Whether who wants what begins there has read what is before it.
    func lead(to offset: Int64) -> Bool { blocks.contains { $0.end == offset } }
}
