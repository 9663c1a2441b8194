public import TuttiPlayout

/// For whoever hands the bytes on while they arrive: a node that leads has of some items only what it
/// gets from the leader before.
extension IncomingFile {
    /// Some of the bytes from `offset` on, right ones, at most `count`; empty at the end. Blocks until
    /// there are any.
    ///
    /// Far ahead of what is there they are asked for, whatever the readers on this machine do: who
    /// gets them may play another place.
    ///
    /// - Throws: what the fetch failed with; `.cancelled`.
    public func bytes(
        at offset: Int64, _ count: Int, _ cancellation: MediaCancellation
    ) throws(MediaError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var result: Result<Int, MediaError> = .success(0)
        unsafe bytes.withUnsafeMutableBufferPointer { buffer in
            do throws(MediaError) {
                var ahead = ReadAhead(.unlimited)
                result = .success(
                    unsafe try read(
                        at: offset, into: buffer, &ahead, isForOthers: true, cancellation))
            } catch {
                result = .failure(error)
            }
        }
        bytes.removeLast(count - (try result.get()))
        return bytes
    }

    /// The hashes of its pieces as a list; `nil` where none were announced. Blocks while the server is
    /// asked.
    public func pieceHashes(
        _ cancellation: MediaCancellation
    ) throws(MediaError) -> PieceHashes? {
        try knownPieces(cancellation)
    }

    /// The same where they are known by now.
    public var pieceHashes: PieceHashes? { state.withLock { $0.pieces } }
}
