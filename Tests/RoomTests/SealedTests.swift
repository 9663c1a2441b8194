import Logging
import NIOCore
import NIOPosix
import Synchronization
import Testing
import TuttiClockSync
import TuttiDeviceOutput
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayout
import TuttiRealTime
import TuttiTiming
import TuttiTrust
import TuttiWire

@testable import TuttiRoom

extension IntegrationTests {
    /// Datagrams with tags, and strangers that have none.
    @Suite struct Sealed {
        private static let quiet = Logger(
            label: "sealed", factory: { _ in SwiftLogNoOpLogHandler() })

        @Test(.timeLimit(.minutes(2)))
        func `a group keeps together behind its tags, through another leader too`() async throws {
            try await withGroup(isHousehold: true) { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 3, as: "a.wav")
                try group.prepareHousehold(["leader", "bath"])
                try await group.lead([asset], roomsToWaitFor: 2)
                group.follow("bath")
                func untilLocked(_ leader: String) async throws {
                    let status = try await group.untilStatus("the clock of \(leader) is known") {
                        $0.leader == leader && $0.rooms.count == 2
                            && $0.rooms.allSatisfy { $0.state == .playing }
                            && $0.rooms.allSatisfy { $0.sync?.clock == .locked }
                    }
                    // One that was under way when the term changed is of another one.
                    for drops in status.rooms.map(\.sync?.dropped) + [status.dropped] {
                        #expect(drops?.untagged ?? 0 == 0 && drops?.replayed ?? 0 == 0)
                    }
                }
                try await untilLocked("leader")
                try await group.perform(.handOver(to: RoomID("bath")))
                try await group.goOver(to: "bath")
                try await untilLocked("bath")

                // Whoever has no key, or another household's, is not answered, and is seen where it is
                // none that looks for its leader's address; a control client is given one.
                let address = group.address
                let client = try await group.client()
                let tags = try #require(try await client.datagramTags())
                let stranger = try ExchangeFacts.measure(
                    host: address.host, port: address.port, count: 3)
                let member = try ExchangeFacts.measure(
                    host: address.host, port: address.port, count: 3, tags: tags)
                let others = SharedLeaderTags(session: 1)
                let key = try #require(others.grant(to: 1, at: HostClock.now()).key)
                let forger = try ExchangeFacts.measure(
                    host: address.host, port: address.port, count: 3,
                    tags: SharedRoomTags(try RoomTags(try DatagramGrant(key))))
                #expect(stranger.answered == 0 && forger.answered == 0)
                #expect(member.answered == 3)
                let after = try await group.untilStatus("it was seen") { $0.dropped != nil }
                let drops = try #require(after.dropped)
                #expect(drops.untagged + drops.ofOtherTerm == 3 && drops.replayed == 0)
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `where nothing is sealed everybody is answered, as before`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 3, as: "a.wav")
                try await group.lead([asset], roomsToWaitFor: 2)
                group.follow("bath")
                // It goes by what it is told.
                group.follow("attic") { $0.sealsDatagrams = true }
                try await group.untilStatus("the clocks are known") {
                    $0.rooms.count == 3 && $0.rooms.allSatisfy { $0.sync?.clock == .locked }
                }
                #expect(try await group.client().datagramTags() == nil)
                let address = group.address
                let facts = try ExchangeFacts.measure(
                    host: address.host, port: address.port, count: 3)
                #expect(facts.answered == 3)
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a leader that seals is asked once it has given a key, and then at once`() async throws
        {
            let leader = SharedLeaderTags(session: 4)
            let told = SharedClock.own(at: LocalInstant(nanoseconds: 0), epoch: 5)
            let service = try TimeService.start(port: 0, priority: 0, tags: leader) { told }
            defer { service.stop() }
            let clock = RemoteClock(
                priority: 0, broadcasts: false, sealed: true, store: nil, logger: Self.quiet)
            defer { clock.stop() }
            clock.approach(HostPort(host: "127.0.0.1", port: service.port))
            try await Task.sleep(for: .milliseconds(50))
            #expect(leader.drops == .zero)
            var welcome = Welcome(
                leaderName: "attic", timePort: UInt16(service.port), mediaPort: 1, term: 4,
                groupClockEpoch: 5)
            var keys = RoomKeys()
            func follow(link: LinkID) throws {
                welcome.datagramKey = leader.grant(to: link, at: HostClock.now()).key
                try keys.begin(welcome.datagramKey, at: HostClock.now())
                clock.setHost("127.0.0.1")
                clock.follow(welcome, keys.tags)
            }
            try follow(link: 1)
            clock.expectStart(.joining)
            try await until("it is known") { clock.cell.load().quality == .locked }
            // The link breaks, another key comes, the link is made anew: nothing begins anew.
            let (cell, answered) = (clock.cell, service.answered)
            leader { $0.end(1) }
            try await until("it asks on") { service.answered > answered + 3 }
            for (link, key) in leader.beginTerm(at: HostClock.now()) where link == 1 {
                try keys.change(to: key, at: HostClock.now())
            }
            try follow(link: 2)
            let later = service.answered
            try await until("it asks on") { service.answered > later + 3 }
            #expect(clock.cell === cell && cell.load().quality == .locked)
            #expect(clock.figures.statistics.restarts == 0)
            #expect(keys.drops.untagged + keys.drops.replayed == 0)
        }

        // MARK: Commits

        /// A leader and its room in this process, and what a capture of their link would show.
        private struct Pair {
            let core: LeaderCore
            let room: Member
            let listener: CommitDatagramListener
            let sender: CommitDatagramSender
            let service: any Channel
            let output: OutputThread
            let seen: Seen

            final class Seen: Sendable {
                let hello = Mutex<Hello?>(nil)
                let commit = Mutex<Commit?>(nil)
            }

            init(_ path: String, tags: SharedLeaderTags?) async throws {
                let clock = LeaderClock(epoch: 5)
                let rate = TemporaryFolder.sampleRate
                let item = try AssetDescriptor(
                    hash: ContentHash(words: (1, 2, 3, 4)), byteCount: 1_000, sampleRate: rate,
                    frameCount: Int64(60 * rate), title: "noise", fileExtension: "wav")
                let core = LeaderCore(
                    LeaderConfiguration(
                        name: "kitchen", queue: [item], term: 1, groupClockEpoch: 5, timePort: 1,
                        mediaPort: 1),
                    clock: clock, tags: tags, logger: quiet, ended: {})
                self.core = core
                service = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    .bind(to: SocketAddress(ipAddress: "0.0.0.0", port: 0)).get()
                let listener = try #require(await CommitDatagramListener.open(logger: quiet))
                let sender = try #require(
                    await CommitDatagramSender.open(beside: service, logger: quiet))
                (self.listener, self.sender) = (listener, sender)
                output = try OutputThread.open(
                    .virtual(VirtualCardOptions()), sampleRate: rate, bufferMilliseconds: 200,
                    realTimePriority: 0)
                let seen = Seen()
                self.seen = seen
                var options = Member.Options()
                options.notices = listener
                room = Member(
                    name: try RoomID("bath"), output: output, clock: OwnClock(clock),
                    logger: quiet, options: options, assets: LocalAsset(path: path),
                    uplink: { await Self.uplink($0, $1, core, sender, seen) })
            }

            private static func uplink(
                _ member: Member, _ attempt: Int, _ core: LeaderCore,
                _ sender: CommitDatagramSender, _ seen: Seen
            ) async -> String {
                let toRoom = Outbox<LeaderToRoom>()
                let toLeader = Outbox<RoomToLeader>()
                let link = await core.open(
                    toRoom,
                    notifier: { notice, port, seal in
                        guard let here = try? SocketAddress(ipAddress: "127.0.0.1", port: 1) else {
                            return
                        }
                        sender.send(notice, to: here, port: port, seal: seal)
                    })
                await withDiscardingTaskGroup { group in
                    group.addTask {
                        for await message in toLeader.messages {
                            if case .hello(let hello) = message {
                                seen.hello.withLock { $0 = hello }
                            }
                            await core.receive(message, from: link)
                        }
                        await core.closed(link)
                    }
                    await member.linkUp(toLeader, attempt, foundAt: HostClock.now())
                    for await message in toRoom.messages {
                        if case .commit(let commit) = message {
                            seen.commit.withLock { $0 = commit }
                        }
                        await member.receive(message, attempt)
                    }
                    toLeader.finish()
                }
                return "the leader ended"
            }

            var status: RoomStatus? {
                get async { await core.status(hasPoints: false).rooms.first }
            }

            /// As the room has said it. What has a number that was taken already is taken for a replay,
            /// whatever its tag is.
            var droppedCount: Int {
                get async {
                    let drops = await status?.sync?.dropped ?? .zero
                    return drops.untagged + drops.replayed + drops.ofOtherTerm
                }
            }

            /// Whether an item is being played in the room itself.
            var sounds: Bool {
                output.port.voices.contains { $0.report.state == .playing }
            }

            func close() async throws {
                sender.close()
                try await service.close()
            }
        }

        private struct LocalAsset: AssetSource {
            let path: String

            func file(of asset: AssetDescriptor, _ welcome: Welcome?) -> Member.AssetFile {
                Member.AssetFile(path: path)
            }

            func complete(
                _ incoming: IncomingFile, of asset: AssetDescriptor, _ welcome: Welcome?
            ) -> Member.AssetFile { Member.AssetFile(path: path) }

            func removePart(of incoming: IncomingFile) {}
        }

        /// Found in an attack: whoever has seen a room's number once could pause it for ever after.
        @Test(.timeLimit(.minutes(1)), arguments: [true, false])
        func `a forged commit with a captured number pauses a room only where nothing is sealed`(
            isSealed: Bool
        ) async throws {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let path = try folder.writeNoise(seconds: 60, seed: 5, as: "a.wav")
            let tags = isSealed ? SharedLeaderTags(session: 1) : nil
            let pair = try await Pair(path, tags: tags)
            try await withThrowingTaskGroup { tasks in
                tasks.addTask { await pair.core.run() }
                tasks.addTask { await pair.room.run() }
                try await until("it plays") { await pair.status?.sync?.line == "on the line" }
                let hello = try #require(pair.seen.hello.withLock { $0 })
                let committed = try #require(pair.seen.commit.withLock { $0 })
                var pause = committed
                pause.change = RateChange(
                    itemFrame: 0, instant: GroupInstant(nanoseconds: HostClock.now().nanoseconds),
                    rate: 0)
                let notice = CommitDatagram(instance: hello.instance, term: 1, commit: pause)
                let there = try SocketAddress(ipAddress: "127.0.0.1", port: Int(hello.noticePort))
                // Without a tag, and with one of another household.
                pair.sender.send(notice, to: there, port: hello.noticePort)
                let other = SharedLeaderTags(session: 1)
                _ = other.grant(to: 1, at: HostClock.now())
                pair.sender.send(notice, to: there, port: hello.noticePort) { bytes in
                    other { $0.seal(commit: bytes, to: 1, at: HostClock.now()) }
                }
                if isSealed {
                    // Each goes twice.
                    try await until("they are counted") { await pair.droppedCount == 4 }
                    #expect(await pair.status?.sync?.line == "on the line")
                    #expect(pair.sounds)
                    // The leader's own are heard, also under another key.
                    await pair.core.rekey()
                    _ = await pair.core.perform(.pause)
                    try await until("it is paused") { !pair.sounds }
                    #expect(await pair.droppedCount == 4)
                } else {
                    try await until("it is paused, though nobody has asked for it") {
                        !pair.sounds
                    }
                }
                tasks.cancelAll()
            }
            try await pair.close()
        }
    }
}
