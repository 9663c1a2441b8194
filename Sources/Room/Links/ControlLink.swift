import NIOCore
import Synchronization
import TuttiGroupControl
import TuttiWire

/// One connection of a control client, at the leader: answers its questions in their order and, when
/// it watches, tells it of every change in between.
final class ControlLink: Sendable {
    private let channel: any Channel
    private let control: LeaderControl
    private let replies: ReplyBudget
    private let watching = Mutex<Task<Void, Never>?>(nil)
    /// As which it has a key for datagrams.
    private let guest = Mutex<LinkID?>(nil)

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

    func end() {
        watching.withLock { $0 }?.cancel()
        if let guest = guest.withLock({ $0.take() }) { control.core.end(guest: guest) }
    }

    private func answer(_ request: ControlRequest) async throws -> ControlReply {
        do {
            switch request {
            case .status, .watch: return .status(try await control.status(hasPoints: false))
            case .syncStatus: return .status(try await control.status(hasPoints: true))
            case .command(let command): return .done(try await control.perform(command))
            case .queue(let first, let count):
                return .queue(try await control.queue(first: first, count: count))
            case .datagramKey: return .datagramKey(key())
            case .lead(let claim):
                if let claim {
                    await control.core.take(claim.sight, of: place(of: claim))
                }
                guard let sight = await control.core.sight else {
                    return .refused(reason: "this leader has no name")
                }
                return .lead(sight)
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

    private func place(of claim: LeadClaim) -> NextLeader {
        // Empty: this machine, for whoever is told of it.
        let host = channel.remoteAddress.flatMap(Leading.host) ?? ""
        return NextLeader(name: claim.sight.room, host: host, port: claim.port)
    }

    /// Asked again, a client is somebody else.
    private func key() -> DatagramKey? {
        let given = control.core.keyForGuest()
        let before = guest.withLock { guest in
            defer { guest = given?.guest }
            return guest
        }
        if let before { control.core.end(guest: before) }
        return given?.key
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
