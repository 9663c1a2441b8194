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
        case .add(let addition): .outcome(await core.refusal ?? add(addition))
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

    /// A path is one of this machine, and only from here: who is elsewhere would have read to the
    /// house whatever this machine may read.
    private func add(_ addition: QueueAddition) -> CommandOutcome {
        guard !addition.locations.isEmpty else {
            return .refused(reason: "nothing was named to be added")
        }
        for location in addition.locations where !PlaylistPlace.isRemote(location) {
            let name = location.readableFileName
            guard isFromHere else {
                return .refused(
                    reason:
                        "\(name) is a file of another machine: give the leader an address (http://...) of it"
                )
            }
            var status = stat()
            guard location.hasPrefix("file:") || stat(location.cFileName, &status) == 0 else {
                return .refused(reason: "\(name): \(String(cString: strerror(errno)))")
            }
        }
        reader.add(addition.locations, at: addition.place)
        return .accepted
    }

    private var isFromHere: Bool {
        guard let remote = channel.remoteAddress?.ipAddress else { return false }
        let isLoopback =
            remote.hasPrefix("127.") || remote == "::1"
            || remote.hasPrefix("::ffff:127.")
        return isLoopback || remote == channel.localAddress?.ipAddress
    }
}
