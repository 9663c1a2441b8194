import Synchronization
import TuttiFFmpegMedia
public import TuttiGroupControl
import TuttiPlayout

/// What there is to say while music is put into a queue that is elsewhere.
public enum AdditionNews: Equatable, Sendable {
    /// Something that was named is left out.
    case leftOut(subject: String, reason: String, isMissed: Bool)
    /// So many bytes of a file have been sent.
    case sending(name: String, sent: Int64, whole: Int64)
}

extension GroupClient {
    /// Puts files, folders, playlists and addresses into the queue. A leader on this machine reads
    /// paths itself. One that is elsewhere is sent the bytes it does not have. What cannot be added is
    /// left out, and the others are added.
    ///
    /// - Parameter news: is told of each that is left out, except where it is all there was: that is
    ///   the error.
    /// - Throws: `RoomError`: nothing was found that can be sent, or the leader takes no more; what was sent
    ///   before is in the queue, if it belongs at its end.
    public func add(
        _ arguments: [String], at place: QueuePlace,
        news: @escaping @Sendable (AdditionNews) -> Void
    ) async throws {
        if try await isOnThisMachine() {
            try await addNaming(arguments, at: place, news: news)
        } else {
            try await addSending(arguments, at: place, news: news)
        }
    }

    /// To a leader that has the same files.
    private func addNaming(
        _ arguments: [String], at place: QueuePlace,
        news: @escaping @Sendable (AdditionNews) -> Void
    ) async throws {
        let paths = arguments.filter { !PlaylistPlace.isRemote($0) }
        // A disk may hang.
        let missing = try await blocking { _ throws(MediaError) in
            Dictionary(
                paths.compactMap { path in LeaderControl.obstacle(to: path).map { (path, $0) } },
                uniquingKeysWith: { first, _ in first })
        }
        var misses = Misses(news)
        for path in arguments {
            guard let reason = missing[path] else { continue }
            misses.note(.leftOut(subject: path.readableFileName, reason: reason, isMissed: true))
        }
        let locations = arguments.filter { missing[$0] == nil }
        guard !locations.isEmpty else { throw misses.error }
        misses.tell()
        for part in QueueAddition(locations: locations, place: place).parts {
            try await add(part)
        }
    }

    /// To a leader that is elsewhere.
    func addSending(
        _ arguments: [String], at place: QueuePlace,
        news: @escaping @Sendable (AdditionNews) -> Void
    ) async throws {
        // Playlists at an address are the leader's to read.
        let list = Mutex(
            AssetList(
                arguments.map {
                    PlaylistPlace.isRemote($0)
                        ? .item(AssetList.Item(location: $0, isMissed: true)) : .location($0)
                }))
        let uploader = Uploader(address: address, timeout: timeout, credentials: credentials)
        var locations: [String] = []
        var isAnyFound = false
        var misses = Misses(news)
        while let step = try await blocking({ cancellation throws(MediaError) in
            list.withLock { $0.next(cancellation) }
        }) {
            switch step {
            case .passedOver(let passed):
                misses.note(
                    .leftOut(
                        subject: passed.subject, reason: passed.reason, isMissed: passed.isMissed))
            case .item(let item):
                do {
                    locations.append(try await location(of: item, uploader, news))
                } catch let error as MediaError where error.code != .cancelled {
                    // One bad file of an album is no reason to leave out the others.
                    misses.note(
                        .leftOut(
                            subject: error.subject, reason: error.reason, isMissed: true))
                    continue
                }
                isAnyFound = true
                misses.tell()
                // What comes at the end may begin to play while the rest is sent.
                if place == .end {
                    try await add(QueueAddition(locations: locations, place: place))
                    locations = []
                }
            }
        }
        guard isAnyFound else { throw misses.error }
        for part in QueueAddition(locations: locations, place: place).parts {
            try await add(part)
        }
    }

    private func location(
        of item: AssetList.Item, _ uploader: Uploader,
        _ news: @escaping @Sendable (AdditionNews) -> Void
    ) async throws -> String {
        let name = AssetName.shown(item.location)
        if PlaylistPlace.isRemote(item.location) {
            guard item.span == nil else {
                throw RoomError(
                    .refused,
                    "\(name) is at an address, and the cue sheet is here: put the sheet there too, and add its address"
                )
            }
            return item.location
        }
        let id = try await uploader.send(item.location) {
            news(.sending(name: name, sent: $0, whole: $1))
        }
        // Bytes are kept once, under the name that they came with first.
        let title = item.title ?? AssetName.title(of: name)
        return UploadReference(id: id, title: title, span: item.span).text
    }
}

/// What was to be added and is left out. Where it is the only thing that was meant, it is the error,
/// and is not told before.
private struct Misses {
    private let news: @Sendable (AdditionNews) -> Void
    /// The only one so far that somebody misses.
    private var held: AdditionNews?
    private var isHolding = true
    private var count = 0

    init(_ news: @escaping @Sendable (AdditionNews) -> Void) { self.news = news }

    mutating func note(_ one: AdditionNews) {
        guard case .leftOut(_, _, true) = one else { return news(one) }
        count += 1
        guard count > 1 || !isHolding else {
            held = one
            return
        }
        tell()
        news(one)
    }

    /// From now on each is told at once.
    mutating func tell() {
        isHolding = false
        if let held { news(held) }
        held = nil
    }

    /// Nothing else was found.
    var error: RoomError {
        if case .leftOut(let subject, let reason, _)? = held {
            return RoomError(.badAsset, "\(subject): \(reason)")
        }
        return RoomError(
            .badAsset,
            count == 0
                ? "there is nothing to play in what was given"
                : "nothing was added: none of \(count) can be, each for the reason above")
    }
}
