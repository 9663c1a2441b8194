import Glibc
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiPlayout

/// The group as whoever steers it sees it, in the process of its leader.
struct LeaderControl: GroupControlling {
    /// Between two events: changes that come closer are told together.
    static let eventInterval = Duration.milliseconds(100)

    let core: LeaderCore
    let reader: AssetReader
    /// A path is one of this machine, and only from here: who is elsewhere would have read to the
    /// house whatever this machine may read.
    var isFromHere = true

    func status(hasPoints: Bool) async throws -> GroupStatus {
        let status = await core.status(hasPoints: hasPoints)
        try await core.checkLeads()
        return status
    }

    func perform(_ command: GroupCommand) async throws -> CommandEffect {
        guard case .handOver = command else { return try await core.effect(of: command) }
        return try await core.effect(of: command) { [reader] in
            reader.isListing ? LeaderMachine.stillListing : nil
        }
    }

    func queue(first: Int, count: Int) async throws -> QueueListing {
        // Asked first: what is listed by now is in the queue by the time that this is looked at.
        let isListing = reader.isListing
        let listing = await core.listing(from: first, count: count)
        try await core.checkLeads()
        return reader.complete(listing, isListing: isListing)
    }

    func events() -> AsyncThrowingStream<GroupEvent, any Error> {
        AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let task = Task {
                for await _ in core.watch() {
                    guard !Task.isCancelled, let event = await core.event() else { break }
                    continuation.yield(event)
                    try? await Task.sleep(for: Self.eventInterval)
                }
                var reason = "the leader has ended"
                if case .refused(let elsewhere)? = await core.refusal { reason = elsewhere }
                continuation.finish(throwing: RoomError(.unreachable, reason))
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    func add(_ addition: QueueAddition) async throws {
        if case .refused(let reason)? = await core.refusal { throw RoomError(.refused, reason) }
        guard !addition.locations.isEmpty else {
            throw RoomError(.refused, "nothing was named to be added")
        }
        if let obstacle = addition.locations.compactMap(QueueAddition.obstacle).first {
            throw RoomError(.refused, obstacle)
        }
        var arguments: [AssetList.Argument] = []
        for location in addition.locations {
            if let reference = UploadReference(location) {
                // What is in a file of others is not looked for on this machine.
                arguments.append(.item(try sent(reference)))
            } else if PlaylistPlace.isRemote(location) || isFromHere {
                arguments.append(.location(location))
            } else {
                let name = location.readableFileName
                throw RoomError(
                    .refused,
                    "\(name) is a path, and this leader is on another machine: send the file, or give an address (http://...) of it"
                )
            }
        }
        let paths = arguments.compactMap {
            if case .location(let path) = $0, !PlaylistPlace.isRemote(path) { path } else { nil }
        }
        // A disk may hang.
        let missing = try? await blocking { _ throws(MediaError) in Self.obstacle(among: paths) }
        if let reason = missing ?? nil { throw RoomError(.refused, reason) }
        try await core.unlessHandingOver { [reader, arguments] in
            reader.add(arguments, at: addition.place)
        }
    }

    /// A file that another machine has sent.
    private func sent(_ reference: UploadReference) throws -> AssetList.Item {
        guard let path = reader.uploads?.path(of: reference.id) else {
            throw RoomError(
                .refused, "a file that was to be added is not here any more; send it again")
        }
        return AssetList.Item(
            location: path, title: reference.title, span: reference.span, isMissed: true)
    }

    /// Why the first of these paths that leads nowhere does not; blocks.
    private static func obstacle(among paths: [String]) -> String? {
        for path in paths {
            if let reason = obstacle(to: path) { return "\(path.readableFileName): \(reason)" }
        }
        return nil
    }

    /// Why a path leads nowhere; `nil` where it leads somewhere, or is an address; blocks.
    static func obstacle(to path: String) -> String? {
        var status = stat()
        guard !path.hasPrefix("file:"), stat(path.cFileName, &status) != 0 else { return nil }
        return String(cString: strerror(errno))
    }
}
