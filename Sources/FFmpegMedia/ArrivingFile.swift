import CFFmpeg
import Glibc
public import Playout

/// A file of the cache while it is being fetched: it can be played before all of it is there.
///
/// ``MediaCache/fetch(url:_:fileExtension:arriving:cancellation:progress:)`` loads from the first
/// byte to the last, and tells how far it is. Who reads where the bytes are takes them from the
/// disk; just ahead of them it waits; further ahead it gets them from the server (``ByteServer``),
/// and this file's fetch makes way, so that a room joins in the middle of an item as soon as some
/// of that is decoded. What was read ahead is not kept for long: a file of the cache has no holes.
///
/// Nothing is read that is not right: bytes are handed out in pieces whose ``PieceHashes`` are known.
/// Where none were announced, a reader waits until all of the file is here and verified.
///
/// May be used from several threads; calls block only where they say so.
public final class ArrivingFile: Sendable {
    private static let waitMilliseconds = 50
    /// So far ahead of what is there it comes sooner by itself than by asking.
    private static let patience: Int64 = 131_072
    /// … unless so many waits of ``waitMilliseconds`` bring nothing.
    private static let vainWaits = 2
    /// What is asked for at once: FFmpeg's FLAC parser wants ten packets before it believes one.
    private static let blockSize: Int64 = 131_072
    /// So many of these are kept: who looks for a place by halving comes back to it.
    private static let blocksKept = 4
    /// So much is asked for before the fetch is under way, bytes: a place may take a dozen parts.
    /// A container whose beginning is longer, by a picture for instance, waits for the fetch, which
    /// knows when the path is free.
    private static let mostAskedFirst: Int64 = 4 << 20
    /// After a request that failed: the fetch may bring the bytes, or say why nothing will.
    private static let askPause = Duration.milliseconds(500)

    public let fingerprint: MediaFingerprint
    private let server: any ByteServer
    private let state: ConditionMutex<State>

    private struct Block {
        var begin: Int64
        var bytes: [UInt8]
        var end: Int64 { begin + Int64(bytes.count) }
    }

    private struct State {
        /// Where the whole file is to be read.
        var location: MediaLocation
        /// The fetch is under way, …
        var isBegun = false
        /// … into this file; `nil` where that may not be read yet.
        var file: OpenFile?
        /// Of what is announced; `nil` until somebody got them.
        var pieces: PieceHashes?
        /// From the beginning.
        var held: Int64 = 0
        var turns: ReadPriority
        var failure: MediaError?
        /// How much of it readers may still ask the server for before the fetch is under way.
        var mayAskFirst: Int64
        /// A reader wants all of it, in order.
        var isReadWhole = false
        /// What readers asked for, the latest last.
        var blocks: [Block] = []
        /// Until then nobody is asked again.
        var asksFrom: ContinuousClock.Instant?
    }

    /// - Parameters:
    ///   - url: of the server that has it whole, and lets parts of it be read.
    ///   - pace: of the fetch while nobody waits for it.
    ///   - server: gives such parts.
    ///   - mayAskFirst: whether who reads gets parts, a few megabytes in all, also before the fetch
    ///     is under way.
    public init(
        url: String, _ fingerprint: MediaFingerprint, pace: FetchPace = .unlimited,
        server: any ByteServer, mayAskFirst: Bool = false
    ) throws(MediaError) {
        self.fingerprint = fingerprint
        self.server = server
        state = ConditionMutex(
            State(
                location: try MediaLocation(url), turns: ReadPriority(pace),
                mayAskFirst: mayAskFirst ? Self.mostAskedFirst : 0))
    }

    var pace: FetchPace { state.withLock { $0.turns.pace } }

    /// Where the whole file is to be read.
    var location: MediaLocation { state.withLock { $0.location } }

    /// The server is somewhere else now; whoever asks it does so there.
    public func move(to url: String) throws(MediaError) {
        let location = try MediaLocation(url)
        state.change { $0.location = location }
    }

    /// It will not arrive: whoever waits for more than is there is told so. A fetch that failed may
    /// be tried again instead.
    public func abandon(_ error: MediaError) { state.change { $0.failure = error } }

    /// Why it will not arrive.
    public var failure: MediaError? { state.withLock { $0.failure } }

    /// Bytes that are there, from the beginning.
    public var held: Int64 { state.withLock { $0.held } }

    /// Whether there is anything to read: somebody may be playing it.
    public var hasBytes: Bool { state.withLock { $0.held > 0 || !$0.blocks.isEmpty } }

    // MARK: What the fetch says

    /// It is under way.
    ///
    /// - Parameters:
    ///   - file: that the bytes go to, opened for this; `nil` where somebody else fetches it, or
    ///     nobody can say yet whether they are right.
    ///   - count: bytes of it that are there, and right.
    func begins(in file: OpenFile?, holding count: Int64) {
        state.change {
            $0.isBegun = true
            guard let file else { return }
            $0.held = count
            $0.file = file
        }
    }

    func reaches(_ count: Int64) {
        state.change {
            $0.held = count
            // What nobody has verified is not read from the disk yet.
            if $0.file != nil { $0.blocks.removeAll { $0.end <= count } }
        }
    }

    /// All of it came, each piece as announced, and the whole is something else.
    func distrust() {
        state.change {
            $0.file = nil
            $0.held = 0
            $0.blocks = []
        }
    }

    /// The hashes of its pieces, from the server; `nil` where none were announced.
    func knownPieces(_ cancellation: MediaCancellation) throws(MediaError) -> PieceHashes? {
        guard let root = fingerprint.piecesRoot else { return nil }
        let (known, url) = state.withLock { ($0.pieces, $0.location.subject) }
        if let known { return known }
        let pieces = try server.pieces(of: fingerprint, root: root, at: url, cancellation)
        state.withLock { $0.pieces = pieces }
        return pieces
    }

    /// Blocks until the next bytes may be fetched: at once while a reader waits for them, not while
    /// one has the path for itself, and otherwise at the pace.
    ///
    /// - Parameter count: bytes fetched since the last call.
    func giveWay(after count: Int64, _ cancellation: MediaCancellation) {
        state.withLock {
            let isWhole = $0.held >= fingerprint.byteCount
            $0.turns.fetched(count, isWhole: isWhole, at: .now)
        }
        while !cancellation.isCancelled, !state.withLock({ $0.turns.mayFetch(at: .now) }) {
            state.wait(milliseconds: Self.waitMilliseconds)
        }
    }

    // MARK: Reading

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

    /// - Parameter ahead: of this reader, what it may still ask for.
    func read(
        at offset: Int64, into buffer: UnsafeMutableBufferPointer<UInt8>, _ ahead: inout ReadAhead,
        _ cancellation: MediaCancellation
    ) throws(MediaError) -> Int {
        var (vain, held) = (0, self.held)
        while true {
            if cancellation.isCancelled {
                throw MediaError(
                    library: cff_error_exit, operation: "read", location: location)
            }
            let patience = vain >= Self.vainWaits ? 0 : Self.patience
            switch unsafe try look(at: offset, into: buffer, patience, ahead) {
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
        _ ahead: ReadAhead
    ) throws(MediaError) -> Look {
        guard offset < fingerprint.byteCount else { return .bytes(0) }
        let now = state.withLock { $0 }
        // What is there stays good when the rest will not come.
        if let file = now.file, offset < now.held {
            let count = min(buffer.count, Int(min(now.held - offset, Int64(Int32.max))))
            let got = unsafe pread(file.descriptor, buffer.baseAddress, count, off_t(offset))
            if got > 0 { return .bytes(got) }
            // A disk that fails: the server still has it.
            state.change {
                guard $0.file === file else { return }
                $0.file = nil
                $0.held = 0
                $0.isReadWhole = false
            }
            guard fingerprint.piecesRoot != nil else {
                throw MediaError(
                    .notReadable, operation: "pread", subject: location.subject,
                    reason: "cannot be read from the cache; is the disk full or failing?")
            }
            return .far
        }
        if let block = now.blocks.last(where: { ($0.begin..<$0.end).contains(offset) }) {
            let rest = block.bytes[Int(offset - block.begin)...].prefix(buffer.count)
            return .bytes(unsafe buffer.update(fromContentsOf: rest))
        }
        if let failure = now.failure { throw failure }
        guard !now.isReadWhole, fingerprint.piecesRoot != nil else { return .soon }
        guard now.isBegun else {
            return now.mayAskFirst > 0 && !ahead.isEnough(at: .now) ? .far : .soon
        }
        // Who has begun to read ahead goes on so, until the disk has it.
        let isAhead = now.blocks.contains { $0.end == offset }
        let isNear = now.file != nil && offset < now.held + patience
        return isNear && !isAhead ? .soon : .far
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
            state.change {
                $0.turns.hasAsked(at: .now)
                if !$0.isBegun { $0.mayAskFirst -= Int64(block.bytes.count) }
                if $0.blocks.count >= Self.blocksKept { $0.blocks.removeFirst() }
                $0.blocks.append(block)
            }
            return Int64(block.bytes.count)
        } catch {
            state.change {
                $0.turns.hasAsked(at: .now)
                switch error.code {
                // Who does not want it any more says nothing of the server.
                case .cancelled: break
                // Nothing that this one says is believed any more.
                case .damaged: $0.failure = error
                default: $0.asksFrom = .now + Self.askPause
                }
            }
            return 0
        }
    }

    /// The pieces from there on, verified.
    private func block(
        at offset: Int64, of url: String, _ cancellation: MediaCancellation
    ) throws(MediaError) -> Block {
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
        return Block(begin: range.lowerBound, bytes: bytes)
    }

    /// Blocks a reader that waits for what comes next, until something has changed, or for a moment.
    func wait() {
        state.change { $0.turns.waiting += 1 }
        state.wait(milliseconds: Self.waitMilliseconds)
        state.withLock { $0.turns.waiting -= 1 }
    }
}
