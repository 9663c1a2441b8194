import Crypto

/// SHA-256 of each piece of a file: what makes bytes that arrive believable before the rest is here.
///
/// The list is too long to travel with every description of an item, so its root does: the SHA-256
/// of the hashes in their order. Whoever knows the root takes the list from anybody, and then the
/// pieces. The size of a piece follows from the size of the file, so that both sides count the same.
public struct PieceHashes: Equatable, Sendable {
    /// Smallest piece, bytes: whoever looks for a place in an item waits for whole pieces, and asks
    /// for 128 KiB at once anyway.
    static let smallestPiece: Int64 = 65_536
    /// Largest piece: two of them are what a reader may have to wait for.
    static let largestPiece: Int64 = 524_288
    /// With so many pieces larger ones are taken, while there are: the list of a file of 4 GiB has
    /// 256 KiB. Up to 512 MiB pieces are the smallest.
    static let many: Int64 = 8_192
    /// Larger files are not believed in pieces: a list is 8 MiB at most, whatever a peer says of a
    /// file.
    static let largestFile: Int64 = 1 << 37
    /// Bytes of one hash.
    static let hashSize = SHA256.byteCount

    /// Bytes in the file.
    public let fileSize: Int64
    /// The hashes, one behind the other.
    public let bytes: [UInt8]

    /// - Returns: `nil` unless the list is as long as a file of that size needs and has that root.
    init?(_ bytes: [UInt8], fileSize: Int64, root: [UInt8]) {
        self.init(bytes, fileSize: fileSize)
        guard bytes.count == Self.listSize(fileSize: fileSize), self.root == root else {
            return nil
        }
    }

    init(_ bytes: [UInt8], fileSize: Int64) {
        self.bytes = bytes
        self.fileSize = fileSize
    }

    /// SHA-256 of the list, 32 bytes.
    public var root: [UInt8] { Array(SHA256.hash(data: bytes)) }

    var pieceSize: Int64 { Self.pieceSize(fileSize: fileSize) }

    static func pieceSize(fileSize: Int64) -> Int64 {
        var size = smallestPiece
        while fileSize > many * size, size < largestPiece { size *= 2 }
        return size
    }

    /// Bytes in the list of a file of that size.
    static func listSize(fileSize: Int64) -> Int {
        let size = pieceSize(fileSize: fileSize)
        return Int(fileSize / size + (fileSize % size > 0 ? 1 : 0)) * hashSize
    }

    /// How many of these bytes are right, in whole pieces.
    ///
    /// - Parameter offset: where they are in the file; a multiple of ``pieceSize``. The last piece of
    ///   the file may be shorter than the others, what is less than a piece elsewhere does not count.
    func rightBytes(of bytes: [UInt8], at offset: Int64) -> Int {
        unsafe bytes.withUnsafeBytes { unsafe rightBytes(of: $0, at: offset) }
    }

    func rightBytes(of bytes: UnsafeRawBufferPointer, at offset: Int64) -> Int {
        precondition(offset % pieceSize == 0, "\(offset) is in the middle of a piece")
        var position = 0
        while true {
            let begin = offset + Int64(position)
            let count = Int(min(pieceSize, fileSize - begin))
            guard count > 0, position + count <= bytes.count else { return position }
            let piece = unsafe UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
            let first = Int(begin / pieceSize) * Self.hashSize
            var hasher = SHA256()
            unsafe hasher.update(bufferPointer: piece)
            guard hasher.finalize().elementsEqual(self.bytes[first..<first + Self.hashSize]) else {
                return position
            }
            position += count
        }
    }

    /// The whole pieces that hold these bytes.
    func pieces(around range: Range<Int64>) -> Range<Int64> {
        let end = (range.upperBound + pieceSize - 1) / pieceSize * pieceSize
        return range.lowerBound / pieceSize * pieceSize..<min(fileSize, end)
    }
}

/// Hashes a file as its bytes come by, as a whole and in pieces.
struct PieceHasher {
    private let fileSize: Int64
    private var whole = SHA256()
    private var piece = SHA256()
    /// Bytes that are still missing in the present piece.
    private var missing: Int64
    private var list: [UInt8] = []
    private(set) var byteCount: Int64 = 0

    init(fileSize: Int64) {
        self.fileSize = fileSize
        missing = PieceHashes.pieceSize(fileSize: fileSize)
        list.reserveCapacity(PieceHashes.listSize(fileSize: fileSize))
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        unsafe whole.update(bufferPointer: bytes)
        byteCount += Int64(bytes.count)
        var rest = unsafe bytes[...]
        while unsafe !rest.isEmpty {
            let part = unsafe rest.prefix(Int(min(missing, Int64(rest.count))))
            unsafe piece.update(bufferPointer: UnsafeRawBufferPointer(rebasing: part))
            unsafe rest = rest.dropFirst(part.count)
            missing -= unsafe Int64(part.count)
            if missing == 0 { endPiece() }
        }
    }

    private mutating func endPiece() {
        list.append(contentsOf: piece.finalize())
        piece = SHA256()
        missing = PieceHashes.pieceSize(fileSize: fileSize)
    }

    /// - Precondition: as many bytes as the file was said to have came by.
    consuming func finish() -> (hash: [UInt8], pieces: PieceHashes) {
        precondition(byteCount == fileSize, "\(byteCount) of \(fileSize) bytes were hashed")
        if missing < PieceHashes.pieceSize(fileSize: fileSize) { endPiece() }
        return (Array(whole.finalize()), PieceHashes(list, fileSize: fileSize))
    }
}
