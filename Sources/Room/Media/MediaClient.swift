import NIOCore
import NIOHTTP1
import Synchronization
import TuttiFFmpegMedia
import TuttiPlayout

/// Asks the ``MediaService`` of another node for assets: whole ones as a stream, and parts of them.
///
/// All bytes that go from node to node come through here. A room that joins an item it does not have
/// looks for its place in several parts, and then fetches all of it. A connection for each would cost
/// two round trips, and more wherever the first packet of one is lost, so connections are kept. It
/// asks whom it was told to ask, and nobody else: an answer that names another address is an error.
///
/// What arrives is taken as fast as its reader takes it. A reader that pauses stops the sender: the
/// system holds ``receiveBuffer`` for it, and this one read of ``readSize``.
final class MediaClient: ByteServer {
    /// How long somebody else may take.
    struct Patience: Sendable {
        /// For a connection, for an answer, and for ``least`` of it.
        var answer = TimeAmount.seconds(10)
        /// So many bytes have to come while ``answer`` is waited: a fraction of what any sound needs.
        /// Who sends a byte now and then does not keep a reader for ever.
        var least = 65_536
        /// For an answer on a connection that was kept: it may be to nobody, which a new one would
        /// find out.
        var keptAnswer = TimeAmount.seconds(3)
        /// Before a node is asked again for a place that others have: what it says, within these.
        var place = TimeAmount.milliseconds(250)...TimeAmount.seconds(10)
    }

    /// What the system takes in while nobody reads: as much as ``MediaService/sendBuffer``, for the
    /// same reason. More would keep the path busy when the fetch has to make way.
    static let receiveBuffer = 131_072
    /// Bytes taken from the system at once.
    static let readSize = 65_536
    /// Connections kept while nobody asks: the fetch has one, a reader or two the others.
    private static let keptMax = 3

    private let patience: Patience
    private let credentials: Credentials
    /// Not used at the moment, the latest last.
    private let kept = Mutex<[MediaConnection]>([])

    init(_ patience: Patience = Patience(), credentials: Credentials = .open) {
        self.patience = patience
        self.credentials = credentials
    }

    deinit { forgetKept() }

    func answer(
        _ range: Range<Int64>, of url: String, _ cancellation: MediaCancellation
    ) throws(MediaError) -> any ByteAnswer {
        let question = try MediaQuestion(range, of: url)
        while true {
            switch try ask(question, cancellation) {
            case .bytes(let connection):
                return MediaAnswer(to: question, on: connection, patience, cancellation) {
                    [self] in keep($0)
                }
            case .later(let pause):
                // That others are served first is no failure, of the node or of the asset: it lasts
                // until one of them has what it wants, or nobody wants this any more.
                let pause = min(max(pause, patience.place.lowerBound), patience.place.upperBound)
                cancellation.wait(.nanoseconds(pause.nanoseconds))
                if cancellation.isCancelled { throw question.cancelled }
            }
        }
    }

    /// Whether a node has all of what is at this address; blocks.
    ///
    /// - Parameter limit: for a connection, and for an answer.
    func has(_ url: String, within limit: TimeAmount, _ cancellation: MediaCancellation) -> Bool {
        do throws(MediaError) {
            let question = try MediaQuestion(0..<1, of: url)
            let connection = try MediaConnection(to: question, limit, credentials, cancellation)
            var head = question.head
            head.method = .HEAD
            connection.send(head)
            guard
                case .head(let answer) = try connection.part(
                    of: question, within: limit, cancellation)
            else { return false }
            if answer.status == MediaQuestion.isBeingRead { return true }
            try question.check(answer)
            return true
        } catch {
            return false
        }
    }

    private enum Outcome {
        /// They are next on this connection.
        case bytes(MediaConnection)
        /// There is no place for another reader just now.
        case later(TimeAmount)
    }

    private func ask(
        _ question: MediaQuestion, _ cancellation: MediaCancellation
    ) throws(MediaError) -> Outcome {
        if let connection = takeKept(to: question.address) {
            do throws(MediaError) {
                return try ask(question, on: connection, patience.keptAnswer, cancellation)
            } catch {
                // The other side may have given up a connection that was not used for a while.
                if error.code != .network { throw error }
                forgetKept()
            }
        }
        let connection = try MediaConnection(
            to: question, patience.answer, credentials, cancellation)
        return try ask(question, on: connection, patience.answer, cancellation)
    }

    private func ask(
        _ question: MediaQuestion, on connection: MediaConnection, _ limit: TimeAmount,
        _ cancellation: MediaCancellation
    ) throws(MediaError) -> Outcome {
        connection.send(question.head)
        while true {
            let part = try connection.part(of: question, within: limit, cancellation)
            guard case .head(let head) = part else { throw question.misunderstood }
            // It only says that the answer takes longer.
            if head.status.code < 200 { continue }
            if let pause = question.pause(asked: head) { return .later(pause) }
            try question.check(head)
            return .bytes(connection)
        }
    }

    // MARK: Connections

    private func keep(_ connection: MediaConnection) {
        let other = kept.withLock { kept in
            kept.append(connection)
            return kept.count > Self.keptMax ? kept.removeFirst() : nil
        }
        withExtendedLifetime(other) {}
    }

    /// The others are to the same nobody, as a rule, and would be waited for in turn.
    private func forgetKept() {
        let all = kept.withLock { kept in
            defer { kept = [] }
            return kept
        }
        withExtendedLifetime(all) {}
    }

    private func takeKept(to address: HostPort) -> MediaConnection? {
        while let connection = kept.withLock({ $0.popLast() }) {
            if connection.address == address, connection.isActive { return connection }
        }
        return nil
    }
}

/// What a node sends of an asset to one question, some bytes at a time.
///
/// One thread at a time. The connection ends with it, unless all was taken.
private final class MediaAnswer: ByteAnswer {
    private let question: MediaQuestion
    private let patience: MediaClient.Patience
    private let cancellation: MediaCancellation
    private let whenTaken: (MediaConnection) -> Void
    /// `nil` when all of it was taken.
    private var connection: MediaConnection?
    private var missing: Int
    /// How long was waited for the latest bytes, which are fewer than ``MediaClient/Patience/least``.
    private var latest = (waited: TimeAmount.zero, count: 0)

    /// - Parameter whenTaken: gets the connection, which is free for another question.
    init(
        to question: MediaQuestion, on connection: MediaConnection,
        _ patience: MediaClient.Patience, _ cancellation: MediaCancellation,
        whenTaken: @escaping (MediaConnection) -> Void
    ) {
        self.question = question
        self.connection = connection
        self.patience = patience
        self.cancellation = cancellation
        self.whenTaken = whenTaken
        missing = question.byteCount
    }

    func next() throws(MediaError) -> [UInt8] {
        guard let connection else { return [] }
        switch try part(connection) {
        case .body(let bytes) where bytes.readableBytes <= missing:
            missing -= bytes.readableBytes
            latest.count += bytes.readableBytes
            if latest.count >= patience.least { latest = (.zero, 0) }
            if missing == 0 {
                // Its length was announced: the end comes with the last byte.
                guard case .end = try part(connection) else { throw question.misunderstood }
                self.connection = nil
                whenTaken(connection)
            }
            return Array(bytes.readableBytesView)
        case .head, .body, .end: throw question.misunderstood
        }
    }

    /// What its reader does in between does not count.
    private func part(_ connection: MediaConnection) throws(MediaError) -> HTTPClientResponsePart {
        let begin = NIODeadline.now()
        let left = max(.zero, patience.answer - latest.waited)
        defer { latest.waited = latest.waited + (NIODeadline.now() - begin) }
        return try connection.part(of: question, within: left, cancellation)
    }
}
