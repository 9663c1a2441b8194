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
    /// paths itself. One that is elsewhere is sent the bytes it does not have.
    ///
    /// - Throws: `RoomError`: nothing was found that can be sent, or the leader takes no more; what was sent
    ///   before is in the queue, if it belongs at its end.
    public func add(
        _ arguments: [String], at place: QueuePlace,
        news: @escaping @Sendable (AdditionNews) -> Void
    ) async throws {
        if try await isOnThisMachine() {
            for part in QueueAddition(locations: arguments, place: place).parts {
                try await add(part)
            }
            return
        }
        try await addSending(arguments, at: place, news: news)
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
        var failure: RoomError?
        while let step = try await blocking({ cancellation throws(MediaError) in
            list.withLock { $0.next(cancellation) }
        }) {
            switch step {
            case .passedOver(let passed):
                news(
                    .leftOut(
                        subject: passed.subject, reason: passed.reason, isMissed: passed.isMissed))
            case .item(let item):
                do {
                    locations.append(try await location(of: item, uploader, news))
                } catch let error as MediaError where error.code != .cancelled {
                    // One bad file of an album is no reason to leave out the others.
                    failure = RoomError(.badAsset, "\(error.subject): \(error.reason)")
                    news(
                        .leftOut(
                            subject: error.subject, reason: error.reason, isMissed: true))
                    continue
                }
                isAnyFound = true
                // What comes at the end may begin to play while the rest is sent.
                if place == .end {
                    try await add(QueueAddition(locations: locations, place: place))
                    locations = []
                }
            }
        }
        guard isAnyFound else {
            throw failure
                ?? RoomError(.badAsset, "there is nothing to play in what was given")
        }
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
        return UploadReference(id: id, title: item.title, span: item.span).text
    }
}
