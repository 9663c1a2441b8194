import Logging
import NIOCore
import TuttiGroupControl
import TuttiLinuxHost
import TuttiWire

// Who comes to the leader's port: rooms and control clients.

extension Leading {
    func serve(_ channel: any Channel, _ visitor: Visitor) async {
        let remote = channel.remoteAddress.map { "\($0)" } ?? "?"
        // Whoever connects and says nothing is cut off; a room or client that spoke may stay.
        let deadline = channel.eventLoop.scheduleTask(
            in: .nanoseconds(NodeServer.firstWordLimit.wholeNanoseconds)
        ) { channel.close(promise: nil) }
        do {
            let crowd = crowd
            let client = try await channel.asyncChannel(of: EnvelopeChannel.self) {
                // What is said to one that does not read waits here, where it is counted.
                try $0.syncOptions?.setOption(
                    .socketOption(.so_sndbuf), value: SocketOptionValue(MediaService.sendBuffer))
                try EnvelopeCodec.add(
                    to: $0, limit: FrameDecoder.leaderLimit, pace: .toLeader, crowd: crowd)
            }
            try await client.executeThenClose { inbound, outbound in
                var envelopes = inbound.makeAsyncIterator()
                guard let first = try await envelopes.next() else { return }
                deadline.cancel()
                switch first {
                case .request(let request):
                    guard visitor.becomes(.client) else { return }
                    let control = ControlLink(
                        channel: channel, core: core, reader: reader, replies: replies)
                    defer { control.end() }
                    var next: Envelope? = .request(request)
                    while case .request(let request)? = next {
                        visitor.isUseful(andBusy: true)
                        guard try await control.take(request) else { return }
                        visitor.isUseful()
                        next = try await envelopes.next()
                    }
                case .toLeader(let hello):
                    guard visitor.becomes(.room) else { return }
                    try await Self.serveRoom(
                        hello, client, visitor, inbound: &envelopes, outbound, core,
                        services.notices)
                case .toRoom, .reply:
                    break
                }
            }
        } catch {
            logger.debug(
                "link ended", metadata: ["from": "\(remote)", "reason": "\(reason(of: error))"])
        }
    }

    private static func serveRoom(
        _ hello: RoomToLeader, _ client: EnvelopeChannel, _ visitor: Visitor,
        inbound: inout NIOAsyncChannelInboundStream<Envelope>.AsyncIterator,
        _ outbound: NIOAsyncChannelOutboundWriter<Envelope>, _ core: LeaderCore,
        _ notices: CommitDatagramSender?
    ) async throws {
        let outbox = Outbox<LeaderToRoom> { $0.roughSize }
        client.cut(after: outbox)
        let room = client.channel.remoteAddress
        let link = await core.open(
            outbox,
            notifier: { notice, port, seal in
                if let room { notices?.send(notice, to: room, port: port, seal: seal) }
            }, host: room.flatMap(Self.host))
        await withThrowingTaskGroup { group in
            group.addTask { try await client.say(outbox, on: outbound) { .toRoom($0) } }
            await core.receive(hello, from: link)
            do {
                while case .toLeader(let message)? = try await inbound.next() {
                    visitor.isUseful()
                    await core.receive(message, from: link)
                }
            } catch {}
            await core.closed(link)
            group.cancelAll()
        }
    }

    /// Where a room is, for the others; `nil` for one on this machine, which is where its leader is.
    static func host(of address: SocketAddress) -> String? {
        let text = unsafe address.withSockAddr { bytes, count in
            unsafe numericHost(UnsafeRawBufferPointer(start: bytes, count: count))
        }
        guard let host = text, host != "::1", !host.hasPrefix("127."),
            !host.hasPrefix("::ffff:127.")
        else { return nil }
        return host.hasPrefix("::ffff:") ? String(host.dropFirst("::ffff:".count)) : host
    }
}
