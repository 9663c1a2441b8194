import FFmpegMedia
import Glibc
import GroupControl
import NIOCore
import Playout
import Synchronization
import Wire

/// One connection of a control client, at the leader: answers its questions in their order and, when
/// it watches, tells it of every change in between.
final class ControlLink: Sendable {
    /// Between two events of one client: changes that come closer are told together.
    static let eventInterval = Duration.milliseconds(100)

    private let channel: any Channel
    private let core: LeaderCore
    private let reader: AssetReader
    private let replies: ReplyBudget
    private let watching = Mutex<Task<Void, Never>?>(nil)

    init(channel: any Channel, core: LeaderCore, reader: AssetReader, replies: ReplyBudget) {
        self.channel = channel
        self.core = core
        self.reader = reader
        self.replies = replies
    }

    /// Answers a request.
    ///
    /// - Returns: false when too many replies wait for their readers: the client has to go.
    func take(_ request: ControlRequest) async throws -> Bool {
        guard case .watch = request else { return try await say(answer(request)) }
        watching.withLock { task in
            if task == nil { task = Task { await tellEvents() } }
        }
        return true
    }

    func end() { watching.withLock { $0 }?.cancel() }

    private func answer(_ request: ControlRequest) async -> ControlReply {
        switch request {
        case .status, .watch: .status(await core.status(hasPoints: false))
        case .syncStatus: .status(await core.status(hasPoints: true))
        case .command(let command): .outcome(await core.perform(command))
        case .queue(let first, let count): .queue(await core.listing(from: first, count: count))
        case .add(let addition): .outcome(await addOrRefuse(addition))
        }
    }

    /// - Returns: false when too many replies wait for their readers.
    private func say(_ reply: ControlReply) async throws -> Bool {
        let size = reply.roughSize
        guard replies.take(size) else { return false }
        defer { replies.give(size) }
        try await channel.hand(.reply(reply), within: .seconds(ReplyBudget.secondsToTake))
        return true
    }

    /// Until the client is gone, or does not read.
    private func tellEvents() async {
        for await _ in core.watch() {
            guard !Task.isCancelled, channel.isActive,
                (try? await say(.event(core.event()))) == true
            else { break }
            try? await Task.sleep(for: Self.eventInterval)
        }
        channel.close(promise: nil)
    }

    // MARK: Adding

    private func addOrRefuse(_ addition: QueueAddition) async -> CommandOutcome {
        if let refusal = await core.refusal { return refusal }
        return await add(addition)
    }

    /// A path is one of this machine, and only from here: who is elsewhere would have read to the
    /// house whatever this machine may read.
    private func add(_ addition: QueueAddition) async -> CommandOutcome {
        guard !addition.locations.isEmpty else {
            return .refused(reason: "nothing was named to be added")
        }
        let paths = addition.locations.filter { !PlaylistPlace.isRemote($0) }
        if let first = paths.first, !isFromHere {
            let name = first.readableFileName
            return .refused(
                reason:
                    "\(name) is a file of another machine: give the leader an address (http://...) of it"
            )
        }
        // A disk may hang.
        let missing = try? await blocking { _ throws(MediaError) in Self.obstacle(among: paths) }
        if let reason = missing ?? nil { return .refused(reason: reason) }
        reader.add(addition.locations, at: addition.place)
        return .accepted
    }

    /// Why the first of these paths that leads nowhere does not; blocks.
    private static func obstacle(among paths: [String]) -> String? {
        for path in paths where !path.hasPrefix("file:") {
            var status = stat()
            guard stat(path.cFileName, &status) == 0 else {
                return "\(path.readableFileName): \(String(cString: strerror(errno)))"
            }
        }
        return nil
    }

    private var isFromHere: Bool {
        guard let remote = channel.remoteAddress?.ipAddress else { return false }
        let isLoopback =
            remote.hasPrefix("127.") || remote == "::1"
            || remote.hasPrefix("::ffff:127.")
        return isLoopback || remote == channel.localAddress?.ipAddress
    }
}
