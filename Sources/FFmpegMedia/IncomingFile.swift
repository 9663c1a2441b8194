import CTuttiFFmpeg
import Glibc
public import TuttiPlayout

/// A file of the cache whose bytes are not all here yet: it can be played meanwhile.
///
/// ``MediaCache/fetch(_:fileExtension:cancellation:progress:)`` loads from the first byte to the last, and
/// tells how far it is. Who reads where the bytes are takes them from the disk; just ahead of them it
/// waits; further ahead it gets them from the server (``ByteServer``), and this file's fetch makes way,
/// so that a room joins in the middle of an item as soon as some of that is decoded. What was read
/// ahead is not kept for long: a file of the cache has no holes.
///
/// Nothing is read that is not right: bytes are handed out in pieces whose ``PieceHashes`` are known.
/// Where none were announced, a reader waits until all of the file is here and verified.
///
/// May be used from several threads; calls block only where they say so.
public final class IncomingFile: Sendable {
    /// So much is asked for before the fetch is under way, bytes: a place may take a dozen parts.
    /// A container whose beginning is longer, by a picture for instance, waits for the fetch, which
    /// knows when the path is free.
    private static let mostAskedFirst: Int64 = 4 << 20
    static let waitMilliseconds = 50

    /// What the bytes must turn out to be; others are not handed out.
    public let fingerprint: MediaFingerprint
    /// Ends the fetch when nobody needs the file any more.
    public let cancellation = MediaCancellation()
    let server: any ByteServer
    let state: ConditionMutex<State>

    /// What readers and the fetch know of it.
    struct State {
        /// Where the whole file is to be read.
        var location: MediaLocation
        var arrival: Arrival
        /// Of what is announced; `nil` until somebody got them.
        var pieces: PieceHashes?
        var turns: ReadPriority
        /// A reader wants all of it, in order.
        var isReadWhole = false
        /// What readers asked for.
        var blocks = ReadBlocks()
        /// Until then nobody is asked again.
        var asksFrom: ContinuousClock.Instant?
    }

    /// - Parameters:
    ///   - url: of the server that has it whole, and lets parts of it be read.
    ///   - pace: of the fetch while nobody waits for it.
    ///   - server: has it there.
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
                location: try MediaLocation(url),
                arrival: .announced(mayAsk: mayAskFirst ? Self.mostAskedFirst : 0),
                turns: ReadPriority(pace)))
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
    public func abandon(_ error: MediaError) { state.change { $0.arrival.end(error) } }

    /// Why it will not arrive.
    public var failure: MediaError? { state.withLock { $0.arrival.failure } }

    /// Bytes that are there, from the beginning.
    public var held: Int64 { state.withLock { $0.arrival.held } }

    /// Whether there is anything to read: somebody may be playing it.
    public var hasBytes: Bool { state.withLock { $0.arrival.held > 0 || !$0.blocks.isEmpty } }

    // MARK: What the fetch says

    /// It is under way.
    ///
    /// - Parameters:
    ///   - file: that the bytes go to, opened for this; `nil` where somebody else fetches it, or
    ///     nobody can say yet whether they are right.
    ///   - count: bytes of it that are there, and right.
    func begins(in file: OpenFile?, holding count: Int64) {
        state.change { $0.arrival.begin(in: file, holding: count) }
    }

    func reaches(_ count: Int64) {
        state.change {
            $0.arrival.reach(count)
            // What nobody has verified is not read from the disk yet.
            if $0.arrival.bytes != nil { $0.blocks.forget(below: count) }
        }
    }

    /// All of it came, each piece as announced, and the whole is something else.
    func distrust() {
        state.change {
            $0.arrival.lose()
            $0.blocks = ReadBlocks()
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
            let isWhole = $0.arrival.held >= fingerprint.byteCount
            $0.turns.fetched(count, isWhole: isWhole, at: .now)
        }
        while !cancellation.isCancelled, !state.withLock({ $0.turns.mayFetch(at: .now) }) {
            state.wait(milliseconds: Self.waitMilliseconds)
        }
    }
}
