import GroupControl
import NIOCore
import Synchronization
import Wire

/// One connection of a control client, at the leader: answers its questions in their order and, when
/// it watches, tells it of every change in between.
final class ControlLink: Sendable {
    private let channel: any Channel
    private let control: LeaderControl
    private let replies: ReplyBudget
    private let watching = Mutex<Task<Void, Never>?>(nil)

    init(channel: any Channel, core: LeaderCore, reader: AssetReader, replies: ReplyBudget) {
        self.channel = channel
        self.replies = replies
        control = LeaderControl(core: core, reader: reader, isFromHere: channel.isFromHere)
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

    private func answer(_ request: ControlRequest) async throws -> ControlReply {
        do {
            switch request {
            case .status, .watch: return .status(try await control.status(hasPoints: false))
            case .syncStatus: return .status(try await control.status(hasPoints: true))
            case .command(let command): return .done(try await control.perform(command))
            case .queue(let first, let count):
                return .queue(try await control.queue(first: first, count: count))
            case .wanted(let ahead, let most):
                return .wanted(try await control.wanted(ahead: ahead, most: most))
            case .read(let items):
                try await control.tell(items)
                return .done(await control.core.present)
            case .add(let addition):
                try await control.add(addition)
                return .done(await control.core.present)
            }
        } catch let error as RoomError {
            return .refused(reason: error.description)
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
        do {
            for try await event in control.events() {
                guard !Task.isCancelled, channel.isActive, try await say(.event(event)) else {
                    break
                }
            }
        } catch {}
        channel.close(promise: nil)
    }
}

extension Channel {
    /// Whether who is at the other end is on this machine.
    var isFromHere: Bool {
        guard let remote = remoteAddress?.ipAddress else { return false }
        let isLoopback =
            remote.hasPrefix("127.") || remote == "::1"
            || remote.hasPrefix("::ffff:127.")
        return isLoopback || remote == localAddress?.ipAddress
    }
}
