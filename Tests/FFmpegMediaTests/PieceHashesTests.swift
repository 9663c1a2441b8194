import Foundation
import Testing
import TuttiChance
import TuttiPlayout

@testable import TuttiFFmpegMedia

struct PieceHashesTests {
    private func bytes(_ count: Int) -> [UInt8] {
        var generator = SplitMix64(seed: 7)
        return (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
    }

    @Test func `a list is short, and its pieces are not much to wait for`() {
        let megabyte: Int64 = 1 << 20
        for size in [0, 1, 65_536, 65_537, 30 * megabyte, 600 * megabyte, 5_000 * megabyte] {
            let list = PieceHashes.listSize(fileSize: size)
            let piece = PieceHashes.pieceSize(fileSize: size)
            #expect(Int64(list / 32) * piece >= size && Int64(list / 32 - 1) * piece < max(1, size))
            #expect(piece <= 524_288 && list <= 1 << 19)
        }
        #expect(PieceHashes.listSize(fileSize: 30 * megabyte) == 480 * 32)
    }

    /// A leader may announce any number.
    @Test func `sizes that cannot be are no reason to ask for a list`() {
        let root = [UInt8](repeating: 1, count: 32)
        let huge = MediaFingerprint(hash: root, byteCount: .max, piecesRoot: root)
        #expect(huge.piecesRoot == nil)
        #expect(PieceHashes.listSize(fileSize: .max) > 0)
        #expect(PieceHashes.listSize(fileSize: PieceHashes.largestFile) <= 8 << 20)
    }

    @Test(arguments: [1, 65_535, 65_536, 65_537, 200_000])
    func `each piece is right or not, whatever the others are`(size: Int) throws {
        let body = bytes(size)
        let pieces = PieceHashes(of: Data(body))
        #expect(pieces.rightBytes(of: body, at: 0) == size)
        for place in Set([0, size / 2, size - 1]) {
            var other = body
            other[place] ^= 1
            #expect(pieces.rightBytes(of: other, at: 0) == place / 65_536 * 65_536)
            #expect(PieceHashes(of: Data(other)).root != pieces.root)
        }
        // Less than a piece says nothing, but for the last.
        #expect(
            pieces.rightBytes(of: Array(body.dropLast()), at: 0) == (size - 1) / 65_536 * 65_536)
        let begin = (size - 1) / 65_536 * 65_536
        #expect(pieces.rightBytes(of: Array(body[begin...]), at: Int64(begin)) == size - begin)
    }

    @Test func `a list is what was announced, in length and in content`() throws {
        let pieces = PieceHashes(of: Data(bytes(200_000)))
        let root = pieces.root
        #expect(PieceHashes(pieces.bytes, fileSize: 200_000, root: root) == pieces)
        #expect(PieceHashes(Array(pieces.bytes.dropLast(32)), fileSize: 200_000, root: root) == nil)
        #expect(PieceHashes(pieces.bytes.reversed(), fileSize: 200_000, root: root) == nil)
        #expect(PieceHashes(pieces.bytes, fileSize: 300_000, root: root) == nil)
    }

    @Test func `readers get whole pieces around what they want`() {
        let pieces = PieceHashes(of: Data(bytes(200_000)))
        #expect(pieces.pieces(around: 70_000..<80_000) == 65_536..<131_072)
        #expect(pieces.pieces(around: 0..<65_536) == 0..<65_536)
        #expect(pieces.pieces(around: 65_535..<65_537) == 0..<131_072)
        #expect(pieces.pieces(around: 199_999..<200_000) == 196_608..<200_000)
    }
}
