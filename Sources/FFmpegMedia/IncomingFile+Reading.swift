import CTuttiFFmpeg
import Glibc
import TuttiPlayout

/// How bytes are read that may have to come first.
extension IncomingFile {
    /// So far ahead of what is there it comes sooner by itself than by asking.
    private static let patience: Int64 = 131_072
    /// The same for who hands it on: that goes from the first byte to the last as a rule, and asking
    /// for what the fetch brings would hold that up.
    private static let patienceForOthers: Int64 = 1 << 20
    /// … unless so many waits of ``waitMilliseconds`` bring nothing.
    private static let vainWaits = 2
    /// What is asked for at once: FFmpeg's FLAC parser wants ten packets before it believes one.
    private static let blockSize: Int64 = 131_072
    /// After a request that failed: the fetch may bring the bytes, or say why nothing will.
    private static let askPause = Duration.milliseconds(500)

    /// The first bytes, as soon as they are there; `nil` where they are not coming.
    func beginning(_ count: Int, _ cancellation: MediaCancellation) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let got = unsafe bytes.withUnsafeMutableBufferPointer { buffer in
                unsafe try? read(
                    at: Int64(filled), into: .init(rebasing: buffer[filled...]), cancellation)
            }
            guard let got, got > 0 else { return nil }
            filled += got
        }
        return bytes
    }

    /// Copies some of the bytes from `offset` on, 0 at the end; blocks until there are any.
    func read(
        at offset: Int64, into buffer: UnsafeMutableBufferPointer<UInt8>,
        _ cancellation: MediaCancellation
    ) throws(MediaError) -> Int {
        var unlimited = ReadAhead(.unlimited)
        return unsafe try read(at: offset, into: buffer, &unlimited, cancellation)
    }

    /// - Parameters:
    ///   - ahead: of this reader, what it may still ask for.
    ///   - isForOthers: who may want other places than a reader on this machine that needs the file
    ///     as a whole.
    func read(
        at offset: Int64, into buffer: UnsafeMutableBufferPointer<UInt8>, _ ahead: inout ReadAhead,
        isForOthers: Bool = false, _ cancellation: MediaCancellation
    ) throws(MediaError) -> Int {
        var (vain, held) = (0, self.held)
        while true {
            if cancellation.isCancelled {
                throw MediaError(
                    library: cff_error_exit, operation: "read", location: location)
            }
            let longest = isForOthers ? Self.patienceForOthers : Self.patience
            let patience = vain >= Self.vainWaits ? 0 : longest
            switch unsafe try look(at: offset, into: buffer, patience, ahead, isForOthers) {
            case .bytes(let count): return count
            case .soon:
                wait()
                vain = self.held == held ? vain + 1 : 0
                held = self.held
            case .far:
                let count = ask(at: offset, cancellation)
                ahead.asked(count)
                if count == 0 { wait() }
            }
        }
    }

    /// A reader needs it from the first byte to the last: the fetch brings that, and nobody asks
    /// for parts any more.
    func needsAll() { state.change { $0.isReadWhole = true } }

    /// Blocks a reader that waits for what comes next, until something has changed, or for a moment.
    func wait() {
        state.change { $0.turns.waiting += 1 }
        state.wait(milliseconds: Self.waitMilliseconds)
        state.withLock { $0.turns.waiting -= 1 }
    }

    private enum Look {
        /// So many bytes were copied; 0 at the end.
        case bytes(Int)
        /// Not there yet; it will not be long.
        case soon
        /// Not there yet, and far from what is.
        case far
    }

    /// Copies bytes that are there.
    ///
    /// - Parameter patience: how far ahead of what is there waiting is better than asking.
    private func look(
        at offset: Int64, into buffer: UnsafeMutableBufferPointer<UInt8>, _ patience: Int64,
        _ ahead: ReadAhead, _ isForOthers: Bool
    ) throws(MediaError) -> Look {
        guard offset < fingerprint.byteCount else { return .bytes(0) }
        let now = state.withLock { $0 }
        // What is there stays good when the rest will not come.
        if let bytes = now.arrival.bytes, offset < bytes.held {
            let count = min(buffer.count, Int(min(bytes.held - offset, Int64(Int32.max))))
            let got = unsafe pread(bytes.file.descriptor, buffer.baseAddress, count, off_t(offset))
            if got > 0 { return .bytes(got) }
            try lose(bytes.file)
            return .far
        }
        if let block = now.blocks.block(at: offset) {
            let rest = block.bytes[Int(offset - block.begin)...].prefix(buffer.count)
            return .bytes(unsafe buffer.update(fromContentsOf: rest))
        }
        let isAsked = (isForOthers || !now.isReadWhole) && fingerprint.piecesRoot != nil
        switch now.arrival {
        case .ended(let error, _): throw error
        case .announced(let mayAsk):
            return isAsked && mayAsk > 0 && !ahead.isEnough(at: .now) ? .far : .soon
        case .unseen: return isAsked ? .far : .soon
        case .seen(let bytes):
            // Who has begun to read ahead goes on so, until the disk has it.
            let isNear =
                offset < bytes.held + patience
                && (isForOthers || !now.blocks.lead(to: offset))
            return isAsked && !isNear ? .far : .soon
        }
    }

    /// A disk that fails: the server still has it.
    private func lose(_ file: OpenFile) throws(MediaError) {
        state.change {
            guard $0.arrival.bytes?.file === file else { return }
            $0.arrival.lose()
            $0.isReadWhole = false
        }
        guard fingerprint.piecesRoot == nil else { return }
        throw MediaError(
            .notReadable, operation: "pread", subject: location.subject,
            reason: "cannot be read from the cache; is the disk full or failing?")
    }

    /// Gets bytes from the server, while the fetch makes way.
    ///
    /// - Returns: how many are there now; 0 where it does not answer.
    private func ask(at offset: Int64, _ cancellation: MediaCancellation) -> Int64 {
        let url = state.withLock { state -> String? in
            let now = ContinuousClock.now
            if let asksFrom = state.asksFrom, now < asksFrom { return nil }
            state.turns.asks()
            return state.location.subject
        }
        guard let url else { return 0 }
        do throws(MediaError) {
            let block = try block(at: offset, of: url, cancellation)
            let count = Int64(block.bytes.count)
            state.change {
                $0.turns.hasAsked(at: .now)
                $0.arrival.ask(count)
                $0.blocks.keep(block)
            }
            return count
        } catch {
            state.change {
                $0.turns.hasAsked(at: .now)
                switch error.code {
                // Who does not want it any more says nothing of the server.
                case .cancelled: break
                // Nothing that this one says is believed any more.
                case .damaged: $0.arrival.end(error)
                default: $0.asksFrom = .now + Self.askPause
                }
            }
            return 0
        }
    }

    /// The pieces from there on, verified.
    private func block(
        at offset: Int64, of url: String, _ cancellation: MediaCancellation
    ) throws(MediaError) -> ReadBlocks.Block {
        guard let pieces = try knownPieces(cancellation) else {
            preconditionFailure("nothing of \(url) can be verified")
        }
        // The last of them may be read backwards.
        let size = fingerprint.byteCount
        let begin = max(0, min(offset, size - Self.blockSize))
        let range = pieces.pieces(around: begin..<min(size, begin + Self.blockSize))
        let bytes = try server.bytes(range, of: url, cancellation)
        guard pieces.rightBytes(of: bytes, at: range.lowerBound) == bytes.count else {
            throw .notAnnounced(url, operation: "SHA-256")
        }
        return ReadBlocks.Block(begin: range.lowerBound, bytes: bytes)
    }
}
