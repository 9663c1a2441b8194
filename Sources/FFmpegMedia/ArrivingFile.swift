import Glibc
public import Playout

/// A file of the cache while it is being fetched: it can be played before all of it is there.
///
/// ``MediaCache/fetch(url:_:fileExtension:arriving:cancellation:progress:)`` loads from the first
/// byte to the last, and tells how far it is. Who reads where the bytes are takes them from the
/// disk; just ahead of them it waits; further ahead it asks the server itself (``ArrivingReader``),
/// and this file's fetch makes way, so that a room joins in the middle of an item as soon as some
/// of that is decoded. What was read ahead is not kept: a file of the cache has no holes, and
/// nothing is trusted to be whole until its hash is known.
///
/// May be used from several threads; calls block only where they say so.
public final class ArrivingFile: Sendable {
    static let waitMilliseconds = 50

    public let fingerprint: MediaFingerprint
    private let state: Guarded<State>

    private struct State {
        /// Where the whole file is to be read.
        var location: MediaLocation
        /// The fetch is under way, …
        var isBegun = false
        /// … into this file, open for reading; −1 where that may not be read yet.
        var descriptor: Int32 = -1
        /// From the beginning.
        var held: Int64 = 0
        var turns: FetchTurns
        var failure: MediaError?
    }

    /// - Parameters:
    ///   - url: of the server that has it whole, and lets parts of it be read.
    ///   - pace: of the fetch while nobody waits for it.
    public init(
        url: String, _ fingerprint: MediaFingerprint, pace: FetchPace = .unlimited
    ) throws(MediaError) {
        self.fingerprint = fingerprint
        state = Guarded(State(location: try MediaLocation(url), turns: FetchTurns(pace)))
    }

    deinit {
        let descriptor = state.withLock { $0.descriptor }
        if descriptor >= 0 { close(descriptor) }
    }

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

    // MARK: What the fetch says

    /// It is under way.
    ///
    /// - Parameter path: of the file that the bytes go to; `nil` where somebody else fetches it, or
    ///   an earlier fetch left what nobody has verified. What an earlier fetch for this object left
    ///   is known to be good.
    func begins(in path: String?, holding count: Int64) {
        state.change {
            $0.isBegun = true
            guard let path else { return }
            $0.held = count
            // The first one stays, by whatever name the file goes: somebody may be reading it. Opened
            // anew, since a lock of the fetch's own descriptor would outlive it in a copy.
            if $0.descriptor < 0 {
                $0.descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
            }
        }
    }

    func reaches(_ count: Int64) { state.change { $0.held = count } }

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

    enum Look {
        /// So many bytes were copied; 0 at the end.
        case bytes(Int)
        /// Not there yet; it will not be long.
        case soon
        /// Not there yet, and far from what is.
        case far
    }

    /// Copies the first bytes as soon as they are there; `nil` where they are not coming.
    func beginning(_ count: Int, _ cancellation: MediaCancellation) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        while !cancellation.isCancelled, fingerprint.byteCount >= count {
            let look = unsafe bytes.withUnsafeMutableBufferPointer { buffer in
                unsafe try? read(at: 0, into: buffer, patience: Int64(count))
            }
            switch look {
            case .bytes(count): return bytes
            case .bytes, .soon: wait()
            case .far, nil: return nil
            }
        }
        return nil
    }

    /// Copies bytes that are there.
    ///
    /// - Parameter patience: how far ahead of what is there waiting is better than asking.
    func read(
        at offset: Int64, into buffer: UnsafeMutableBufferPointer<UInt8>, patience: Int64
    ) throws(MediaError) -> Look {
        guard offset < fingerprint.byteCount else { return .bytes(0) }
        let (isBegun, descriptor, held, failure) = state.withLock {
            ($0.isBegun, $0.descriptor, $0.held, $0.failure)
        }
        // What is there stays good when the rest will not come, unless it was never right.
        let isThere = descriptor >= 0 && offset < held
        if let failure, failure.code == .damaged || !isThere { throw failure }
        guard isBegun else { return .soon }
        guard isThere else {
            return descriptor >= 0 && offset < held + patience ? .soon : .far
        }
        let count = min(buffer.count, Int(min(held - offset, Int64(Int32.max))))
        let got = unsafe pread(descriptor, buffer.baseAddress, count, off_t(offset))
        guard got > 0 else {
            throw MediaError(
                .notReadable, operation: "pread", subject: location.subject,
                reason: "cannot be read from the cache; is the disk full or failing?")
        }
        return .bytes(got)
    }

    /// Blocks a reader that waits for what comes next, until something has changed, or for a moment.
    func wait() {
        state.change { $0.turns.waiting += 1 }
        state.wait(milliseconds: Self.waitMilliseconds)
        state.withLock { $0.turns.waiting -= 1 }
    }

    /// A reader has the path for itself for a while.
    func asks() { state.withLock { $0.turns.askedAt = .now } }
}
